"""What pays when a loop becomes vectors: how wide and how many a step, rows at once, reading ahead, past the caches.

Each vector more in a step is code that LLVM has to make, at 45 us a line: there are several only where a loop waits for its
own sums, where each op waits for the one before, or where a step is so short that the loop's counter would be a part of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from stablehlo_py.machine.cpu import Cpu
from stablehlo_py.mlir import DYNAMIC, ir
from stablehlo_py.records import record
from stablehlo_py.targets.cpu.emit.ordered_floats import order_of
from stablehlo_py.targets.cpu.emit.streaming import CACHE_BYTES, buffer_bytes, streams, strides_of
from stablehlo_py.targets.cpu.vectors.early_ops import Early, early_ops
from stablehlo_py.targets.cpu.vectors.vector_legality import VIEWS, Innermost, base_of, is_plain, trip_count
from stablehlo_py.transforms.kernels.kernel_parallel import constant
from stablehlo_py.transforms.kernels.kernel_scratch import element_bytes

BLOCK = 1024  # steps of a split flat loop that stay together: a multiple of every unrolled vector
SMALL_BLOCK = 256  # of one that is too short for MANY_BLOCKS
MANY_BLOCKS = 64
ROWS = 8  # that are taken at once where each updates the same places: memory sees one update instead
FEW_STEPS = 8  # a loop of so few steps is not worth another pass of LLVM over the kernel
LEAST_AHEAD = 1 << 20  # bytes of a buffer that is read ahead: smaller ones stay in the cache of a core
MOST_AHEAD = 1 << 14  # bytes: a row that is longer would not find its place in the first cache
LATENCY = 1 << 10  # bytes that a core has read by the time that memory answers
FEW = 4  # one op in so many
STREAMS = 2  # of reads, see streams_of
PAGE = 4096  # bytes: nearer to each other two streams are one to what fetches lines by itself
COPY, SHORT, LONG = 1, 4, 8  # ops of a step
EARLY_VECTORS = 2  # a step, of one that is partly done a step ahead: with one alone, that is not far enough ahead
LEAST_EARLY = 8  # steps: what is done ahead of the first is done once more


@record
class Rows:
    """A loop over rows that does nothing but run the innermost loop, which updates the same places in each."""

    op: ir.Operation
    count: int

    @property
    def variable(self) -> ir.Value:
        return self.op.regions[0].blocks[0].arguments[0]


@record(eq=False)
class Plan:
    """How a loop is written.

    lanes: elements in a vector; unroll: vectors in a step of the main loop; steps: of the loop as it was, of all its parts
    where the executor cuts it, None where that is unknown; rows: taken ROWS at once; past: the buffers whose stores go
    past the caches; ahead: loads that ask for what is so many bytes behind them; streams: runs of steps that go side by
    side, which the vectors of a step are dealt to; early: what is done a step ahead; halves: whether two vectors share words.
    """

    loop: Innermost
    lanes: int
    unroll: int
    steps: int | None
    is_cut: bool = False
    rows: Rows | None = None
    past: Collection[ir.Value] = ()
    ahead: Mapping[ir.Value, int] | None = None
    streams: int = 1
    early: Early | None = None
    halves: bool = False

    @property
    def step(self) -> int:
        return self.lanes * self.unroll

    def behind(self, number: int) -> int:
        """How many steps of the loop as it was a vector of a step stands behind the first."""
        together = self.unroll // self.streams
        stream, within = divmod(number, together)
        return within * self.lanes + (stream * self.run if stream else 0)

    @property
    def run(self) -> int:
        """Steps of the loop as it was in one stream."""
        assert self.steps is not None
        return self.steps // self.step * self.step // self.streams


def is_worth(loop: Innermost, cpu: Cpu) -> bool:
    """Whether vectors of a loop beat its scalars, and what LLVM's vectoriser would make of them."""
    if _counts_lanes(loop):
        return False
    lanes, steps = lanes_of(loop, cpu), trip_count(loop.op)
    return lanes > 1 and (steps is None or steps >= (lanes // 4 if cpu.masks and not loop.has_complex else lanes))


def _counts_lanes(loop: Innermost) -> bool:
    """Whether one is added to what is in the lanes.

    LLVM subtracts a register of ones for it, made anew in each step from what was in it, so that one step waits for the one
    before it: a random number generator took twice the time. Its own vectoriser does not make such code.
    """
    sums = [op for op in loop.body if op.name == "arith.addi" and not isinstance(op.results[0].type, ir.IndexType)]
    return any(constant(v) == 1 for op in sums for v in op.operands)


def lanes_of(loop: Innermost, cpu: Cpu) -> int:
    """Elements in a vector: as many as a register has of the widest; of those that few ops have, a register holds half.

    Half of that where a row of what a loop writes and reads again ends with half a vector: all of each second row would
    go over the ends of cache lines, a twentieth of the time of a cumulative sum of 2000x1000 floats (Sapphire Rapids).
    """
    widest = max(loop.sizes)
    are_few = widest > loop.widest_in_memory and FEW * loop.sizes[widest] <= loop.sizes.total()
    lanes = cpu.lanes(widest // 2 if are_few else widest)
    half = lanes * loop.widest_in_memory // 2
    return lanes // 2 if half and any(row % (2 * half) == half for row in loop.other_rows.values()) else lanes


def vectors_wanted(loop: Innermost, cpu: Cpu) -> int:
    """Vectors a step: enough for the latency of sums, of chains of many ops, and for the loop's own overhead."""
    # The integers that stand for floats wait one cycle for each other, sums of floats four; memory is slower than either.
    waits = any(order_of(r.op, cpu) is None for r in loop.reductions)
    if loop.work > cpu.chain:
        return 2
    if loop.work > LONG or (loop.work > SHORT and not loop.reductions):
        return 2 if waits else 1
    if not loop.reductions:
        return 4 if loop.work <= COPY else 2
    is_far = any(_is_far(op.operands[0]) for op in loop.body if op.name == "memref.load")
    return 4 if waits and loop.work <= SHORT and not is_far else 2


def unroll_of(loop: Innermost, steps: int | None, lanes: int, most: int, *, is_cut: bool) -> int:
    """Vectors a step, such that as many steps as possible leave no vector over."""
    if steps is None:
        return most
    vectors = steps // lanes
    if is_cut:  # whole steps fit into a block
        return next(n for n in (4, 2, 1) if n <= most and vectors % n == 0)
    if vectors <= most:
        return max(vectors, 1)
    fitting = [n for n in range(most, most // 2, -1) if vectors % n == 0]
    return fitting[0] if fitting else most if loop.reductions else 1


def early_of(loop: Innermost, steps: int | None, lanes: int) -> Early | None:
    """What pays to be done a step ahead."""
    return early_ops(loop) if steps is not None and steps >= LEAST_EARLY * EARLY_VECTORS * lanes else None


# --- rows at once ------------------------------------------------------------------------------------------------------


def rows_around(loop: Innermost) -> Rows | None:
    """The loop of which several steps can be taken at once: what they update stays in registers in between."""
    parent = loop.op.parent
    if parent is None or parent.operation.name != "scf.for" or loop.reductions or loop.other_rows:
        return None
    parent = parent.operation
    count, block = trip_count(parent), parent.regions[0].blocks[0]
    if count is None or count < ROWS or len(parent.operands) != 3 or len(block.operations) != 2:
        return None
    if constant(parent.operands[0]) != 0:
        return None
    row = block.arguments[0]
    stores = [op for op in loop.body if op.name == "memref.store"]
    loads = [op for op in loop.body if op.name == "memref.load"]
    updated = [(op.operands[1], list(op.operands)[2:]) for op in stores]
    if not stores or any(row in indices for _, indices in updated):
        return None
    if not any((op.operands[0], list(op.operands)[1:]) in updated for op in loads):
        return None
    # what depends on the row must be found by its number alone
    own = {op.results[0] for op in loads if row_stride(op, row) != DYNAMIC}
    users = [use.owner.operation for use in row.uses]
    return Rows(parent, count) if all(op.results and op.results[0] in own for op in users) else None


def row_stride(load: ir.Operation, row: ir.Value) -> int:
    """Elements from what a load reads to what it reads in the next row; 0 where it reads the same, DYNAMIC where unknown."""
    strides, _ = strides_of(load.operands[0])
    by = [stride for stride, index in zip(strides, list(load.operands)[1:], strict=True) if index == row]
    return DYNAMIC if DYNAMIC in by else sum(by)


# --- memory ------------------------------------------------------------------------------------------------------------


def written_past_caches(function: ir.Operation, cpu: Cpu) -> set[ir.Value]:
    """A kernel's large results that it does nothing with but write them."""
    arguments = [a for a in function.regions[0].blocks[0].arguments if isinstance(a.type, ir.MemRefType)]
    return {a for a in arguments if streams(a, cpu) and _only_written(a)}


def _only_written(buffer: ir.Value) -> bool:
    """Whether a kernel stores to a buffer or a view of it and does nothing else with it."""
    uses = [use.owner.operation for use in buffer.uses]
    return bool(uses) and all(
        op.name == "memref.store" or (op.name in VIEWS and all(_only_written(v) for v in op.results)) for op in uses
    )


def stores_past(loop: Innermost, lanes: int, past: Collection[ir.Value]) -> list[ir.Value]:
    """The buffers of which all vectors stand at multiples of their size, if the buffer does."""
    return [op.operands[1] for op in loop.body if op.name == "memref.store" and _is_in_line(loop, op, lanes, past)]


def _is_in_line(loop: Innermost, store: ir.Operation, lanes: int, past: Collection[ir.Value]) -> bool:
    buffer, indices = store.operands[1], list(store.operands)[2:]
    if base_of(buffer) not in past or not is_plain(buffer) or indices[-1] != loop.variable:
        return False
    size = element_bytes(ir.MemRefType(buffer.type).element_type)
    strides, _ = strides_of(buffer)
    whole = lanes * size
    return whole >= 32 and all(n * size % whole == 0 for n in strides[:-1])


def streams_of(loop: Innermost, lanes: int, cpu: Cpu, *, is_cut: bool) -> int:
    """How many places a loop reads at a time.

    Two that are far apart keep more lines on their way from memory than one, whatever is asked for ahead: 24 GB/s instead
    of 19 on one core of a Zen 3, 37 instead of 30 on a Zen 4. What the last cache holds is no quicker that way. A core
    that asks by itself far enough ahead is slower with two: 15 instead of 16.5 GB/s on a Sapphire Rapids.
    """
    if cpu.fetches_ahead:
        return 1
    steps = trip_count(loop.op)
    loads = [op for op in loop.body if op.name == "memref.load"]
    if steps is None or is_cut or not loop.reductions or loop.work > SHORT or len(loads) != 1:
        return 1
    if any(order_of(r.op, cpu) for r in loop.reductions):  # so many instructions that fewer lines are asked for anyway
        return 1
    if any(op.name == "memref.store" for op in loop.body) or buffer_bytes(loads[0].operands[0]) <= CACHE_BYTES:
        return 1
    far_apart = steps // STREAMS * element_bytes(loads[0].results[0].type) >= PAGE
    return STREAMS if far_apart and steps >= STREAMS * 2 * lanes else 1


def reads_ahead(loops: Sequence[Innermost], cpu: Cpu) -> dict[ir.Value, int]:
    """Which loads ask for what is so many bytes behind them: the next row, or what comes soon in a loop that is no row's
    or does no more with a row than go over it once.

    The loops of a row find it in the cache but for the first, which waits for memory while nothing is computed. So the
    busiest of them asks for the row that comes next: while it computes, memory has the time. The end of it would be asked
    for just before it is used, so it asks for LATENCY more: softmax and layer normalisation of rows of 1 and 4 KiB take
    1.02 to 1.06 times as long without that.

    Of a loop that computes long, a core sees few steps at once, and what fetches by itself ends at each page: x * 2 +
    tanh(y) - exp(-z) of 64 MiB each takes 1.3 times as long without asking, and what only adds 1.03 times (Sapphire Rapids).
    """
    busiest: dict[tuple[ir.Value, ir.Value], tuple[Innermost, ir.Value, int]] = {}
    soon: dict[ir.Value, int] = {}
    together = Counter(loop.op.parent.operation for loop in loops if loop.op.parent is not None)
    for loop in loops:
        parent = loop.op.parent
        is_alone = cpu.asks_ahead and not loop.reductions and parent is not None and together[parent.operation] == 1
        if parent is None or parent.operation.name != "scf.for" or is_alone:
            loads = [op for op in loop.body if op.name == "memref.load"] if cpu.asks_ahead else ()
            far = [op.results[0] for op in loads if _is_far(op.operands[0])]
            soon.update((load, cpu.asks_ahead) for load in far if load not in loop.other_rows)
            continue
        row = parent.regions[0].blocks[0].arguments[0]
        for op in loop.body:
            if op.name != "memref.load" or row not in list(op.operands)[1:]:
                continue
            buffer = op.operands[0]
            if not _is_far(buffer):
                continue
            before = busiest.get((buffer, row))
            if before is None or loop.work > before[0].work:
                more = LATENCY if cpu.asks_ahead else 0
                busiest[buffer, row] = (loop, op.results[0], min(_row_bytes(op, row) + more, MOST_AHEAD))
    return soon | {load: distance for _, load, distance in busiest.values()}


def rows_ahead(loop: Innermost, row: ir.Value, cpu: Cpu) -> dict[ir.Value, int]:
    """The same where ROWS rows are taken at once: the rows after them.

    What is asked for before it finds its place in the first cache is fetched twice. A core that asks for the next lines
    of all rows by itself has that for nothing: sums of columns of rows of 16 KiB are 1.4 times as fast without in the cache of
    a core, 1.15 from memory (Sapphire Rapids; of rows of 1 KiB they are 1.1 times as fast with it).
    """
    loads = [op for op in loop.body if op.name == "memref.load" and row in list(op.operands)[1:]]
    far = {op.results[0]: ROWS * _row_bytes(op, row) for op in loads if _is_far(op.operands[0])}
    return {load: by for load, by in far.items() if not cpu.fetches_ahead or by <= cpu.l1}


def _row_bytes(load: ir.Operation, row: ir.Value) -> int:
    return row_stride(load, row) * element_bytes(load.results[0].type)


def _is_far(buffer: ir.Value) -> bool:
    """Whether a buffer comes from further away than the cache of a core; views that skip something do not count."""
    return is_plain(buffer) and buffer_bytes(buffer) >= LEAST_AHEAD
