"""What the tests need of the machine: a folder where direct I/O is real, loop devices, and skips that say why."""

import contextlib
import os
import pathlib
import subprocess
import tempfile
import time
from collections.abc import Iterator
from typing import IO

import pytest

from trueio import direct


def lack(need: str, reason: str) -> None:
    """Skips the test; fails it where TRUEIO_REQUIRE lists the need."""
    required = [word.strip() for word in os.environ.get("TRUEIO_REQUIRE", "").split(",")]
    if need in required:
        pytest.fail(f"`{need}` is required: {reason}")
    pytest.skip(f"{need}: {reason}")


def evict(file: direct.DirectFile | IO[bytes]) -> direct.Residency:
    """Evicts a clean file and counts what is left. Pages that the kernel holds for a moment on a list of some
    processor stay; so it is tried again for a second."""
    for _ in range(100):
        direct.evict(file)
        left = direct.residency(file)
        if left.cached_pages == 0:
            break
        time.sleep(0.01)
    return left


@pytest.fixture
def folder() -> Iterator[pathlib.Path]:
    """A new folder, on the filesystem that TRUEIO_TEST_DIRECTORY names, or where temporary files are."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("TRUEIO_TEST_DIRECTORY")) as name:
        yield pathlib.Path(name)


@pytest.fixture
def direct_folder(folder: pathlib.Path) -> pathlib.Path:
    """The same, where direct I/O is real and alignment is enforced."""
    probe = direct.probe_directory(folder)
    if probe.support != "direct":
        lack("direct", f"no direct I/O here: {probe.reason}")
    return folder


@pytest.fixture
def xfs_folder(folder: pathlib.Path) -> Iterator[pathlib.Path]:
    """A new XFS on a loop device, unmounted in the end. Since Linux 6.16 it writes atomically in software."""
    with loop_device(folder, 512 << 20, 512) as device:
        mount = folder / "xfs"
        mount.mkdir()
        try:
            subprocess.run(["mkfs.xfs", "-q", device], check=True, capture_output=True, text=True)
            subprocess.run(["mount", "-t", "xfs", device, str(mount)], check=True, capture_output=True, text=True)
        except (OSError, subprocess.CalledProcessError) as error:
            lack("xfs", f"{error} {getattr(error, 'stderr', '')}")
        try:
            yield mount
        finally:
            subprocess.run(["umount", str(mount)], check=True)


@contextlib.contextmanager
def loop_device(folder: pathlib.Path, size_bytes: int, sector_bytes: int) -> Iterator[str]:
    """A loop device over a new sparse file, detached in the end."""
    image = folder / "image"
    with image.open("wb") as file:
        file.truncate(size_bytes)
    command = ["losetup", "--find", "--show", "--sector-size", str(sector_bytes), str(image)]
    try:
        made = subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        lack("loop", f"{error} {getattr(error, 'stderr', '')}")
        raise
    device = made.stdout.strip()
    try:
        yield device
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)
