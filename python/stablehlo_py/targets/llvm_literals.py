"""Float literals of LLVM IR text as llvmlite reads them.

The bindings write text of LLVM 24, llvmlite reads that of LLVM 22. The two differ only in float literals: the newer one writes
`+inf`, `-nan(0x1)`, `f0x7F7FFFFF` and the shortest decimal of a value, the older one wants decimals that are exact or the bits.
"""

from __future__ import annotations

import re
import string
import struct

import numpy as np
from ml_dtypes import bfloat16

from stablehlo_py.records import record


@record
class _Format:
    """An IEEE-like format: the numpy dtype, the type of its bits, the bits of infinity, of a quiet NaN and of the sign."""

    dtype: type
    bits: type
    infinity: int
    quiet: int
    sign: int


_FORMATS = {
    "half": _Format(np.float16, np.uint16, 0x7C00, 1 << 9, 1 << 15),
    "bfloat": _Format(bfloat16, np.uint16, 0x7F80, 1 << 6, 1 << 15),
    "float": _Format(np.float32, np.uint32, 0x7F80_0000, 1 << 22, 1 << 31),
    "double": _Format(np.float64, np.uint64, 0x7FF0_0000_0000_0000, 1 << 51, 1 << 63),
}

_TYPE = re.compile(r"(?<![-\w.$%@\"])(half|bfloat|float|double)\b")
# What may be a literal, found by its first character; whether it is one is for the text in front of it to say.
_LITERAL = re.compile(
    r'"[^"\n]*"'  # strings and quoted names are skipped
    r"|([+-](?:inf|qnan|s?nan\(0x[0-9A-Fa-f]+\))|f0x[0-9A-Fa-f]+|[+-]?\d+\.\d*(?:[eE][+-]?\d+)?)(?![\w.])"
)
_MARK = re.compile(r"\d\.|f0x|inf|nan")  # a line with a literal has one of these
_WITHIN = frozenset("-.$%@_") | frozenset(string.ascii_letters + string.digits)  # no literal begins behind these
_NAMED = re.compile(r"\b(half|bfloat|float|double) $")
_SPECIAL = re.compile(r"([+-])(inf|qnan|s?nan)(?:\(0x([0-9A-Fa-f]+)\))?$")


def fix_literals(text: str) -> str:
    """Write every float literal of LLVM 24 text as bits, as LLVM 22 reads them.

    fadd float %x, 1.000000e-01   ->   fadd float %x, 0x3FB99999A0000000
    """
    memo: dict[tuple[str, str], str] = {}
    lines = text.split("\n")  # a fifth of the time of looking through all of the text
    for number, line in enumerate(lines):
        if ("." in line or "f0x" in line or "inf" in line or "nan" in line) and _MARK.search(line):
            lines[number] = _fix_line(line, memo)
    return "\n".join(lines)


def _fix_line(line: str, memo: dict[tuple[str, str], str]) -> str:
    def rewrite(match: re.Match[str]) -> str:
        literal = match[1]
        start = match.start()
        if literal is None or (start and line[start - 1] in _WITHIN):
            return match[0]
        named = _NAMED.search(line, max(start - 8, 0), start)
        kind = named[1] if named else _type_before(line[:start])
        if kind is None:
            return literal
        spelled = memo.get((kind, literal))
        if spelled is None:
            spelled = memo[kind, literal] = _spell(kind, _bits(kind, literal))
        return spelled

    return _LITERAL.sub(rewrite, line)


def _type_before(front: str) -> str | None:
    """The float type that a bare operand has: the last one named before it on its line (`phi float [ 0.1, %3 ]`)."""
    named = _TYPE.findall(front)
    return named[-1] if named else None


def _bits(ty: str, literal: str) -> int:
    form = _FORMATS[ty]
    if literal.startswith("f0x"):
        return int(literal[3:], 16)
    special = _SPECIAL.match(literal)
    if special is None:
        with np.errstate(over="ignore"):  # the shortest decimal of the largest half lies above it
            return int(np.asarray(np.float64(literal)).astype(form.dtype).view(form.bits))
    sign, kind, payload = special.groups()
    bits = form.infinity | (form.sign if sign == "-" else 0) | (int(payload, 16) if payload else 0)
    return bits | form.quiet if kind in ("nan", "qnan") else bits


def _spell(ty: str, bits: int) -> str:
    """The hexadecimal spelling; LLVM 22 writes a float as the double of the same value, with the NaN payload shifted."""
    if ty == "half":
        return f"0xH{bits:04X}"
    if ty == "bfloat":
        return f"0xR{bits:04X}"
    if ty == "double":
        return f"0x{bits:016X}"
    if bits & 0x7F80_0000 == 0x7F80_0000:
        return f"0x{(bits >> 31 << 63) | (0x7FF << 52) | ((bits & 0x7F_FFFF) << 29):016X}"
    value = struct.unpack("<f", struct.pack("<I", bits))[0]
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
