"""sort on the CPU: by the unsigned integers that its comparator orders; merge sort where it is none that is known."""

from __future__ import annotations

import math

from stablehlo_py.core.collect import made_by
from stablehlo_py.core.registry import lower
from stablehlo_py.core.types import TensorType
from stablehlo_py.dialects.stablehlo import Op
from stablehlo_py.mlir import bufferization, ir
from stablehlo_py.ops import build, layout, sort
from stablehlo_py.ops.build import Tensor
from stablehlo_py.ops.sort_order import keys_of
from stablehlo_py.targets.cpu.emit import nest
from stablehlo_py.targets.cpu.sorting.sort_network import layout_for_network, sort_across
from stablehlo_py.targets.cpu.sorting.sort_radix import sort_slices
from stablehlo_py.targets.cpu.sorting.sort_words import Slices, stages_of
from stablehlo_py.transforms.kernels.lower_groups import PARALLEL_LOOP

LONGEST = 1 << 31  # places are counted in 32 bits


@lower("stablehlo.sort", target="cpu")
def lower_sort(op: Op, *operands: Tensor) -> tuple[Tensor, ...]:
    shape = operands[0].shape
    dimension = op.integer("dimension", -1) % max(1, len(shape))
    if operands[0].type.size <= 1 or shape[dimension] == 1:
        return tuple(operands)
    keys = keys_of(op)
    if keys is None or shape[dimension] >= LONGEST:
        return sort.lower_sort(op, *operands)
    outer, length, inner = math.prod(shape[:dimension]), shape[dimension], math.prod(shape[dimension + 1 :])
    flat = [layout.reshape(t, (outer, length, inner)) for t in operands]
    wanted = [next(iter(result.uses), None) is not None for result in op.operation.results]
    targets = [
        nest.scratch(t.shape, build.storage_type(t.element)) if w else None for t, w in zip(flat, wanted, strict=True)
    ]
    slices = Slices(
        op,
        tuple(buffer_of(t) for t in flat),
        tuple(targets),
        tuple(t.element for t in flat),
        frozenset(i for i, value in enumerate(op.operation.operands) if _numbers(value, dimension)),
        outer,
        length,
        inner,
    )
    stages = stages_of(keys)
    words = layout_for_network(slices, stages)
    if words is not None:
        sort_across(slices, stages[0], words, PARALLEL_LOOP)
    else:
        sort_slices(slices, stages, slices.layout(stages), PARALLEL_LOOP)
    return tuple(
        t if target is None else layout.reshape(tensor_of(target, f.type), t.shape)
        for t, f, target in zip(operands, flat, targets, strict=True)
    )


def _numbers(value: ir.Value, dimension: int) -> bool:
    """Whether an operand is an iota along the dimension that is sorted."""
    iota = made_by(value, "stablehlo.iota")
    return iota is not None and ir.IntegerAttr(iota.attributes["iota_dimension"]).value == dimension


def buffer_of(source: Tensor) -> ir.Value:
    """Where a tensor's elements are, to read."""
    ty = ir.MemRefType.get(source.shape, build.storage_type(source.element), loc=ir.Location.unknown())
    return bufferization.to_buffer(ty, source.value, read_only=True)


def tensor_of(buffer: ir.Value, ty: TensorType) -> Tensor:
    """What has been written to a buffer of the kernel's own, as a result."""
    value = bufferization.to_tensor(build.storage_tensor(ty), buffer, restrict=True, writable=True)
    return Tensor(value, ty)
