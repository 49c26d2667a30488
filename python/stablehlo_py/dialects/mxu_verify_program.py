"""What must hold between the kernels of a program: what lives in fast memory at each of them, and how it came there."""

from __future__ import annotations

from stablehlo_py.core.collect import made_by
from stablehlo_py.core.types import tensor_type
from stablehlo_py.dialects import mxu
from stablehlo_py.dialects.mxu_verify import Problem, is_shared
from stablehlo_py.machine.tpu import CHIPS, Chip
from stablehlo_py.mlir import ir
from stablehlo_py.records import record


@record
class Live:
    """A value in fast memory from kernel `first` to kernel `last` of its block, both included; made: by a kernel."""

    value: ir.Value
    space: str
    first: int
    last: int
    offset: int
    bytes: int
    made: bool


def check_program(root: ir.Operation) -> Problem | None:
    """The first problem of the kernels of a module: (op, what is wrong with it), or None."""
    for block in kernel_blocks(root):
        problem = _check_block(block)
        if problem is not None:
            return problem
    return None


def kernel_blocks(root: ir.Operation) -> list[ir.Block]:
    """The blocks that have kernels."""
    blocks: list[ir.Block] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "mxu.kernel" and not any(op.operation.block == block for block in blocks):
            blocks.append(op.operation.block)
        return ir.WalkResult.ADVANCE

    root.walk(visit)
    return blocks


def kernels_of(block: ir.Block) -> list[ir.Operation]:
    return [view.operation for view in block.operations if view.operation.name == "mxu.kernel"]


def uses_of(value: ir.Value) -> list[tuple[ir.Operation, int]]:
    """Who takes a value, and as which operand; through bitcasts, which move nothing."""
    found = []
    for use in value.uses:
        user = use.owner.operation
        found += uses_of(user.results[0]) if user.name == "mxu.bitcast" else [(user, use.operand_number)]
    return found


def origin_of(value: ir.Value) -> ir.Value:
    """The value before bitcasts."""
    while (bitcast := made_by(value, "mxu.bitcast")) is not None:
        value = bitcast.operands[0]
    return value


def argument_of(kernel: ir.Operation, operand: int) -> ir.BlockArgument:
    """The ref of an operand, or of the result where `operand` is behind the last of them."""
    return kernel.regions[0].blocks[0].arguments[operand]


def live_values(block: ir.Block) -> list[Live]:
    """What lives in fast memory between kernels: prefetched arrays and results that stay."""
    operations = [view.operation for view in block.operations]
    kernels = [op for op in operations if op.name == "mxu.kernel"]
    number = {kernel.results[0]: i for i, kernel in enumerate(kernels)}
    found = []
    before = 0
    for op in operations:
        if op.name == "mxu.kernel":
            space = mxu.ref_space(argument_of(op, len(op.operands)).type)
            if space != "hbm":
                found.append(_live(op.results[0], space, before, number, made=True, machine=_chip(op)))
            before += 1
        elif op.name == "mxu.prefetch_wait":
            start = origin_of(op.operands[0]).owner.operation
            if start.name == "mxu.prefetch_start" and kernels:
                space = ir.StringAttr(start.attributes["space"]).value
                first = _kernels_before(start, operations)
                found.append(_live(op.results[0], space, first, number, made=False, machine=_chip(kernels[0])))
    return found


def _live(value: ir.Value, space: str, first: int, number: dict[ir.Value, int], *, made: bool, machine: Chip) -> Live:
    owner = value.owner.operation if made else origin_of(value.owner.operation.operands[0]).owner.operation
    users = [(user, operand) for user, operand in uses_of(value) if user.name == "mxu.kernel"]
    last = max((number.get(user.results[0], first) for user, _ in users), default=first)
    arguments = [argument_of(user, operand) for user, operand in users]
    if made:
        arguments.append(argument_of(owner, len(owner.operands)))
    size = mxu.stored_bytes(tensor_type(value.type))
    held = machine.held_bytes(size, all(map(is_shared, arguments))) if space == "vmem" else size
    offset = mxu.integer(owner.attributes["offset"]) if "offset" in owner.attributes else -1
    return Live(value, space, first, last, offset, held, made)


def _kernels_before(op: ir.Operation, operations: list[ir.Operation]) -> int:
    count = 0
    for other in operations:
        if other.name == "mxu.prefetch_start" and other.results[0] == op.results[0]:
            return count
        count += other.name == "mxu.kernel"
    return count


def _chip(kernel: ir.Operation) -> Chip:
    return CHIPS[ir.StringAttr(kernel.attributes["chip"]).value]


def _check_block(block: ir.Block) -> Problem | None:
    kernels = kernels_of(block)
    machine = _chip(kernels[0])
    capacity = {"vmem": machine.vmem_bytes, "cmem": machine.cmem_bytes * machine.cores}
    live = live_values(block)
    for view in block.operations:
        problem = _check_flow(view.operation)
        if problem is not None:
            return problem
    for own in live:
        where = own.value.owner.operation
        if own.offset < 0:
            return where, f"is in {own.space} and has no place there"
        if own.offset + own.bytes > capacity.get(own.space, 0):
            end = own.offset + own.bytes
            return where, f"ends at {end} bytes of {own.space}; {machine.name} has {capacity.get(own.space, 0)}"
    for i, kernel in enumerate(kernels):
        blocks = _blocks_end(kernel)
        here = sorted((own for own in live if own.first <= i <= own.last), key=lambda own: (own.space, own.offset))
        ends = {"vmem": blocks, "cmem": 0}
        for own in here:
            if own.offset < ends[own.space]:
                what = f"{own.space} below {ends[own.space]} is taken at kernel {i}"
                return own.value.owner.operation, f"lies at {own.offset}, but {what}"
            ends[own.space] = own.offset + own.bytes
    return None


def _check_flow(op: ir.Operation) -> Problem | None:
    """A kernel takes from fast memory what was brought there or left there, and nothing else touches that."""
    if op.name == "mxu.kernel":
        for i, operand in enumerate(op.operands):
            space = mxu.ref_space(argument_of(op, i).type)
            if space != "smem" and space != _space_of(operand):
                return op, f"takes operand {i} from {space}; it is in {_space_of(operand)}"
        return None
    if op.name == "mxu.prefetch_wait":
        if made_by(op.operands[0], "mxu.prefetch_start") is None:
            return op, "waits for what was not started"
        return None
    if op.name == "mxu.laid_out" and not (_enters(op.operands[0]) or _leaves(op.results[0])):
        return (
            op,
            "is neither of an argument nor of a result of the program; elsewhere it takes a kernel to turn an array",
        )
    for operand in op.operands:
        if made_by(operand, "mxu.prefetch_start") is not None:
            return op, "takes an array that is on its way; wait for it first"
        if op.name != "mxu.bitcast" and _space_of(operand) != "hbm":
            return op, f"takes an array from {_space_of(operand)}; only kernels do"
    return None


def _enters(value: ir.Value) -> bool:
    """An argument of the program, reshaped at most."""
    while (reshape := made_by(value, "stablehlo.reshape")) is not None:
        value = reshape.operands[0]
    return isinstance(value.owner, ir.Block) and value.owner.owner.operation.name == "func.func"


def _leaves(value: ir.Value) -> bool:
    """A result of the program, reshaped at most."""
    users = [use.owner.operation for use in value.uses]
    return all(u.name == "func.return" or (u.name == "stablehlo.reshape" and _leaves(u.results[0])) for u in users)


def _space_of(value: ir.Value) -> str:
    op = made_by(origin_of(value), "mxu.kernel", "mxu.prefetch_wait")
    if op is None:
        return "hbm"
    if op.name == "mxu.kernel":
        return mxu.ref_space(argument_of(op, len(op.operands)).type)
    start = made_by(origin_of(op.operands[0]), "mxu.prefetch_start")
    return "hbm" if start is None else ir.StringAttr(start.attributes["space"]).value


def _blocks_end(kernel: ir.Operation) -> int:
    """The end of the kernel's own blocks in VMEM."""
    end = 0
    for view in kernel.regions[0].blocks[0].operations:
        op = view.operation
        if op.name == "mxu.alloc" and mxu.ref_space(op.results[0].type) == "vmem":
            size = mxu.stored_bytes(tensor_type(mxu.ref_tensor(op.results[0].type)))
            offset, copies = (mxu.integer(op.attributes[name]) for name in ("offset", "buffers"))
            end = max(end, offset + copies * size)
    return end
