"""Writes a job as TOML.

Source: TOML 1.0, sections String and Keys.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any


def job_file(job: Mapping[str, Any]) -> str:
    """Returns a job file: of the options of one job, or of the tables `defaults` and `job`."""
    if not isinstance(job.get("job"), Mapping):
        job = {"job": {"job": job}}
    unknown = [name for name in job if name not in ("defaults", "job")]
    if unknown:
        raise ValueError(f"a job file has the tables `defaults` and `job`, not `{unknown[0]}`")
    lines = []
    tables = [(["defaults"], job.get("defaults", {}))] + [(["job", name], table) for name, table in job["job"].items()]
    for keys, table in tables:
        lines.append(f"[{'.'.join(_string(key) for key in keys)}]")
        lines += [f"{_string(name)} = {_value(value)}" for name, value in table.items()]
    return "\n".join(lines) + "\n"


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, os.PathLike):
        return _string(os.fspath(value))
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, Sequence):
        return f"[{', '.join(_value(item) for item in value)}]"
    raise TypeError(f"an option is a text, a number, a bool, a path or a list of these, not {type(value).__name__}")


def _string(text: str) -> str:
    # A JSON string is a TOML string, except that TOML escapes DEL, too.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
