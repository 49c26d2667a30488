"""Programs that a producer wrote slightly wrong, where what was meant is beyond doubt."""

from __future__ import annotations

from stablehlo_py.mlir import ir


def trim_strides(operations: list[ir.Operation]) -> None:
    """window_strides = [2, 2] of a dynamic_conv over one dimension   ->   [2]

    JAX exported such programs in 2023. Lists of other wrong lengths are ambiguous: verification refuses them.
    """
    for op in operations:
        if op.name != "stablehlo.dynamic_conv":
            continue
        if "window_strides" not in op.attributes or not isinstance(op.operands[0].type, ir.RankedTensorType):
            continue
        strides = list(ir.DenseI64ArrayAttr(op.attributes["window_strides"]))
        spatial = ir.RankedTensorType(op.operands[0].type).rank - 2
        if len(strides) > spatial and len(set(strides)) == 1:
            op.attributes["window_strides"] = ir.DenseI64ArrayAttr.get(strides[:spatial], op.context)
