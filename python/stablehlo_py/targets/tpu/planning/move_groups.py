"""How the pieces of a move are made: groups of parts that make the same rows, the way of each, and the sizes of its blocks."""

from __future__ import annotations

import math
from collections.abc import Sequence

from stablehlo_py.core.types import ElementType, tensor_type
from stablehlo_py.dialects import mxu
from stablehlo_py.machine.tpu import Chip
from stablehlo_py.records import record
from stablehlo_py.targets.tpu.planning.box import Box, Factor, merged, squeezed
from stablehlo_py.targets.tpu.planning.layout import up
from stablehlo_py.targets.tpu.planning.moves import Move

MOST_PLACES = 256  # lanes are placed one run at a time, each with its own op
DIRECT_LANES = 8192
MOST_ROWS = 512  # of a block


@record
class Part:
    """A piece in a group: the number of its source, its factors outside of the target's lanes, and those of the lanes."""

    source: int
    box: Box
    rows: tuple[Factor, ...]
    lanes: tuple[Factor, ...]

    @property
    def source_lane(self) -> int:
        return len(self.box.source_first) - 1

    def in_lanes(self, factor: Factor) -> bool:
        """Whether a factor runs along the lanes of the source."""
        return factor.source_step != 0 and factor.source == self.source_lane


@record
class Group:
    """Parts that make the same rows of the target, and how: `direct`, `transposed` or `placed`."""

    parts: tuple[Part, ...]
    way: str


def groups_of(move: Move, chip: Chip, limit: int) -> tuple[Group, ...] | str:
    """How the pieces of a move are made, or why the chip does not do it."""
    parts: dict[object, list[Part]] = {}
    for piece in move.pieces:
        small = merged(squeezed(piece.box, tensor_type(piece.source.type).shape))
        lane = len(small.shape) - 1
        rows = tuple(f for f in small.factors if f.target != lane)
        lanes = tuple(f for f in small.factors if f.target == lane)
        key = (*((f.size, f.target, f.target_step) for f in rows), small.target_first[:-1])
        parts.setdefault(key, []).append(Part(move.sources.index(piece.source), small, rows, lanes))
    if len(move.sources) > mxu.MAX_INPUTS:
        return f"it takes {len(move.sources)} arrays; a kernel takes {mxu.MAX_INPUTS}"
    groups = []
    for own in parts.values():
        covered = sum(math.prod(f.size for f in part.lanes) for part in own)
        if move.fill is None and covered != own[0].box.shape[-1]:
            return "its parts do not line up"
        way = _way(own, chip, move)
        if way not in ("direct", "transposed", "placed"):
            return way
        groups.append(Group(tuple(own), way))
    share = share_of(move, len(groups), limit)
    needed = max(_least_bytes(group, move, share, chip) for group in groups)
    if needed > share:
        return f"its smallest blocks take {needed} bytes of VMEM, of which they may have {share}"
    return tuple(groups)


def _way(parts: list[Part], chip: Chip, move: Move) -> str:
    part, single = parts[0], len(parts) == 1
    whole = single and sum(f.size for f in part.lanes) == part.box.shape[-1] and len(part.lanes) == 1
    if single and _is_direct(part, chip, whole):
        return "direct"
    if whole and not part.in_lanes(part.lanes[0]):
        apart = sorted((f.size for f in part.rows if part.in_lanes(f)), reverse=True)[1:]
        if math.prod(apart) <= MOST_PLACES:
            return "transposed"
    places = sum(
        math.prod(f.size for f in p.rows if p.in_lanes(f))
        * math.prod(f.size for f in p.lanes)
        // max((f.size for f in p.lanes if p.in_lanes(f)), default=1)
        for p in parts
    )
    return "placed" if places <= MOST_PLACES else f"its lanes would be placed in {places} runs, more than {MOST_PLACES}"


def _is_direct(part: Part, chip: Chip, whole: bool) -> bool:
    """Lanes stay in whole registers, all of them at steps of whole registers but the last run."""
    if not part.lanes:
        return False
    run = part.lanes[-1]
    if not part.in_lanes(run) or (run.source_step, run.target_step) != (1, 1):
        return False
    if run.size % chip.lanes and not whole:
        return False
    others = (*part.rows, *part.lanes[:-1])
    steps = [part.box.source_first[-1], part.box.target_first[-1]]
    steps += [f.source_step for f in others if part.in_lanes(f)] + [f.target_step for f in part.lanes[:-1]]
    return all(step % chip.lanes == 0 for step in steps)


def is_row(part: Part, factor: Factor) -> bool:
    """A factor that runs along rows of both source and target."""
    return not part.in_lanes(factor) and factor.target != len(part.box.shape) - 1


def row_cycles(part: Part, factor: Factor, element: ElementType, chip: Chip) -> float:
    """Cycles for each row of a move whose blocks have their rows along `factor`: issue and bytes, in and out."""
    sides = (
        (part.box.source_first, factor.source, factor.source_step, False),
        (part.box.target_first, factor.target, factor.target_step, True),
    )
    cycles = 0.0
    for first, dim, step, store in sides:
        together = dim == len(first) - 2 and abs(step) == 1
        words = max(1, 4 // element.bytes) if not together else 1
        moved = chip.lanes * element.bytes * words * (2 if store and words > 1 else 1)
        cycles += chip.dma_issue_cycles / min(factor.size, MOST_ROWS) + moved / chip.hbm_bytes_per_cycle
    return cycles


def rows_of(factor: Factor) -> tuple[int, int]:
    return factor.source, factor.source_step


def lane_range(part: Part, factors: Sequence[Factor], chip: Chip) -> tuple[int, int]:
    """Whole registers of the source's lanes that a part takes from."""
    first = part.box.source_first[-1]
    ends = [f.source_step * (f.size - 1) for f in factors if part.in_lanes(f)]
    low, high = first + sum(min(0, e) for e in ends), first + sum(max(0, e) for e in ends)
    return low // chip.lanes * chip.lanes, up(high + 1, chip.lanes)


def share_of(move: Move, groups: int, limit: int) -> int:
    """What the buffers of one group, or of the padding, may take."""
    return limit // (groups + (move.fill is not None))


def is_aligned(part: Part, a: Factor | None, apart: Sequence[Factor], chip: Chip) -> bool:
    """Whether the lanes that become rows can be loaded from where they are."""
    run = a is None or a.source_step == 1
    return not apart and run and part.box.source_first[-1] % chip.lanes == 0


def turned_sizes(part: Part, limit: int, source: ElementType, target: ElementType, chip: Chip) -> tuple[int, int, int]:
    """Rows and lanes of the blocks that a transpose loads, and lanes that it turns: the largest that fit twice."""
    inner = sorted((f for f in part.rows if part.in_lanes(f)), key=lambda f: f.size, reverse=True)
    a, apart = (inner[0], inner[1:]) if inner else (None, [])
    a_lanes, b_rows = up(a.size if a is not None else 1, chip.lanes), up(part.lanes[0].size, chip.lanes)
    aligned = is_aligned(part, a, apart, chip)
    low, high = lane_range(part, inner, chip)
    sizes = (0, 0, 0)
    for side in (4 * chip.lanes, 2 * chip.lanes, chip.lanes):
        height = min(b_rows, side)
        take = min(a_lanes, side) if aligned else a_lanes
        width = take if aligned else high - low
        sizes = (height, width, take)
        if 2 * _turned_bytes(sizes, source, target) <= limit:
            break
    return sizes


def _turned_bytes(sizes: tuple[int, int, int], source: ElementType, target: ElementType) -> int:
    height, width, take = sizes
    return height * (width * (source.bytes + target.bytes) + 2 * take * target.bytes)


def _least_bytes(group: Group, move: Move, limit: int, chip: Chip) -> int:
    """VMEM of the smallest blocks."""
    out = move.target.element
    elements = [tensor_type(source.type).element for source in move.sources]
    part = group.parts[0]
    if group.way == "direct":
        lanes = min(up(part.lanes[-1].size, chip.lanes), DIRECT_LANES)
        return 8 * lanes * (elements[part.source].bytes + out.bytes)
    if group.way == "transposed":
        sizes = turned_sizes(part, limit, elements[part.source], out, chip)
        return _turned_bytes(sizes, elements[part.source], out)
    total = up(part.box.shape[-1], chip.lanes) * out.bytes
    for own in group.parts:
        low, high = lane_range(own, [*own.rows, *own.lanes], chip)
        total += (high - low) * (elements[own.source].bytes + out.bytes)
    return 8 * total
