"""trueio for Python. What there is lies in `trueio.direct`."""
