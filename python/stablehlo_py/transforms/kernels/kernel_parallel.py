"""Kernels that can be split: the outermost loops run over begin .. end, two arguments that the executor gives.

    func @k(%x, %y) { for i in 0 .. n { ... } }   ->   func @k(%x, %y, %begin, %end) { for i in begin .. end { ... } }

A kernel is splittable when its body is nothing but loops over the same extent that are known to be independent: marked
by who built them, or by kernel-mark-parallel. Steps compute the same bits wherever the cuts are.
"""

from __future__ import annotations

from typing import ClassVar

from stablehlo_py.core.collect import made_by
from stablehlo_py.core.passes import Made, Pass
from stablehlo_py.mlir import arith, ir
from stablehlo_py.transforms.kernels import loop_phases
from stablehlo_py.transforms.kernels.hlo_form_kernels import KERNEL
from stablehlo_py.transforms.kernels.lower_groups import PARALLEL_LOOP

EXTENT = "kernel.extent"  # how many steps the outermost loops of a splittable kernel have
COLUMNS = "kernel.columns"  # the independent steps are those of the innermost loops
WORK = "kernel.work"  # innermost loop steps of the whole kernel, roughly: what decides whether splitting pays
GRAIN = "kernel.grain"  # steps of which a piece should have no fewer, if that is more than one
GRAIN_COLUMNS = 2048  # of rows that are read in pieces: shorter ones, 8 KiB of f32, come from memory more slowly
PHASES = "kernel.phases"  # begin and end of each launch that a call of the kernel is, one after the other
RANGE = "kernel.range"  # marks a kernel whose last two arguments are begin and end already
SETUP = (
    "arith.",
    "memref.alloc",
    "memref.get_global",
    "memref.collapse_shape",
    "memref.expand_shape",
    "memref.subview",
    "memref.reinterpret_cast",
    "memref.extract_strided_metadata",
    "memref.load",
    "func.return",
    "affine.apply",
    "ub.poison",
)


class KernelParallel(Pass):
    """Give splittable kernels the arguments begin and end, and run their outermost loops between them."""

    name: ClassVar[str] = "kernel-parallel"
    is_trusted: ClassVar[bool] = True

    def run(self, op: ir.Operation) -> Made:
        changed = False
        for function in op.regions[0].blocks[0].operations:
            if KERNEL in function.operation.attributes:
                changed |= split(function.operation)
        return ("arith.",) if changed else False


def give_range(function: ir.Operation, begin: ir.Value, end: ir.Value, extent: int, work: int, grain: int = 1) -> None:
    """Let a kernel that was written for the steps begin .. end take them as its last two arguments.

    begin, end: constants that stand for them so far; work: instructions of all steps, roughly; grain: steps of a piece.
    """
    block = function.regions[0].blocks[0]
    for constant in (begin, end):
        argument = block.add_argument(ir.IndexType.get(), function.location)
        constant.replace_all_uses_with(argument)
        constant.owner.operation.erase()
    set_inputs(function)
    function.attributes[RANGE] = ir.UnitAttr.get()
    function.attributes[EXTENT], function.attributes[WORK], function.attributes[GRAIN] = map(i64, (extent, work, grain))


def set_inputs(function: ir.Operation) -> None:
    """Make a function's type that of its arguments."""
    old = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    inputs = [argument.type for argument in function.regions[0].blocks[0].arguments]
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, old.results))


def split(function: ir.Operation) -> bool:
    """Bound the outermost loops of a splittable kernel by two new arguments, if it is one; note the work of any kernel."""
    if RANGE in function.attributes:
        return False
    function.attributes[WORK] = i64(min(_work(function.regions[0].blocks[0]), 2**62))
    block = function.regions[0].blocks[0]
    operations = [o.operation for o in block.operations]
    loops = [o for o in operations if o.name == "scf.for"]
    if not loops or any(o not in loops and not o.name.startswith(SETUP) for o in operations):
        # without begin and end each part would do all steps
        if EXTENT in function.attributes:
            del function.attributes[EXTENT]
        return False
    launches = loop_phases.bound(function, loops, [_trip_count(loop) for loop in loops])
    if launches is not None:
        set_inputs(function)
        function.attributes[PHASES], function.attributes[EXTENT] = ir.DenseI64ArrayAttr.get(launches), i64(launches[-1])
        function.attributes[WORK] = i64(ir.IntegerAttr(function.attributes[WORK]).value // len(loops))
        return True
    if COLUMNS in function.attributes:
        del function.attributes[COLUMNS]
        loops = [_innermost(loop) for loop in loops]
        function.attributes[GRAIN] = i64(GRAIN_COLUMNS)
    steps = {_trip_count(loop) for loop in loops}
    marked = EXTENT in function.attributes or all(PARALLEL_LOOP in loop.attributes for loop in loops)
    if not marked or len(steps) != 1 or None in steps:
        if EXTENT in function.attributes:
            del function.attributes[EXTENT]
        return False
    extent = steps.pop()
    assert extent is not None
    index = ir.IndexType.get()
    begin, end = (block.add_argument(index, function.location) for _ in range(2))
    for loop in loops:
        step = constant(loop.operands[2])
        with ir.InsertionPoint(loop), loop.location:
            if step == 1:
                low, high = begin, end
            else:
                low, last = arith.muli(begin, loop.operands[2]), arith.muli(end, loop.operands[2])
                high = arith.minsi(last, loop.operands[1])
        loop.operands[0], loop.operands[1] = low, high
    set_inputs(function)
    function.attributes[EXTENT] = i64(extent)
    return True


def _innermost(loop: ir.Operation) -> ir.Operation:
    """The loop inside a loop inside ..., as far as there is just one."""
    while True:
        inside = [o.operation for o in loop.regions[0].blocks[0].operations if len(o.operation.regions)]
        if len(inside) != 1 or inside[0].name != "scf.for":
            return loop
        loop = inside[0]


def _trip_count(loop: ir.Operation) -> int | None:
    """Steps of a loop from a constant 0 by a constant step to a constant end."""
    low, high, step = (constant(v) for v in list(loop.operands)[:3])
    if low != 0 or high is None or not step:
        return None
    return -(-high // step)


def constant(value: ir.Value) -> int | None:
    """The integer that a value is, where that is known."""
    op = made_by(value, "arith.constant")
    if op is None:
        return None
    attribute = op.attributes["value"]
    return ir.IntegerAttr(attribute).value if isinstance(attribute, ir.IntegerAttr) else None


def _work(block: ir.Block) -> int:
    """Ops run by one execution of a block, with 16 for each step of a loop of unknown length."""
    total = 0
    for view in block.operations:
        op = view.operation
        total += 1
        if len(op.regions):
            steps = (_trip_count(op) or 16) if op.name == "scf.for" else 1
            total += steps * max((_work(inner) for region in op.regions for inner in region.blocks), default=0)
    return total


def i64(value: int) -> ir.IntegerAttr:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)
