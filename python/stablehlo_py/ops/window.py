"""Windows that slide over tensors: reduce_window with any body, select_and_scatter."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stablehlo_py.core.registry import lower
from stablehlo_py.core.types import ElementType, TensorType, element_type
from stablehlo_py.dialects.stablehlo import ReduceWindow, SelectAndScatter, view
from stablehlo_py.mlir import arith, ir, tensor
from stablehlo_py.ops import build, layout
from stablehlo_py.ops.build import PARALLEL, REDUCTION, Tensor


@lower("stablehlo.reduce_window")
def lower_reduce_window(op: ReduceWindow, *operands: Tensor) -> tuple[Tensor, ...]:
    """result[i] = reduce of padded[i * stride + w * window_dilation] over w, in row-major order of w.

    Padding and base dilation are filled with the init values; small floats are rounded after each element. A window over
    everything up to here (a cumulative sum) is one pass; else the loops are (outer result dims, window dims, last result
    dim).
    """
    inputs, inits = operands[: len(operands) // 2], operands[len(operands) // 2 :]
    if op.type.size == 0:
        return tuple(build.empty(ty) for ty in op.types)
    scanned = _scanned_dimension(op)
    return _windows(op, inputs, inits) if scanned is None else (_scan(op, inputs[0], inits[0], *scanned),)


def _windows(op: ReduceWindow, inputs: Sequence[Tensor], inits: Sequence[Tensor]) -> tuple[Tensor, ...]:
    rank, window = op.rank, op.window_dimensions
    low, high = zip(*op.padding, strict=True) if rank else ((), ())
    gaps = [dilation - 1 for dilation in op.base_dilations]
    padded = [
        layout.pad(source, tensor.extract(init.value, []), low, high, gaps)
        for source, init in zip(inputs, inits, strict=True)
    ]
    # loops: result dims but the last, long window dims, last result dim
    sliding = [d for d in range(rank) if window[d] != 1]
    result_loop = [*range(rank - 1), rank - 1 + len(sliding)] if rank else []
    window_loop = {d: rank - 1 + n for n, d in enumerate(sliding)}
    count = rank + len(sliding)
    places = []
    for d in range(rank):
        place = ir.AffineExpr.get_dim(result_loop[d]) * op.window_strides[d]
        if d in window_loop:
            place = place + ir.AffineExpr.get_dim(window_loop[d]) * op.window_dilations[d]
        places.append(place)
    read = ir.AffineMap.get(count, 0, places)
    # an operand that is never read gives linalg the extents of the window's loops
    extents = build.empty(TensorType(tuple(window[d] for d in sliding), inits[0].element))
    return build.generic(
        [*padded, extents],
        [_filled(init, ty) for init, ty in zip(inits, op.types, strict=True)],
        lambda *xs: build.apply_region(op, 0, *xs[len(inputs) + 1 :], *xs[: len(inputs)]),
        maps=[read] * len(inputs)
        + [build.dims_map(count, list(window_loop.values()))]
        + [build.dims_map(count, result_loop)] * len(inputs),
        iterators=[REDUCTION if loop in window_loop.values() else PARALLEL for loop in range(count)],
    )


def _filled(init: Tensor, ty: TensorType) -> Tensor:
    return build.fill(ty, tensor.extract(init.value, []))


# --- cumulative windows ----------------------------------------------------------------------------------------------

_IDENTITY_OF = {
    "stablehlo.add": lambda element: 0,
    "stablehlo.multiply": lambda element: 1,
    "stablehlo.maximum": lambda element: _lowest(element),
    "stablehlo.minimum": lambda element: _highest(element),
    "stablehlo.and": lambda element: -1 if element.is_integer else True,
    "stablehlo.or": lambda element: 0,
}


def _scanned_dimension(op: ReduceWindow) -> tuple[int, bool] | None:
    """The dimension of a cumulative window and whether it runs from the end; None for any other window.

    result[i] = body(result[i - 1], x[i]) needs that the padding changes nothing: the body is one op whose identity is
    the init value. From the end, windows are summed in the opposite order, as the order is free.
    """
    if len(op.types) != 1 or any(n != 1 for n in op.window_strides + op.base_dilations):
        return None
    size = op.operand_types[0].shape
    long = [d for d in range(op.rank) if op.window_dimensions[d] != 1]
    if len(long) != 1 or any(pads != (0, 0) for d, pads in enumerate(op.padding) if d != long[0]):
        return None
    d = long[0]
    if op.window_dilations[d] != 1 or op.window_dimensions[d] != size[d]:
        return None
    if op.padding[d] not in ((size[d] - 1, 0), (0, size[d] - 1)) or not _init_is_identity(op):
        return None
    return d, op.padding[d] == (0, size[d] - 1)


def _init_is_identity(op: ReduceWindow) -> bool:
    block = op.block(0)
    body = [view(operation) for operation in block.operations]
    init = op.operation.operands[1].owner
    element = op.type.element
    if len(body) != 2 or body[0].name not in _IDENTITY_OF or isinstance(init, ir.Block):
        return False
    if set(body[0].operation.operands) != set(block.arguments) or view(init).name != "stablehlo.constant":
        return False
    if element.is_complex and body[0].name in ("stablehlo.maximum", "stablehlo.minimum"):
        return False
    identity = np.asarray(_IDENTITY_OF[body[0].name](element)).astype(element.dtype)
    return bool(view(init).elements("value").reshape(-1)[0] == identity)


def _lowest(element: ElementType) -> object:
    if element.is_float:
        return -np.inf
    if element.is_bool:
        return False
    return 0 if element.is_unsigned else -(1 << (element.bits - 1))


def _highest(element: ElementType) -> object:
    if element.is_float:
        return np.inf
    if element.is_bool:
        return True
    return (1 << element.bits) - 1 if element.is_unsigned else (1 << (element.bits - 1)) - 1


def _scan(op: ReduceWindow, source: Tensor, init: Tensor, dim: int, from_end: bool) -> Tensor:
    """result[.., i, ..] = body(result[.., i - 1, ..], x[.., i, ..]), the loop over i inside those before it."""
    shape, first = source.shape, build.read(init, [])

    def position(i: ir.Value) -> ir.Value:
        return arith.subi(build.index(shape[dim] - 1), i) if from_end else i

    def along_last(outer: list[ir.Value], carried: list) -> list:
        def step(inner: list[ir.Value], state: list) -> list:
            result, acc = state
            at = [*outer, position(inner[0])]
            acc = build.apply_region(op, 0, acc, build.read(source, at))[0]
            return [build.write(result, acc, at), acc]

        return build.loops([shape[dim]], [*carried, first], step)[:1]

    def along_other(at: list[ir.Value], carried: list) -> list:
        (result,) = carried
        here, before, i = list(at), list(at), at[dim]
        here[dim] = position(i)
        before[dim] = position(arith.maxsi(arith.subi(i, build.index(1)), build.index(0)))
        is_first = arith.cmpi(arith.CmpIPredicate.eq, i, build.index(0))
        acc = arith.select(is_first, first, build.read(result, before))
        return [build.write(result, build.apply_region(op, 0, acc, build.read(source, here))[0], here)]

    result = build.empty(op.type)
    if dim == op.rank - 1:
        return build.loops(shape[:-1], [result], along_last)[0]
    return build.loops(shape, [result], along_other)[0]


# --- select_and_scatter ----------------------------------------------------------------------------------------------

_BOOL = element_type("i1")


@lower("stablehlo.select_and_scatter")
def lower_select_and_scatter(op: SelectAndScatter, operand: Tensor, source: Tensor, init: Tensor) -> Tensor:
    """For each element of source: the place in its window that `select` prefers takes it in by `scatter`.

    result = init; for i: at = argselect of operand[i * stride + w - low] over w; result[at] = scatter(result[at],
    source[i]). Places in the padding do not take part.
    """
    rank, shape = op.rank, operand.shape
    window = op.window_dimensions or (1,) * rank
    zero, nothing_yet = build.index(0), build.scalar(_BOOL, False)

    def of_source(i: list[ir.Value], carried: list) -> list:
        def of_place(w: list[ir.Value], best: list) -> list:
            at, inside = [], build.scalar(_BOOL, True)
            for d in range(rank):
                place = arith.addi(arith.muli(i[d], build.index(op.window_strides[d])), w[d])
                place = arith.subi(place, build.index(op.padding[d][0]))
                at.append(place)
                within = arith.cmpi(arith.CmpIPredicate.ult, place, build.index(shape[d]))
                inside = arith.andi(inside, within)

            def compare() -> list:
                found, value, *place = best
                new = build.read(operand, at)
                (keep,) = build.apply_region(op, 0, value, new)
                keep = arith.andi(found, keep)
                pairs = zip([value, *place], [new, *at], strict=True)
                return [build.scalar(_BOOL, True), *[arith.select(keep, old, now) for old, now in pairs]]

            return build.when(inside, best, compare, lambda: best)

        nowhere = build.scalar(operand.element, 0)
        found, _, *at = build.loops(window, [nothing_yet, nowhere, *[zero] * rank], of_place)

        def combine() -> list:
            (result,) = carried
            value = build.apply_region(op, 1, build.read(result, at), build.read(source, i))[0]
            return [build.write(result, value, at)]

        return build.when(found, carried, combine, lambda: carried)

    return build.loops(source.shape, [_filled(init, op.type)], of_source)[0]
