"""How a convolution by Winograd's filters is cut into steps and register tiles, and whether it takes less than plain sums."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from stablehlo_py.machine.cpu import Cpu
from stablehlo_py.records import record, replace
from stablehlo_py.targets.cpu.products.product_forms import Form
from stablehlo_py.targets.cpu.windows.convolution_plan import LATENCY, LINE, Split
from stablehlo_py.targets.cpu.windows.convolutions import Geometry
from stablehlo_py.targets.cpu.windows.winograd import FOUR, NONE, TWO, Filter

LEAST_WORK = 1 << 21  # multiplications
GAIN = 1.15  # times less than plain sums take, for twice the code
# Cycles for each vector that is transformed along two axes, with its loads and stores (measured on Zen 3).
IMAGE, KERNEL, RESULT = 40, 60, 30
TILE = 20  # cycles of a tile of sums beside its products
APART = 0.05  # of the time of steps done together that transforming the weights for them may take
SHARED_BYTES = 2 << 20  # of a kernel that threads share: a smaller one stays in the cache of the core that made it
KEPT = 1 / 8  # of the second-level cache, for sums
COPIED = 2  # of an element that is moved by itself
TURNED = 8  # of a vector that is turned with its neighbours
FAR = 12  # bytes a cycle from the last cache
LARGEST = {"i8": 128, "ui8": 255}  # magnitudes


@record
class Winograd:
    """What one step does: `images` of the batch, `rows` tiles along the first axis, all along the others.

    filters: of each axis; tiles: of each axis, how many there are in all steps; tall, vectors: rows and vectors of sums in
    registers; block: tiles whose sums of one panel are kept together; grain: steps that are best done together;
    shares_kernel: threads share the kernel, which is transformed before all steps; cycles: of one core, for everything.
    """

    geometry: Geometry
    filters: tuple[Filter, ...]
    tiles: tuple[int, ...]
    images: int
    rows: int
    tall: int
    vectors: int
    lanes: int
    block: int
    grain: int = 1
    shares_kernel: bool = False
    cycles: float = 0.0

    @property
    def matrices(self) -> int:
        """Products that stand for those of one window."""
        return math.prod(self.reads)

    @property
    def depth(self) -> int:
        return self.geometry.loops["i"].extent

    @property
    def features(self) -> int:
        return self.geometry.loops["f"].extent

    @property
    def width(self) -> int:
        """Features of a panel."""
        return self.vectors * self.lanes

    @property
    def panels(self) -> int:
        return -(-self.features // self.width)

    @property
    def tiles_of_step(self) -> int:
        return self.images * self.rows * math.prod(self.tiles[1:])

    @property
    def image_column(self) -> int:
        """The axis whose places are neighbours in the image where its features are apart; -1 for none."""
        return _column([axis.x for axis in self.geometry.axes])

    @property
    def result_column(self) -> int:
        """The same of the result."""
        return _column([axis.o for axis in self.geometry.axes])

    @property
    def is_image_turned(self) -> bool:
        return self.geometry.loops["i"].x != 1

    @property
    def is_result_turned(self) -> bool:
        return self.geometry.loops["f"].o != 1

    @property
    def tiles_along(self) -> tuple[int, ...]:
        """Of one step."""
        return (self.rows, *self.tiles[1:])

    @property
    def reach(self) -> tuple[int, ...]:
        """Elements of the image along each axis that a step reads."""
        along = zip(self.tiles_along, self.moves, self.reads, strict=True)
        return tuple((tiles - 1) * move + read for tiles, move, read in along)

    @property
    def places_of_step(self) -> tuple[int, ...]:
        return tuple(tiles * step for tiles, step in zip(self.tiles_along, self.steps, strict=True))

    @property
    def split(self) -> Split:
        """The steps; sizes of the first axis in places of the result."""
        counts = {"b": self.geometry.loops["b"].extent // self.images, "g": 1, "lanes": 1}
        counts["o0"] = self.tiles[0] // self.rows
        return Split(counts, {"b": self.images, "g": 1, "o0": self.rows * self.steps[0], "lanes": 1})

    @property
    def reads(self) -> tuple[int, ...]:
        """Elements of the image along each axis that a tile reads."""
        return tuple(one.read for one in self.filters)

    @property
    def steps(self) -> tuple[int, ...]:
        """Places of the result from one tile to the next, along each axis."""
        return tuple(one.results for one in self.filters)

    @property
    def moves(self) -> tuple[int, ...]:
        """From where one tile begins in the image to where the next does, along each axis."""
        along = zip(self.filters, self.geometry.axes, strict=True)
        return tuple(axis.step if one == NONE else one.results for one, axis in along)

    def plane(self, size: int, element_bytes: int) -> int:
        """Elements from one matrix to the next: an odd number of lines, so that they do not share places in a cache."""
        lines = -(-size * element_bytes // LINE)
        return (lines | 1) * LINE // element_bytes


def plan_of(geometry: Geometry, form: Form, cpu: Cpu, plain: float) -> Winograd | None:
    """The best steps; None where this does not hold or does not pay. plain: cycles of the convolution as plain sums."""
    loops, axes, lanes = geometry.loops, geometry.axes, cpu.lanes(form.bytes)
    if geometry.products < LEAST_WORK or not _holds(geometry, lanes):
        return None
    filters = _filters(geometry, form)
    if filters is None:
        return None
    tiles = [-(-axis.places // one.results) for one, axis in zip(filters, axes, strict=True)]
    vectors = min(2, loops["f"].extent // lanes)
    most = (cpu.registers - 1) // vectors - 1
    found = []
    for images, rows in _steps(loops["b"].extent, tiles[0]):
        count = images * rows * math.prod(tiles[1:])
        tall = -(-count // -(-count // most))
        whole = (-(-tiles[0] // rows) * rows, *tiles[1:])
        block = _block(count, tall, math.prod(one.read for one in filters) * vectors * cpu.vector_bytes, cpu)
        found.append(_costed(Winograd(geometry, filters, whole, images, rows, tall, vectors, lanes, block), form, cpu))
    best = min(found, key=lambda plan: plan.cycles)
    return best if best.cycles * GAIN < plain else None


def _holds(geometry: Geometry, lanes: int) -> bool:
    """Whether the filters may be used, and features can be in the lanes."""
    loops, axes = geometry.loops, geometry.axes
    if geometry.is_exact or loops["g"].extent > 1 or min(loops["i"].extent, loops["f"].extent) < lanes:
        return False
    if any(axis.spread > 1 or axis.stuffing > 1 or axis.phases for axis in axes):
        return False
    # what is turned has neighbours along an axis of which each step does all
    columns = (
        loops["i"].x == 1 or _column([a.x for a in axes]) > 0,
        loops["f"].o == 1 or _column([a.o for a in axes]) > 0,
    )
    return all(columns)


def _column(strides: list[int]) -> int:
    """The axis whose places are neighbours in memory; -1 for none. Of several with stride 1, all but the last have size 1."""
    return max((n for n, stride in enumerate(strides) if stride == 1), default=-1)


def _filters(geometry: Geometry, form: Form) -> tuple[Filter, ...] | None:
    """The filters of the axes that take the fewest products, of those that give what is asked for; None without any."""
    known = (TWO,) if form.group == 1 else (TWO, FOUR)

    def products(filters: tuple[Filter, ...]) -> int:
        return math.prod(one.read * -(-a.places // one.results) for one, a in zip(filters, geometry.axes, strict=True))

    choices = [
        [one for one in (NONE, *known) if axis.taps == one.taps and (one == NONE or axis.step == 1)]
        for axis in geometry.axes
    ]
    fitting = [filters for filters in itertools.product(*choices) if _fits(geometry, form, filters)]
    best = min(fitting, key=products, default=None)
    return best if best and any(one != NONE for one in best) else None


def _fits(geometry: Geometry, form: Form, filters: tuple[Filter, ...]) -> bool:
    """Whether everything stays within the integers that hold it: what is multiplied in 16 bits, the results in 32.

    Results may take 32 bits less those of the power of two in their scale, which are lost.
    """
    if form.group == 1:
        return form.element not in LARGEST
    largest = LARGEST.get(form.element, 0)
    image = math.prod(one.image_growth for one in filters) * largest
    if form.element == "ui8":  # none below 0: the sum of the factors above 0 counts, or that of the others
        image = (image + math.prod(one.image_sum for one in filters) * largest) // 2
    kernel = math.prod(one.kernel_growth for one in filters) * largest
    result = math.prod(one.taps for one in filters) * geometry.loops["i"].extent * form.group * largest**2
    lost = math.prod(one.scale & -one.scale for one in filters)
    return form.group == 2 and largest > 0 and max(image, kernel) < 1 << 15 and result * lost < 1 << 31


def _steps(batch: int, rows: int) -> Iterator[tuple[int, int]]:
    """Images and rows of tiles in a step, all steps alike; the last rows may lie beyond the result."""
    yield from ((1, part) for part in sorted({-(-rows // count) for count in range(1, rows + 1)}))
    yield from ((part, rows) for part in range(2, batch + 1) if batch % part == 0)


def _block(count: int, tall: int, tile_bytes: int, cpu: Cpu) -> int:
    """As many register tiles of a step's tiles as KEPT of the cache holds, in blocks that take no more of them in all."""
    chunks = -(-count // tall)
    most = max(1, int(cpu.l2 * KEPT) // (tall * tile_bytes))
    best = min(range(1, min(most, chunks) + 1), key=lambda n: (-(-chunks // n) * n, -n))
    return min(best * tall, count)


def _costed(plan: Winograd, form: Form, cpu: Cpu) -> Winograd:
    """The plan with its cycles, counted as those of plain sums are."""
    split, count, depth = plan.split, plan.tiles_of_step, plan.depth
    bytes_ = form.bytes
    sums, loads = plan.tall * plan.vectors, plan.tall + plan.vectors
    products = plan.matrices * plan.panels * -(-count // plan.tall) * (depth * max(sums, loads, LATENCY) / 2 + TILE)
    columns = plan.panels * plan.width
    share = plan.matrices / TWO.read**2
    transforms = count * share * (depth * IMAGE + columns * RESULT) / plan.lanes
    kernel = plan.matrices * depth * columns * bytes_
    between = plan.matrices * count * (depth + columns) * bytes_
    far = sum(moved / FAR for moved, size in ((kernel, kernel), (2 * between, between)) if size > cpu.l2 // 2)
    step = products + transforms + far + _turning(plan)
    weights = depth * columns / plan.lanes * KERNEL * share
    if plan.geometry.loops["f"].w != 1:
        weights += depth * columns * math.prod(axis.taps for axis in plan.geometry.axes) * TURNED / plan.lanes
    if kernel > cpu.l2 // 2:
        weights += 3 * kernel / FAR
    # steps that are done together transform the weights for themselves
    grain = min(split.steps, math.ceil(weights / (APART * step)))
    cycles = split.steps * (split.imbalance * step + weights / grain)
    if kernel >= SHARED_BYTES and split.steps > 1 and plan.geometry.loops["f"].w == 1:
        return replace(plan, shares_kernel=True, cycles=cycles)
    return replace(plan, grain=grain, cycles=cycles)


def _turning(plan: Winograd) -> float:
    """Cycles for what a step reads and writes whose features are apart."""
    cycles = 0.0
    for is_turned, column, size in (
        (plan.is_image_turned, plan.image_column, math.prod(plan.reach) * plan.depth),
        (plan.is_result_turned, plan.result_column, math.prod(plan.places_of_step) * plan.features),
    ):
        if is_turned:
            axis = plan.geometry.axes[column]
            is_narrow = min(axis.size, axis.places) < plan.lanes
            cycles += plan.images * size * (COPIED if is_narrow else TURNED / plan.lanes)
    return cycles
