"""How a convolution is cut into products of matrix tiles (AMX) and into steps, and whether that takes less than vectors.

The rows of a tile of the image are 16 places of a window one step apart, a row's 64 bytes the neighbours in memory that
follow each: input features, and of bytes the next taps' too where those lie behind them. So a tile is read from the image as
it is, or from a copy of the part that a step reads with zeros around, features innermost. A tile of sums is 16 places of the
result by 16 features. Where the places of a row are no multiple of 16, the last tile overlaps the one before; where that would
be much, places are counted through the copy's rows, zeros at their ends included, and what is no result is left behind in
a buffer.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator

from stablehlo_py.machine.cpu import Cpu
from stablehlo_py.mlir import ir
from stablehlo_py.records import record, replace
from stablehlo_py.targets.cpu.emit import nest
from stablehlo_py.targets.cpu.emit.matrix_tiles import LANES, MULTIPLY, ROW_BYTES, ROWS
from stablehlo_py.targets.cpu.windows.convolution_plan import Split, merged
from stablehlo_py.targets.cpu.windows.convolutions import Axis, Geometry, Loop
from stablehlo_py.targets.cpu.windows.kernel_order import ordered_by_features

GAIN = 1.15  # times less than vectors take
LEAST_WORK = 1 << 17  # multiplications
VECTORS, LOOPS = 64, 8  # multiplications in a cycle without tiles, about: by plans for vectors at their best, by loops
# Cycles: of a product of tiles with its weights from the first cache and from the second, of a tile of sums beside its
# products (measured on a Sapphire Rapids).
PRODUCT, FETCHED, TILE = 16, 22, 60
MOVED = 3  # of a vector that is copied, to the result or with zeros around it
TURNED = 6  # of one that is turned with its neighbours
ALONE = 2  # of an element that is moved by itself
PACKED = 10  # of a row of a tile of weights
NEAR = 24 << 10  # bytes of a panel of weights that stay in the first cache, of 48 KiB in all cores with tiles so far
TOGETHER = 128 << 10  # bytes of sums that are turned together
FAR = 12  # bytes a cycle from the last cache
CALL = 1000  # for the tiles' shapes and the zeros of the copy
LAUNCH = 8000  # to let threads start together once more
APART = 0.25  # of the time of steps done together that packing the weights for them may take
STEPS = 8  # of the parallel loop, so that 2, 4 or 8 threads have equal shares


@record
class Matrices:
    """What one step does: `images` of the batch, `rows` places of the first axis, `panels` of `wide` tiles of features.

    geometry: its axes in the order in which they lie in the image. group: elements in a lane of 32 bits. pitch: elements from
    one place of the copy to the next; 0 where the image is read as it is. is_flat: places go on from one row of the copy to
    the next; is_direct: sums go from tiles to the result. between: features that are so far apart in the kernel are put in
    order panel by panel. grain: steps that are best done together; shares_weights: threads share the weights, which are packed
    before all steps; cycles: of one core.
    """

    geometry: Geometry
    instruction: str
    group: int
    pitch: int
    images: int
    rows: int
    panels: int
    wide: int
    is_flat: bool
    is_direct: bool
    between: int = 1
    grain: int = 1
    shares_weights: bool = False
    cycles: float = 0.0

    @property
    def element_bytes(self) -> int:
        return 4 // self.group

    @property
    def tile_elements(self) -> int:
        """Elements of a row of a tile of the image."""
        return ROW_BYTES // self.element_bytes

    @property
    def features(self) -> int:
        return self.geometry.loops["f"].extent

    @property
    def is_turned(self) -> bool:
        """Whether the result's features are apart."""
        return self.geometry.loops["f"].o != 1

    @property
    def width(self) -> int:
        """Features that a panel has; some may be in two lanes."""
        return min(self.wide * LANES, self.features)

    @property
    def lane_offsets(self) -> list[int]:
        """Where each tile of a panel begins, from its first feature."""
        return [min(v * LANES, max(self.width - LANES, 0)) for v in range(self.wide)]

    def feature(self, panel: int | ir.Value) -> int | ir.Value:
        """The first feature of a panel in its group; the last panel may overlap the one before."""
        first = nest.multiply(panel, self.width)
        return nest.minimum(first, self.features - self.width) if self.features % self.width else first

    @property
    def packings(self) -> int:
        """Parts in which the weights are packed."""
        return self.all_panels if self.between > 1 else self.depth

    @property
    def panels_of_group(self) -> int:
        return -(-self.features // self.width)

    @property
    def all_panels(self) -> int:
        return self.geometry.loops["g"].extent * self.panels_of_group

    @functools.cached_property
    def reach(self) -> list[int]:
        """Places of the image along each axis that a step reads."""
        first, *others = self.geometry.axes
        return [replace(first, places=self.rows).reach, *(axis.reach for axis in others)]

    @functools.cached_property
    def strides(self) -> list[int]:
        """Elements of what is read from one of the batch to the next, and from one place of each axis to the next."""
        if not self.pitch:
            return [self.geometry.loops["b"].x, *(axis.x for axis in self.geometry.axes)]
        reach = self.reach
        return [math.prod(reach[n:]) * self.pitch for n in range(len(reach) + 1)]

    @functools.cached_property
    def summed(self) -> tuple[list[Loop], Loop]:
        """The loops over taps that are apart, outermost first, and the one over neighbours, whose number is its extent."""
        taps = [
            Loop(f"t{n}", axis.taps, axis.spread * stride, axis.w, 0)
            for n, (axis, stride) in enumerate(zip(self.geometry.axes, self.strides[1:], strict=True))
        ]
        features = replace(self.geometry.loops["i"], x=1)
        loops = [loop for loop in (*taps, features) if loop.extent > 1]
        # beyond the features there may be others' infinities, which only integers may be multiplied by 0
        if self.group == 4 or not features.extent % self.tile_elements:
            loops = merged(loops)
        if loops and loops[-1].x == 1:
            return loops[:-1], loops[-1]
        return loops, features

    @property
    def blocks(self) -> int:
        """Tiles of neighbours that follow each other."""
        return -(-self.summed[1].extent // self.tile_elements)

    @property
    def depth(self) -> int:
        """Products of tiles in one sum."""
        return self.blocks * math.prod(loop.extent for loop in self.summed[0])

    @property
    def panel_words(self) -> int:
        """Lanes of a panel of weights."""
        return self.depth * ROWS * self.wide * LANES

    @functools.cached_property
    def places(self) -> list[Loop]:
        """Loops over the places of a step, the last of them in the rows of tiles. x, o: elements from one to the next."""
        b = self.geometry.loops["b"]
        counts = [self.images, self.rows, *(axis.places for axis in self.geometry.axes[1:])]
        steps = [1, *(axis.step for axis in self.geometry.axes)]
        to = [b.o, *(axis.o for axis in self.geometry.axes)]
        names = ["b", *(f"o{n}" for n in range(len(self.geometry.axes)))]
        loops = [
            Loop(name, count, step * x, o, o)
            for name, count, step, x, o in zip(names, counts, steps, self.strides, to, strict=True)
        ]
        if self.is_direct:
            return merged(loops) or loops[-1:]
        if not self.is_flat:
            return loops
        *outer, above, last = loops
        return [*outer, replace(last, extent=(above.extent - 1) * self.reach[-1] + last.extent)]

    @property
    def results(self) -> list[Loop]:
        """The loops over the results among the places of a row; x: from one to the next in places, o: in the result."""
        axes, flat = self.geometry.axes, self.is_flat
        counts = [self.rows, *(axis.places for axis in axes[1:])]
        last = Loop("last", counts[-1], 1, 0, axes[-1].o)
        return [Loop("rows", counts[-2], self.reach[-1], 0, axes[-2].o), last] if flat else [last]

    @property
    def tiles(self) -> int:
        """Tiles of places in a row of them."""
        return -(-self.places[-1].extent // ROWS)

    @property
    def split(self) -> Split:
        loops, first = self.geometry.loops, self.geometry.axes[0]
        counts = {"b": loops["b"].extent // self.images, "o0": -(-first.places // self.rows)}
        counts["lanes"] = -(-self.all_panels // self.panels)
        return Split(counts, {"b": self.images, "o0": self.rows, "lanes": self.panels})


def plan_of(geometry: Geometry, cpu: Cpu, vectors: float) -> Matrices | None:
    """The best steps; None where there are no such tiles or they do not pay. vectors: cycles of the best without."""
    elements = geometry.elements.split(",")
    known = cpu.int8_tiles if elements[0] in ("i8", "ui8") else cpu.bf16_tiles
    instruction = MULTIPLY.get((elements[0], elements[1]))
    if not known or instruction is None or elements[2] not in (("f32",) if elements[0] == "bf16" else ("i32", "ui32")):
        return None
    turned = geometry.loops["f"].w != 1
    geometry, between = _in_order(replace(geometry, axes=tuple(sorted(geometry.axes, key=lambda axis: -axis.x))))
    group = 2 if elements[0] == "bf16" else 4
    # small floats are looked for in whole vectors of the kernel
    weights = geometry.depth * geometry.loops["f"].extent * geometry.loops["g"].extent
    if geometry.products < LEAST_WORK or not _holds(geometry) or (group == 2 and weights < 2 * LANES):
        return None
    found = (
        (cycles, panels, plan)
        for plan in _plans(geometry, instruction, group, between)
        for panels, cycles in _costs(plan, cpu, _of_weights(plan, turned=turned))
    )
    best = min(found, key=lambda one: one[0], default=None)
    # plans of vectors count too much for small convolutions; where there is none, loops are as slow as that
    most = geometry.products / (LOOPS if math.isinf(vectors) else VECTORS)
    if best is None or best[0] * GAIN >= min(vectors, most):
        return None
    cycles, panels, plan = best
    plan = replace(plan, panels=panels, cycles=cycles)
    return _together(plan, _of_weights(plan, turned=turned), may_share=not turned or between > 1)


def _in_order(geometry: Geometry) -> tuple[Geometry, int]:
    """The convolution whose kernel has its features side by side, and how far apart they are that are put so by panels.

    That is where all that is added up for a feature lies between it and the next; else the whole kernel is put in order.
    """
    between, features = geometry.loops["f"].w, geometry.loops["f"].extent
    strides = [loop.w for loop in (geometry.loops["i"], *geometry.axes)]
    if between == 1 or any(abs(stride) >= between for stride in strides):
        return ordered_by_features(geometry, features), 1
    return ordered_by_features(geometry, min(2 * LANES, features)), between


def _holds(geometry: Geometry) -> bool:
    loops, axes = geometry.loops, geometry.axes
    if not axes or any(axis.stuffing > 1 or axis.phases for axis in axes):
        return False
    is_known = (loops["i"].x == 1 or axes[-1].x == 1) and (loops["f"].o == 1 or axes[-1].o == 1)
    return is_known


def _plans(geometry: Geometry, instruction: str, group: int, between: int) -> Iterator[Matrices]:
    """All ways to make steps, of one panel each."""
    loops, axes = geometry.loops, geometry.axes
    first, wide = axes[0], 1 if loops["f"].extent <= LANES else 2
    whole = Matrices(geometry, instruction, group, 0, 1, first.places, 1, wide, is_flat=False, is_direct=False)
    pitch = _pitch(whole)
    ways = [(False, True)] if loops["f"].o == 1 and loops["f"].extent >= LANES else []
    if pitch:
        ways.append((False, False))
    if pitch and len(axes) > 1 and all(axis.step == 1 for axis in axes[-2:]):
        ways.append((True, False))
    steps = _steps(loops["b"].extent, first, whole=len(axes) == 1 and loops["i"].x != 1)
    for (images, rows), (is_flat, is_direct) in itertools.product(steps, ways):
        plan = Matrices(geometry, instruction, group, pitch, images, rows, 1, wide, is_flat, is_direct, between)
        if is_direct and plan.places[-1].extent < ROWS:
            continue
        if is_flat and plan.is_turned and plan.tiles * ROWS * wide * LANES * 4 > TOGETHER:
            continue
        yield plan


def _pitch(plan: Matrices) -> int:
    """The one of the fewest products; 0 where the image may be read as it is. plan: without any."""
    features, axes = plan.geometry.loops["i"], plan.geometry.axes
    padded = -(-features.extent // plan.tile_elements) * plan.tile_elements
    if plan.group == 2:  # a copy of floats is looked through for small ones
        return padded
    if all(axis.is_plain for axis in axes) and features.x == 1 and features.extent == padded:
        return 0
    return min({features.extent, padded}, key=lambda pitch: (replace(plan, pitch=pitch).depth, pitch))


def _steps(batch: int, first: Axis, *, whole: bool) -> Iterator[tuple[int, int]]:
    """Images and places of the first axis in a step, all of them if `whole`; the last may overlap the one before."""
    counts = [count for count in (1, 2, 4, 8, 16) if count <= first.places and not (whole and count > 1)]
    yield from ((1, part) for part in sorted({-(-first.places // count) for count in counts}))
    yield from ((part, first.places) for part in range(2, batch + 1) if batch % part == 0)


def _parts(plan: Matrices) -> list[int]:
    """Panels of a step: those of one group, or of a part of the features."""
    if plan.geometry.loops["g"].extent > 1:
        return [plan.panels_of_group]
    return sorted({-(-plan.all_panels // count) for count in (1, 2, 4, STEPS) if count <= plan.all_panels})


def _of_weights(plan: Matrices, *, turned: bool) -> float:
    """Cycles of packing all of them. turned: the kernel has to be put in order first."""
    words = plan.all_panels * plan.panel_words
    return words / LANES * PACKED + (words * plan.group * TURNED / LANES if turned else 0)


def _costs(plan: Matrices, cpu: Cpu, weights: float) -> Iterator[tuple[int, float]]:
    """For some numbers of panels in a step: cycles of one core for everything."""
    axes, all_panels, panel_bytes = plan.geometry.axes, plan.all_panels, plan.panel_words * 4
    tiles = plan.tiles * math.prod(loop.extent for loop in plan.places[:-1])
    panel = tiles * plan.wide * (plan.depth * (PRODUCT if panel_bytes <= NEAR else FETCHED) + TILE)
    if not plan.is_direct:
        results = plan.images * plan.rows * math.prod(axis.places for axis in axes[1:]) * plan.wide
        each = MOVED
        if plan.is_turned:
            each = TURNED if axes[-1].places >= LANES else ALONE * LANES
        panel += results * each
    if all_panels * panel_bytes > cpu.l2 // 2:  # they come again and again
        panel += panel_bytes / FAR
    copying = _copying(plan) if plan.pitch else 0
    parts = plan.geometry.loops["b"].extent // plan.images * -(-axes[0].places // plan.rows)
    for panels in _parts(plan):
        steps = Split({"all": parts * -(-all_panels // panels)}, {})
        yield panels, steps.imbalance * steps.steps * (panels * panel + copying) + weights + CALL


def _together(plan: Matrices, weights: float, *, may_share: bool) -> Matrices:
    """The plan with what is done about the weights: shared, or packed once for some steps together."""
    steps = plan.split.steps
    if steps > 1 and weights > 2 * LAUNCH and may_share:
        return replace(plan, shares_weights=True, cycles=plan.cycles + LAUNCH)
    step = (plan.cycles - weights - CALL) / steps
    return replace(plan, grain=min(steps, math.ceil((weights + CALL) / (APART * step))))


def _copying(plan: Matrices) -> float:
    """Cycles of copying what a step reads."""
    features, last = plan.geometry.loops["i"], plan.geometry.axes[-1]
    rows = plan.images * math.prod(plan.reach[:-1])
    if features.x != 1:
        count = features.extent * min(last.size, plan.reach[-1])
        blocks = features.extent >= LANES and last.size >= LANES
        return rows * count * (TURNED / LANES if blocks else ALONE)
    if plan.pitch == features.extent == last.x:
        return rows * (MOVED * -(-plan.reach[-1] * plan.pitch // plan.tile_elements) + MOVED)
    vectors = plan.reach[-1] * -(-features.extent // plan.tile_elements)
    return rows * vectors * 2 * MOVED
