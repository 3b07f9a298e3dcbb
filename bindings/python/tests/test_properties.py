"""What holds for every number and every order of calls, through the binding."""

import os
import pathlib
import tempfile
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from trueio import direct

SIXTY_FOUR = some.integers(0, 2**64 - 1)
POWERS = some.integers(0, 21).map(lambda exponent: 1 << exponent)


@given(SIXTY_FOUR, some.integers(1, 2**64 - 1))
def test_rounding_gives_the_nearest_multiple_on_its_side(value: int, multiple: int) -> None:
    assert direct.round_down(value, multiple) == value // multiple * multiple
    up = -(-value // multiple) * multiple
    if up < 2**64:
        assert direct.round_up(value, multiple) == up
    else:
        with pytest.raises(OverflowError):
            direct.round_up(value, multiple)


@given(POWERS, POWERS, POWERS, SIXTY_FOUR, SIXTY_FOUR, SIXTY_FOUR, some.booleans(), some.integers(0, 7))
def test_the_check_names_the_first_number_that_is_wrong_and_passes_the_rest(
    memory: int, write_unit: int, read_unit: int, address: int, length: int, offset: int, write: bool, aligned: int
) -> None:
    alignment = direct.Alignment(memory, write_unit, read_unit)
    unit = write_unit if write else read_unit
    # Random numbers are hardly ever aligned; a bit each decides whether to make them so.
    address -= address % memory if aligned & 1 else 0
    length -= length % unit if aligned & 2 else 0
    offset -= offset % unit if aligned & 4 else 0
    wrong = [
        (part, value, needed)
        for part, value, needed in (("address", address, memory), ("length", length, unit), ("offset", offset, unit))
        if value % needed
    ]
    if not wrong:
        direct.check_transfer(alignment, address, length, offset, write=write)
        return
    with pytest.raises(direct.MisalignedError) as caught:
        direct.check_transfer(alignment, address, length, offset, write=write)
    error = caught.value
    assert (error.part, error.value, error.needed_bytes, error.write) == (*wrong[0], write)


@given(some.integers(1, 100_000), some.integers(0, 16).map(lambda exponent: 1 << exponent), some.data())
def test_a_buffer_behaves_as_a_bytearray_of_fixed_length(length: int, align: int, data: some.DataObject) -> None:
    model = bytearray(length)
    with direct.AlignedBuffer(length, align) as buffer:
        assert buffer.address % align == 0
        for _ in range(data.draw(some.integers(0, 5))):
            start = data.draw(some.integers(0, length))
            part = data.draw(some.binary(max_size=min(length - start, 64)))
            buffer[start : start + len(part)] = part
            model[start : start + len(part)] = part
        assert bytes(buffer) == model
        assert bytes(buffer[length // 3 :]) == model[length // 3 :]


@given(
    some.recursive(
        some.none() | some.booleans() | some.integers() | some.floats() | some.text() | some.binary(),
        lambda inner: some.lists(inner, max_size=3),
    )
)
def test_any_object_as_any_argument_is_taken_or_refused_by_name(thing: object) -> None:
    """Goal: no abort and no error of another kind, whatever comes. What is taken must be harmless: so nothing
    is opened for writing, and no number becomes a descriptor."""
    loose: Any = direct
    allowed = (TypeError, ValueError, OverflowError, MemoryError, OSError)
    calls: list[Callable[[], object]] = [
        lambda: loose.Alignment(thing, 1, 1),
        lambda: loose.round_up(thing, 4096),
        lambda: loose.round_down(1, thing),
        lambda: loose.check_transfer(loose.Alignment(1, 1, 1), thing, 0, 0, write=False),
        lambda: loose.check_transfer(thing, 0, 0, 0, write=False),
        lambda: loose.open("/nowhere/at/all", thing),
        lambda: loose.open("/nowhere/at/all", policy=thing),
        lambda: loose.open("/nowhere/at/all", sync=thing),
        lambda: loose.open("/nowhere/at/all", permissions=thing),
        lambda: loose.sync_directory(thing) if not isinstance(thing, int) else None,
        lambda: loose.probe(thing) if not isinstance(thing, int) else None,
        lambda: loose.residency(thing) if not isinstance(thing, int) else None,
        lambda: loose.BufferPool(1, 16, thing) if not isinstance(thing, int) else None,
        lambda: loose.AlignedBuffer(thing) if not isinstance(thing, int) or thing < 2**20 else None,
    ]
    for call in calls:
        try:
            call()
        except allowed:
            pass


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    some.lists(some.tuples(some.integers(0, 30_000), some.binary(max_size=9000)), min_size=1, max_size=8),
    some.integers(0, 40_000),
    some.integers(0, 9000),
)
def test_unaligned_writes_in_any_order_leave_the_bytes_of_plain_ones(
    writes: list[tuple[int, bytes]], start: int, length: int
) -> None:
    """The same writes to a direct file and to a bytearray."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("TRUEIO_TEST_DIRECTORY")) as folder:
        path = pathlib.Path(folder) / "data"
        model = bytearray()
        with direct.open(path, "x+", policy="prefer") as file:
            for offset, part in writes:
                assert direct.write_unaligned_by_read_modify_write_at(file, part, offset).bytes == len(part)
                if part:
                    model.extend(bytes(max(0, offset + len(part) - len(model))))
                    model[offset : offset + len(part)] = part
            assert path.read_bytes() == model
            back = bytearray(length)
            known = bytes(model[start : start + length])
            if len(known) == length:
                assert direct.read_unaligned_by_copy_at(file, back, start).bytes == length
                assert back == known
            else:
                with pytest.raises(direct.EndOfFileError) as caught:
                    direct.read_unaligned_by_copy_at(file, back, start)
                assert caught.value.done == len(known)
                assert bytes(back[: len(known)]) == known
