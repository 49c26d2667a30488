"""Where a rounding to bf16 need not look for NaN.

bits + 0x7fff + odd carries into the exponent where a NaN has ones to its end, so `ops/small_float.py` takes another way for all
NaN. Those that come from bf16 end in 16 zeros, and so do those that CPUs make and what their arithmetic gives for a NaN:

    select(x != x, bits >> 16 | 0x40, rounded)  ->  rounded

for such an x, four instructions of nine. GPUs make NaN of ones.
"""

from __future__ import annotations

from stablehlo_py.core.collect import made_by, maker
from stablehlo_py.mlir import ir
from stablehlo_py.transforms.kernels.kernel_parallel import constant

# Ops whose NaN are those of an operand, or new ones.
_ARITHMETIC = frozenset(f"arith.{name}" for name in ("addf", "subf", "mulf", "divf", "negf", "maximumf", "minimumf"))
_FROM_INTEGERS = ("arith.sitofp", "arith.uitofp")
_QUIET = 0x40
_FARTHEST = 64  # values that are looked at behind one


def is_needless(op: ir.Operation) -> bool:
    """Whether an op is the choice above for an x whose NaN are short: its last operand will do."""
    if op.name != "arith.select":
        return False
    is_nan, quiet = made_by(op.operands[0], "arith.cmpf"), made_by(op.operands[1], "arith.ori")
    if is_nan is None or quiet is None:
        return False
    x, same = is_nan.operands
    bits = made_by(quiet.operands[0], "arith.shrui")
    if x != same or not isinstance(x.type, ir.F32Type) or constant(quiet.operands[1]) != _QUIET:
        return False
    if bits is None or constant(bits.operands[1]) != 16:
        return False
    cast = made_by(bits.operands[0], "arith.bitcast")
    return cast is not None and cast.operands[0] == x and _has_short_nans(x)


def _has_short_nans(value: ir.Value) -> bool:
    """Whether each NaN that a value can be ends in 16 zeros."""
    seen: set[ir.Value] = set()
    behind = [value]
    while behind:
        value = behind.pop()
        if value in seen:
            continue
        seen.add(value)
        op = maker(value)
        if op is None or len(seen) > _FARTHEST:
            return False
        if op.name == "arith.constant":
            number = ir.FloatAttr(op.attributes["value"]).value
            if number != number:  # of any bits
                return False
        elif op.name == "arith.select":
            behind += list(op.operands)[1:]
        elif op.name in _ARITHMETIC or (op.name.startswith("math.") and isinstance(value.type, ir.F32Type)):
            behind += list(op.operands)
        elif op.name not in _FROM_INTEGERS and not _is_widened(op):
            return False
    return True


def _is_widened(op: ir.Operation) -> bool:
    """The bits of a bf16 moved up."""
    if op.name != "arith.bitcast":
        return False
    moved = made_by(op.operands[0], "arith.shli")
    return moved is not None and constant(moved.operands[1]) == 16
