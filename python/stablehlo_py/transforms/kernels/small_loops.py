"""Loops whose steps are so small that starting a kernel takes longer: which they are.

A step of one works on scalars, on arrays of a few elements, and on places of larger arrays: what it reads of one with
`dynamic_slice` and changes in one with `dynamic_update_slice`, as a scan does.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from stablehlo_py.analysis.loops import counter_of
from stablehlo_py.core import registry
from stablehlo_py.core.collect import made_by, uses
from stablehlo_py.core.types import tensor_type
from stablehlo_py.dialects.stablehlo import DotGeneral, view
from stablehlo_py.mlir import ir
from stablehlo_py.records import record
from stablehlo_py.transforms.kernels.grouping import is_elementwise
from stablehlo_py.transforms.kernels.lower_groups import COSTLY

FEW = 16  # elements of an array that is kept in registers
MOST_WORK = 1024  # instructions of a step that are worth compiling
INNER_WORK = 1 << 20  # instructions of all steps of a loop inside another one
_VECTOR = 32  # bytes
_FUNCTION = 32  # instructions of a mathematical function, roughly
# What starting the kernels of a step costs in instructions: measured on a Zen 3, where a step of two launches takes 20 ns.
_TWO_LAUNCHES, _LAUNCH = 128, 48
# Ops that only say where elements are found.
MOVES = frozenset(
    f"stablehlo.{name}"
    for name in (
        *("constant", "iota", "reshape", "broadcast_in_dim", "transpose", "slice", "reverse", "concatenate", "pad"),
        "optimization_barrier",
    )
)
_BRANCHES = ("stablehlo.if", "stablehlo.case")
# What the body of a reduction may have beside arithmetic.
_BODY = ("stablehlo.constant", "stablehlo.reshape", "stablehlo.broadcast_in_dim")
_PLACES = ("stablehlo.dynamic_slice", "stablehlo.dynamic_update_slice")


def is_small(value: ir.Value) -> bool:
    """Whether the elements of a value are kept in registers."""
    return 0 < tensor_type(value.type).size <= FEW


@record
class Work:
    """What a step takes, roughly.

    text: instructions on scalars; saved: how many fewer there were on vectors; kernels: that would be started for it beside
    one of elementwise ops and one of the condition; repeated: instructions that loops inside run beyond their text.
    """

    text: int = 0
    saved: int = 0
    kernels: int = 0
    repeated: int = 0

    def __add__(self, other: Work) -> Work:
        return Work(
            self.text + other.text,
            self.saved + other.saved,
            self.kernels + other.kernels,
            self.repeated + other.repeated,
        )

    @property
    def run(self) -> int:
        """Instructions that run in a step."""
        return self.text + self.repeated


def step_work(loop: ir.Operation) -> int | None:
    """Instructions that one step of a small loop runs, roughly; None for a loop that is none."""
    work = _step(loop)
    if work is None or work.text > MOST_WORK:
        return None
    return work.run if work.saved <= _TWO_LAUNCHES + _LAUNCH * work.kernels else None


def _step(loop: ir.Operation) -> Work | None:
    if not len(loop.operands):
        return None
    condition, body = (region.blocks[0] for region in loop.regions)
    large = [i for i, value in enumerate(loop.operands) if not is_small(value)]
    if any(any(True for _ in condition.arguments[i].uses) or not _is_updated_in_place(body, i) for i in large):
        return None
    places = {v for v in uses(loop) if not is_small(v)} | {body.arguments[i] for i in large}
    return _sum(_work(block, places) for block in (condition, body))


def _sum(parts: Iterable[Work | None]) -> Work | None:
    total = Work()
    for part in parts:
        if part is None:
            return None
        total += part
    return total


def _is_updated_in_place(body: ir.Block, number: int) -> bool:
    """Whether a step reads a carried array at places of it, then changes it at one place, and hands that on."""
    argument, end = body.arguments[number], body.operations[len(body.operations) - 1].operation
    following = end.operands[number]
    update = made_by(following, "stablehlo.dynamic_update_slice")
    if update is None or update.operands[0] != argument or len(list(following.uses)) != 1:
        return False
    order = {op.results[0]: i for i, op in enumerate(o.operation for o in body.operations) if len(op.results)}
    if following not in order or list(update.operands).count(argument) != 1:
        return False
    readers = [use.owner.operation for use in argument.uses if use.owner.operation != update]
    return all(
        op.name == "stablehlo.dynamic_slice"
        and op.operands[0] == argument
        and order.get(op.results[0], len(order)) < order[following]
        for op in readers
    )


def _work(block: ir.Block, places: set[ir.Value]) -> Work | None:
    """The work of a block; None where it has anything but the ops of a small loop.

    places: arrays in memory, of which single places are read or changed.
    """
    *operations, end = [o.operation for o in block.operations]
    work = _sum(_work_of(op, places) for op in operations)
    return (
        work
        if all(is_small(v) or made_by(v, "stablehlo.dynamic_update_slice") is not None for v in end.operands)
        else None
    )


def _work_of(op: ir.Operation, places: set[ir.Value]) -> Work | None:
    if op.name in _PLACES:
        return _move_work(op, places)
    if op.name == "stablehlo.while":
        return _inner_work(op)
    if op.name == "stablehlo.dot_general":
        return _product_work(op, places)
    if not all(is_small(v) for v in (*op.operands, *op.results)):
        return None
    if op.name in MOVES:
        return Work()
    if op.name in _BRANCHES:
        inside = _sum(_work(region.blocks[0], places) for region in op.regions)
        return None if inside is None else inside + Work(2, 0, 1)
    if is_elementwise(op):
        ty = tensor_type(op.results[0].type)
        each, vectors = _FUNCTION if op.name in COSTLY else 1, -(-ty.bytes // _VECTOR)
        return Work(each * ty.size, each * (ty.size - vectors))
    return _reduction_work(op) if op.name == "stablehlo.reduce" else None


def _move_work(op: ir.Operation, places: set[ir.Value]) -> Work | None:
    """A slice that is read or written at a place of an array, in memory or in registers."""
    source, moved = op.operands[0], op.results[0] if op.name == "stablehlo.dynamic_slice" else op.operands[1]
    if not is_small(moved) or not (is_small(source) or source in places):
        return None
    count = tensor_type(moved.type).size
    if not is_small(source):
        return Work(3 * len(op.operands) + count, 0, 1)
    choices = tensor_type(source.type).size * count  # each element that there is may be wanted for each one
    return Work(choices, choices // 2, 1)


def _product_work(op: ir.Operation, places: set[ir.Value]) -> Work | None:
    """A product; one of its operands may be an array in memory, as the weights of a small network are."""
    dot = view(op)
    assert isinstance(dot, DotGeneral)
    if not is_small(op.results[0]) or not any(map(is_small, op.operands)):
        return None
    if not all(is_small(v) or v in places for v in op.operands):
        return None
    lhs = dot.operand_types[0].shape
    products = dot.type.size * math.prod(lhs[d] for d in dot.dims.lhs_contracting)
    return Work(2 * products, products, 1)


def _reduction_work(op: ir.Operation) -> Work | None:
    """A reduction by a body of scalar ops that uses nothing from around it."""
    body = op.regions[0].blocks[0]
    inner = [o.operation for o in body.operations][:-1]
    known = {*body.arguments, *(r for o in inner for r in o.results)}
    scalar = all(o.name in _BODY or registry.scalar.find(o.name) is not None for o in inner)
    if not scalar or any(v not in known for o in body.operations for v in o.operands):
        return None
    count = len(inner) * tensor_type(op.operands[0].type).size
    return Work(count, count // 2, 1)


def _inner_work(loop: ir.Operation) -> Work | None:
    """A loop inside another one; None where it could run long without being stopped."""
    counter, work = counter_of(loop), _step(loop)
    if counter is None or work is None or not all(is_small(v) for v in loop.operands):
        return None
    repeated = counter.trips * work.run
    return work + Work(2, 0, 2, repeated) if repeated <= INNER_WORK else None
