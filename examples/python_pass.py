"""A pass of one's own: x / 2^n == x * 2^-n, exactly; a product costs less than a quotient.

stablehlo-opt model.mlir --load-pass-plugin=examples/python_pass.py --pass-pipeline=divide-to-multiply
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from stablehlo_py.core.passes import Pass
from stablehlo_py.mlir import ir, stablehlo
from stablehlo_py.reading.annotations import walk


@dataclass(frozen=True)
class DivideToMultiply(Pass):
    """Replace divisions by a power of two by products."""

    name: ClassVar[str] = "divide-to-multiply"
    largest: int = 60  # of the exponents; 2^-n must be a normal number

    def run(self, op: ir.Operation) -> None:
        walk(op, lambda inner: self.rewrite(inner) if inner.name == "stablehlo.divide" else None)

    def rewrite(self, op: ir.Operation) -> None:
        constant = op.operands[1].owner
        if isinstance(constant, ir.Block) or constant.name != "stablehlo.constant":
            return
        divisor = np.asarray(ir.DenseElementsAttr(constant.attributes["value"]))
        mantissa, exponent = np.frexp(divisor)
        if divisor.dtype != np.float32 or not (np.abs(mantissa) == 0.5).all() or abs(exponent).max() > self.largest:
            return
        with op.location, ir.InsertionPoint(op):
            factor = stablehlo.ConstantOp(ir.DenseElementsAttr.get(1 / divisor, type=op.results[0].type))
            product = stablehlo.MulOp(op.operands[0], factor.result)
        op.results[0].replace_all_uses_with(product.result)
        op.erase()
