"""Every public name is documented and typed, and what the README and the examples show runs."""

import importlib.metadata
import inspect
import json
import os
import pathlib
import re
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest
from conftest import loop_device
from trueio import direct

HERE = pathlib.Path(__file__).parent.parent
EXAMPLES = HERE / "examples"
SAMPLES = re.findall(r"```python\n(.*?)```", (HERE / "README.md").read_text(encoding="utf-8"), re.DOTALL)


def public_names() -> Iterator[tuple[str, object]]:
    for name in direct.__all__:
        thing = getattr(direct, name)
        yield name, thing
        if inspect.isclass(thing) and not issubclass(thing, BaseException):
            for member in vars(thing):
                if not member.startswith("_"):
                    yield f"{name}.{member}", inspect.getattr_static(thing, member)


def test_every_public_name_has_a_docstring() -> None:
    names = dict(public_names())
    assert len(names) > 100, "the names were not found"
    bare = [name for name, thing in names.items() if len((inspect.getdoc(thing) or "").strip()) < 15]
    assert bare == []
    # Exceptions inherit their base's words, which would pass for their own.
    exceptions = [thing for thing in names.values() if isinstance(thing, type) and issubclass(thing, BaseException)]
    assert [kind.__name__ for kind in exceptions if not vars(kind).get("__doc__")] == []
    assert direct.__doc__ and "O_DIRECT" in direct.__doc__


def test_all_names_are_public_and_no_public_name_is_missing() -> None:
    native = [name for name in vars(direct._native) if not name.startswith("_")]
    assert sorted(set(native) - set(direct.__all__)) == []
    assert direct.__all__ == sorted(direct.__all__)


def test_every_function_has_a_signature() -> None:
    for name, thing in public_names():
        if callable(thing) and not inspect.isclass(thing):
            assert inspect.signature(thing) is not None, name


def test_every_exception_is_an_oserror_and_documents_its_errno() -> None:
    for name in direct.__all__:
        thing = getattr(direct, name)
        if inspect.isclass(thing) and issubclass(thing, BaseException):
            assert issubclass(thing, OSError), name
            if thing is not direct.DirectError:
                assert "errno" in (thing.__doc__ or ""), name


def test_there_are_samples() -> None:
    assert len(SAMPLES) >= 5


@pytest.mark.parametrize("number", range(len(SAMPLES)))
def test_a_sample_of_the_readme_runs(number: int, folder: pathlib.Path) -> None:
    # Figures of a program that waited for its processor are contradicted; a sample is to run on a busy machine, too.
    environment = {**os.environ, "TRUEIO_ACCEPT": "processor_wait"}
    words = [sys.executable, "-c", SAMPLES[number]]
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_types_are_strict_in_samples_examples_and_tests(folder: pathlib.Path) -> None:
    for number, sample in enumerate(SAMPLES):
        (folder / f"sample_{number}.py").write_text(sample, encoding="utf-8")
    files = [str(path) for place in (EXAMPLES, HERE / "tests", folder) for path in sorted(place.glob("*.py"))]
    environment = {**os.environ, "MYPYPATH": str(EXAMPLES)}
    for version in ("3.11", "3.12"):
        command = [sys.executable, "-m", "mypy", "--strict", "--python-version", version, "--cache-dir", str(folder / "cache")]
        done = subprocess.run([*command, *files], cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, (version, done.stdout + done.stderr)
    # A type that is wrong must be found: else everything above is of type Any.
    (folder / "wrong.py").write_text("from trueio import direct\ndirect.open('x', policy='never').alignment.nothing\n")
    done = subprocess.run([*command, "wrong.py"], cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1
    assert '"Alignment" has no attribute "nothing"' in done.stdout
    assert 'Argument "policy" to "open"' in done.stdout


def test_a_buffer_is_typed_for_numpy_on_every_version(folder: pathlib.Path) -> None:
    sample = folder / "sample.py"
    sample.write_text(
        "import numpy as np\nfrom trueio import direct\nbuffer = direct.AlignedBuffer(4096)\n"
        "numbers = np.frombuffer(buffer, np.int64)\nsum(buffer)\nnumbers[:] = 7\nassert buffer[0] == 7\n"
        "with direct.BufferPool(2, 4096).acquire() as pooled:\n    assert np.frombuffer(pooled).nbytes == len(pooled)\n"
        "part: memoryview = buffer[1:3]\n"
        "def load(file: direct.DirectFile, numbers: np.ndarray[tuple[int], np.dtype[np.int64]]) -> None:\n"
        "    file.read_vectored_at([numbers, buffer], file.read_at(numbers, 0).bytes)\n"
    )
    # What a type lacks is an error on each version, too.
    wrong = folder / "wrong.py"
    wrong.write_text("from trueio import direct\ndirect.AlignedBuffer(4096).read()\n")
    for version in ("3.11", "3.12", "3.13"):
        options = ["--strict", "--python-version", version, "--cache-dir", str(folder / "cache")]
        command = [sys.executable, "-m", "mypy", *options, str(sample), str(wrong)]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
        errors = [line for line in done.stdout.splitlines() if ": error: " in line]
        assert len(errors) == 1 and errors[0].startswith("wrong.py:2: "), (version, done.stdout, done.stderr)
    subprocess.run([sys.executable, str(sample)], cwd=folder, check=True, timeout=60)


def test_links_of_the_readme_are_absolute_and_lead_to_files() -> None:
    """A registry shows the page elsewhere."""
    links = re.findall(r"\]\(([^)]*)\)", (HERE / "README.md").read_text(encoding="utf-8"))
    assert len(links) >= 4
    base = "https://github.com/trueio/trueio/blob/main/"
    for link in links:
        assert link.startswith("https://"), link
        if link.startswith(base):
            assert (HERE.parent.parent / link.removeprefix(base)).exists(), link


def test_the_stubs_are_those_of_the_module(folder: pathlib.Path) -> None:
    allowed = folder / "allowed"
    # pyo3 adds `__all__`; before Python 3.12 the buffer protocol has no method that could be seen.
    allowed.write_text("trueio.direct._native.__all__\n.*\\.__(release_)?buffer__\n")
    command = [sys.executable, "-m", "mypy.stubtest", "trueio.direct._native", "--allowlist", str(allowed)]
    command.append("--ignore-unused-allowlist")
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("size", [0, 8, 4096, 100_000, 5 << 20, (5 << 20) + 24])
def test_the_example_loads_what_is_in_the_file(folder: pathlib.Path, size: int) -> None:
    sys.path.insert(0, str(EXAMPLES))
    try:
        from load_numpy import load
    finally:
        sys.path.remove(str(EXAMPLES))
    path = folder / "data"
    wanted = np.random.default_rng(size).integers(0, 2**63, size // 8, np.int64)
    wanted.tofile(path)
    for depth, chunk_bytes in ((1, 1), (3, 100_000), (4, 1 << 20)):
        if size > 1 << 20 and chunk_bytes == 1:
            continue
        array = load(path, np.int64, depth=depth, chunk_bytes=chunk_bytes)
        assert np.array_equal(array, wanted)
    if size == 8:
        with pytest.raises(ValueError, match="no multiple"):
            load(path, np.dtype("V3"))


def test_the_examples_run_as_programs(direct_folder: pathlib.Path) -> None:
    path = direct_folder / "data"
    path.write_bytes(bytes(1 << 20))
    loaded = subprocess.run(
        [sys.executable, str(EXAMPLES / "load_numpy.py"), str(path), "--dtype", "float32"],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert loaded.stdout.startswith("262144 of float32, 1 MiB in ")
    bench = subprocess.run(
        [sys.executable, str(EXAMPLES / "load_numpy_bench.py"), "--mib", "16", "--rounds", "2", "--directory", str(direct_folder)],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert "every result was equal to the file's contents" in bench.stdout
    assert len(re.findall(r"^(?:cold|warm) +(?:direct|threads|readinto|fromfile) ", bench.stdout, re.MULTILINE)) == 8


def test_importing_needs_nothing_but_the_package() -> None:
    """Neither numpy nor what the tests bring."""
    script = "import sys, json; from trueio import direct; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    modules = json.loads(done.stdout)
    assert "trueio.direct._native" in modules
    assert [name for name in modules if name.split(".")[0] in ("numpy", "typing_extensions", "mypy")] == []


def test_the_report_on_a_disk_has_its_size_and_sectors(folder: pathlib.Path) -> None:
    with loop_device(folder, 1 << 20, 4096) as device:
        command = [sys.executable, str(EXAMPLES / "block_device_report.py"), device]
        lines = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.splitlines()
    found = dict(line.strip().split(": ", 1) for line in lines if ": " in line)
    assert (found["Logical Sector Size"], found["Size"], found["Serial Number"]) == ("4096", str(1 << 20), "unknown")
    assert found["Direct I/O"].startswith("direct (")
    refused = subprocess.run([*command[:2], __file__], capture_output=True, text=True, timeout=60)
    assert refused.returncode == 1
    assert refused.stderr.startswith("Error: ")


def test_the_benchmark_has_a_row_for_each_way_flush_and_block(folder: pathlib.Path) -> None:
    path = folder / "file"
    sizes = ["--block-max", "8192", "--size", "65536", "--rounds", "1"]
    command = [sys.executable, str(EXAMPLES / "benchmark.py"), *sizes, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    rows = re.findall(r"^ +(4096|8192) \| (buffered|direct) +\| ([a-z ]+?) +\| +[\d.]+ \([\d.]+ to [\d.]+\)$", done.stdout, re.M)
    assert len(rows) == len(set(rows)) == 2 * 2 * 7
    assert path.read_bytes() == b"\xff" * 65_536


def test_the_package_has_what_a_registry_shows() -> None:
    metadata = importlib.metadata.metadata("trueio")
    assert metadata.get_all("License-File") == ["THIRD-PARTY-LICENSES.txt", "LICENSE-MIT", "LICENSE-APACHE"]
    (notices,) = [path for path in importlib.metadata.files("trueio") or [] if path.name == "THIRD-PARTY-LICENSES.txt"]
    text = notices.read_text(encoding="utf-8")
    for crate in ("pyo3", "rustix", "libc"):
        assert re.search(rf"^{crate} \d\S*: \S", text, re.M), crate
    assert "Permission is hereby granted" in text and "Apache License" in text
    assert {url.split(", ")[0] for url in metadata.get_all("Project-URL") or []} >= {"Homepage", "Changelog", "Issues"}
    assert "O_DIRECT" in (metadata["Keywords"] or "")
    assert f"## {metadata['Version']} (" in (HERE / "CHANGELOG.md").read_text(encoding="utf-8")
    for name in ("LICENSE-MIT", "LICENSE-APACHE"):
        assert (HERE / name).read_bytes() == (HERE.parent.parent / name).read_bytes()
    assert "is not published" in (HERE / "README.md").read_text(encoding="utf-8")
