"""Branch-free expansions of mathematical functions on scalars: the table of which op is expanded by what."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from stablehlo_py.mlir import ir
from stablehlo_py.ops.expression import Num
from stablehlo_py.transforms.math_expansions import (
    error_function,
    exponential,
    inverse_trigonometric,
    logarithm,
    power,
    trigonometric,
)
from stablehlo_py.transforms.math_expansions.arithmetic import Arithmetic


@dataclass(frozen=True)
class Expansion:
    """function: given how to multiply and add, and the operands. f64: whether it serves f64 beside f32."""

    function: Callable[..., Num]
    f64: bool = True

    def serves(self, ty: ir.Type) -> bool:
        return isinstance(ty, ir.F32Type) or (self.f64 and isinstance(ty, ir.F64Type))

    def build(self, arithmetic: Arithmetic, *operands: ir.Value) -> ir.Value:
        return self.function(arithmetic, *(Num(v) for v in operands)).value


# by the op of the math dialect, and by the name of the function of the C library on f64
OPS: dict[str, Expansion] = {
    "math.exp": Expansion(exponential.exp),
    "math.exp2": Expansion(exponential.exp2),
    "math.expm1": Expansion(exponential.expm1),
    "math.tanh": Expansion(exponential.tanh),
    "math.sinh": Expansion(exponential.sinh),
    "math.cosh": Expansion(exponential.cosh),
    "math.log": Expansion(logarithm.log),
    "math.log1p": Expansion(logarithm.log1p),
    "math.asinh": Expansion(logarithm.asinh),
    "math.acosh": Expansion(logarithm.acosh),
    "math.atanh": Expansion(logarithm.atanh),
    "math.sin": Expansion(trigonometric.sin),
    "math.cos": Expansion(trigonometric.cos),
    "math.tan": Expansion(trigonometric.tan),
    "math.atan": Expansion(inverse_trigonometric.atan),
    "math.atan2": Expansion(inverse_trigonometric.atan2),
    "math.asin": Expansion(inverse_trigonometric.asin),
    "math.acos": Expansion(inverse_trigonometric.acos),
    "math.erf": Expansion(error_function.erf),
    "math.erfc": Expansion(error_function.erfc),
    "math.powf": Expansion(power.pow),
    "math.cbrt": Expansion(power.cbrt),
    "math.rsqrt": Expansion(power.rsqrt),
}
CALLS: dict[str, Expansion] = {"hypot": Expansion(power.hypot)}
