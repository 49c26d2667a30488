"""The cache on disk: compiled programs by their source, kernels by their StableHLO, each under the hash of what made it.
Beside them lie LLVM's names for this machine.

An entry is a file that starts with a magic and the checksum of the rest. It is written beside its place and moved there,
so a reader sees all of it or nothing. Whatever is wrong with an entry, it is a miss; the cache is never the reason why
something fails. Old entries go when the folder grows past its bound.
"""

from __future__ import annotations

import functools
import hashlib
import os
import struct
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from stablehlo_py.installed import installed
from stablehlo_py.records import record

MAGIC = b"SHLOCACHE1"
KINDS = ("program", "kernel", "machine")
LARGEST = 1 << 30  # bytes that the folder may hold
KEPT = 0.75  # of the bound, after old entries are removed
_HEAD = len(MAGIC) + 32


@record
class Entry:
    """One file of the cache: its kind and key, its size in bytes, when it was last used (seconds since the epoch)."""

    kind: str
    key: str
    path: Path
    bytes: int
    used: float


class Cache:
    """A folder of entries; every method works with several processes on it at once."""

    def __init__(self, folder: Path | str | None = None, largest: int = LARGEST) -> None:
        self.folder = Path(folder) if folder else default_folder()
        self.largest = largest

    def get(self, kind: str, key: str) -> bytes | None:
        """The payload under a key, or None."""
        path = self._path(kind, key)
        try:
            data = path.read_bytes()
            payload = _checked(data)
            if payload is None:
                path.unlink(missing_ok=True)
                return None
            os.utime(path)
            return payload
        except OSError:
            return None

    def put(self, kind: str, key: str, payload: bytes) -> None:
        """Keep a payload; without a word when that is not possible (a full disk, no permission)."""
        path = self._path(kind, key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=".new")
            with os.fdopen(handle, "wb") as file:
                file.write(MAGIC + hashlib.sha256(payload).digest() + payload)
            os.replace(name, path)
        except OSError:
            return
        self._bound()

    def entries(self) -> Iterator[Entry]:
        """All entries, in no order."""
        for kind in KINDS:
            for path in (self.folder / kind).glob("*/*"):
                try:
                    stat = path.stat()
                except OSError:
                    continue
                if not path.name.startswith("."):
                    yield Entry(kind, path.name, path, stat.st_size, stat.st_mtime)

    def clear(self) -> int:
        """Remove everything; how many entries there were."""
        count = 0
        for entry in list(self.entries()):
            entry.path.unlink(missing_ok=True)
            count += 1
        return count

    def verify(self) -> list[Entry]:
        """The entries that are damaged; they are removed."""
        damaged = []
        for entry in list(self.entries()):
            try:
                whole = _checked(entry.path.read_bytes()) is not None
            except OSError:
                continue
            if not whole:
                damaged.append(entry)
                entry.path.unlink(missing_ok=True)
        return damaged

    def _path(self, kind: str, key: str) -> Path:
        return self.folder / kind / key[:2] / key

    def _bound(self) -> None:
        """Look now and then whether the folder is too large; the entries not used for longest go first."""
        stamp = self.folder / ".looked"
        try:
            if time.time() - stamp.stat().st_mtime < 60:
                return
        except OSError:
            pass
        try:
            stamp.touch()
        except OSError:
            return
        self.shrink()

    def shrink(self) -> int:
        """Remove old entries until the folder is well below its bound; how many were removed."""
        entries = sorted(self.entries(), key=lambda e: e.used)
        total = sum(e.bytes for e in entries)
        if total <= self.largest:
            return 0
        removed = 0
        for entry in entries:
            if total <= KEPT * self.largest:
                break
            entry.path.unlink(missing_ok=True)
            total -= entry.bytes
            removed += 1
        return removed


def default_folder() -> Path:
    """Where the cache of this user is, as the XDG specification and the makers of other systems have it."""
    home = Path(os.path.expanduser("~"))  # which stays as it is where nobody knows it; Path.home() would raise
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local") / "stablehlo_py" / "Cache"
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "stablehlo_py"
    stated = os.environ.get("XDG_CACHE_HOME", "").strip()
    return (Path(stated) if os.path.isabs(stated) else home / ".cache") / "stablehlo_py"


def key_of(*parts: str | bytes) -> str:
    """The hash of parts, the versions of everything that takes part, and our own code."""
    digest = hashlib.sha256(fingerprint().encode())
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(struct.pack("<Q", len(data)))
        digest.update(data)
    return digest.hexdigest()


@functools.cache
def fingerprint() -> str:
    """What the bits of a compiled program depend on beside its source: versions, and the files of this package."""
    parts = [installed(name) for name in ("torch_mlir", "llvmlite", "numpy")]
    root = Path(__file__).parent
    for folder in (root, root.parent.parent / "pipelines"):
        parts += sorted(_files(str(folder), len(str(folder))))
    return "\n".join(parts)


def _files(folder: str, root: int) -> Iterator[str]:
    """The sources under a folder, with what tells that one was changed; root: how much of the paths is left out."""
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        if entry.is_dir():
            yield from _files(entry.path, root)
        elif entry.name.endswith((".py", ".pipeline")):
            stat = entry.stat()
            yield f"{entry.path[root:]} {stat.st_size} {stat.st_mtime_ns}"


def pack(parts: list[bytes]) -> bytes:
    """Several byte strings as one."""
    return struct.pack("<Q", len(parts)) + b"".join(struct.pack("<Q", len(p)) for p in parts) + b"".join(parts)


def unpack(data: bytes) -> list[bytes]:
    """What `pack` put together; ValueError when it is something else."""
    try:
        (count,) = struct.unpack_from("<Q", data)
        sizes = struct.unpack_from(f"<{count}Q", data, 8)
    except (struct.error, OverflowError, MemoryError) as error:
        raise ValueError("not packed parts") from error
    at, parts = 8 + 8 * count, []
    for size in sizes:
        parts.append(data[at : at + size])
        at += size
    if at != len(data):
        raise ValueError("not packed parts")
    return parts


def _checked(data: bytes) -> bytes | None:
    if not data.startswith(MAGIC) or len(data) < _HEAD:
        return None
    payload = data[_HEAD:]
    return payload if hashlib.sha256(payload).digest() == data[len(MAGIC) : _HEAD] else None
