"""mxu-memory-spaces: values that go from kernel to kernel stay in fast memory, as far as it goes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from stablehlo_py.core.passes import Pass
from stablehlo_py.core.types import tensor_type
from stablehlo_py.dialects import mxu
from stablehlo_py.dialects.mxu_verify import is_shared
from stablehlo_py.dialects.mxu_verify_program import (
    argument_of,
    check_program,
    kernel_blocks,
    kernels_of,
    live_values,
    uses_of,
)
from stablehlo_py.machine.tpu import Chip, chip
from stablehlo_py.mlir import ir
from stablehlo_py.records import record
from stablehlo_py.targets.tpu import emit
from stablehlo_py.targets.tpu.passes.mxu_schedule import Range, fast_memory, first_fit


class MxuMemorySpaces(Pass):
    """Put results that only kernels use into VMEM (CMEM on a v4) from the kernel that makes them to the last that takes them.

    What mxu-schedule prefetches has its place already. Greedy over live ranges: those that save most transfers for each byte
    and kernel that they occupy come first. Then the whole program is verified.
    """

    name: ClassVar[str] = "mxu-memory-spaces"
    vmem_limit: int = 0

    def run(self, op: ir.Operation) -> None:
        mxu.load(op.context)
        for block in kernel_blocks(op):
            assign(block, self.vmem_limit)
        problem = check_program(op)
        if problem is not None:
            operation, message = problem
            operation.location.emit_error(f"{operation.name} {message}")
            raise RuntimeError(f"the plan of fast memory is wrong: {operation.name} {message}")


@record
class LiveRange:
    """A value in fast memory from kernel `first` to kernel `last`, both included; uses: transfers that it saves."""

    value: ir.Value
    first: int
    last: int
    bytes: int
    uses: int

    @property
    def worth(self) -> float:
        return self.uses / (self.last - self.first + 1)


def assign(block: ir.Block, vmem_limit: int) -> None:
    """Choose the values of one block that stay, and say so in the kernels' refs."""
    kernels = kernels_of(block)
    machine = chip(ir.StringAttr(kernels[0].attributes["chip"]).value)
    base, end = fast_memory(machine, machine.vmem_for_blocks(vmem_limit))
    taken = {live.value: Range(live.first, live.last, live.offset, live.bytes) for live in live_values(block)}
    for live in sorted(live_ranges(block, kernels, machine), key=lambda live: -live.worth):
        # Where it stays it is not prefetched, so that place is free.
        waits = prefetches_of(live.value)
        others = [own for value, own in taken.items() if value not in waits]
        offset = first_fit(others, live.first, live.last, live.bytes, base, end)
        if offset is None:
            continue
        for wait in waits:
            del taken[wait]
            _drop(wait)
        taken[live.value] = Range(live.first, live.last, offset, live.bytes)
        live.value.owner.operation.attributes["offset"] = emit.i64(offset)
        _move(live.value, machine.prefetch_space)


def live_ranges(block: ir.Block, kernels: list[ir.Operation], machine: Chip) -> Iterator[LiveRange]:
    """Results of kernels that kernels of the same block use and nothing else, without control flow in between."""
    operations = [view.operation for view in block.operations]
    number = {kernel.results[0]: i for i, kernel in enumerate(kernels)}
    control = [_kernels_before(operations, i) for i, op in enumerate(operations) if op.name in _CONTROL]
    for first, kernel in enumerate(kernels):
        value = kernel.results[0]
        users = list(users_of(value))
        if not users or any(user.name != "mxu.kernel" or user.results[0] not in number for user, _ in users):
            continue
        last = max(number[user.results[0]] for user, _ in users)
        # Control flow that comes after kernel `first` and before kernel `last`.
        if any(first < place <= last for place in control):
            continue
        arguments = [argument_of(user, operand) for user, operand in users]
        arguments.append(argument_of(kernel, len(kernel.operands)))
        size = mxu.stored_bytes(tensor_type(value.type))
        held = machine.held_bytes(size, all(map(is_shared, arguments)))
        yield LiveRange(value, first, last, held, 1 + len(users))


_CONTROL = ("stablehlo.while", "stablehlo.if", "stablehlo.case", "func.call")


def _kernels_before(operations: list[ir.Operation], place: int) -> int:
    return sum(op.name == "mxu.kernel" for op in operations[:place])


def users_of(value: ir.Value) -> Iterator[tuple[ir.Operation, int]]:
    """Who takes a value, and as which operand; through bitcasts and prefetches."""
    for user, operand in uses_of(value):
        if user.name in ("mxu.prefetch_start", "mxu.prefetch_wait"):
            yield from users_of(user.results[0])
        else:
            yield user, operand


def prefetches_of(value: ir.Value) -> list[ir.Value]:
    """The prefetched forms of a value."""
    starts = [user for user, _ in uses_of(value) if user.name == "mxu.prefetch_start"]
    return [wait.results[0] for start in starts for wait, _ in uses_of(start.results[0])]


def _drop(wait: ir.Value) -> None:
    """Take the value itself instead of its prefetched form."""
    operation = wait.owner.operation
    start = operation.operands[0].owner.operation
    wait.replace_all_uses_with(start.operands[0])
    operation.erase()
    start.erase()


def _move(value: ir.Value, space: str) -> None:
    """The refs of a value in the kernel that makes it and in those that take it; a ref that is there already stays."""
    producer = value.owner.operation
    _set_space(argument_of(producer, len(producer.operands)), space)
    for user, operand in uses_of(value):
        _set_space(argument_of(user, operand), space)


def _set_space(argument: ir.BlockArgument, space: str) -> None:
    tensor = tensor_type(mxu.ref_tensor(argument.type))
    argument.set_type(emit.ref_type(tensor, space, mxu.ref_layout(argument.type)))
