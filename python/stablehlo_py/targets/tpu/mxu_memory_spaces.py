"""mxu-memory-spaces: values that go from kernel to kernel stay in fast memory, as far as it goes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from stablehlo_py.core.passes import Pass
from stablehlo_py.core.types import tensor_type
from stablehlo_py.dialects import mxu
from stablehlo_py.machine.tpu import Chip, chip
from stablehlo_py.mlir import ir
from stablehlo_py.targets.tpu import emit


@dataclass(frozen=True)
class MxuMemorySpaces(Pass):
    """Put results that only kernels use into VMEM (CMEM on a v4) from the kernel that makes them to the last that takes them.

    Greedy over live ranges: those that save most transfers for each byte and kernel that they occupy come first.
    """

    name: ClassVar[str] = "mxu-memory-spaces"
    vmem_limit: int = 0

    def run(self, op: ir.Operation) -> None:
        mxu.load(op.context)
        seen: set[ir.Block] = set()
        for kernel in emit.operations_named(op, "mxu.kernel"):
            if kernel.block not in seen:
                seen.add(kernel.block)
                assign(kernel.block, self.vmem_limit)


@dataclass(frozen=True)
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
    operations = [view.operation for view in block.operations]
    kernels = [operation for operation in operations if operation.name == "mxu.kernel"]
    machine = chip(ir.StringAttr(kernels[0].attributes["chip"]).value)
    room = machine.prefetch_bytes(machine.vmem_for_blocks(vmem_limit))
    taken = [_resident(kernel, machine) for kernel in kernels]
    for live in sorted(live_ranges(operations, kernels), key=lambda live: -live.worth):
        span = range(live.first, live.last + 1)
        if all(taken[i] + live.bytes <= room for i in span):
            for i in span:
                taken[i] += live.bytes
            _move(live.value, machine.prefetch_space)


def live_ranges(operations: list[ir.Operation], kernels: list[ir.Operation]) -> Iterator[LiveRange]:
    """Results of kernels that kernels of the same block use and nothing else, without control flow in between."""
    number = {kernel: i for i, kernel in enumerate(kernels)}
    place = {operation: i for i, operation in enumerate(operations)}
    control = [i for i, operation in enumerate(operations) if operation.name in _CONTROL]
    for kernel in kernels:
        value = kernel.results[0]
        users = [user for user, _ in uses_of(value)]
        if not users or any(user not in number for user in users):
            continue
        last = max(users, key=lambda user: number[user])
        if any(place[kernel] < i < place[last] for i in control):
            continue
        ty = tensor_type(value.type)
        size = mxu.stored_bytes(ty)
        yield LiveRange(value, number[kernel], number[last], size, 1 + len(users))


def uses_of(value: ir.Value) -> Iterator[tuple[ir.Operation, int]]:
    """Who takes a value, and as which operand; through bitcasts, which move nothing."""
    for use in value.uses:
        user = use.owner.operation
        if user.name == "mxu.bitcast":
            yield from uses_of(user.results[0])
        else:
            yield user, use.operand_number


_CONTROL = ("stablehlo.while", "stablehlo.if", "stablehlo.case", "func.call")


def _resident(kernel: ir.Operation, machine: Chip) -> int:
    """What a kernel's operands take of the fast memory already."""
    arguments = kernel.regions[0].blocks[0].arguments
    types = [tensor_type(mxu.ref_tensor(a.type)) for a in arguments if mxu.ref_space(a.type) == machine.prefetch_space]
    return sum(mxu.stored_bytes(ty) for ty in types)


def _move(value: ir.Value, space: str) -> None:
    """The refs of a value in the kernel that makes it and in those that take it; a ref that is there already stays."""
    producer = value.owner.operation
    arguments = producer.regions[0].blocks[0].arguments
    _set_space(arguments[len(producer.operands)], space)
    for user, operand in uses_of(value):
        _set_space(user.regions[0].blocks[0].arguments[operand], space)


def _set_space(argument: ir.BlockArgument, space: str) -> None:
    tensor = tensor_type(mxu.ref_tensor(argument.type))
    argument.set_type(emit.ref_type(tensor, space, mxu.ref_layout(argument.type)))
