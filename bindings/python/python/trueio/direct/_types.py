"""Names of types that the signatures of `trueio.direct` share."""

import os
from typing import Literal, Protocol, TypeAlias


class HasFileno(Protocol):
    """An open file of any kind."""

    def fileno(self) -> int:
        """The descriptor."""
        ...


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
