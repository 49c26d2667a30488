"""Values without elements are constants: whatever computed them has nothing to do, and no kernel sees them.

%0 = stablehlo.slice %x [2:2] : (tensor<4xf32>) -> tensor<0xf32>  ->  %0 = stablehlo.constant dense<> : tensor<0xf32>
%0 = stablehlo.reduce(%x init: %i) ... : (tensor<0x2xf32>, tensor<f32>) -> tensor<2xf32>  ->  %i, broadcast
"""

from __future__ import annotations

from typing import ClassVar

from stablehlo_py.core.passes import Pass
from stablehlo_py.mlir import ir


class HloZeroSize(Pass):
    """Replace every value that has no elements by a constant; ops that are left without use go with cse."""

    name: ClassVar[str] = "hlo-zero-size"

    def run(self, op: ir.Operation) -> bool:
        changed = False
        for region in op.regions:
            for block in region.blocks:
                changed |= self._in_block(block)
        return changed

    def _in_block(self, block: ir.Block) -> bool:
        changed = False
        operations = [o.operation for o in block.operations]
        for argument in block.arguments:
            if operations and _has_no_elements(argument.type):
                _replace(argument, ir.InsertionPoint.at_block_begin(block))
                changed = True
        for operation in operations:
            if len(operation.regions):
                changed |= self.run(operation)
            if operation.name == "stablehlo.constant":
                continue
            empty = operation.name == "stablehlo.reduce" and _has_no_elements(operation.operands[0].type)
            if empty and not _has_no_elements(operation.results[0].type):
                _reduce_nothing(operation)
                changed = True
            for result in operation.results:
                if _has_no_elements(result.type):
                    _replace(result, ir.InsertionPoint.after(operation))
                    changed = True
        return changed


def _has_no_elements(ty: ir.Type) -> bool:
    return isinstance(ty, ir.RankedTensorType) and 0 in ty.shape and ty.has_static_shape


def _reduce_nothing(reduce: ir.Operation) -> None:
    """A reduction of no elements is its init values."""
    inits = list(reduce.operands)[len(reduce.results) :]
    for result, init in zip(reduce.results, inits, strict=True):
        broadcast = ir.Operation.create(
            "stablehlo.broadcast_in_dim",
            results=[result.type],
            operands=[init],
            attributes={"broadcast_dimensions": ir.DenseI64ArrayAttr.get([])},
            loc=reduce.location,
            ip=ir.InsertionPoint(reduce),
        )
        result.replace_all_uses_with(broadcast.results[0])


def _replace(value: ir.Value, place: ir.InsertionPoint) -> None:
    if not list(value.uses):
        return
    # as text: the bindings cannot hold an attribute with complex elements
    text = f'"stablehlo.constant"() <{{value = dense<> : {value.type}}}> : () -> {value.type}'
    constant = ir.Operation.parse(text).operation
    place.insert(constant)
    value.replace_all_uses_with(constant.results[0])
