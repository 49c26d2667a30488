"""How long each unit of a core takes for a piece of work, in cycles: the arithmetic below both simulators of time."""

from __future__ import annotations

import math

from stablehlo_py.core.types import ElementType
from stablehlo_py.machine.tpu import Chip


def systolic_cycles(rows: int, k: int, n: int, *, dim: int = 128) -> int:
    """One dim x dim weight-stationary array without overlap, as SCALE-Sim counts: each fold pushes, fills, streams, drains.

    A fold loads `dim` rows of weights, then `rows` rows enter skewed and leave skewed: 2 dim + dim + rows - 2 cycles.
    """
    folds = math.ceil(k / dim) * math.ceil(n / dim)
    return (2 * dim + dim + rows - 2) * folds - 1


def pass_cycles(rows: int, tiles: int, chip: Chip, element: ElementType, passes: int = 1) -> float:
    """`rows` rows of a block through `tiles` weight tiles, spread over the matrix units of a core.

    While a tile's rows stream, the next tile's weights are pushed into the shadow registers: the slower of both counts.
    """
    stream = rows / chip.rows_per_cycle
    push = chip.weight_tile / chip.push_rows_per_cycle
    turns = math.ceil(tiles / chip.tiles_at_once)
    rate = chip.int8_rate if element.bits <= 8 else 1.0
    return turns * max(stream, push) * passes / rate


def fill_drain_cycles(chip: Chip) -> int:
    """From the first row in to the last sum out, beyond the rows themselves: once for each chain of passes."""
    return 2 * chip.weight_tile - 1


# Results that the extended unit (EUP) gives for one element of a function. [assumed]: one table look-up with its correction
# for the first row, two or three of them with arithmetic in between for the others.
EXTENDED: dict[str, int] = {
    **dict.fromkeys(("divide", "sqrt", "rsqrt", "logistic", "exponential", "tanh"), 1),
    **dict.fromkeys(("exponential_minus_one", "log", "log_plus_one"), 2),
    **dict.fromkeys(("power", "sine", "cosine"), 3),
}


def extended_cycles(elements: int, function: str, chip: Chip) -> float:
    """A function of the extended unit: one register of 8 x 128 results per cycle. [assumed]"""
    return elements * EXTENDED[function] / (chip.lanes * chip.sublanes)


def vector_cycles(elements: int, chip: Chip) -> float:
    """Elementwise work: one operation on each of `elements` 32-bit elements."""
    return elements / chip.vpu_alus


def pop_cycles(rows: int, columns: int, chip: Chip) -> float:
    """The accumulators of the last weight tiles out of the units: all others leave while the next tiles stream.

    The vector unit takes two registers of 8 x 128 per cycle.
    """
    columns = min(columns, chip.weight_tile * chip.tiles_at_once)
    return rows * columns / (2 * chip.lanes * chip.sublanes)


def cross_lane_cycles(elements: int, chip: Chip) -> float:
    """A transpose or relayout: one register of 8 x 128 per 8 cycles in each of two cross-lane units."""
    return elements * 8 / (2 * chip.lanes * chip.sublanes)


def strided_bytes(
    count: tuple[int, int],
    shape: tuple[int, ...],
    dim: int,
    step: int,
    element: ElementType,
    chip: Chip,
    *,
    store: bool,
) -> int:
    """What a strided transfer moves: whole rows of registers, 128 lanes of 32-bit words each, as they lie in tiles. [assumed]

    Rows that follow each other share words where elements are narrow. A store of only some of the rows of a word reads
    the word first.
    """
    rows, lanes = count
    bits = 8 if element.is_bool else element.bits
    packing = max(1, 32 // bits)
    registers = math.ceil(lanes / chip.lanes) * math.ceil(bits / 32)
    together = dim == len(shape) - 2 and abs(step) == 1
    words = math.ceil(rows / packing) if together else (1 if step == 0 else rows)
    whole = packing == 1 or (together and (rows % packing == 0 or rows == shape[dim]))
    return words * registers * chip.lanes * 4 * (2 if store and not whole else 1)
