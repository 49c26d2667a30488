"""The kernel of a move: rows of registers by strided transfers, lanes by the cross-lane unit, nothing computed.

Each group of pieces goes one of three ways:

    direct        load rows; store rows                          lanes stay in whole registers
    transposed    load rows of [b, a]; transpose; store [a, b]   the lanes of the source are rows of the target
    placed        load rows; place lanes; store whole rows       lanes move by other numbers than whole registers
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence

from stablehlo_py.core.types import ElementType, TensorType, tensor_type
from stablehlo_py.dialects import mxu
from stablehlo_py.machine.tpu import Chip
from stablehlo_py.mlir import ir
from stablehlo_py.targets.tpu import emit
from stablehlo_py.targets.tpu.kernels.kernel_builder import padded, physical_type, unpadded
from stablehlo_py.targets.tpu.kernels.nest_builder import Linear, NestBuilder
from stablehlo_py.targets.tpu.planning.box import Factor, squeezed_shape
from stablehlo_py.targets.tpu.planning.layout import up
from stablehlo_py.targets.tpu.planning.move_groups import (
    DIRECT_LANES,
    Group,
    Part,
    is_aligned,
    is_row,
    lane_range,
    row_cycles,
    rows_of,
    share_of,
    turned_sizes,
)
from stablehlo_py.targets.tpu.planning.moves import Move


class MoveKernel(NestBuilder):
    """From a move that `groups_of` can cut into groups."""

    def __init__(self, move: Move, groups: Sequence[Group], chip: Chip, vmem_limit: int) -> None:
        super().__init__(chip)
        self.move, self.groups, self.limit = move, groups, share_of(move, len(groups), vmem_limit)
        self.shape = groups[0].parts[0].box.shape
        self.element = move.target.element

    def build(self, label: str) -> ir.Value:
        """The kernel at the insertion point; its result is that of the moved op."""
        sources, logical = [], []
        for value in self.move.sources:
            shape = squeezed_shape(tensor_type(value.type).shape)
            sources.append(padded(emit.reshape(value, shape), self.chip))
            logical.append(shape)
        out = TensorType(self.shape, self.element)
        kernel = self.create(
            label, sources, ["hbm"] * len(sources), [*logical, self.shape], physical_type(out, self.chip)
        )
        *self.inputs, self.out = self.block.arguments
        self.begin()
        if self.move.fill is not None and not self.fills_lanes_only():
            self.run([self.filled()])
        self.run([self.body(group) for group in self.groups])
        return unpadded(kernel.results[0], out, self.move.target.shape)

    def fills_lanes_only(self) -> bool:
        """Whether the groups cover all rows of the target, so that only lanes are left to fill."""
        rows = math.prod(self.shape[:-1])
        return sum(math.prod(f.size for f in group.parts[0].rows) for group in self.groups) == rows

    def place(self, source: ir.Value, target: ir.Value, lanes: Sequence[int]) -> None:
        self.op("mxu.place", [source, target], lanes=emit.i64s(lanes))

    def block_of(self, label: str, rows: int, lanes: int, element: ElementType) -> ir.Value:
        return self.alloc(label, (rows, lanes), element)

    def fill(self, target: ir.Value) -> None:
        assert self.move.fill is not None  # asked for by those who have looked
        value = ir.FloatAttr.get(ir.F64Type.get(), self.move.fill)
        self.op("mxu.fill", [target], value=value)

    def converted_block(self, element: ElementType, rows: int, lanes: int) -> ir.Value | None:
        """A buffer for rows in the element type of the target, where that is another one."""
        return None if element == self.element else self.block_of("convert", rows, lanes, self.element)

    def narrowed(self, block: ir.Value, target: ir.Value | None) -> ir.Value:
        """The block in the element type of the target."""
        if target is None:
            return block
        self.emit_vector("copy", target, [block], [emit.i64(0)])
        return target

    def source_of(self, part: Part) -> tuple[ir.Value, ElementType]:
        value = self.inputs[part.source]
        return value, tensor_type(mxu.ref_tensor(value.type)).element

    # --- ways

    def filled(self) -> Callable[[], None]:
        """The number of the padding everywhere."""
        lanes = up(self.shape[-1], self.chip.lanes)
        size = self.shape[-2]
        rows = self.rows_for(size, lanes * self.element.bytes, self.shape[:-2])

        def run() -> None:
            block = self.block_of("padding", up(rows, 8), lanes, self.element)

            def body(at: list[Linear], counts: list[int]) -> None:
                self.fill(block)
                along = [(d, 1, position) for d, position in enumerate(at)]
                map = self.first([0] * len(self.shape), along)
                self.transfer(self.out, block, map, len(self.shape) - 2, 1, counts[0], lanes)
                self.wait(self.stores)

            self.nest(self.shape[:-2], [(size, rows)], body)

        return run

    def body(self, group: Group) -> Callable[[], None]:
        ways = {"direct": self.direct, "transposed": self.turned, "placed": self.assembled}
        return lambda: ways[group.way](group)

    def direct(self, group: Group) -> None:
        (part,) = group.parts
        run = part.lanes[-1]
        others = [*part.rows, *part.lanes[:-1]]
        row = min(
            (f for f in others if is_row(part, f)),
            key=lambda f: row_cycles(part, f, self.element, self.chip),
            default=None,
        )
        loops = [f for f in others if f is not row]
        lanes = min(up(run.size, self.chip.lanes), DIRECT_LANES)
        source, element = self.source_of(part)
        size = row.size if row is not None else 1
        rows = self.rows_for(size, lanes * (element.bytes + self.element.bytes), [f.size for f in loops])
        height = up(min(rows, size), 8)
        block = self.block_of("rows", height, lanes, element)
        narrow = self.converted_block(element, height, lanes)
        blocked = [(size, rows), *([(run.size, lanes)] if run.size > lanes else [])]

        def body(at: list[Linear], counts: list[int]) -> None:
            positions = [*zip(loops, at, strict=False), *([(row, at[len(loops)])] if row is not None else [])]
            width = lanes
            if run.size > lanes:
                positions.append((run, at[-1]))
                width = up(counts[1], self.chip.lanes)
            inward = self.first(part.box.source_first, [(f.source, f.source_step, p) for f, p in positions])
            outward = self.first(part.box.target_first, [(f.target, f.target_step, p) for f, p in positions])
            dim, step = (row.source, row.source_step) if row is not None else (0, 1)
            self.transfer(source, block, inward, dim, step, counts[0], width)
            self.wait(self.loads)
            out = self.narrowed(block, narrow)
            dim, step = (row.target, row.target_step) if row is not None else (0, 1)
            self.transfer(self.out, out, outward, dim, step, counts[0], width)
            self.wait(self.stores)

        self.nest([f.size for f in loops], blocked, body)

    def turned(self, group: Group) -> None:
        (part,) = group.parts
        chip, box = self.chip, part.box
        b = part.lanes[0]
        inner = [f for f in part.rows if part.in_lanes(f)]
        a = max(inner, key=lambda f: f.size, default=None)
        apart = [f for f in inner if f is not a]
        loops = [f for f in part.rows if not part.in_lanes(f)]
        source, element = self.source_of(part)
        size = a.size if a is not None else 1
        aligned = is_aligned(part, a, apart, chip)
        # Where lanes have to be placed first, all of them are there; else they come in blocks.
        low, _ = lane_range(part, inner, chip)
        height, width, take = turned_sizes(part, self.limit, element, self.element, chip)
        block = self.block_of("rows", height, width, element)
        narrow = self.converted_block(element, height, width)
        run = None if aligned else self.block_of("run", height, take, self.element)
        out = self.block_of("turned", take, height, self.element)

        def body(at: list[Linear], counts: list[int]) -> None:
            fixed = list(zip(loops, at, strict=False))
            b_at, a_at = at[-2], at[-1]
            lanes = up(counts[1], chip.lanes) if aligned else width
            load = [(f.source, f.source_step, p) for f, p in [*fixed, (b, b_at)]]
            start = [*box.source_first[:-1], box.source_first[-1] if aligned else low]
            if aligned and a is not None and size > take:
                load.append((a.source, 1, a_at))
            self.transfer(source, block, self.first(start, load), *rows_of(b), counts[0], lanes)
            self.wait(self.loads)
            here = self.narrowed(block, narrow)
            for combination in itertools.product(*(range(f.size) for f in apart)):
                known = [(f, Linear(constant=i)) for f, i in zip(apart, combination, strict=True)]
                if run is not None:
                    lane = box.source_first[-1] - low + sum(f.source_step * p.constant for f, p in known)
                    self.place(here, run, [0, 1, lane, a.source_step if a is not None else 1, size])
                self.op("mxu.transpose", [run if run is not None else here, out])
                store = [(f.target, f.target_step, p) for f, p in [*fixed, *known]]
                if b.size > height:
                    store.append((b.target, 1, b_at))
                if a is not None:
                    store.append((a.target, a.target_step, a_at))
                dim, step = (a.target, a.target_step) if a is not None else (0, 1)
                width_out = up(counts[0], chip.lanes)
                self.transfer(self.out, out, self.first(box.target_first, store), dim, step, counts[1], width_out)
                self.wait(self.stores)

        self.nest([f.size for f in loops], [(b.size, height), (size, take)], body)

    def assembled(self, group: Group) -> None:
        chip, first = self.chip, group.parts[0]
        numbers = range(len(first.rows))
        free = [i for i in numbers if not any(part.in_lanes(part.rows[i]) for part in group.parts)]
        row = min(free, key=lambda i: row_cycles(first, first.rows[i], self.element, self.chip), default=None)
        loops = [i for i in free if i != row]
        apart = [i for i in numbers if i not in free]
        width = up(self.shape[-1], chip.lanes)
        size = first.rows[row].size if row is not None else 1
        ranges = [lane_range(p, [*p.rows, *p.lanes], chip) for p in group.parts]
        row_bytes = width * self.element.bytes + sum(
            (high - low) * (self.source_of(p)[1].bytes + self.element.bytes)
            for p, (low, high) in zip(group.parts, ranges, strict=True)
        )
        rows = self.rows_for(size, row_bytes, [first.rows[i].size for i in loops])
        height = up(min(rows, size), 8)
        out = self.block_of("out", height, width, self.element)
        blocks, narrow = [], []
        for part, (low, high) in zip(group.parts, ranges, strict=True):
            element = self.source_of(part)[1]
            blocks.append(self.block_of("rows", height, high - low, element))
            narrow.append(self.converted_block(element, height, high - low))

        def body(at: list[Linear], counts: list[int]) -> None:
            fixed = dict(zip(loops, at, strict=False))
            if row is not None:
                fixed[row] = at[-1]

            def load(number: int, more: Iterable[tuple[Factor, int]]) -> ir.Value:
                part, (low, _) = group.parts[number], ranges[number]
                positions = [(part.rows[i], p) for i, p in fixed.items()]
                positions += [(f, Linear(constant=i)) for f, i in more]
                along = [(f.source, f.source_step, p) for f, p in positions]
                map = self.first([*part.box.source_first[:-1], low], along)
                high_low = ranges[number][1] - low
                place = (part.rows[row].source, part.rows[row].source_step) if row is not None else (0, 1)
                self.transfer(self.source_of(part)[0], blocks[number], map, *place, counts[0], high_low)
                self.wait(self.loads)
                return self.narrowed(blocks[number], narrow[number])

            outside = [[f for f in part.lanes if not part.in_lanes(f)] for part in group.parts]
            loaded = {n: load(n, ()) for n, factors in enumerate(outside) if not factors}
            for combination in itertools.product(*(range(first.rows[i].size) for i in apart)):
                if self.move.fill is not None:
                    self.fill(out)
                for number, part in enumerate(group.parts):
                    lane = part.box.source_first[-1] - ranges[number][0]
                    lane += sum(part.rows[i].source_step * v for i, v in zip(apart, combination, strict=True))
                    self.place_part(
                        part, outside[number], lane, out, lambda more, n=number: loaded.get(n) or load(n, more)
                    )
                along = [(first.rows[i].target, first.rows[i].target_step, p) for i, p in fixed.items()]
                along += [
                    (first.rows[i].target, first.rows[i].target_step, Linear(constant=v))
                    for i, v in zip(apart, combination, strict=True)
                ]
                map = self.first([*first.box.target_first[:-1], 0], along)
                place = (first.rows[row].target, first.rows[row].target_step) if row is not None else (0, 1)
                self.transfer(self.out, out, map, *place, counts[0], width)
                self.wait(self.stores)

        self.nest([first.rows[i].size for i in loops], [(size, rows)], body)

    def place_part(
        self,
        part: Part,
        outside: list[Factor],
        lane: int,
        out: ir.Value,
        block: Callable[[Sequence[tuple[Factor, int]]], ir.Value],
    ) -> None:
        """The lanes of one part, one run after the other; `block` brings the rows that hold a run."""
        inside = [f for f in part.lanes if part.in_lanes(f)]
        run = max(inside, key=lambda f: f.size, default=None)
        others = [f for f in inside if f is not run]
        count, to_step, step = (run.size, run.target_step, run.source_step) if run is not None else (1, 1, 1)
        for values in itertools.product(*(range(f.size) for f in outside)):
            rows = block(list(zip(outside, values, strict=True)))
            to = part.box.target_first[-1] + sum(f.target_step * v for f, v in zip(outside, values, strict=True))
            for more in itertools.product(*(range(f.size) for f in others)):
                shift = sum(f.target_step * v for f, v in zip(others, more, strict=True))
                start = lane + sum(f.source_step * v for f, v in zip(others, more, strict=True))
                self.place(rows, out, [to + shift, to_step, start, step, count])
