"""The files of `examples/`: they are run, not only read."""

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

import trueio

EXAMPLES = pathlib.Path(__file__).parents[3] / "examples"
NULL = {"ioengine": "null", "rw": "randrw", "bs": "4k", "size": "1g", "number_ios": 20_000}


def test_the_notebook_runs_and_shows_the_record(folder: pathlib.Path) -> None:
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    notebook = nbformat.read(EXAMPLES / "notebook.ipynb", as_version=4)
    nbformat.validate(notebook)
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(folder)}}).execute()
    shown = [output["data"].get("text/html", "") for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert "trueio run" in shown[0] and "record" in shown[0]
    assert list(folder.iterdir()) == []


def test_the_regression_test_passes_or_is_undecided(folder: pathlib.Path) -> None:
    environment = {**os.environ, "STORAGE_TEST_BUDGET": "3s", "TRUEIO_ACCEPT": "processor_wait", "TMPDIR": str(folder)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(EXAMPLES), str(EXAMPLES / "test_storage.py")]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=folder)
    assert re.search(r"1 (passed|skipped)", ended.stdout) or "p99" in ended.stdout, ended.stdout + ended.stderr


def test_the_snippets_of_ci_are_valid_and_use_options_that_exist() -> None:
    yaml = pytest.importorskip("yaml")
    github = yaml.safe_load((EXAMPLES / "ci/github-actions.yml").read_text())
    gitlab = yaml.safe_load((EXAMPLES / "ci/gitlab-ci.yml").read_text())
    scripts = [step["run"] for step in github["jobs"]["compare"]["steps"] if "run" in step] + gitlab["storage"]["script"]
    help_text = subprocess.run([trueio.find_program(), "compare", "--help"], capture_output=True, text=True, check=True).stdout
    used: set[str] = set()
    for script in scripts:
        subprocess.run(["bash", "-n"], input=script, text=True, check=True)
        if "trueio compare" in script:
            used.update(re.findall(r"--[a-z-]+", script))
    assert len(used) >= 4
    for option in used:
        assert re.search(rf"^\s+{option}\b", help_text, re.MULTILINE), option
    assert gitlab["storage"]["allow_failure"]["exit_codes"] == 3


def test_the_textfile_is_valid_to_a_client_of_prometheus(folder: pathlib.Path) -> None:
    parser = pytest.importorskip("prometheus_client.parser")
    record = trueio.run({"defaults": NULL, "job": {"a.b": {}}}, evidence=False)
    (folder / "record.json").write_text(json.dumps(record.document))
    text = folder / "record.prom"
    subprocess.run([trueio.find_program(), "report", str(folder / "record.json"), "--prom", str(text)], capture_output=True, check=True)
    families = {family.name: family.samples for family in parser.text_string_to_metric_families(text.read_text())}
    p99 = [one for one in families["trueio_latency_seconds"] if one.labels["quantile"] == "0.99" and one.labels["op"] == "read"]
    expected = record.percentile(99, op="read")
    assert expected is not None and p99[0].value == pytest.approx(expected / 1e9, rel=0.02)
    assert p99[0].labels["job"] == "a.b"


def test_the_units_are_valid_to_systemd() -> None:
    units = [str(EXAMPLES / f"prometheus/trueio-textfile.{kind}") for kind in ("service", "timer")]
    try:
        ended = subprocess.run(["systemd-analyze", "verify", *units], capture_output=True, text=True, check=False)
    except OSError:
        pytest.skip("systemd-analyze is not installed")
    # Neither the program nor its manual page is installed here.
    findings = [line for line in ended.stderr.splitlines() if "trueio-textfile" in line and "is not executable" not in line and "Command 'man " not in line]
    assert not findings, findings
