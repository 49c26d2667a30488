"""Elementwise arithmetic, logic and mathematics: a table with one function for each op and kind of element.

The kind is that of the first operand. Bodies work on compute scalars; `build.elementwise` puts the loop around them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from stablehlo_py.core.registry import lower, scalar
from stablehlo_py.dialects.stablehlo import Op
from stablehlo_py.errors import UnsupportedOp
from stablehlo_py.later import Later
from stablehlo_py.mlir import arith, ir, math
from stablehlo_py.ops import build
from stablehlo_py.records import record

if TYPE_CHECKING:
    from stablehlo_py.ops import complex_functions as cx
    from stablehlo_py.ops import integers, math_functions
else:
    cx = Later("stablehlo_py.ops.complex_functions")
    integers = Later("stablehlo_py.ops.integers")
    math_functions = Later("stablehlo_py.ops.math_functions")

Function = Callable[..., ir.Value]


@record
class Row:
    """The function of an op on each kind of element; `uint` is as `int` when absent."""

    float: Function | None = None
    int: Function | None = None
    uint: Function | None = None
    bool: Function | None = None
    complex: Function | None = None

    def of(self, kind: str) -> Function | None:
        found = getattr(self, kind, None)
        return self.int if found is None and kind == "uint" else found


TABLE: dict[str, Row] = {
    "stablehlo.abs": Row(math.absf, integers.absolute, complex=cx.absolute),
    "stablehlo.add": Row(arith.addf, arith.addi, None, arith.ori, cx.add),
    "stablehlo.subtract": Row(arith.subf, arith.subi, None, None, cx.subtract),
    "stablehlo.multiply": Row(arith.mulf, arith.muli, None, arith.andi, cx.multiply),
    "stablehlo.divide": Row(arith.divf, integers.divide, integers.divide_unsigned, None, cx.divide),
    "stablehlo.remainder": Row(math_functions.remainder, integers.remainder, integers.remainder_unsigned),
    "stablehlo.negate": Row(arith.negf, integers.negate, None, None, cx.negate),
    "stablehlo.sign": Row(math_functions.sign, integers.sign, complex=cx.sign),
    "stablehlo.maximum": Row(arith.maximumf, arith.maxsi, arith.maxui, arith.ori, cx.maximum),
    "stablehlo.minimum": Row(arith.minimumf, arith.minsi, arith.minui, arith.andi, cx.minimum),
    "stablehlo.power": Row(math_functions.power, integers.power, integers.power_unsigned, None, cx.power),
    # bits
    "stablehlo.and": Row(None, arith.andi, None, arith.andi),
    "stablehlo.or": Row(None, arith.ori, None, arith.ori),
    "stablehlo.xor": Row(None, arith.xori, None, arith.xori),
    "stablehlo.not": Row(None, integers.invert, None, integers.invert),
    "stablehlo.shift_left": Row(None, integers.shift_left),
    "stablehlo.shift_right_logical": Row(None, integers.shift_right_logical),
    "stablehlo.shift_right_arithmetic": Row(None, integers.shift_right_arithmetic),
    "stablehlo.popcnt": Row(None, integers.popcount),
    "stablehlo.count_leading_zeros": Row(None, integers.leading_zeros),
    # exponentials, logarithms, roots
    "stablehlo.exponential": Row(math.exp, complex=cx.exponential),
    "stablehlo.exponential_minus_one": Row(math.expm1, complex=cx.exponential_minus_one),
    "stablehlo.log": Row(math.log, complex=cx.log),
    "stablehlo.log_plus_one": Row(math.log1p, complex=cx.log_plus_one),
    "stablehlo.logistic": Row(math_functions.logistic, complex=cx.logistic),
    "stablehlo.sqrt": Row(math.sqrt, complex=cx.sqrt),
    "stablehlo.rsqrt": Row(math_functions.rsqrt, complex=cx.rsqrt),
    "stablehlo.cbrt": Row(math.cbrt, complex=cx.cbrt),
    # angles
    "stablehlo.sine": Row(math.sin, complex=cx.sine),
    "stablehlo.cosine": Row(math.cos, complex=cx.cosine),
    "stablehlo.tan": Row(math.tan, complex=cx.tan),
    "stablehlo.tanh": Row(math.tanh, complex=cx.tanh),
    "stablehlo.atan2": Row(math_functions.atan2, complex=cx.atan2),
    # rounding and parts
    "stablehlo.floor": Row(math.floor),
    "stablehlo.ceil": Row(math.ceil),
    "stablehlo.round_nearest_afz": Row(math.round),
    "stablehlo.round_nearest_even": Row(math.roundeven),
    "stablehlo.is_finite": Row(math_functions.is_finite, complex=cx.is_finite),
    "stablehlo.real": Row(lambda x: x, complex=cx.real),
    "stablehlo.imag": Row(math_functions.zero, complex=cx.imag),
    "stablehlo.complex": Row(cx.create),
}


def register(name: str, row: Row) -> None:
    """Make the scalar and the tensor rule of one row of a table."""

    def rule(op: Op, *values: ir.Value) -> ir.Value:
        element = op.operand_types[0].element
        function = row.of(element.kind)
        if function is None:
            raise UnsupportedOp(op.name, f"not defined on {element}", where=str(op.location))
        return function(*values)

    scalar.add(name, rule)
    lower.add(name, build.elementwise)


for _name, _row in TABLE.items():
    register(_name, _row)


@lower("stablehlo.map")
def lower_map(op: Op, *operands: build.Tensor) -> build.Tensor:
    """The region on each place of the operands."""
    return build.generic(operands, [op.type], lambda *xs: build.apply_region(op, 0, *xs))[0]
