"""Branch-free expansions of mathematical functions on scalars: the table of which op is expanded by what."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from stablehlo_py.later import Later
from stablehlo_py.mlir import ir
from stablehlo_py.ops.expression import Num
from stablehlo_py.transforms.math_expansions import exponential
from stablehlo_py.transforms.math_expansions.arithmetic import Arithmetic

if TYPE_CHECKING:
    from stablehlo_py.transforms.math_expansions import (
        error_function,
        inverse_trigonometric,
        logarithm,
        power,
        trigonometric,
    )
else:  # most programs have exponentials at most
    error_function, inverse_trigonometric, logarithm, power, trigonometric = (
        Later(f"{__name__}.{module}")
        for module in ("error_function", "inverse_trigonometric", "logarithm", "power", "trigonometric")
    )

Function = Callable[..., Num]  # of how to multiply and add, and the operands


def expand(function: Function, arithmetic: Arithmetic, *operands: ir.Value) -> ir.Value:
    return function(arithmetic, *(Num(v) for v in operands)).value


# by the op of the math dialect, and by the name of the function of the C library on f64
OPS: dict[str, Function] = {
    "math.exp": exponential.exp,
    "math.exp2": exponential.exp2,
    "math.expm1": exponential.expm1,
    "math.tanh": exponential.tanh,
    "math.sinh": exponential.sinh,
    "math.cosh": exponential.cosh,
    "math.log": logarithm.log,
    "math.log1p": logarithm.log1p,
    "math.asinh": logarithm.asinh,
    "math.acosh": logarithm.acosh,
    "math.atanh": logarithm.atanh,
    "math.sin": trigonometric.sin,
    "math.cos": trigonometric.cos,
    "math.tan": trigonometric.tan,
    "math.atan": inverse_trigonometric.atan,
    "math.atan2": inverse_trigonometric.atan2,
    "math.asin": inverse_trigonometric.asin,
    "math.acos": inverse_trigonometric.acos,
    "math.erf": error_function.erf,
    "math.erfc": error_function.erfc,
    "math.powf": power.pow,
    "math.cbrt": power.cbrt,
    "math.rsqrt": power.rsqrt,
}
CALLS: dict[str, Function] = {"hypot": power.hypot}
