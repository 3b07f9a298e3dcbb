"""Names of types that the signatures of `trueio.direct` share."""

import os
import sys
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    from typing_extensions import Buffer


class HasFileno(Protocol):
    """An open file of any kind."""

    def fileno(self) -> int:
        """The descriptor."""
        ...


class HasArray(Protocol):
    """An array of numpy. Of Python 3.11, numpy's types lack the buffer protocol."""

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """Where the memory is."""
        ...


if sys.version_info >= (3, 12):
    AnyBuffer: TypeAlias = "Buffer"
else:
    AnyBuffer: TypeAlias = "Buffer | HasArray"

AnyFile: TypeAlias = HasFileno | int
AnyPath: TypeAlias = str | bytes | os.PathLike[str] | os.PathLike[bytes]
Mode: TypeAlias = Literal[
    "r", "r+", "w", "w+", "x", "x+", "rb", "r+b", "rb+", "wb", "w+b", "wb+", "xb", "x+b", "xb+"
]
OpenMode: TypeAlias = Literal["r", "r+", "w", "w+", "x", "x+"]
Policy: TypeAlias = Literal["require", "prefer", "off"]
SyncMode: TypeAlias = Literal["none", "dsync", "sync"]
Granted: TypeAlias = Literal["direct", "unconfirmed", "not-kept", "buffered"]
Support: TypeAlias = Literal["direct", "silently-buffered", "refused", "unknown"]
Answer: TypeAlias = Literal["yes", "no", "unknown"]
FlushLevel: TypeAlias = Literal["barrier", "data", "file", "device"]
LockMode: TypeAlias = Literal["shared", "exclusive"]
