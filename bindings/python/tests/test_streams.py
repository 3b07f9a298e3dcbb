"""`DirectRawIO`, vectored transfers, files that are open already or made on opening, and asyncio."""

import asyncio
import gc
import io
import os
import pathlib
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import loop_device
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from trueio import direct
from trueio.direct import aio


def pattern(length: int) -> bytes:
    return bytes(index * 7 % 251 for index in range(length))


@pytest.mark.parametrize("policy", ["prefer", "off"])
@pytest.mark.parametrize("length", [0, 1, 4095, 4096, 10_000, (1 << 20) + 777])
def test_files_are_copied_through_streams(folder: pathlib.Path, length: int, policy: direct._types.Policy) -> None:
    wanted = pattern(length)
    (folder / "from").write_bytes(wanted)
    with (
        direct.DirectRawIO(direct.open(folder / "from", policy=policy)) as source,
        direct.DirectRawIO(direct.open(folder / "to", "x+", policy=policy)) as target,
    ):
        shutil.copyfileobj(source, target)
        assert source.tell() == target.tell() == length
    assert (folder / "to").read_bytes() == wanted
    with io.BufferedReader(direct.DirectRawIO(direct.open(folder / "to", policy=policy)), 8192) as reader:
        assert reader.peek(1)[:1] == wanted[:1]
        assert reader.read() == wanted
        assert reader.raw.closed is False
    assert reader.raw.closed


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(st.sampled_from(["read", "write", "seek"]), st.integers(0, 12_000), st.integers(0, 9000)), max_size=20
    )
)
def test_a_raw_stream_does_what_a_buffered_file_does(
    folder: pathlib.Path, steps: list[tuple[str, int, int]]
) -> None:
    names = [folder / "ours", folder / "theirs"]
    for name in names:
        name.write_bytes(pattern(9000))
    with (
        direct.DirectRawIO(direct.open(names[0], "r+", policy="prefer")) as ours,
        open(names[1], "r+b", buffering=0) as theirs,
    ):
        for kind, place, length in steps:
            if kind == "seek":
                assert ours.seek(place) == theirs.seek(place)
            elif kind == "write":
                data = pattern(length + place)[place:]
                assert ours.write(data) == theirs.write(data)
            else:
                # A raw read may be short, but not where the file goes on.
                wanted, got = theirs.read(length), b""
                while len(got) < len(wanted):
                    part = ours.read(len(wanted) - len(got))
                    assert part
                    got += part
                assert got == wanted
            assert ours.tell() == theirs.tell()
        assert ours.seek(-1, os.SEEK_END) == theirs.seek(-1, os.SEEK_END)
        assert ours.seek(1, os.SEEK_CUR) == theirs.seek(0, os.SEEK_END)
        assert ours.read(5) == b""
    assert names[0].read_bytes() == names[1].read_bytes()


def test_aligned_memory_of_the_caller_is_used_itself(direct_folder: pathlib.Path) -> None:
    path = direct_folder / "data"
    path.write_bytes(pattern(10_000))
    with direct.DirectRawIO(direct.open(path)) as stream:
        buffer = direct.AlignedBuffer(16_384)
        assert stream.readinto(buffer) == 10_000
        assert buffer[:10_000] == pattern(10_000)
        assert stream._staging is None


def test_a_raw_stream_raises_for_unsupported_calls(direct_folder: pathlib.Path) -> None:
    path = direct_folder / "data"
    file = direct.open(path, "x")
    stream = direct.DirectRawIO(file, close_file=False)
    assert (stream.readable(), stream.writable(), stream.seekable(), stream.mode, stream.name) == (False, True, True, "x", path)
    with pytest.raises(io.UnsupportedOperation, match="not opened for reading"):
        stream.read(1)
    assert stream.write(b"x") == 1
    assert stream.write(bytes(8192)) == 8192
    assert path.read_bytes() == b"x" + bytes(8192)
    with pytest.raises(ValueError, match="must not be negative"):
        stream.seek(-1)
    stream.close()
    stream.close()
    for call in (stream.tell, stream.readable, lambda: stream.write(b"")):
        with pytest.raises(ValueError, match="closed file"):
            call()
    assert not file.closed
    file.close()
    with direct.DirectRawIO(direct.open(path)) as reader, pytest.raises(io.UnsupportedOperation, match="for writing"):
        reader.write(b"x")
    assert reader.file.closed


def test_a_stream_reads_a_disk(folder: pathlib.Path) -> None:
    with loop_device(folder, 1 << 20, 4096) as device:
        with direct.DirectRawIO(direct.open(device, "r+")) as stream:
            stream.seek(5000)
            stream.write(b"record")
            stream.seek(4999)
            assert stream.read(8) == b"\0record\0"
            assert stream.seek(0, os.SEEK_END) == 1 << 20


def test_vectored_transfers_take_several_buffers(folder: pathlib.Path) -> None:
    with direct.open(folder / "data", "x+", policy="prefer") as file:
        buffers = [direct.AlignedBuffer(length) for length in (4096, 8192)]
        for number, buffer in enumerate(buffers):
            buffer[:] = bytes([number + 1]) * len(buffer)
        assert file.write_vectored_at(buffers, 4096).bytes == 12_288
        assert (folder / "data").read_bytes() == bytes(4096) + b"\1" * 4096 + b"\2" * 8192
        back = [direct.AlignedBuffer(8192), direct.AlignedBuffer(8192)]
        assert file.read_vectored_at(iter(back), 8192).bytes == 8192
        assert bytes(back[0]) == b"\2" * 8192
        assert file.read_vectored_at([], 0).bytes == 0
        with pytest.raises(TypeError):
            file.read_vectored_at([b"read-only"], 0)
        with pytest.raises(TypeError):
            file.write_vectored_at(5, 0)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="negative"):
            file.write_vectored_at(buffers, -1)


def test_a_file_that_is_open_already_stays_open(folder: pathlib.Path) -> None:
    path = folder / "data"
    path.write_bytes(pattern(8192))
    support = direct.probe(path).support
    for flags, mode, granted in [
        (os.O_RDONLY, "r", "buffered"),
        (os.O_WRONLY, "w", "buffered"),
        (os.O_RDWR | os.O_DIRECT, "r+", "direct" if support == "direct" else None),
    ]:
        descriptor = os.open(path, flags)
        try:
            with direct.from_file(descriptor) as file:
                assert (file.mode, file.name) == (mode, descriptor)
                assert granted is None or file.granted == granted
                assert file.fileno() != descriptor
                assert file.size() == 8192
            assert os.fstat(descriptor).st_size == 8192
        finally:
            os.close(descriptor)
    with open(path, "rb") as plain, direct.from_file(plain) as file:
        buffer = bytearray(10)
        assert file.read_at(buffer, 5).bytes == 10
        assert buffer == pattern(15)[5:]
        assert plain.tell() == 0
    read, write = os.pipe()
    for end in (read, write):
        with pytest.raises(direct.NotAFileError):
            direct.from_file(end)
        os.close(end)
    with pytest.raises(OSError, match="[Bb]ad file descriptor"):
        direct.from_file(read)
    with pytest.raises(TypeError):
        direct.from_file("data")  # type: ignore[arg-type]


def test_a_file_is_opened_or_made(folder: pathlib.Path) -> None:
    for length in (0, 4096):
        with direct.open(folder / "data", "r+", create=True, policy="prefer") as file:
            assert file.size() == length
            file.write_all_at(direct.AlignedBuffer(4096), 0)
    with pytest.raises(FileNotFoundError):
        direct.open(folder / "none", "r+", policy="prefer")
    for mode in ("r", "x", "x+"):
        with pytest.raises(ValueError, match=f"create=True goes with mode 'r\\+', not with '{mode}'".replace("x+", r"x\+")):
            direct.open(folder / "none", mode, create=True)
    assert not (folder / "none").exists()


def test_asyncio_functions_do_what_the_others_do(folder: pathlib.Path) -> None:
    async def use() -> bytes:
        assert (await aio.probe_directory(folder)).support
        file = await aio.open(folder / "data", "r+", create=True, policy="prefer")
        blocks = [direct.AlignedBuffer(4096) for _ in range(32)]
        for number, block in enumerate(blocks):
            block[:] = bytes([number]) * 4096
        await asyncio.gather(*(aio.write_all_at(file, block, 4096 * number) for number, block in enumerate(blocks)))
        assert (await aio.flush(file, "data")).level in ("data", "file", "device")
        assert await aio.size(file) == 32 * 4096
        back = direct.AlignedBuffer(32 * 4096)
        await aio.read_exact_at(file, back, 0)
        found = bytes(back)
        assert (await aio.read_at(file, back, 32 * 4096)).bytes == 0
        assert (await aio.write_vectored_at(file, blocks[:2], 0)).bytes == 8192
        assert (await aio.read_vectored_at(file, blocks[2:4], 0)).bytes == 8192
        await aio.write_unaligned_by_read_modify_write_at(file, b"abc", 131_072)
        word = bytearray(2)
        await aio.read_unaligned_by_copy_at(file, word, 131_073)
        assert word == b"bc"
        with pytest.raises(direct.EndOfFileError):
            await aio.read_exact_at(file, back, 4096)
        adopted = await aio.from_file(file)
        await aio.preallocate(adopted, 0, 1 << 20)
        assert (await aio.probe(adopted)).support == (await aio.probe(folder / "data")).support
        await aio.close(adopted)
        await aio.close(file)
        await aio.sync_directory(folder)
        return found

    assert asyncio.run(use()) == b"".join(bytes([number]) * 4096 for number in range(32))


def test_every_asyncio_function_has_its_namesake() -> None:
    for name in aio.__all__:
        assert hasattr(direct, name) or hasattr(direct.DirectFile, name), name
        # These two return a coroutine that `async with` takes, too.
        assert name in ("open", "from_file") or asyncio.iscoroutinefunction(getattr(aio, name)), name


def test_async_with_closes_the_file(folder: pathlib.Path) -> None:
    async def use() -> None:
        async with aio.open(folder / "data", "wb", policy="prefer") as file:
            await aio.write_unaligned_by_read_modify_write_at(file, b"123456", 0)
            await aio.truncate(file, 5)
        assert file.closed
        with pytest.raises(KeyError):
            async with await aio.open(folder / "data", policy="prefer") as file:
                async with aio.from_file(file) as adopted:
                    assert await aio.size(adopted) == 5
                assert adopted.closed and not file.closed
                raise KeyError
        assert file.closed
        with pytest.raises(ValueError, match="closed"):
            async with file:
                pass
        # As any coroutine.
        task = asyncio.create_task(aio.open(folder / "data", policy="prefer"))
        (await task).close()
        file = await asyncio.wait_for(aio.open(folder / "data", policy="prefer"), 60)
        file.close()
        with pytest.raises(FileNotFoundError):
            async with aio.open(folder / "missing"):
                pass

    asyncio.run(use())


def test_calls_raise_what_they_raise_and_leave_no_report(folder: pathlib.Path) -> None:
    """Errors, a timeout and a cancelled gather: nothing is reported to the event loop as forgotten."""
    reports: list[object] = []

    async def use() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: reports.append(context))
        with pytest.raises(FileNotFoundError):
            await aio.open(folder / "missing")
        with pytest.raises(FileNotFoundError):
            await asyncio.gather(*(aio.probe(folder / "missing") for _ in range(50)))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.gather(*(aio.probe(folder / "missing") for _ in range(200))), 0)
        assert await asyncio.shield(asyncio.ensure_future(aio.probe_directory(folder)))
        await asyncio.sleep(0.01)

    asyncio.run(use())
    gc.collect()
    assert reports == []


def test_a_cancelled_call_waits_until_the_system_has_let_go(folder: pathlib.Path) -> None:
    """A pool of one thread, which is busy until an event: what is called meanwhile waits, and is never made. A call that has
    begun ends before CancelledError is raised."""
    (folder / "data").write_bytes(bytes(4096))
    begun, go_on, order = threading.Event(), threading.Event(), []

    class Slow:
        """Its descriptor is asked for on the pool's thread."""

        def __init__(self, file: direct.DirectFile) -> None:
            self.file = file

        def fileno(self) -> int:
            begun.set()
            go_on.wait(60)
            order.append("ended")
            return self.file.fileno()

    async def use() -> None:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))
        with direct.open(folder / "data", "r+", policy="off") as file:
            running = asyncio.create_task(aio.flush(Slow(file), "data"))
            while not begun.is_set():
                await asyncio.sleep(0)
            waiting = asyncio.create_task(aio.write_all_at(file, b"\7" * 4096, 0))
            await asyncio.sleep(0)
            for task in (running, waiting, running):
                task.cancel()
                await asyncio.sleep(0)
            assert not running.done() and not waiting.done()
            go_on.set()
            for task in (running, waiting):
                with pytest.raises(asyncio.CancelledError):
                    await task
                order.append("cancelled")

    asyncio.run(use())
    assert order == ["ended", "cancelled", "cancelled"]
    assert (folder / "data").read_bytes() == bytes(4096), "a call that waited is never made"
