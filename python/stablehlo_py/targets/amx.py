"""The matrix tiles of AMX, as far as the operating system has to do with them.

Tiles are 8 KiB of a thread's state, which Linux keeps for the threads of a process that has asked for it once; the first
use of a tile in any other process is an illegal instruction. Documentation/arch/x86/xstate.rst of the kernel.
"""

from __future__ import annotations

import ctypes
import platform
import sys

# How code that uses tiles ends. Encodings are of one length here: Intel's Software Developer's Manual, volume 2.
TILERELEASE = b"\xc4\xe2\x78\x49\xc0"
_ARCH_PRCTL = 158  # the number of the system call on x86-64
_SUPPORTED, _REQUEST = 0x1021, 0x1023  # ARCH_GET_XCOMP_SUPP, ARCH_REQ_XCOMP_PERM
_TILE_DATA = 18  # the number of the part of a thread's state

_answers: list[bool] = []  # what asking for permission gave, if anybody has asked


def usable(features: str) -> str:
    """Features of this machine in LLVM's spelling, without tiles where the operating system does not have them."""
    if "+amx-tile" not in features or (_answers[0] if _answers else _are_supported()):
        return features
    return features.replace("+amx-", "-amx-")


def are_in(code: bytes) -> bool:
    """Whether an object has code that uses tiles."""
    return TILERELEASE in code


def ask() -> bool:
    """Ask, once, that the threads of this process may use tiles; whether they may."""
    if not _answers:
        _answers.append(_arch_prctl(_REQUEST, _TILE_DATA) == 0)
    return _answers[0]


def _are_supported() -> bool:
    """Whether it is worth asking; changes nothing."""
    supported = ctypes.c_uint64()
    return _arch_prctl(_SUPPORTED, ctypes.byref(supported)) == 0 and supported.value >> _TILE_DATA & 1 == 1


def _arch_prctl(code: int, argument: object) -> int:
    """The system call; -1 where there is none such."""
    if platform.machine() != "x86_64" or not sys.platform.startswith("linux"):
        return -1
    return ctypes.CDLL(None).syscall(_ARCH_PRCTL, ctypes.c_long(code), argument)
