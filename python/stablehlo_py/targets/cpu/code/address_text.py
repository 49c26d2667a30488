"""Addresses in a vectorised kernel's LLVM IR, written so that code generation makes cheap ones without looking for them.

LLVM's code generation begins with loop strength reduction, which takes two fifths of its time to turn each address into a
pointer that steps. llvmlite has no option that leaves it out for one module alone. The addresses of vector loops fit what x86
computes within an access anyway, once constants stand outside of products.
"""

from __future__ import annotations

import re

# Patterns begin with the end of the line before: looking for a fixed text first is six times as fast as for `^`.
_PHI = re.compile(r"\n  %\d+ = phi i64 (.*)")
_INCOMING = re.compile(r"\[ (%\d+),")
_STEP = re.compile(r"\n  %(\d+) = (add|mul) (?:nuw |nsw )*i64 (%\d+), (%?-?\d+)(?=\n)")
_SAME = "\ndeclare i64 @llvm.expect.i64(i64, i64)\n"


def plain_addresses(text: str) -> str:
    """Count in a way that only code generation sees through, where `expect` is its operand; multiply before adding.

    %9 = add i64 %5, 1     ->   %next9 = add i64 %5, 1
                                %9 = call i64 @llvm.expect.i64(i64 %next9, i64 0)      where a phi takes %9

    %7 = add i64 %5, 3          %7 = add i64 %5, 3
    %8 = mul i64 %7, 512   ->   %product8 = mul i64 %5, 512
                                %8 = add i64 %product8, 1536

    Where no counter is known to step evenly, strength reduction has nothing to do. The numbers of LLVM's text must rise, so
    what is new has names.
    """
    counters = {name for incoming in _PHI.findall(text) for name in _INCOMING.findall(incoming)}
    sums: dict[str, tuple[str, int]] = {}  # what is added to which value

    def write(match: re.Match[str]) -> str:
        number, kind, value, other = match.groups()
        name = f"%{number}"
        if kind == "mul":
            if other[0] == "%" or value not in sums:
                return match[0]
            value, constant = sums[value]
            constant = _wrapped(constant * int(other))
            return f"\n  %product{number} = mul i64 {value}, {other}\n  {name} = add i64 %product{number}, {constant}"
        if name in counters:
            added = f"\n  %next{number} = add i64 {value}, {other}"
            return f"{added}\n  {name} = call i64 @llvm.expect.i64(i64 %next{number}, i64 0)"
        if other[0] != "%":
            sums[name] = (value, int(other))
        return match[0]

    return _STEP.sub(write, text) + _SAME


def _wrapped(value: int) -> int:
    """As a signed number of 64 bits."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)
