"""A pass of one's own: x / 2^n == x * 2^-n, exactly; a product costs less than a quotient.

stablehlo-opt model.mlir --load-pass-plugin=examples/python_pass.py --pass-pipeline=divide-to-multiply
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from stablehlo_py.core.passes import Pass
from stablehlo_py.mlir import ir
from stablehlo_py.reading.annotations import walk


class DivideToMultiply(Pass):
    """Replace divisions of f32 by a constant power of two by products."""

    name: ClassVar[str] = "divide-to-multiply"
    largest: int = 60  # of the exponents; 2^-n must be a normal number

    def run(self, op: ir.Operation) -> None:
        found: list[ir.Operation] = []
        walk(op, found.append)
        for inner in found:
            if inner.name == "stablehlo.divide":
                self.rewrite(inner)

    def rewrite(self, op: ir.Operation) -> None:
        x, divisor = op.operands
        constant = divisor.owner
        if isinstance(constant, ir.Block) or constant.name != "stablehlo.constant":
            return
        if not isinstance(ir.RankedTensorType(x.type).element_type, ir.F32Type):
            return
        value = np.asarray(constant.attributes["value"])
        mantissa, exponent = np.frexp(value)
        if (abs(mantissa) != 0.5).any() or (abs(exponent) > self.largest).any():
            return
        attributes = {"value": ir.DenseElementsAttr.get(1 / value)}
        with op.location, ir.InsertionPoint(op):
            factor = ir.Operation.create("stablehlo.constant", [divisor.type], attributes=attributes)
            product = ir.Operation.create("stablehlo.multiply", [x.type], [x, factor.result])
        op.results[0].replace_all_uses_with(product.result)
        op.erase()
