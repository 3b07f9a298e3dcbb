"""The cases of crates/direct/tests/cases.json, which the tests of Rust and of Node run, too."""

import json
import pathlib
from typing import Any, Literal

import pytest
from trueio import direct

CASES = json.loads(
    (pathlib.Path(__file__).parents[3] / "crates" / "direct" / "tests" / "cases.json").read_text("utf-8")
)
FAILURES = {"end-of-file": direct.EndOfFileError, "held": direct.LockHeldError}


def carry_out(file: direct.DirectFile, other: direct.DirectFile, step: dict[str, Any]) -> int | str:
    call, offset, count = step["call"], step.get("offset", 0), step.get("bytes", 0)
    buffer = direct.AlignedBuffer(max(count, 1), 4096)[:count]
    match call:
        case "read_at" | "read_exact_at" | "write_all_at":
            transfer: direct.Transfer = getattr(file, call)(buffer, offset)
            return transfer.bytes
        case "size":
            return file.size()
        case "flush_default":
            return file.flush().level
        case "preallocate":
            direct.preallocate(file, offset, count)
            return file.size()
        case "try_lock":
            direct.try_lock(file, "exclusive")
        case "try_lock_elsewhere":
            direct.try_lock(other, "exclusive")
        case "unlock":
            direct.unlock(file)
        case "try_lock_range":
            direct.try_lock_range(file, "exclusive", offset, count)
        case "try_lock_range_elsewhere":
            direct.try_lock_range(other, "exclusive", offset, count)
        case "unlock_range":
            direct.unlock_range(file, offset, count)
        case _:
            raise AssertionError(f"cases.json names an unknown call, {call}")
    return 0


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_the_cases_that_all_languages_share(folder: pathlib.Path, case: dict[str, Any]) -> None:
    path = folder / "data"
    path.write_bytes(bytes([7]) * case["length"])
    mode: Literal["r", "r+"] = "r+" if case["mode"] == "read-write" else "r"
    with (
        direct.open(path, mode, policy=case["policy"]) as file,
        direct.open(path, mode, policy=case["policy"]) as other,
    ):
        for step in case["steps"]:
            if "fails" not in step:
                assert carry_out(file, other, step) == step["gives"], step
                continue
            with pytest.raises(FAILURES[step["fails"]]) as caught:
                carry_out(file, other, step)
            if "done" in step:
                assert isinstance(caught.value, direct.EndOfFileError) and caught.value.done == step["done"], step
