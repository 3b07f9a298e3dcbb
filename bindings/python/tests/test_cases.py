"""The cases of crates/direct/tests/cases.json, which the tests of Rust and of Node run, too."""

import builtins
import inspect
import json
import pathlib
import re
from typing import Any, Literal

import pytest
from trueio import direct
from trueio.direct import aio

CASES = json.loads(
    (pathlib.Path(__file__).parents[3] / "crates" / "direct" / "tests" / "cases.json").read_text("utf-8")
)


class Stopped(Exception):
    """What a function that is told of progress raises."""


FAILURES: dict[str, type[Exception]] = {
    "end-of-file": direct.EndOfFileError,
    "held": direct.LockHeldError,
    "exists": FileExistsError,
    "same-file": direct.CopyError,
    "too-short": direct.CopyError,
    "stopped": Stopped,
}


def copy(folder: pathlib.Path, policy: Literal["prefer", "off"], step: dict[str, Any]) -> int | None:
    """Copies the file `data` to `copy`, or looks at that."""
    source, destination, call = folder / "data", folder / "copy", step["call"]
    if call == "copy_size":
        return destination.stat().st_size if destination.exists() else None
    if call == "copy_sevens":
        return destination.read_bytes().count(7)
    reports: list[tuple[int, int]] = []

    def progress(done_bytes: int, total_bytes: int) -> None:
        reports.append((done_bytes, total_bytes))
        if call == "copy_file_stopped":
            raise Stopped

    copied = direct.copy_file(
        source,
        source if call == "copy_file_onto_itself" else destination,
        overwrite=step.get("overwrite", False),
        policy=policy,
        range=tuple(step["range"]) if "range" in step else None,
        destination_offset=step.get("destination_offset"),
        progress=progress,
    )
    total = copied.data_bytes + copied.hole_bytes
    assert reports[-1:] == ([(total, total)] if total else [])
    return total


def carry_out(file: direct.DirectFile, other: direct.DirectFile, step: dict[str, Any]) -> int | str:
    call, offset, count = step["call"], step.get("offset", 0), step.get("bytes", 0)
    buffer = direct.AlignedBuffer(max(count, 1), 4096)[:count]
    match call:
        case "read_at" | "read_exact_at" | "write_all_at":
            transfer: direct.Transfer = getattr(file, call)(buffer, offset)
            return transfer.bytes
        case "read_vectored_at" | "write_vectored_at":
            buffers = [direct.AlignedBuffer(max(length, 1), 4096)[:length] for length in step["parts"]]
            moved: direct.Transfer = getattr(file, call)(buffers, offset)
            return moved.bytes
        case "adopt":
            with direct.from_file(file) as adopted:
                return adopted.granted
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

            def act(step: dict[str, Any] = step) -> int | str | None:
                return copy(folder, case["policy"], step) if "copy" in step["call"] else carry_out(file, other, step)

            if "fails" not in step:
                assert act() == step["gives"], step
                continue
            with pytest.raises(FAILURES[step["fails"]]) as caught:
                act()
            if "done" in step:
                assert isinstance(caught.value, direct.EndOfFileError) and caught.value.done == step["done"], step


def test_the_names_of_the_page_that_compares_the_languages_exist() -> None:
    """Each cell is names in backticks, or words. A name of the module, of a file, of `open`, of an error, or of Python."""
    page = (pathlib.Path(__file__).parents[3] / "docs" / "bindings.md").read_text("utf-8")
    cells = [row.split(" | ")[2] for row in page.splitlines() if row.startswith("| `")]
    names = [name.split("(")[0] for cell in cells for name in re.findall(r"`([^`]+)`", cell)]
    assert len(names) > 30
    owners = [direct, direct.DirectFile, OSError(), builtins]
    options = inspect.signature(direct.open).parameters
    for name in names:
        option = name.split("=")[0]
        path = name.removeprefix("file.").split(".")
        owner = {"aio": aio, "Alignment": direct.Alignment}.get(path[0])
        is_known = hasattr(owner, path[1]) if owner is not None and path[1:] else any(hasattr(one, path[0]) for one in owners)
        assert is_known or option in options, name
