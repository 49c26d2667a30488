"""Relocatable ELF objects of x86-64 as functions in memory: what a linker does, as far as kernels need it.

A kernel's object has code, constants that the code reads by their distance, and calls of functions such as `memcpy`. All
objects of a program lie in one mapping, which is written and then made executable:

    object 0:  .text | .rodata.cst32 | ... | a stub for each function outside
    object 1:  ...

A stub is `jmp *8(%rip)`, padding, and the function's address, so it is also the entry of a global offset table. As the
System V ABI's supplement for x86-64 has it, S is the place of a symbol, A the addend, P the place that is patched.
"""

from __future__ import annotations

import ctypes
import mmap
import struct
import sys
from collections.abc import Callable, Sequence

from stablehlo_py.records import record

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")
_X86_64 = (62).to_bytes(2, "little")  # in the header, the machine
_SYMTAB, _RELA, _NOBITS = 2, 4, 8
_WRITE, _ALLOC = 1, 2
_R_64, _R_PC32, _R_PLT32, _R_GOTPCREL, _R_GOTPCRELX, _R_REX_GOTPCRELX = 1, 2, 4, 9, 41, 42
_STUB = b"\xff\x25\x02\x00\x00\x00\x90\x90"  # jmp *2(%rip); nop; nop; the address follows
_ALIGNMENT = 64  # of an object: a cache line
_READ, _EXECUTE = 1, 4


class NotUnderstoodError(Exception):
    """An object has something that only a real linker knows."""


def is_understood(data: bytes) -> bool:
    """Whether objects like this one can be loaded here."""
    return data[:6] == b"\x7fELF\x02\x01" and data[18:20] == _X86_64 and sys.platform.startswith("linux")


@record
class _Section:
    """A section header, with the place that it has among its object's sections in memory."""

    kind: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    place: int


class Image:
    """Objects in executable memory, as long as this lives."""

    def __init__(self, objects: Sequence[bytes], entry: str, address_of: Callable[[str], int]) -> None:
        """entry: the function whose address in each object `addresses` has. address_of: that of a function outside.

        NotUnderstoodError where an object is more than code, constants and calls.
        """
        laid = [_Object(data, entry) for data in objects]
        starts, size = [], 0
        for each in laid:
            starts.append(size)
            size += -(-each.size // _ALIGNMENT) * _ALIGNMENT
        self._memory = mmap.mmap(-1, max(size, 1), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        base = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        for start, each in zip(starts, laid, strict=True):
            self._memory[start : start + each.size] = each.linked(base + start, address_of)
        protect = ctypes.CDLL(None, use_errno=True).mprotect
        if protect(ctypes.c_void_p(base), ctypes.c_size_t(max(size, 1)), _READ | _EXECUTE):
            raise OSError(ctypes.get_errno(), "this system does not let a process make code of its own")
        self.addresses = [base + start + each.entry for start, each in zip(starts, laid, strict=True)]


class _Object:
    """One object: its sections one behind the other, then its stubs. entry: the offset of its function."""

    def __init__(self, data: bytes, entry: str) -> None:
        self._data = data
        head = _HEADER.unpack_from(data)
        table, size, count = head[6], head[11], head[12]
        end = 0
        self._sections: list[_Section] = []
        for number in range(count):
            _, kind, flags, _, offset, length, link, info, alignment, _ = _SECTION.unpack_from(
                data, table + size * number
            )
            place = -1
            if flags & _ALLOC and length:
                if flags & _WRITE or kind == _NOBITS:
                    raise NotUnderstoodError("memory of its own")
                place = -(-end // alignment) * alignment
                end = place + length
            self._sections.append(_Section(kind, flags, offset, length, link, info, place))
        self._symbols = [
            _SYMBOL.unpack_from(data, section.offset + at)
            for section in self._sections
            if section.kind == _SYMTAB
            for at in range(0, section.size, _SYMBOL.size)
        ]
        names = next((self._sections[section.link].offset for section in self._sections if section.kind == _SYMTAB), 0)
        self._names = names
        self._stubs = -(-end // 16) * 16
        self._outside: dict[int, int] = {}  # numbers of symbols -> the places of their stubs
        self._patches = [
            patch for section in self._sections if section.kind == _RELA for patch in self._patches_of(section)
        ]
        self.size = self._stubs + 16 * len(self._outside)
        self.entry = self._place(next(i for i in range(len(self._symbols)) if self._name(i) == entry))

    def _patches_of(self, section: _Section) -> list[tuple[int, int, int, int]]:
        """(the place in the object, the kind, the symbol's number, the addend) of each relocation of a section."""
        target = self._sections[section.info].place
        if target < 0:
            return []
        found = []
        for at in range(section.offset, section.offset + section.size, _RELOCATION.size):
            offset, info, addend = _RELOCATION.unpack_from(self._data, at)
            kind, symbol = info & 0xFFFFFFFF, info >> 32
            is_outside = self._symbols[symbol][3] == 0
            if is_outside or kind in (_R_GOTPCREL, _R_GOTPCRELX, _R_REX_GOTPCRELX):
                self._outside.setdefault(symbol, self._stubs + 16 * len(self._outside))
            if is_outside and kind == _R_PC32:
                raise NotUnderstoodError("a variable outside")
            found.append((target + offset, kind, symbol, addend))
        return found

    def _name(self, symbol: int) -> str:
        start = self._names + self._symbols[symbol][0]
        return self._data[start : self._data.index(b"\0", start)].decode()

    def _place(self, symbol: int) -> int:
        """The offset in this object of a symbol that it defines."""
        _, _, _, section, value, _ = self._symbols[symbol]
        if section >= len(self._sections) or self._sections[section].place < 0:
            raise NotUnderstoodError(f"symbol {self._name(symbol)}")
        return self._sections[section].place + value

    def linked(self, base: int, address_of: Callable[[str], int]) -> bytes:
        """The bytes of this object where it begins at address `base`."""
        memory = bytearray(self.size)
        for section in self._sections:
            if section.place >= 0:
                memory[section.place : section.place + section.size] = self._data[
                    section.offset : section.offset + section.size
                ]
        for symbol, stub in self._outside.items():
            is_outside = self._symbols[symbol][3] == 0
            address = address_of(self._name(symbol)) if is_outside else base + self._place(symbol)
            memory[stub : stub + 16] = _STUB + address.to_bytes(8, "little")
        for place, kind, symbol, addend in self._patches:
            if kind in (_R_GOTPCREL, _R_GOTPCRELX, _R_REX_GOTPCRELX):
                struct.pack_into("<i", memory, place, self._outside[symbol] + 8 + addend - place)
            elif kind in (_R_PC32, _R_PLT32):
                target = self._outside[symbol] if symbol in self._outside else self._place(symbol)
                struct.pack_into("<i", memory, place, target + addend - place)
            elif kind == _R_64:
                target = self._outside[symbol] if symbol in self._outside else self._place(symbol)
                struct.pack_into("<Q", memory, place, (base + target + addend) % (1 << 64))
            else:
                raise NotUnderstoodError(f"relocation {kind}")
        return bytes(memory)
