"""How large the register tile of a product is: rows, and vectors in a row."""

from __future__ import annotations

# multiply-adds in the time of a vector from the last cache, for two threads: a step of what none hides
FIRST_PANEL = 32
SHARES = 4  # threads, or a divisor of it, that should have equal shares of a few panels or tiles


def tile_shape(m: int, columns: int, registers: int, widest: int, cut: str = "") -> tuple[int, int]:
    """Rows of a tile, and vectors in a row, for a result of m rows of so many vectors; cut: along what threads share it.

    With 32 registers: the shape that takes the least time, counted in multiply-adds, of which eight keep two units busy
    while the first is under way. Loads come beside them, and are felt where two threads share a core: there 9 x 3 vectors
    are summed up 1.18 times as fast as 8 x 2, and 14 x 2 1.11 times (Emerald Rapids; all alike where a core is one
    thread's own). A vector of rhs counts for more than a lane of lhs: it is a line from the second-level cache.

    With 16 registers there are never more sums than hide the latency, and a step is so short that its loads are felt:
    tiles as high as can be, and the rows spread over them.
    """
    if registers < 32:
        width = min(2, columns)
        tiles = -(-m // (12 // width))  # the rest is for operands
        return -(-m // tiles), width

    def cost(shape: tuple[int, int]) -> float:
        rows, width = shape
        tiles, panels = -(-m // rows), -(-columns // width)
        if cut == "m" and tiles > SHARES:
            tiles = round_up(tiles, SHARES)
        if cut == "n" and panels > SHARES:
            panels = round_up(panels, SHARES)
        return tiles * panels * (max(rows * width, 8) + rows / 2 + width) + FIRST_PANEL * width

    shapes = [
        (rows, width)
        for width in range(1, min(columns, widest) + 1)
        for rows in range(1, min(m, (registers - 2 - width) // width) + 1)
    ]
    return min(shapes, key=cost)


def round_up(value: int, step: int) -> int:
    return -(-value // step) * step
