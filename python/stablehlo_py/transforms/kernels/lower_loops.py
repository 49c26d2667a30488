"""Loops with small steps as one scf.while on scalars: each element of a small array is a value of its own.

    while (x: 3 floats, i, y: 1000 floats) { y[i] = f(x) }   ->   scf.while (x0, x1, x2, i, y) { insert f(x0) into y ... }

Moves of elements, such as slices, transpositions and concatenations, leave no code: they are done on arrays of values here. Large
arrays stay tensors, of which single elements are read and replaced; `small_loops` says when that can be done in place.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import numpy as np

from stablehlo_py.core.types import tensor_type
from stablehlo_py.dialects.stablehlo import Constant, DotGeneral, Op, view
from stablehlo_py.mlir import arith, ir, scf
from stablehlo_py.ops import build, contraction
from stablehlo_py.ops.build import Tensor
from stablehlo_py.transforms.kernels.small_loops import is_small

Small = np.ndarray  # compute scalars, in the shape of the value
Value = Small | Tensor


def lower_loop(block: ir.Block, tensors: dict[ir.Value, Tensor]) -> list[Tensor]:
    """The results of a kernel that is a loop; tensors: its arguments."""
    with build.one_body():
        lowering = _Lowering()
        for argument, tensor in tensors.items():
            lowering.values[argument] = _elements(tensor) if is_small(argument) else tensor
        outputs = lowering.block(block)
        types = [tensor_type(v.type) for v in block.operations[len(block.operations) - 1].operands]
        made = iter(build.results([ty for ty, v in zip(types, outputs, strict=True) if not isinstance(v, Tensor)]))
        return [v if isinstance(v, Tensor) else _stored(next(made), v) for v in outputs]


def _elements(tensor: Tensor) -> Small:
    """All elements of a tensor."""
    places = np.ndindex(tensor.shape)
    return _array(tensor.shape, [build.read(tensor, [build.index(i) for i in place]) for place in places])


def _stored(target: Tensor, values: Small) -> Tensor:
    """The tensor with all its elements replaced."""
    for place, value in zip(np.ndindex(target.shape), values.reshape(-1), strict=True):
        target = build.write(target, value, [build.index(i) for i in place])
    return target


def _array(shape: Sequence[int], values: Sequence[ir.Value]) -> Small:
    made = np.empty(len(values), object)
    for i, value in enumerate(values):  # one by one: NumPy would look into them
        made[i] = value
    return made.reshape(tuple(shape))


class _Lowering:
    def __init__(self) -> None:
        self.values: dict[ir.Value, Value] = {}

    def block(self, block: ir.Block) -> list[Value]:
        """Lower the ops of a block here; what its terminator passes on."""
        *operations, end = [o.operation for o in block.operations]
        for operation in operations:
            op = view(operation)
            with op.location:
                results = _RULES.get(op.name, _Lowering.elementwise)(self, op)
            self.values.update(zip(operation.results, results, strict=True))
        return [self.values[v] for v in end.operands]

    def small(self, value: ir.Value) -> Small:
        return cast(Small, self.values[value])

    def operands(self, op: Op) -> list[Small]:
        return [self.small(v) for v in op.operation.operands]

    # --- control

    def loop(self, op: Op) -> Sequence[Value]:
        carried = [self.values[v] for v in op.operation.operands]
        loop = scf.while_([v.type for v in _flat(carried)], _flat(carried))
        for number, region in enumerate(loop.regions):
            block = region.blocks[0]
            self.values.update(zip(op.block(number).arguments, _like(carried, block.arguments), strict=True))
            with ir.InsertionPoint(block):
                outputs = self.block(op.block(number))
                if number == 0:
                    scf.condition(_flat(outputs)[0], block.arguments)
                else:
                    scf.yield_(_flat(outputs))
        return _like(carried, loop.results)

    def branches(self, op: Op) -> Sequence[Value]:
        """if and case: an index picks the region; out of range it is the last one."""
        (index,) = self.small(op.operation.operands[0]).reshape(-1)
        types = [build.compute_type(ty.element) for ty in op.types for _ in range(ty.size)]
        shapes = [np.empty(ty.shape, object) for ty in op.types]
        if op.name == "stablehlo.if":
            choice = scf.if_(index, types)
            blocks = [region.blocks[0] for region in choice.regions]
        else:
            count = len(op.operation.regions)
            chosen = build.to_index(op.operand_types[0].element, index)
            choice = scf.index_switch(types, chosen, range(count - 1))
            last, *others = [region.blocks[0] for region in choice.regions]
            blocks = [*others, last]  # the default region comes first in the op and takes the last branch
        for number, block in enumerate(blocks):
            with ir.InsertionPoint(block):
                scf.yield_(_flat(self.block(op.block(number))))
        return _like(shapes, choice.results)

    # --- elements

    def elementwise(self, op: Op) -> Sequence[Value]:
        operands = np.broadcast_arrays(*self.operands(op), np.empty(op.type.shape, object))[:-1]
        rows = zip(*(x.reshape(-1) for x in operands), strict=True)
        return (_array(op.type.shape, [build.scalar_op(op, *row) for row in rows]),)

    def constant(self, op: Op) -> Sequence[Value]:
        assert isinstance(op, Constant)
        element = op.type.element
        return (_array(op.type.shape, [build.scalar(element, x) for x in np.asarray(op.value).reshape(-1)]),)

    def iota(self, op: Op) -> Sequence[Value]:
        numbers = np.indices(op.type.shape)[op.integer("iota_dimension")].reshape(-1)
        return (_array(op.type.shape, [build.scalar(op.type.element, n) for n in numbers]),)

    def reduce(self, op: Op) -> Sequence[Value]:
        """acc = init; for each element in row-major order: acc = body(acc, element)."""
        operands = self.operands(op)
        inputs, inits = operands[: len(operands) // 2], operands[len(operands) // 2 :]
        reduced = op.ints("dimensions")
        kept = [d for d in range(inputs[0].ndim) if d not in reduced]
        rows = [x.transpose([*kept, *sorted(reduced)]).reshape(op.type.size, -1) for x in inputs]
        totals: list[list[ir.Value]] = [[] for _ in inputs]
        for row in range(op.type.size):
            accumulators = [init.reshape(-1)[0] for init in inits]
            for elements in zip(*(x[row] for x in rows), strict=True):
                accumulators = list(build.apply_region(op, 0, *accumulators, *elements, rounding=False))
            for total, value, ty in zip(totals, accumulators, op.types, strict=True):
                total.append(build.rounded(ty.element, value))
        return [_array(ty.shape, total) for ty, total in zip(op.types, totals, strict=True)]

    def product(self, op: Op) -> Sequence[Value]:
        """result[b, m, n] = sum over k of lhs[b, m, k] * rhs[b, k, n], in ascending k."""
        assert isinstance(op, DotGeneral)
        values = (self.values[v] for v in op.operation.operands)
        (lhs, rhs), dims = (_elements(v) if isinstance(v, Tensor) else v for v in values), op.dims
        batch = [lhs.shape[d] for d in dims.lhs_batching]
        free = dims.lhs_free(lhs.ndim), dims.rhs_free(rhs.ndim)
        lhs = lhs.transpose([*dims.lhs_batching, *free[0], *dims.lhs_contracting])
        rhs = rhs.transpose([*dims.rhs_batching, *free[1], *dims.rhs_contracting])
        count = int(np.prod([lhs.shape[len(batch) + len(free[0]) + i] for i in range(len(dims.lhs_contracting))]))
        lefts, rights = (x.reshape(int(np.prod(batch)), -1, count) for x in (lhs, rhs))
        element = contraction.accumulator(op.type.element)
        types = [ty.element for ty in op.operand_types]
        results = []
        for left, right in zip(lefts, rights, strict=True):
            for x, y in itertools.product(left, right):
                total = build.scalar(element, 0)
                for a, b in zip(x, y, strict=True):
                    a, b = contraction.cast(types[0], element, a), contraction.cast(types[1], element, b)
                    total = contraction.multiply_add(element, a, b, total)
                results.append(build.rounded(op.type.element, total))
        return (_array(op.type.shape, results),)

    # --- moves

    def move(self, op: Op) -> Sequence[Value]:
        return (_MOVES[op.name](op, *self.operands(op)),)

    def barrier(self, op: Op) -> Sequence[Value]:
        return [self.values[v] for v in op.operation.operands]

    def dynamic_slice(self, op: Op) -> Sequence[Value]:
        source, *starts = op.operation.operands
        shape, sizes = op.operand_types[0].shape, op.type.shape
        array = self.values[source]
        if isinstance(array, Tensor):
            firsts = self.starts(starts, shape, sizes)
            return (_array(sizes, [build.read(array, place) for place in _places(firsts, sizes)]),)
        return (self.cut(array, starts, sizes),)

    def cut(self, array: Small, starts: Sequence[ir.Value], sizes: Sequence[int]) -> Small:
        """A slice of what is in registers: one dimension after the other, the start chosen among all that there are."""
        for d, (start, size) in enumerate(zip(starts, sizes, strict=True)):
            windows = [array.take(range(i, i + size), d) for i in range(array.shape[d] - size + 1)]
            array = windows[-1]
            for i in reversed(range(len(windows) - 1)):
                array = _select(self.is_at_most(start, i), windows[i], array)
        return array

    def dynamic_update_slice(self, op: Op) -> Sequence[Value]:
        target, update, *starts = op.operation.operands
        array, part = self.values[target], self.small(update)
        if isinstance(array, Tensor):
            for place, value in zip(
                _places(self.starts(starts, array.shape, part.shape), part.shape), part.reshape(-1), strict=True
            ):
                array = build.write(array, value, place)
            return (array,)
        result = array.copy()
        for place in np.ndindex(array.shape):
            for within in np.ndindex(part.shape):
                at = [p - w for p, w in zip(place, within, strict=True)]
                here = self.is_at(starts, at, array.shape, part.shape)
                if here is not None:
                    result[place] = arith.select(here, part[within], result[place])
        return (result,)

    def starts(self, starts: Sequence[ir.Value], shape: Sequence[int], sizes: Sequence[int]) -> list[ir.Value]:
        """Start indices, each moved to where the size still fits."""
        return [
            build.clamp_index(build.to_index(tensor_type(v.type).element, self.small(v).item()), 0, n - size)
            if n > size
            else build.index(0)
            for v, n, size in zip(starts, shape, sizes, strict=True)
        ]

    def is_at_most(self, start: ir.Value, number: int) -> ir.Value:
        place = build.to_index(tensor_type(start.type).element, self.small(start).item())
        return arith.cmpi(arith.CmpIPredicate.sle, place, build.index(number))

    def is_at(
        self, starts: Sequence[ir.Value], at: Sequence[int], shape: Sequence[int], sizes: Sequence[int]
    ) -> ir.Value | None:
        """Whether a slice begins here; None where it cannot."""
        here = arith.constant(ir.IntegerType.get_signless(1), 1)
        for place, number, n, size in zip(self.starts(starts, shape, sizes), at, shape, sizes, strict=True):
            if not 0 <= number <= n - size:
                return None
            here = arith.andi(here, arith.cmpi(arith.CmpIPredicate.eq, place, build.index(number)))
        return here


def _select(condition: ir.Value, one: Small, other: Small) -> Small:
    pairs = zip(one.reshape(-1), other.reshape(-1), strict=True)
    return _array(one.shape, [arith.select(condition, a, b) for a, b in pairs])


def _places(starts: Sequence[ir.Value], sizes: Sequence[int]) -> Iterator[list[ir.Value]]:
    """The indices of the elements of a slice, in order."""
    for offsets in np.ndindex(tuple(sizes)):
        yield [arith.addi(s, build.index(o)) if o else s for s, o in zip(starts, offsets, strict=True)]


def _flat(values: Sequence[Value]) -> list[ir.Value]:
    """All elements of small arrays, and the tensors."""
    return [x for v in values for x in ([v.value] if isinstance(v, Tensor) else v.reshape(-1))]


def _like(values: Sequence[Value], flat: Sequence[ir.Value]) -> list[Value]:
    """The reverse of `_flat`, in the shapes of `values`."""
    rest = iter(flat)
    return [
        Tensor(next(rest), v.type) if isinstance(v, Tensor) else _array(v.shape, list(itertools.islice(rest, v.size)))
        for v in values
    ]


def _broadcast(op: Op, x: Small) -> Small:
    dims, ty = op.ints("broadcast_dimensions"), op.type
    order = np.argsort(dims)
    shape = [1] * ty.rank
    for d, n in zip(dims, x.shape, strict=True):
        shape[d] = n
    return np.broadcast_to(x.transpose(order).reshape(shape), ty.shape)


def _slice(op: Op, x: Small) -> Small:
    strides = op.ints("strides", (1,) * x.ndim)
    cuts = zip(op.ints("start_indices"), op.ints("limit_indices"), strides, strict=True)
    return x[tuple(slice(*cut) for cut in cuts)]


def _pad(op: Op, x: Small, value: Small) -> Small:
    """Elements with the padding value between and around them; negative amounts cut elements off."""
    low, high = op.ints("edge_padding_low"), op.ints("edge_padding_high")
    steps = [n + 1 for n in op.ints("interior_padding", (0,) * x.ndim)]
    wide = [(n - 1) * step + 1 + max(a, 0) + max(b, 0) for n, step, a, b in zip(x.shape, steps, low, high, strict=True)]
    result = _array(wide, [value.item()] * int(np.prod(wide)))
    inside = zip(low, x.shape, steps, strict=True)
    result[tuple(slice(max(a, 0), max(a, 0) + (n - 1) * step + 1, step) for a, n, step in inside)] = x
    cuts = zip(low, high, wide, strict=True)
    return result[tuple(slice(max(-a, 0), n - max(-b, 0)) for a, b, n in cuts)]


_MOVES: dict[str, Callable[..., Small]] = {
    "stablehlo.reshape": lambda op, x: x.reshape(op.type.shape),
    "stablehlo.broadcast_in_dim": _broadcast,
    "stablehlo.transpose": lambda op, x: x.transpose(op.ints("permutation")),
    "stablehlo.slice": _slice,
    "stablehlo.reverse": lambda op, x: np.flip(x, op.ints("dimensions")),
    "stablehlo.concatenate": lambda op, *xs: np.concatenate(xs, op.integer("dimension")),
    "stablehlo.pad": _pad,
}
_RULES: dict[str, Callable[[_Lowering, Any], Sequence[Value]]] = {  # Any: a rule knows the kind of its op
    **dict.fromkeys(_MOVES, _Lowering.move),
    "stablehlo.while": _Lowering.loop,
    "stablehlo.if": _Lowering.branches,
    "stablehlo.case": _Lowering.branches,
    "stablehlo.constant": _Lowering.constant,
    "stablehlo.iota": _Lowering.iota,
    "stablehlo.reduce": _Lowering.reduce,
    "stablehlo.dot_general": _Lowering.product,
    "stablehlo.optimization_barrier": _Lowering.barrier,
    "stablehlo.dynamic_slice": _Lowering.dynamic_slice,
    "stablehlo.dynamic_update_slice": _Lowering.dynamic_update_slice,
}
