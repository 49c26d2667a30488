"""mxu-split-cores: the whole program over two cores, each kernel cut so that little has to go from core to core."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from stablehlo_py.core.collect import made_by
from stablehlo_py.core.passes import Pass
from stablehlo_py.core.types import TensorType, tensor_type
from stablehlo_py.dialects import mxu
from stablehlo_py.dialects.stablehlo import view
from stablehlo_py.errors import CompileError
from stablehlo_py.machine.tpu import Chip, chip
from stablehlo_py.mlir import ir
from stablehlo_py.records import record
from stablehlo_py.targets.tpu import emit
from stablehlo_py.targets.tpu.kernels.vector_kernel import ROW_UNIT, batch_and_rows
from stablehlo_py.targets.tpu.passes.mxu_fuse import fusion_of
from stablehlo_py.targets.tpu.passes.mxu_tiles import product_of
from stablehlo_py.targets.tpu.planning.choose import Table, choose
from stablehlo_py.targets.tpu.planning.group import FULL, LANE, Group, region_group
from stablehlo_py.targets.tpu.planning.moves import MOVES
from stablehlo_py.targets.tpu.planning.plan import plan_product

SPLITS = ("m", "n", "b", "whole")

# What a core has or needs of an array: all of it, the first or second half of its rows as they lie in memory, of the rows
# in each of its batches, of its columns, or some other half.
ALL, LEADING, INNER, COLUMNS, OTHER = "all", "leading", "inner", "columns", "other"


class MxuSplitCores(Pass):
    """Note for each product and group of a chip with two cores along which dimension they share it, or that both do all.

    Least cycles of all kernels and of what they exchange together, by dynamic programming over the graph of the program.
    """

    name: ClassVar[str] = "mxu-split-cores"
    chip: str = "v5e"
    vmem_limit: int = 0

    def run(self, op: ir.Operation) -> None:
        mxu.load(op.context)
        machine = chip(self.chip)
        if machine.cores == 1:
            return
        work = works_of(op, machine, self.vmem_limit)
        tables = tables_of(work, machine)
        choice = choose(dict.fromkeys(range(len(work)), len(SPLITS)), tables)
        for number, own in enumerate(work):
            own.operation.attributes["split"] = emit.text(SPLITS[choice[number]])


@record
class Work:
    """What becomes a kernel. cycles: of each split, infinite where there is none; needs: of each operand under each split."""

    operation: ir.Operation
    shape: tuple[int, int, int]  # of the result: b, m, n
    cycles: tuple[float, ...]
    operands: tuple[ir.Value, ...]
    needs: tuple[tuple[str, ...], ...]

    @property
    def result(self) -> ir.Value:
        return self.operation.results[0]


def works_of(op: ir.Operation, machine: Chip, vmem_limit: int) -> list[Work]:
    found = []
    for operation in emit.operations_named(op, "mxu.contract", "mxu.fusion"):
        if operation.name == "mxu.contract" and fusion_of(operation) is not None:
            continue
        group = region_group(operation.regions[0].blocks[0]) if operation.name == "mxu.fusion" else None
        product = operation if group is None else group.product
        if product is not None:
            found.append(_product(operation, product, group, machine, vmem_limit))
        elif group is not None:
            found.append(_vector(operation, group, machine))
    return found


def _product(
    operation: ir.Operation, contract: ir.Operation, group: Group | None, machine: Chip, vmem_limit: int
) -> Work:
    product = product_of(contract)
    cycles = []
    for split in SPLITS:
        none = (
            (split == "b" and product.b == 1) or (split == "m" and product.m == 1) or (split == "n" and product.n == 1)
        )
        try:
            cycles.append(math.inf if none else plan_product(product, machine, vmem_limit, split).estimate)
        except CompileError:
            cycles.append(math.inf)
    inputs = group.inputs if group is not None else []
    kinds = [group.kinds[value] for value in inputs] if group is not None else []
    rows = INNER if product.b > 1 else LEADING
    needs = [(rows, ALL, LEADING, ALL), (ALL, COLUMNS, ALL if product.shared else LEADING, ALL)]
    if product.rhs_t:
        needs[1] = (ALL, LEADING if product.shared else rows, *needs[1][2:])
    if product.lhs_t:
        needs[0] = (COLUMNS, *needs[0][1:])
    needs += [_group_needs(kind, rows) for kind in kinds]
    shape = (product.b, product.m, product.n)
    return Work(operation, shape, tuple(cycles), (*contract.operands, *inputs), tuple(needs))


def _vector(operation: ir.Operation, group: Group, machine: Chip) -> Work:
    """A group of the vector unit: what counts are its bytes."""
    b, m = batch_and_rows(group)
    size = tensor_type(operation.results[0].type)
    moved = sum(mxu.stored_bytes(tensor_type(v.type)) for v in (*group.inputs, operation.results[0]))
    blocks = -(-m // ROW_UNIT)
    shares = (-(-blocks // 2) / blocks, math.inf, -(-b // 2) / b if b > 1 else math.inf, 1.0)
    rows = INNER if b > 1 else LEADING
    needs = tuple(_group_needs(group.kinds[value], rows) for value in group.inputs)
    cycles = tuple(moved / machine.hbm_bytes_per_cycle * share for share in shares)
    return Work(operation, (b, m, size.shape[-1]), cycles, tuple(group.inputs), needs)


def _group_needs(kind: str, rows: str) -> tuple[str, ...]:
    if kind == LANE:
        return (ALL, COLUMNS, ALL, ALL)
    return (rows, COLUMNS if kind == FULL else ALL, LEADING, ALL)


def tables_of(work: Sequence[Work], machine: Chip) -> list[Table]:
    """Cycles of each kernel, and of what passes between each two of them."""
    number = {own.result: i for i, own in enumerate(work)}
    tables = []
    for i, own in enumerate(work):
        tables.append(Table((i,), np.array(own.cycles)))
        for operand, needs in zip(own.operands, own.needs, strict=True):
            source, moved = source_of(operand)
            if source not in number:
                continue
            j = number[source]
            made = tensor_type(source.type)
            cost = np.zeros((len(SPLITS), len(SPLITS)))
            for a, b in itertools.product(range(len(SPLITS)), repeat=2):
                has = _made(SPLITS[a], work[j].shape)
                crossing = crossing_bytes(has, needs[b], made, moved)
                # Both directions at once, and all cores wait for it.
                cost[a, b] = crossing / 2 / machine.core_bytes_per_second * machine.clock_hz
                cost[a, b] += machine.barrier_cycles * (crossing > 0)
            tables.append(Table((j, i), cost))
    return tables


def _made(split: str, shape: tuple[int, int, int]) -> str:
    """What a core has of a result."""
    if split == "whole":
        return ALL
    return COLUMNS if split == "n" else INNER if split == "m" and shape[0] > 1 else LEADING


def crossing_bytes(has: str, needs: str, ty: TensorType, moved: bool) -> float:
    """Bytes that go from core to core: what each needs and does not have, of both cores together."""
    size = float(mxu.stored_bytes(ty))
    if has == ALL:
        return 0.0
    if needs == ALL:
        return size
    return 0.0 if has == needs and not moved else size / 2


def source_of(value: ir.Value) -> tuple[ir.Value, bool]:
    """Where a value comes from, through ops that only move or convert; and whether they change what lies in which half."""
    moved = False
    while (operation := made_by(value, *MOVES[:5], "stablehlo.convert", "mxu.unpad", "mxu.pad")) is not None:
        op = view(operation)
        if operation.name == "stablehlo.reshape":
            before, after = op.operand_types[0].shape, op.type.shape
            moved |= before[-1:] != after[-1:]
        elif operation.name not in ("stablehlo.convert", "mxu.unpad", "mxu.pad"):
            moved = True
        value = operation.operands[0]
    return value, moved
