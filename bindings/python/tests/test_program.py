"""The program from Python: `run`, `baseline`, `compare`, their documents and their errors."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import sysconfig
import threading
import time

import pytest

import trueio

# Without I/O: fast, and the same on every machine.
NULL = {"ioengine": "null", "rw": "randrw", "bs": "4k", "size": "1g", "number_ios": 20_000}
LONG = {"ioengine": "null", "rw": "read", "size": "1m", "runtime": "1h", "time_based": True}


@pytest.fixture(scope="module")
def record() -> trueio.Record:
    return trueio.run(NULL, evidence=False)


def test_a_record_has_its_figures_and_a_verdict(record: trueio.Record) -> None:
    assert record.outcome == "complete"
    assert record.document["version"] == 3
    assert sum(op["io_count"] for op in record.document["phases"][0]["jobs"][0]["ops"]) == 20_000
    assert record.verdict in ("confirmed", "unverified", "unsteady", "disturbed")
    assert record.histogram(op="read").count + record.histogram(op="write").count == record.histogram().count == 20_000


def test_the_answer_is_that_of_the_json_as_objects(record: trueio.Record) -> None:
    answer, document = record.answer, record.document["answer"]
    assert document is not None
    assert answer.headline == (document["headline"],) and answer.evidence == document["evidence"]
    assert len(answer.figures) == len(document["figures"]) > 10
    for figure, one in zip(answer.figures, document["figures"]):
        assert (figure.name, figure.value, figure.unit, figure.verdict) == (one["name"], one.get("value"), one["unit"], one["verdict"])
    assert answer.figure("p99", op="read").value == record.percentile(99, op="read")
    assert answer.figure("iops", load=document["figures"][0]["load"], op="write").sample_count == record.histogram(op="write").count
    with pytest.raises(KeyError, match="no figure 'p98'"):
        answer.figure("p98")


def test_a_percentile_is_that_of_the_program(record: trueio.Record) -> None:
    compared = 0
    for op in record.document["phases"][0]["jobs"][0]["ops"]:
        for percentile in op["percentiles"]:
            assert record.percentile(percentile["percent"], op=op["op"]) == percentile["latency_ns"], percentile
            compared += 1
    assert compared > 10


def test_a_percentile_that_the_sample_does_not_support_is_none(record: trueio.Record) -> None:
    few = trueio.run({**NULL, "number_ios": 100}, evidence=False)
    assert few.percentile(99.9) is None
    assert few.percentile(50) is not None
    with pytest.raises(ValueError, match="between 0 and 100"):
        record.percentile(100)
    with pytest.raises(KeyError, match="the record has no such figures"):
        record.percentile(50, op="trim")


def test_a_contradicted_figure_is_raised_with_its_reason(record: trueio.Record) -> None:
    document = json.loads(json.dumps(record.document))
    document["phases"][0]["verdict"] = "contradicted"
    document["phases"][0]["checks"] = [
        {
            "name": "holes", "outcome": "contradicted", "cause": "setup", "witness": "", "expected": "", "found": "",
            "sentence": "Nothing is stored <b>.",
        }
    ]
    # The program derives the answer of a record without one, as of those of earlier versions.
    del document["answer"]
    staged = trueio.Record(document)
    assert staged.verdict == "withheld" and staged.answer.phases[0].objections[0].check == "holes"
    assert all(figure.value is None and not figure.is_shown for figure in staged.answer.figures)
    with pytest.raises(trueio.ContradictedError, match="holes: Nothing is stored") as raised:
        staged.percentile(99)
    assert raised.value.reasons == ["holes: Nothing is stored <b>."]
    assert staged.percentile(99, allow_contradicted=True) == record.percentile(99)
    html = staged._repr_html_()
    # Its figures are withheld, its reason is there, and its text is not HTML.
    assert "IOPS" not in html and "polyline" not in html
    assert "Nothing is stored &lt;b&gt;;" in html


def test_a_notebook_shows_verdict_tiles_and_plot() -> None:
    timed = trueio.run({**LONG, "runtime": "300ms"}, evidence=False)
    html = timed._repr_html_()
    assert (timed.verdict or "") in html and "IOPS" in html and "<polyline" in html and "<script" not in html


def test_the_plot_of_a_notebook_leaves_out_a_last_interval_of_microseconds() -> None:
    from trueio._notebook import _plot

    row = {"verdict": "confirmed", "is_shown": True, "phase": "p", "job": "j", "write_bytes": 0}
    whole = [{**row, "end_ns": end * 10**8, "span_ns": 10**8, "read_bytes": 10 * 2**20} for end in range(1, 11)]
    last = {**row, "end_ns": 10**9 + 14_000, "span_ns": 14_000, "read_bytes": 4096}
    assert "up to 100 MiB/s" in _plot([*whole, last])


def test_a_job_file_and_the_tables_of_one_are_the_same(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "job.toml"
    path.write_text('[defaults]\nioengine = "null"\nsize = "1m"\nnumber_ios = 100\n[job."a.b"]\nrw = "read"\n[job.c]\nrw = "write"\n')
    tables = {"defaults": {"ioengine": "null", "size": "1m", "number_ios": 100}, "job": {"a.b": {"rw": "read"}, "c": {"rw": "write"}}}
    names = [[job["name"] for phase in one.document["phases"] for job in phase["jobs"]] for one in (
        trueio.run(path, evidence=False), trueio.run(tables, evidence=False))]
    assert names[0] == names[1] == ["a.b", "c"]


def test_a_refusal_has_its_rule_and_its_hint(tmp_path: pathlib.Path) -> None:
    (tmp_path / "kept").write_text("precious")
    with pytest.raises(trueio.RefusedError) as refused:
        trueio.run({"rw": "write", "filename": "kept", "size": "1m"}, cwd=tmp_path)
    assert refused.value.rule is not None and refused.value.rule.isidentifier(), refused.value
    assert refused.value.hint
    assert (tmp_path / "kept").read_text() == "precious"
    with pytest.raises(trueio.RefusedError, match="iodpeth") as malformed:
        trueio.run({"iodpeth": 1})
    assert "did you mean `iodepth`?" in f"{malformed.value} {malformed.value.hint}"
    with pytest.raises(trueio.RefusedError, match="no.such"):
        trueio.run(tmp_path / "no.such")


def test_progress_is_reported_and_its_exception_ends_the_run() -> None:
    events: list[trueio.Progress] = []
    trueio.run({**LONG, "runtime": "700ms"}, evidence=False, on_progress=events.append)
    assert [event["event"] for event in events][0] == "phase"
    progress = [event for event in events if event["event"] == "progress"]
    assert progress and all(0 <= event["fraction"] <= 1 for event in progress)

    class Enough(Exception):
        pass

    def stop(_: trueio.Progress) -> None:
        raise Enough

    with pytest.raises(Enough):
        trueio.run(LONG, evidence=False, on_progress=stop)
    assert not children()


def test_a_comparison_reports_its_rounds(tmp_path: pathlib.Path) -> None:
    job = tmp_path / "job.toml"
    job.write_text('[job.a]\nioengine = "simulated"\nrw = "randread"\nsize = "1m"\n')
    events: list[trueio.Progress] = []
    trueio.compare(job, vary={"iodepth": [1, 4]}, budget="1s", evidence=False, on_progress=events.append)
    rounds = [event for event in events if event["event"] == "comparison"]
    assert rounds and rounds[-1]["answers"][0]["side"] == 1


def children() -> list[str]:
    """The programs that this process started and that still run."""
    text = pathlib.Path(f"/proc/self/task/{os.getpid()}/children").read_text()
    return [pid for pid in text.split() if pathlib.Path(f"/proc/{pid}/comm").read_text().strip() == "trueio"]


def test_a_timeout_and_a_cancelled_run_have_what_was_measured() -> None:
    with pytest.raises(trueio.TimedOutError) as late:
        trueio.run(LONG, evidence=False, timeout=0.7)
    assert isinstance(late.value, TimeoutError)
    assert late.value.record is not None and late.value.record.outcome == "interrupted"

    cancel = threading.Event()

    def first(event: trueio.Progress) -> None:
        if event["event"] == "progress":
            cancel.set()

    with pytest.raises(trueio.CancelledError) as cancelled:
        trueio.run(LONG, evidence=False, cancel=cancel, on_progress=first)
    assert cancelled.value.record is not None and cancelled.value.record.histogram().count > 0
    with pytest.raises(trueio.CancelledError):
        trueio.run(NULL, cancel=cancel)
    assert not children()


def test_ctrl_c_ends_the_program_and_leaves_no_file(tmp_path: pathlib.Path) -> None:
    """The signal goes to Python only, as in a notebook. The job writes a file, which has no name while it is measured."""
    script = (
        "import trueio, sys\n"
        "def show(event):\n"
        "    if event['event'] == 'progress': print('measuring', flush=True)\n"
        "try:\n"
        "    trueio.run({'rw': 'randwrite', 'size': '4m', 'runtime': '1h', 'time_based': True}, evidence=False, on_progress=show)\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted', flush=True)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", script], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "measuring\n"
    child.send_signal(signal.SIGINT)
    rest, _ = child.communicate(timeout=120)
    assert rest.endswith("interrupted\n"), rest
    assert child.returncode == 0
    assert list(tmp_path.iterdir()) == []


def test_two_records_are_compared_and_a_gate_is_reported(record: trueio.Record) -> None:
    other = trueio.run(NULL, evidence=False)
    comparison = trueio.compare(record, other, fail_if=["p99 > +5%"])
    # Two single runs cannot separate a change from the time of day.
    assert comparison.is_undecided and not comparison.has_failed
    assert comparison.gates[0]["condition"] == "p99 > +5%"
    assert comparison.conclusion("iops") == "cannot_tell"
    assert "<table>" in comparison._repr_html_()
    assert comparison.answer.headline and comparison.answer.figure("change of iops").unit == "ratio"
    with pytest.raises(trueio.RefusedError):
        trueio.compare(record)


def test_a_live_comparison_answers_the_question(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "job.toml"
    path.write_text('[job.a]\nioengine = "null"\nrw = "read"\nsize = "1m"\n')
    comparison = trueio.compare(path, vary={"iodepth": [1, 2]}, budget="8s", evidence=False, cwd=tmp_path)
    assert comparison.document["method"]["how"] == "interleaved"
    assert comparison.conclusion("iops") in ("better", "better_size_unclear", "worse", "worse_size_unclear", "same", "cannot_tell")


def test_tables_have_a_row_for_each_figure(record: trueio.Record) -> None:
    pandas = pytest.importorskip("pandas")
    table = record.to_pandas()
    assert isinstance(table, pandas.DataFrame)
    assert sorted(table["op"]) == ["read", "write"]
    assert int(table["io_count"].sum()) == 20_000
    assert table.loc[table["op"] == "read", "latency_ns_p99"].item() == record.percentile(99, op="read")
    assert len(record.to_pandas("series")) == len(record.document["phases"][0]["jobs"][0]["series"])
    with pytest.raises(ValueError, match="figures"):
        record.to_pandas("other")  # type: ignore[arg-type]


def test_polars_has_the_same_rows(record: trueio.Record) -> None:
    pytest.importorskip("polars")
    assert record.to_polars()["io_count"].sum() == 20_000


def test_without_pandas_the_message_says_what_to_install(record: trueio.Record, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        record.to_pandas()


def test_a_newer_document_another_one_and_a_missing_program_get_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(trueio.DocumentError) as newer:
        trueio.Record.loads('{"format": "trueio-record", "version": 9}')
    assert str(newer.value) == "this record has version 9; this package reads up to version 3 (a newer trueio reads it)"
    for text in ("", "[]", "{}", '{"format": "trueio-record"}'):
        with pytest.raises(trueio.DocumentError):
            trueio.Record.loads(text)
    monkeypatch.setenv("TRUEIO_PROGRAM", "/there/is/no/such/program")
    with pytest.raises(trueio.ProgramError, match="is not an executable file"):
        trueio.run(NULL)
    # A file for another platform.
    monkeypatch.setenv("TRUEIO_PROGRAM", __file__)
    monkeypatch.setattr(os, "access", lambda *_: True)
    with pytest.raises(trueio.ProgramError, match="cannot be started"):
        trueio.run(NULL)


def test_a_record_is_saved_read_and_rendered(record: trueio.Record, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "record.json"
    record.save(path)
    assert trueio.Record.load(path).document == record.document
    with pytest.raises(FileExistsError):
        record.save(path)
    page = record.page()
    assert page.startswith("<!") and record.id[:8] in page


def test_the_record_is_valid_to_another_implementation_of_json_schema(record: trueio.Record) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(subprocess.run([trueio.find_program(), "schema", "record"], capture_output=True, check=True).stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    assert not list(validator.iter_errors(record.document))
    broken = {**record.document, "phases": 1}
    assert list(validator.iter_errors(broken))


def test_the_time_of_a_call_is_that_of_the_program() -> None:
    """Goal: no wait of the wrapper. A deadline far away does not delay the end."""
    begin = time.monotonic()
    trueio.run({**NULL, "number_ios": 1}, evidence=False, timeout=3600, cancel=threading.Event())
    assert time.monotonic() - begin < 60


def test_the_program_is_found_on_path_if_none_was_installed(folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "bin").mkdir()
    program = folder / "bin/trueio"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.delenv("TRUEIO_PROGRAM", raising=False)
    # As of a package that was built from source.
    monkeypatch.setattr(sys.modules["trueio._program"], "__file__", str(folder / "package/trueio/_program.py"))
    monkeypatch.setattr(sysconfig, "get_path", lambda *_: str(folder / "none"))
    monkeypatch.setenv("PATH", f"relative{os.pathsep}{folder / 'bin'}")
    assert trueio.find_program() == str(program)
    monkeypatch.setenv("PATH", "relative")
    with pytest.raises(trueio.ProgramError, match="PATH has no `trueio`"):
        trueio.find_program()
