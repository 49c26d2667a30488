"""The plan of one product: where its operands are, how it is split over the cores, and its block sizes by a cost model.

The larger operand is brought to fast memory before the kernel starts, where it fits; the other is streamed. A product with
a single row or column streams both. Block sizes are those of least estimated time under the VMEM limit, among even cuts of
each dimension.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from stablehlo_py.core.types import ElementType, element_type
from stablehlo_py.errors import CompileError
from stablehlo_py.machine.tpu import Chip
from stablehlo_py.records import record
from stablehlo_py.targets.tpu.planning.layout import natural_layout, up

CUTS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128, 256, 512)


@record
class Product:
    """[b,m,k] x [b,k,n] -> [b,m,n]; an operand with `_t` comes with its two inner dimensions turned.

    shared: rhs is the same for all of b. What follows the product in its kernel holds `made_bits` more for each element
    of a block, and loads `loaded_bits`.
    """

    b: int
    m: int
    n: int
    k: int
    lhs: ElementType
    rhs: ElementType
    out: ElementType
    lhs_t: bool = False
    rhs_t: bool = False
    passes: int = 1
    made_bits: int = 0
    loaded_bits: int = 0
    shared: bool = False

    @property
    def accumulator(self) -> ElementType:
        return element_type("f32" if self.lhs.is_float else "i32")

    @property
    def lhs_bytes(self) -> int:
        """In whole tiles."""
        rows, columns = (self.k, self.m) if self.lhs_t else (self.m, self.k)
        return self.b * natural_layout((rows, columns), self.lhs).bytes

    @property
    def rhs_bytes(self) -> int:
        """In whole tiles."""
        rows, columns = (self.n, self.k) if self.rhs_t else (self.k, self.n)
        return (1 if self.shared else self.b) * natural_layout((rows, columns), self.rhs).bytes


@record
class Plan:
    """bm, bn, bk: the block; trips along m, n, k on one core; split: the dimension cut over the cores, `b`, `m` or `n`.
    `whole`: each core does all of it.

    spaces: where lhs and rhs are when the kernel starts. order: `mn` goes through the columns of a row of blocks first.
    copies: of lhs, rhs and out blocks. estimate: cycles by the cost model.
    """

    bm: int
    bn: int
    bk: int
    trips: tuple[int, int, int]
    split: str
    order: str
    spaces: tuple[str, str]
    copies: tuple[int, int, int]
    vmem_bytes: int
    estimate: float


def prefetch_spaces(product: Product, chip: Chip, limit: int, split: str = "m") -> tuple[str, str]:
    """The larger operand goes to fast memory, where it fits beside the blocks; the other one is streamed.

    Of a product with a single row or column each element of the matrix is used once, so XLA makes a multiply and reduce of
    it, a fusion like any other that reads its operands where they are: the stream from HBM is all that counts.
    """
    if min(product.m, product.n) == 1:
        return "hbm", "hbm"
    lhs_larger = product.lhs_bytes > product.rhs_bytes
    shared = split == "b" or split == ("m" if lhs_larger else "n")
    if chip.held_bytes(max(product.lhs_bytes, product.rhs_bytes), shared) > chip.prefetch_bytes(limit):
        return "hbm", "hbm"
    return (chip.prefetch_space, "hbm") if lhs_larger else ("hbm", chip.prefetch_space)


@functools.lru_cache(maxsize=4096)
def plan_product(product: Product, chip: Chip, vmem_limit: int = 0, split: str = "") -> Plan:
    """The plan of least estimated time, with the split that is asked for or the better of those along m and n."""
    limit = chip.vmem_for_blocks(vmem_limit)
    splits = (split,) if split else ("m", "n") if chip.cores > 1 else ("m",)
    plans = [
        plan
        for split in splits
        for order in ("mn", "nm")
        if (plan := _search(product, chip, limit, prefetch_spaces(product, chip, limit, split), split, order))
        is not None
    ]
    if not plans:
        raise CompileError(
            f"no blocks of a {product.m}x{product.n}x{product.k} product fit into {limit} bytes of VMEM",
            hint="give the kernel a larger VMEM limit",
        )
    return min(plans, key=lambda plan: plan.estimate)


def _search(product: Product, chip: Chip, limit: int, spaces: tuple[str, str], split: str, order: str) -> Plan | None:
    """The best plan of one split and loop order: all candidates at once, as arrays."""
    cores_m, cores_n = (chip.cores if split == dim else 1 for dim in ("m", "n"))
    batch = -(-product.b // chip.cores) if split == "b" else product.b
    row_unit = max(chip.sublanes, 32 // product.out.bits * chip.sublanes)
    unit_k = unit_n = chip.weight_tile
    tm, bm = _cuts(product.m, cores_m, chip.lanes if product.lhs_t else row_unit)
    tn, bn = _cuts(product.n, cores_n, unit_n)
    tk, bk = _cuts(product.k, 1, unit_k)
    tm, tn, tk = tm[:, None, None, None], tn[None, :, None, None], tk[None, None, :, None]
    bm, bn, bk = bm[:, None, None, None], bn[None, :, None, None], bk[None, None, :, None]
    out_copies = np.array([2, 1])[None, None, None, :]
    lhs_size, rhs_size, out_size = (e.bits / 8 for e in (product.lhs, product.rhs, product.out))
    lhs_view, rhs_view = (space == "vmem" for space in spaces)

    lhs_block, rhs_block = bm * bk * lhs_size, bk * bn * rhs_size
    vmem = bm * bn * 4 + out_copies * bm * bn * out_size
    vmem = vmem + (0 if lhs_view else 2 * lhs_block) + (0 if rhs_view else 2 * rhs_block)
    vmem = vmem + bm * bn * (product.made_bits + 2 * product.loaded_bits) // 8
    if product.lhs_t:
        vmem = vmem + lhs_block
    fits = vmem <= limit

    steps = batch * tm * tn * tk
    tiles = (bk // chip.weight_tile) * (bn // chip.weight_tile)
    stream = np.maximum(bm / chip.rows_per_cycle, chip.weight_tile / chip.push_rows_per_cycle)
    rate = chip.int8_rate if product.lhs.bits <= 8 else 1.0
    compute = (
        steps * np.ceil(tiles / chip.tiles_at_once) * stream * product.passes / rate / chip.calibration.mxu_efficiency
    )
    pop = bm * np.minimum(bn, chip.weight_tile * chip.tiles_at_once) / (2 * chip.lanes * chip.sublanes)
    pop = pop + 2 * chip.weight_tile

    # A block that stays the same from one step to the next is not loaded again.
    lhs_loads = batch * tm * tk * np.where((tk == 1) & (order == "mn"), 1, tn)
    rhs_loads = batch * tn * tk * np.where((tk == 1) & (order == "nm"), 1, tm)
    if product.shared:
        rhs_loads = np.where((tk == 1) & (tn == 1), 1, rhs_loads)
    lhs_bytes = lhs_loads * lhs_block if spaces[0] == "hbm" else 0.0 * steps
    rhs_bytes = rhs_loads * rhs_block if spaces[1] == "hbm" else 0.0 * steps
    out_bytes = batch * tm * tn * bm * bn * (out_size + product.loaded_bits / 8)
    hbm_loads = (spaces[0] == "hbm") * lhs_loads + (spaces[1] == "hbm") * rhs_loads + batch * tm * tn
    transfer = (lhs_bytes + rhs_bytes + out_bytes) / chip.hbm_bytes_per_cycle + chip.dma_issue_cycles * hbm_loads
    cmem = (spaces[0] == "cmem") * lhs_loads * lhs_block + (spaces[1] == "cmem") * rhs_loads * rhs_block
    cmem_loads = (spaces[0] == "cmem") * lhs_loads + (spaces[1] == "cmem") * rhs_loads
    cmem_rate = max(chip.cmem_bytes_per_second, 1.0) / chip.clock_hz
    first = ((spaces[0] == "hbm") * lhs_block + (spaces[1] == "hbm") * rhs_block) / chip.hbm_bytes_per_cycle
    first = np.maximum(first, ((spaces[0] == "cmem") * lhs_block + (spaces[1] == "cmem") * rhs_block) / cmem_rate)
    last = bm * bn * out_size / chip.hbm_bytes_per_cycle
    slower, faster = np.maximum(compute, transfer), np.minimum(compute, transfer)
    # What is not overlapped at all: the first load, the last pop and store; with one copy of the output, all of them.
    time = slower + (1 / chip.calibration.overlap_rate - 1) * faster
    time = np.maximum(time, cmem / cmem_rate + chip.dma_issue_cycles * cmem_loads) + first + pop + last
    time = time + np.where(out_copies == 1, (batch * tm * tn - 1) * (last + pop), 0.0)
    time = np.where(fits, time, np.inf)
    best = np.unravel_index(int(np.argmin(time)), time.shape)
    if not np.isfinite(time[best]):
        return None
    i, j, kk, c = best
    return Plan(
        bm=int(bm[i, 0, 0, 0]),
        bn=int(bn[0, j, 0, 0]),
        bk=int(bk[0, 0, kk, 0]),
        trips=(int(tm[i, 0, 0, 0]), int(tn[0, j, 0, 0]), int(tk[0, 0, kk, 0])),
        split=split,
        order=order,
        spaces=spaces,
        copies=(1 if lhs_view else 2, 1 if rhs_view else 2, int(out_copies[0, 0, 0, c])),
        vmem_bytes=int(np.broadcast_to(vmem, time.shape)[best]),
        estimate=float(time[best]),
    )


def _cuts(size: int, cores: int, unit: int) -> tuple[np.ndarray, np.ndarray]:
    """Even cuts of a dimension over `cores`, then into blocks of multiples of `unit`: (trips a core, block)."""
    rows = []
    for cut in CUTS:
        block = up(-(-size // (cores * cut)), unit)
        trips = -(-size // (cores * block))
        if not rows or (trips, block) != rows[-1]:
            rows.append((trips, block))
    return np.array([r[0] for r in rows]), np.array([r[1] for r in rows])


def grid_of(plan: Plan, cores: int) -> Sequence[int]:
    """Blocks along m, n and k over all cores."""
    tm, tn, tk = plan.trips
    return (tm * cores if plan.split == "m" else tm, tn * cores if plan.split == "n" else tn, tk)
