"""Custom calls of XLA and JAX for which StableHLO and chlo have ops, once the operands that say shapes are constants.

custom_call @ApproxTopK(%x, %i, %a, %b) {top_k = 3}     ->   the first 3 of sort(%x, %i), which is exact
custom_call @stablehlo.dynamic_top_k(%x, constant 3)    ->   chlo.top_k(%x, k = 3)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from stablehlo_py.core.collect import operations_named
from stablehlo_py.core.passes import Pass
from stablehlo_py.core.types import tensor_type
from stablehlo_py.dialects.custom_call import NAME, call_attributes, target_of
from stablehlo_py.errors import BadInput
from stablehlo_py.mlir import PassManager, ir, load_chlo
from stablehlo_py.reading.places import place
from stablehlo_py.transforms.normalize.hlo_fold_shapes import known_elements
from stablehlo_py.transforms.normalize.hlo_inline import find_main
from stablehlo_py.transforms.normalize.shape_operands import is_dynamic, shape_operands


class HloKnownCalls(Pass):
    """Replace custom calls that XLA and JAX make of ops by these ops."""

    name: ClassVar[str] = "hlo-known-calls"

    def run(self, op: ir.Operation) -> bool:
        if not replace_known_calls(op):
            return False
        with op.context:
            PassManager.parse("builtin.module(symbol-dce)").run(op)
        return True


def replace_known_calls(module: ir.Operation) -> bool:
    """Replace the calls whose shapes are known by now; whether there was one."""
    ready = [call for call in operations_named(module, NAME) if target_of(call) in _RULES and _is_ready(call)]
    for call in ready:
        with ir.InsertionPoint(call), call.location:
            results = _RULES[target_of(call)](call, module)
        for old, new in zip(list(call.results), results, strict=True):
            old.replace_all_uses_with(new)
        call.erase()
    if ready:
        _take_result_types(find_main(module))
    return bool(ready)


def _is_ready(call: ir.Operation) -> bool:
    return not any(is_dynamic(v.type) for v in call.operands) and all(
        known_elements(v) is not None for v in shape_operands(call)
    )


def _take_result_types(main: ir.Operation) -> None:
    block = main.regions[0].blocks[0]
    results = [value.type for value in list(block.operations)[-1].operands]
    main.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get([a.type for a in block.arguments], results))


def _known(value: ir.Value, call: ir.Operation) -> np.ndarray:
    elements = known_elements(value)
    if elements is None:
        raise BadInput(
            f"custom_call @{target_of(call)}: a shape is known only when the program runs", where=place(call)
        )
    return elements


def _function(call: ir.Operation, module: ir.Operation) -> ir.Block:
    """The body of the computation that the call names."""
    names = [ir.FlatSymbolRefAttr(a).value for a in ir.ArrayAttr(call.attributes["called_computations"])]
    for function in (f.operation for f in module.regions[0].blocks[0].operations):
        if "sym_name" in function.attributes and ir.StringAttr(function.attributes["sym_name"]).value == names[0]:
            return function.regions[0].blocks[0]
    raise BadInput(f"custom_call @{target_of(call)} names @{names[0]}, which is not there", where=place(call))


def _copy_body(source: ir.Block, region: ir.Region) -> None:
    """The ops of a function's block in a region, with the region's kind of return."""
    block = region.blocks.append(*[a.type for a in source.arguments], arg_locs=[a.location for a in source.arguments])
    values = dict(zip(source.arguments, block.arguments, strict=True))
    *operations, terminator = (o.operation for o in source.operations)
    with ir.InsertionPoint(block):
        for op in operations:
            clone = op.clone()
            for number, operand in enumerate(clone.operands):
                clone.operands[number] = values.get(operand, operand)
            values.update(zip(op.results, clone.results, strict=True))
        ir.Operation.create("stablehlo.return", operands=[values[v] for v in terminator.operands])


def _approximate_top_k(call: ir.Operation, module: ir.Operation) -> list[ir.Value]:
    """operands: n arrays, n values of no effect, then k and shapes where they are dynamic.

    Sorted by the computation that the call names, the first k are exact, and so within any recall that is asked for.
    """
    attributes = call_attributes(call)
    count = len(call.results)
    dimension = int(attributes["reduction_dim"])
    if "top_k" in attributes:
        k = tensor_type(call.results[0].type).shape[dimension]  # more than top_k where the last step is left out
    else:
        k = int(_known(call.operands[2 * count], call))
    arrays = list(call.operands)[:count]
    ordered = ir.Operation.create(
        "stablehlo.sort",
        results=[v.type for v in arrays],
        operands=arrays,
        attributes={"dimension": _i64(dimension), "is_stable": ir.BoolAttr.get(True)},
        regions=1,
    )
    _copy_body(_function(call, module), ordered.regions[0])
    results = []
    for value in ordered.results:
        ty = tensor_type(value.type)
        limits = [k if d == dimension else size for d, size in enumerate(ty.shape)]
        if k > ty.shape[dimension]:
            raise BadInput(f"the {k} largest of {ty.shape[dimension]} elements are asked for", where=place(call))
        made = ir.Operation.create(
            "stablehlo.slice",
            results=[ty.with_shape(tuple(limits)).mlir],
            operands=[value],
            attributes={
                "start_indices": _i64s([0] * ty.rank),
                "limit_indices": _i64s(limits),
                "strides": _i64s([1] * ty.rank),
            },
        )
        results.append(made.results[0])
    return results


def _top_k(call: ir.Operation, module: ir.Operation) -> list[ir.Value]:
    """operands: array, k."""
    ty = tensor_type(call.operands[0].type)
    k = int(_known(call.operands[1], call))
    shape = (*ty.shape[:-1], k)
    types = [ty.with_shape(shape).mlir, tensor_type(call.results[1].type).with_shape(shape).mlir]
    load_chlo(call.context)
    made = ir.Operation.create("chlo.top_k", results=types, operands=[call.operands[0]], attributes={"k": _i64(k)})
    return list(made.results)


def _random_bits(call: ir.Operation, module: ir.Operation) -> list[ir.Value]:
    """operands: state, shape."""
    shape = tuple(int(n) for n in _known(call.operands[1], call))
    made = ir.Operation.create(
        "stablehlo.rng_bit_generator",
        results=[call.results[0].type, tensor_type(call.results[1].type).with_shape(shape).mlir],
        operands=[call.operands[0]],
        attributes={"rng_algorithm": call.attributes["rng_algorithm"]},
    )
    return list(made.results)


def _reduce_window(call: ir.Operation, module: ir.Operation) -> list[ir.Value]:
    """operands: n arrays, n initial values, then window, strides, base and window dilations, and padding."""
    arrays = len(call.results)
    window, strides, base, dilations, padding = (_known(v, call) for v in list(call.operands)[2 * arrays :])
    sizes = np.array(tensor_type(call.operands[0].type).shape)
    padded = np.where(sizes == 0, 0, (sizes - 1) * base + 1) + padding.sum(axis=1)
    extent = (window - 1) * dilations + 1
    shape = tuple(int(n) for n in np.where(padded < extent, 0, (padded - extent) // strides + 1))
    made = ir.Operation.create(
        "stablehlo.reduce_window",
        results=[tensor_type(r.type).with_shape(shape).mlir for r in call.results],
        operands=list(call.operands)[: 2 * arrays],
        attributes={
            "window_dimensions": _i64s(window),
            "window_strides": _i64s(strides),
            "base_dilations": _i64s(base),
            "window_dilations": _i64s(dilations),
            "padding": ir.DenseIntElementsAttr.get(np.ascontiguousarray(padding, np.int64)),
        },
        regions=1,
    )
    _copy_body(_function(call, module), made.regions[0])
    return list(made.results)


def _i64(value: int) -> ir.Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)


def _i64s(values: Any) -> ir.Attribute:  # Any: a list or an array of integers
    return ir.DenseI64ArrayAttr.get([int(v) for v in values])


_RULES: dict[str, Callable[[ir.Operation, ir.Operation], list[ir.Value]]] = {
    "ApproxTopK": _approximate_top_k,
    "stablehlo.dynamic_approx_top_k": _approximate_top_k,
    "stablehlo.dynamic_reduce_window": _reduce_window,
    "stablehlo.dynamic_rng_bit_generator": _random_bits,
    "stablehlo.dynamic_top_k": _top_k,
}
