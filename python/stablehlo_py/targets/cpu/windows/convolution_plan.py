"""How a convolution is cut into register tiles and into steps: which loop is in the lanes, which in the rows of a tile.

One step of the sums loads what the tile needs of image and kernel and multiplies rows x vectors accumulators. An operand
that does not move along the lanes is broadcast, one that does not move along the rows is loaded once for all. So the lanes
may be output features (the image is broadcast), groups (depthwise: both are vectors) or places in a row of the image (the
kernel is broadcast), whatever keeps more lanes busy in this layout.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator

from stablehlo_py.machine.cpu import Cpu
from stablehlo_py.records import record, replace
from stablehlo_py.targets.cpu.windows.convolutions import Geometry, Loop

CONVERTED = ("bf16", "f16", "i8", "ui8")  # elements of the image that its copy holds in another form
STEPS = 8  # of the parallel loop, so that 2, 4 or 8 threads have equal shares
SPLIT_WORK = 1 << 20  # multiplications from which splitting pays
STEP_PLACES = 4  # places of the first axis in a step for which nothing is packed
STEP_ROWS = 128  # places in the result that a step should have for what it packs and pads
TILES_TRIED = 12  # the best by their sums alone, with all ways to make steps of them
LANE_PARTS = (1, 2, 4, STEPS)
UNROLLED = 4  # steps of an innermost sum that are written out
LEAST_BLOCK = 96  # steps of a sum beside which loading and storing a tile is cheap
LINE = 64  # bytes of a cache line
LATENCY = 8  # multiplications in flight that keep two units busy, which take four cycles
# Cycles in which a vector of the kernel is packed and one of the image copied: where half of the second-level cache holds
# them, where eight of it would, and from further away.
PACKED = (2, 4, 9)
COPIED = (4, 8, 8)


@record
class Tile:
    """rows x vectors accumulators of `lanes` each: `row` and `lane` are the loops in them.

    row: a loop, or several that are counted through as one (`row_loops`, outermost first), so that a tile may go on in the
    next row of the image. lane_offsets: where each vector begins from the first lane of the tile; used: lanes of a vector
    that count, if the loop is shorter than one.
    """

    row_loops: tuple[Loop, ...]
    lane: Loop
    rows: int
    lanes: int
    lane_offsets: tuple[int, ...]
    used: int

    @property
    def row(self) -> Loop:
        """The loop over the rows, with the strides of the innermost one."""
        return replace(self.row_loops[-1], extent=math.prod(loop.extent for loop in self.row_loops))

    @property
    def row_names(self) -> list[str]:
        return [loop.name for loop in self.row_loops]

    @property
    def vectors(self) -> int:
        return len(self.lane_offsets)

    @property
    def width(self) -> int:
        """Elements of the lane loop that a tile does."""
        return self.lane_offsets[-1] + self.used

    @property
    def panels(self) -> int:
        """How many tiles there are along the lanes."""
        return -(-self.lane.extent // self.width)

    @property
    def is_turned(self) -> bool:
        """Whether the result is contiguous along the rows of the tile, so that it is transposed before it is stored."""
        return self.lane.o != 1


@record
class Split:
    """One step of the parallel loop: `counts` says how many there are of each loop in it, `sizes` how long its part is."""

    counts: dict[str, int]
    sizes: dict[str, int]

    @property
    def steps(self) -> int:
        return math.prod(self.counts.values())

    @property
    def imbalance(self) -> float:
        """How much longer 2, 4 and 8 threads take, on average, than if each had the same share."""
        shares = [-(-self.steps // threads) * threads / self.steps for threads in (2, 4, 8)]
        return sum(shares) / len(shares)

    def extent(self, loop: Loop) -> int:
        """Steps of a loop over the result in one step of the parallel loop."""
        return self.sizes[loop.name] if loop.name in ("b", "g", "o0") else loop.extent


@record
class Plan:
    """A tile, and the steps that it is used in. cycles: of one core, about, for all of them."""

    tile: Tile
    split: Split
    cycles: float = 0.0


def plan_of(
    geometry: Geometry,
    cpu: Cpu,
    element_bytes: int,
    *,
    padded: bool = False,
    converted: bool = False,
    lanes_of: str = "",
) -> Plan | None:
    """The best tile and split, or None where no tile keeps the result's elements together.

    padded: the image is copied. converted: the kernel is always packed, in another form. lanes_of: the loop that must be in
    the lanes, whole vectors of neighbours in the kernel.
    """
    loops = parallel_loops(geometry)
    ones = Loop("one", 1, 0, 0, 0)
    tiles: list[Tile] = []
    for lane in loops:
        if lanes_of and (lane.name != lanes_of or lane.w != 1 or lane.extent < cpu.lanes(element_bytes)):
            continue
        if lane.x not in (0, 1) or _shortest(geometry, lane) != lane.extent:
            continue
        for rows in _rows([loop for loop in loops if loop.name != lane.name] or [ones]):
            if any(row.w for row in rows) and (lane.w not in (0, 1) or (converted and lane.w)):
                continue  # a packed kernel is the same for all rows of a tile
            shortest = math.prod(_shortest(geometry, row) for row in rows)
            tiles += _tiles(lane, rows, cpu, element_bytes, shortest, shared=_taps_share(geometry, lane, rows[-1]))
    at_least = {tile: _sums(geometry, loops, tile, _whole(loops, tile), cpu) for tile in tiles}
    best: Plan | None = None
    least = math.inf
    for tile in sorted(at_least, key=lambda tile: at_least[tile])[:TILES_TRIED]:
        if at_least[tile] > least:  # which no way to make steps of it changes, nor of those behind
            break
        for parts in {min(parts, tile.panels if tile.lane.w else 1): None for parts in LANE_PARTS}:
            plan = Plan(tile, split_of(geometry, loops, tile, parts))
            cycles = _cycles(geometry, loops, plan, cpu, element_bytes, padded=padded)
            if cycles < least:
                best, least = replace(plan, cycles=cycles), cycles
    return best


def parallel_loops(geometry: Geometry) -> list[Loop]:
    """The loops over the result that have more than one step, with their strides in the image as it lies in memory."""
    loops = [geometry.loops["b"], geometry.loops["g"]]
    loops += [Loop(f"o{n}", a.places, a.step * a.x, 0, a.o) for n, a in enumerate(geometry.axes)]
    return [loop for loop in (*loops, geometry.loops["f"]) if loop.extent > 1]


def summed_loops(geometry: Geometry, lane: Loop) -> list[Loop]:
    """The loops over taps and features, outermost first: those of phases always, others where they have steps."""
    taps = [Loop(f"t{n}", a.taps, a.spread * a.x, a.w, 0) for n, a in enumerate(geometry.axes)]
    phased = {f"t{n}" for n, a in enumerate(geometry.axes) if a.phases}
    summed = [loop for loop in (*taps, geometry.loops["i"]) if loop.extent > 1 or loop.name in phased]
    if lane.w not in (0, 1) and not phased:
        # in the order of the kernel in memory, so that packing it is a transposition
        summed.sort(key=lambda loop: -abs(loop.w))
    return summed


def _taps_share(geometry: Geometry, lane: Loop, row: Loop) -> bool:
    """Whether a row reads at one tap what the next row reads at the tap before, and the taps are written out."""
    loops = summed_loops(geometry, lane)
    if not loops or lane.x or any(axis.phases for axis in geometry.axes):
        return False
    return loops[-1].extent <= UNROLLED and loops[-1].x == row.x != 0


def _shortest(geometry: Geometry, loop: Loop) -> int:
    """The steps that a loop has in every phase."""
    axis = geometry.axes[int(loop.name[1:])] if loop.name[0] == "o" and loop.name != "one" else None
    return loop.extent if axis is None or axis.phases is None else axis.phases.places // axis.phases.count


def _rows(loops: list[Loop]) -> Iterator[tuple[Loop, ...]]:
    """What may be in the rows of a tile: each loop, and the places of the result in their order."""
    yield from ((loop,) for loop in loops)
    places = tuple(loop for loop in loops if loop.name not in ("g", "f", "one"))
    for n in range(len(places) - 1):
        yield places[n:]


def _tiles(
    lane: Loop, rows_of: tuple[Loop, ...], cpu: Cpu, element_bytes: int, shortest: int, *, shared: bool
) -> Iterator[Tile]:
    """The tiles whose registers suffice. shared: LLVM keeps what the rows read from one step of the sums to the next."""
    turned, row = lane.o != 1, rows_of[-1]
    if turned and not row.o:
        return
    lanes = cpu.lanes(element_bytes)
    while lanes > 4 and lanes // 2 >= lane.extent:
        lanes //= 2
    whole = -(-lane.extent // lanes)
    most = 8 if cpu.registers >= 32 else 6
    shares = [-(-shortest // most) + more for more in (0, 1)]
    if len(rows_of) == 1 and cpu.registers < 32:  # rows of one stride need one address, however many they are
        shares.append(-(-shortest // (2 * most)))
    even = sorted({-(-shortest // count) for count in shares}, reverse=True)
    heights = [r for r in (8, 4, 2) if r <= min(shortest, most, lanes)] if turned else even
    for rows, vectors in itertools.product(heights, range(1, 5)):
        columns = vectors if lane.w and not lane.x else 1
        if vectors > whole or rows * vectors + columns + (rows if shared else 1) > cpu.registers:
            continue
        used = min(lanes, lane.extent)
        offsets = tuple(min(v * lanes, lane.extent - used) for v in range(vectors))
        yield Tile(rows_of, lane, rows, lanes, offsets, used)


def _sums(geometry: Geometry, loops: list[Loop], tile: Tile, split: Split, cpu: Cpu) -> float:
    """What the tiles of a step take, about, in cycles of a core that multiplies two vectors in each and loads two.

    Beside its sums, a tile that is turned costs what six steps of them do, one that is stored element by element what 32
    do; finding the places of rows that do not lie evenly what one does.
    """
    row, lane, fmas = tile.row_loops[-1], tile.lane, tile.rows * tile.vectors
    loads = sum(
        (tile.rows if at_row else 1) * (tile.vectors if at_lane else 1)
        for at_row, at_lane in ((row.x, lane.x), (row.w, lane.w))
    )
    if (
        lane.x
        and lane.name == "g"
        and tile.vectors * cpu.vector_bytes < LINE < lane.extent * cpu.vector_bytes // tile.lanes
    ):
        loads += tile.rows  # lines of which a part is used, and the rest when the next panel comes
    unaligned = 0.5 * fmas if lane.x and lane.name.startswith("o") else 0
    # rows that are no neighbours in the image share none of what they read
    apart = 0 if geometry.axes and row.name == f"o{len(geometry.axes) - 1}" else tile.rows
    step = max(fmas, loads + unaligned, LATENCY) / 2 + (loads + apart) / 16
    others = [loop for loop in loops if loop.name not in tile.row_names and loop.name != lane.name]
    around = split.sizes["lanes"] * math.prod(split.extent(loop) for loop in others)
    tiles = around * -(-math.prod(split.extent(loop) for loop in tile.row_loops) // tile.rows)
    beside = (0 if not tile.is_turned else 6 if row.o == 1 else 32) + (len(tile.row_loops) > 1)
    return tiles * (geometry.depth + beside) * step


def _cycles(geometry: Geometry, loops: list[Loop], plan: Plan, cpu: Cpu, element_bytes: int, *, padded: bool) -> float:
    """What all steps take, with what is packed and copied for each."""
    tile, split, depth = plan.tile, plan.split, geometry.depth
    cycles = _sums(geometry, loops, tile, split, cpu)
    along_kernel = [loop for loop in loops if loop.w]
    if tile.lane.w:
        inner = (*tile.row_names, tile.lane.name)
        panels = split.sizes["lanes"] * math.prod(split.extent(loop) for loop in along_kernel if loop.name not in inner)
        kernel = depth * math.prod(loop.extent for loop in along_kernel)
        cycles += panels * depth * tile.vectors * _by_distance(PACKED, kernel * element_bytes, cpu)
    if padded:
        reach = [axis.reach for axis in geometry.axes]
        if geometry.axes:
            reach[0] = replace(geometry.axes[0], places=split.sizes["o0"]).reach
        image = math.prod(reach) * split.sizes["b"] * split.sizes["g"] * geometry.loops["i"].extent
        cycles += image / cpu.lanes(element_bytes) * _by_distance(COPIED, image * element_bytes, cpu)
    return cycles * split.steps * split.imbalance


def _by_distance(cycles: tuple[float, float, float], bytes_: int, cpu: Cpu) -> float:
    return cycles[0] if bytes_ <= cpu.l2 // 2 else cycles[1] if bytes_ <= 8 * cpu.l2 else cycles[2]


def _whole(loops: list[Loop], tile: Tile) -> Split:
    """All in one step."""
    sizes = {name: next((loop.extent for loop in loops if loop.name == name), 1) for name in ("b", "g", "o0")}
    return Split({"b": 1, "g": 1, "o0": 1, "lanes": 1}, {**sizes, "lanes": tile.panels})


def split_of(geometry: Geometry, parallel: list[Loop], tile: Tile, lane_parts: int = 1) -> Split:
    """The parts of the outermost loops that make one step: batch, groups, blocks of the first axis, then of the lanes.

    lane_parts: how many of the lanes there are before the others, so that each part of the kernel is packed less often.
    """
    loops = {loop.name: loop for loop in parallel}
    split = _whole(parallel, tile)
    panels = split.sizes["lanes"]
    if geometry.products < SPLIT_WORK:
        return split
    inner = {tile.row_names[0], tile.lane.name} if len(tile.row_loops) == 1 else {tile.lane.name}
    if lane_parts > 1 and tile.lane.w:
        split = _cut(split, "lanes", panels, -(-panels // min(panels, lane_parts)))
    rows = math.prod(loop.extent for name, loop in loops.items() if name not in ("f", tile.lane.name))
    for name in ("b", "g"):
        if name in loops and name not in inner and split.steps < STEPS:
            split = _cut(split, name, loops[name].extent, 1)
    rows = rows * split.counts["lanes"] // split.steps
    if "o0" in loops and tile.lane.name != "o0" and split.steps < STEPS:
        beside = math.prod(min(split.extent(a), _shortest(geometry, a)) for a in tile.row_loops if a.name != "o0")
        least = -(-tile.rows // beside) if "o0" in tile.row_names else 1
        least += loops["o0"].extent - _shortest(geometry, loops["o0"])  # the last part of a phase may have one less
        places = loops["o0"].extent
        # where nothing is packed, parts have only their edges twice
        most = rows // STEP_ROWS if tile.lane.w else places // STEP_PLACES
        wanted = min(-(-STEPS // split.steps), max(1, most), places // least)
        split = _cut(split, "o0", places, _even(places, wanted, least))
    if split.steps < STEPS and panels > 1 and split.counts["lanes"] == 1:
        wanted = min(panels, -(-STEPS // split.steps))
        split = _cut(split, "lanes", panels, -(-panels // wanted))
    return split


def _cut(split: Split, name: str, extent: int, size: int) -> Split:
    return Split({**split.counts, name: -(-extent // size)}, {**split.sizes, name: size})


def _even(extent: int, wanted: int, least: int) -> int:
    """The size of at least `wanted` parts, the last of which may overlap the one before, with the least done twice."""
    sizes = {max(least, -(-extent // count)) for count in range(wanted, 2 * wanted + 1)}
    return min(sizes, key=lambda size: (-(-extent // size) * size, -size))


def in_blocks(loops: list[Loop], most: int) -> tuple[list[Loop], list[Loop]]:
    """Summed loops in two: those over blocks, and those within a block, which has at most `most` steps.

    Where a loop has no fitting divisor, blocks are larger; a block of fewer than LEAST_BLOCK steps is none.
    """
    steps = 1
    for n in reversed(range(len(loops))):
        loop = loops[n]
        if steps * loop.extent <= most:
            steps *= loop.extent
            continue
        part = max(d for d in range(1, max(most // steps, 1) + 1) if loop.extent % d == 0)
        if part * steps < LEAST_BLOCK:
            part = loop.extent
        cut = replace(loop, extent=loop.extent // part, x=loop.x * part, w=loop.w * part)
        outer, inner = [*loops[:n], cut], [replace(loop, extent=part), *loops[n + 1 :]]
        return [a for a in outer if a.extent > 1], [a for a in inner if a.extent > 1]
    return [], loops


def merged(loops: list[Loop], apart: Collection[str] = ()) -> list[Loop]:
    """Summed loops, outermost first, with neighbours made one where both operands go on evenly; not those `apart`."""
    result: list[Loop] = []
    for loop in loops:
        if loop.extent == 1 and loop.name not in apart:
            continue
        evenly = result and result[-1].x == loop.extent * loop.x and result[-1].w == loop.extent * loop.w
        if evenly and loop.name not in apart and result[-1].name not in apart:
            result[-1] = replace(loop, extent=loop.extent * result[-1].extent)
        else:
            result.append(loop)
    return result
