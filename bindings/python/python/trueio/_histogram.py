"""Latencies, every one of them, in the log-linear buckets of a record.

Each doubling holds 128 buckets, so a value is within 1/128 of the true one and never below it; values below 256 ns, count,
mean, minimum and maximum are exact. This is the arithmetic of `crates/model/src/histogram.rs` and
`crates/stats/src/quantile.rs`, and a test compares both.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ._errors import DocumentError

if TYPE_CHECKING:
    from . import _documents

_SUB_BITS = 7
_TAIL = 0.025


def _bucket(index: int) -> tuple[int, int]:
    """Returns the smallest and the largest value of a bucket."""
    if index < 256:
        return index, index
    shift = (index >> _SUB_BITS) - 1
    low = (index - (shift << _SUB_BITS)) << shift
    return low, low + (1 << shift) - 1


def minimum_count(share: float) -> int:
    """Returns the fewest values that support a quantile: 6 for 0.5, 368 for 0.99.

    Fewer have no finite 95 % interval for it (`crates/stats/src/binomial.rs`).
    """
    per_value = math.log(share) if share >= 0.5 else math.log1p(-share)
    return max(1, math.ceil(math.log(_TAIL) / per_value))


class Histogram:
    """The latencies of one kind of operation, in nanoseconds."""

    def __init__(self, document: _documents.Histogram) -> None:
        if document["sub_bits"] != _SUB_BITS:
            raise DocumentError(f"this histogram has {document['sub_bits']} sub-bucket bits; this package reads {_SUB_BITS}")
        self.count = document["total"]
        """How many values there are."""
        self.min_ns = document["min_ns"]
        """The exact minimum; None if there is no value."""
        self.max_ns = document["max_ns"]
        """The exact maximum; None if there is no value."""
        self.sum_ns = int(document["sum_ns"])
        """The exact sum."""
        self._steps = document["index"]
        self._counts = document["count"]

    @property
    def mean_ns(self) -> float | None:
        """The exact mean; None if there is no value."""
        return self.sum_ns / self.count if self.count else None

    def buckets(self) -> Iterator[tuple[int, int, int]]:
        """Returns the occupied buckets, smallest first: smallest value, largest value, count.

        Values from 2^42 ns (73 minutes) on are in none.
        """
        index = 0
        for step, count in zip(self._steps, self._counts, strict=True):
            index += step
            yield (*_bucket(index), count)

    def value_at_rank(self, rank: int) -> int | None:
        """Returns the value at a rank, from 1 (the smallest); None if there is no such rank."""
        if not 1 <= rank <= self.count or self.min_ns is None or self.max_ns is None:
            return None
        seen = 0
        for _, high, count in self.buckets():
            seen += count
            if seen >= rank:
                return min(max(high, self.min_ns), self.max_ns)
        return self.max_ns

    def percentile(self, percent: float) -> int | None:
        """Returns a percentile (99.9: the latency that 99.9 % do not exceed), in nanoseconds.

        None if the sample does not support it: p99.9 needs 3,688 values.
        """
        if not 0 < percent < 100:
            raise ValueError(f"a percentile is between 0 and 100, both excluded; {percent} is not")
        share = percent / 100
        if self.count < minimum_count(share):
            return None
        # 0.07 · 100 is 7.000000000000001 in binary; a part in 10^12 is taken off before rounding up.
        return self.value_at_rank(max(1, math.ceil(share * self.count * (1 - 1e-12))))

    def merged(self, other: Histogram) -> Histogram:
        """Returns the values of both."""
        counts: dict[int, int] = {}
        for part in (self, other):
            index = 0
            for step, count in zip(part._steps, part._counts, strict=True):
                index += step
                counts[index] = counts.get(index, 0) + count
        both = Histogram.__new__(Histogram)
        both.count = self.count + other.count
        both.sum_ns = self.sum_ns + other.sum_ns
        both.min_ns = min((ns for ns in (self.min_ns, other.min_ns) if ns is not None), default=None)
        both.max_ns = max((ns for ns in (self.max_ns, other.max_ns) if ns is not None), default=None)
        order = sorted(counts)
        both._steps = [index - before for index, before in zip(order, [0, *order[:-1]], strict=True)]
        both._counts = [counts[index] for index in order]
        return both

    def __repr__(self) -> str:
        return f"Histogram(count={self.count}, min_ns={self.min_ns}, max_ns={self.max_ns})"
