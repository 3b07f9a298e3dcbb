"""A file past the page cache as a raw stream of Python's `io`."""

import io
import os
import warnings
from typing import TYPE_CHECKING

from ._errors import MisalignedError
from ._native import AlignedBuffer, DirectFile, write_unaligned_by_read_modify_write_at

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from ._types import AnyFile, AnyPath, OpenMode

_STAGING_BYTES = 1 << 20


class DirectRawIO(io.RawIOBase):
    """A `DirectFile` with a position: any bytes at any position, for `io.BufferedReader`, `shutil.copyfileobj` and their like.

    Transfers that are aligned use the caller's memory; the others go through a copy of at most 1 MiB. Parts of blocks are
    written as `write_unaligned_by_read_modify_write_at` does. The file ends where the last byte was written, or
    where `truncate` cuts it.

    One thread at a time. `close` closes the file too, unless `close_file` is false.
    """

    def __init__(self, file: DirectFile, *, close_file: bool = True) -> None:
        super().__init__()
        self._file = file
        self._close_file = close_file
        self._position = 0
        self._staging: AlignedBuffer | None = None
        alignment = file.alignment.or_assumed()
        self._memory = alignment.memory_bytes or 1
        self._block = max(self._memory, alignment.read_offset_bytes or 1, alignment.write_offset_bytes or 1)

    @property
    def file(self) -> DirectFile:
        """The file under this stream."""
        return self._file

    @property
    def name(self) -> "AnyPath | AnyFile":
        """That of the file."""
        return self._file.name

    @property
    def mode(self) -> "OpenMode":
        """That of the file."""
        return self._file.mode

    def fileno(self) -> int:
        """The descriptor of the file. It has a position of its own, which this stream neither uses nor changes."""
        return self._file.fileno()

    def readable(self) -> bool:
        """True unless the file can only be written."""
        self._check_open()
        return self._file.mode in ("r", "r+", "w+", "x+")

    def writable(self) -> bool:
        """True unless the file can only be read."""
        self._check_open()
        return self._file.mode != "r"

    def seekable(self) -> bool:
        """True: every file and disk has positions."""
        self._check_open()
        return True

    def tell(self) -> int:
        """The position, in bytes from the start."""
        self._check_open()
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Sets the position, which need not be aligned, and returns it."""
        self._check_open()
        bases = {os.SEEK_SET: lambda: 0, os.SEEK_CUR: lambda: self._position, os.SEEK_END: self._file.size}
        if whence not in bases:
            raise ValueError(f"whence must be 0, 1 or 2, and is {whence}")
        position = bases[whence]() + offset
        if position < 0:
            raise ValueError(f"the position must not be negative, and would be {position}")
        self._position = position
        return position

    def readinto(self, buffer: "Buffer", /) -> int:
        """Reads at least one byte unless the file ends here, at most as many as fit, and returns how many."""
        self._check_open()
        if not self.readable():
            raise io.UnsupportedOperation("this file was not opened for reading")
        with memoryview(buffer).cast("B") as view:
            if len(view) == 0:
                return 0
            read = self._read_in_place(view)
            if read is None:
                read = self._read_by_copy(view)
        self._position += read
        return read

    def write(self, data: "Buffer", /) -> int:
        """Writes all of `data` and returns its length."""
        self._check_open()
        if not self.writable():
            raise io.UnsupportedOperation("this file was not opened for writing")
        with memoryview(data).cast("B") as view:
            length = len(view)
            try:
                self._file.write_all_at(view, self._position)
            except MisalignedError:
                write_unaligned_by_read_modify_write_at(self._file, view, self._position)
        self._position += length
        return length

    def truncate(self, size: int | None = None, /) -> int:
        """Sets the length of the file to `size` bytes, or to the position, and returns it. The position stays."""
        self._check_open()
        if not self.writable():
            raise io.UnsupportedOperation("this file was not opened for writing")
        length = self._position if size is None else size
        self._file.truncate(length)
        return length

    def __del__(self) -> None:
        self._dealloc_warn(self)
        super().__del__()

    def _dealloc_warn(self, source: object) -> None:
        """Warns about a file that was not closed. Buffered streams of `io` call this from their own finalizer."""
        file = getattr(self, "_file", None)
        if file is not None and not self.closed and not file.closed and self._close_file:
            warnings.warn(f"unclosed file {file!r}", ResourceWarning, stacklevel=2, source=source)

    def close(self) -> None:
        """Closes the stream, and the file unless `close_file` is false."""
        if not self.closed and self._close_file:
            try:
                super().close()
            finally:
                self._file.close()
        else:
            super().close()

    def _check_open(self) -> None:
        if self.closed:
            raise ValueError("I/O operation on closed file")

    def _read_in_place(self, view: memoryview) -> int | None:
        whole = len(view) - len(view) % self._block
        if whole == 0 or self._position % self._block:
            return None
        try:
            return self._file.read_at(view[:whole], self._position).bytes
        except MisalignedError:
            return None

    def _read_by_copy(self, view: memoryview) -> int:
        skip = self._position % self._block
        staging = self._staging = self._staging or AlignedBuffer(max(_STAGING_BYTES, self._block), max(self._memory, 4096))
        wanted = min(skip + len(view), len(staging))
        length = wanted + -wanted % self._block
        with staging[: min(length, len(staging) - len(staging) % self._block)] as part:
            read = self._file.read_at(part, self._position - skip).bytes
            count = max(0, min(read, wanted) - skip)
            view[:count] = part[skip : skip + count]
        return count
