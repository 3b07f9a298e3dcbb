"""A regression test of storage, for pytest without a plugin: `pytest test_storage.py`.

Both sides run now, on the same machine, interleaved. The test fails only if the regression is shown: a comparison that is
undecided is a skip with its reason, not a failure.
"""

import os
import pathlib

import pytest

import trueio

BUDGET = os.environ.get("STORAGE_TEST_BUDGET", "30s")

BEFORE = '[job.log]\nrw = "write"\nbs = "4k"\nioengine = "psync"\nsync = "dsync"\nsize = "16m"\n'
AFTER = BEFORE.replace('"psync"', '"pvsync2"')


def test_durable_writes_did_not_become_slower(tmp_path: pathlib.Path) -> None:
    sides = []
    for name, job in (("before", BEFORE), ("after", AFTER)):
        sides.append(tmp_path / f"{name}.toml")
        sides[-1].write_text(job)
    comparison = trueio.compare(*sides, live=True, budget=BUDGET, fail_if=["p99 > +20%", "iops < -20%"], cwd=tmp_path)
    sentences = [f"{gate['condition']}: {gate['sentence']}" for gate in comparison.gates]
    assert not comparison.has_failed, sentences
    if comparison.is_undecided:
        pytest.skip(f"undecided, more time may help: {sentences}")
