"""Fourier transforms with a transform in each lane of the vectors.

As many transforms as a vector has lanes go together: rows are brought side by side by transposing squares in registers,
columns lie so already. Their values go through passes, one for each factor of the length (Stockham's order, see ops/fft),
between two buffers in the cache. A real transform of even length is a complex one of half the length, whose result is
taken apart. Several dimensions: the last one first (the last one last for IRFFT), from buffer to buffer.

Every step of the outermost loop does whole transforms: a part of the rows, or one element of the batch. Of a batch of one,
each dimension is a launch of its own, whose transforms threads share (loop_phases.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import ClassVar

from stablehlo_py.core.passes import Pass
from stablehlo_py.machine.cpu import Cpu, cpu_of
from stablehlo_py.mlir import func, ir
from stablehlo_py.targets.cpu.emit import nest
from stablehlo_py.targets.cpu.emit.nest import Vectors, add, multiply
from stablehlo_py.targets.cpu.features import features_of
from stablehlo_py.targets.cpu.fourier.fft_passes import Passes
from stablehlo_py.targets.cpu.fourier.fft_places import Columns, Lanes, load_real, store_real, turn
from stablehlo_py.targets.cpu.fourier.fft_real import merge, mirror, split
from stablehlo_py.targets.cpu.fourier.fft_tables import Tables
from stablehlo_py.targets.cpu.fourier.lower_fft import FFT, Transform
from stablehlo_py.transforms.kernels.kernel_scratch import BUFFERS_FIRST
from stablehlo_py.transforms.kernels.kernels_to_memref import SHARED
from stablehlo_py.transforms.kernels.loop_phases import LOOP_STEPS
from stablehlo_py.transforms.kernels.lower_groups import PARALLEL_LOOP

Index = int | ir.Value
Step = Callable[[ir.Value, Index, ir.Value, Index], None]  # from a place in one buffer to one in another
LEAST_SHARED = 1 << 13  # floats of a batch of one whose dimensions are launches


class CpuEmitFft(Pass):
    """Write the bodies of kernels that are one Fourier transform."""

    name: ClassVar[str] = "cpu-emit-fft"
    only_with: ClassVar[tuple[str, ...]] = (FFT,)
    is_trusted: ClassVar[bool] = True
    features: str = ""  # LLVM's feature names; see features_of

    def run(self, op: ir.Operation) -> bool:
        cpu = cpu_of(features_of(op, self.features))
        module = op.regions[0].blocks[0]
        found = [f.operation for f in module.operations if FFT in f.operation.attributes]
        for function in found:
            emit(function, module, cpu)
        return bool(found)


def emit(function: ir.Operation, module: ir.Block, cpu: Cpu) -> None:
    transform = Transform.from_attribute(function.attributes[FFT])
    block = function.regions[0].blocks[0]
    for operation in reversed(list(block.operations)):
        operation.operation.erase()
    with ir.InsertionPoint(block), function.location, nest.shared_indices(block):
        nest.flatten_arguments(function)
        phases = _Emitter(transform, module, cpu, *block.arguments).emit()
        func.return_([])
    if phases:
        function.attributes[LOOP_STEPS] = ir.DenseI64ArrayAttr.get(phases)
    for mark in (nest.VECTOR_CODE, BUFFERS_FIRST):
        function.attributes[mark] = ir.UnitAttr.get()


class _Emitter:
    def __init__(self, of: Transform, module: ir.Block, cpu: Cpu, source: ir.Value, target: ir.Value) -> None:
        self.of, self.source, self.target = of, source, target
        self.element = ir.F64Type.get() if of.element == "f64" else ir.F32Type.get()
        self.most = cpu.lanes(8 if of.element == "f64" else 4)
        self.inverse = of.kind in ("IFFT", "IRFFT")
        self.last = of.lengths[-1]
        self.half = self.last // 2 + 1
        self.real_in, self.real_out = of.kind == "RFFT", of.kind == "IRFFT"
        size = 2 * (max(of.lengths) + 1) * self.most
        scratch = nest.scratch([2 * size], self.element)
        self.scratch = [(scratch, 0), (scratch, size)]
        self.tables = Tables(module, of.element, inverse=self.inverse, registers=cpu.registers)
        self.passes = Passes(self.tables, self.scratch)
        self.scale = 1 / math.prod(of.lengths) if self.inverse else 1.0

    def emit(self) -> list[int]:
        """The kernel's loops; the steps of each of them where they are launches one after the other."""
        of = self.of
        outer = of.lengths[:-1]
        rows = math.prod(outer)
        widths = [2 * self.last, 2 * self.last]  # floats of a row in source and target
        if self.real_in:
            widths = [self.last, 2 * self.half]
        elif self.real_out:
            widths = [2 * self.half, self.last]
        if not outer:
            self._over(of.batch, lambda r, v: self._rows(r, v, self.source, self.target, widths))
            return []
        columns = self.half if self.real_in or self.real_out else self.last
        plane = 2 * rows * columns

        def along_rows(source: ir.Value, at: Index, target: ir.Value, to: Index) -> None:
            self._over(rows, lambda r, v: self._rows(r, v, source, target, widths, at, to), parallel="")

        steps = [self._along_columns(d, columns) for d in range(len(outer))]
        steps.append((self._blocks(rows), along_rows))
        if not self.real_out:
            steps.reverse()
        # the last step writes the result; those before it leave theirs where the next does not write
        temporary = nest.scratch([plane], self.element)
        spare = nest.scratch([plane], self.element) if len(steps) > 2 else temporary

        def element(b: Index) -> None:
            source, at = self.source, multiply(b, rows * widths[0])
            for n, (_, step) in enumerate(steps):
                final = n == len(steps) - 1
                target = self.target if final else (temporary if n % 2 == 0 else spare)
                to = multiply(b, rows * widths[1]) if final else 0
                step(source, at, target, to)
                source, at = target, to

        if of.batch > 1:
            nest.loop(0, of.batch, 1, lambda b: element(b), parallel=PARALLEL_LOOP)
            return []
        element(0)
        counts = [count for count, _ in steps]
        if plane < LEAST_SHARED or min(counts) < 2:
            return []
        for buffer in (temporary, spare):
            buffer.owner.operation.attributes[SHARED] = ir.UnitAttr.get()
        return counts

    def _width(self, count: int) -> int:
        """Lanes for as many transforms: a power of two that is no more."""
        return min(self.most, 1 << (count.bit_length() - 1))

    def _blocks(self, count: int) -> int:
        """Steps of the loop over so many transforms; 1: there is no loop."""
        return -(-count // self._width(count)) if count > self._width(count) else 1

    def _over(self, count: int, body: Callable[[Index, Vectors], None], *, parallel: str = PARALLEL_LOOP) -> None:
        """body(first, vectors) for blocks of as many transforms as there are lanes; the last may overlap the one before."""
        width = self._width(count)
        vectors = Vectors(self.element, width)
        if count <= width:
            body(0, vectors)
            return

        def block(n: ir.Value) -> None:
            first = multiply(n, width)
            body(nest.minimum(first, count - width) if count % width else first, vectors)

        nest.loop(0, self._blocks(count), 1, block, parallel=parallel)

    # --- one dimension

    def _along_columns(self, dim: int, columns: int) -> tuple[int, Step]:
        """The transform along a dimension that is not the last, from (before, n, after) to the same; steps of its loop first."""
        outer = self.of.lengths[:-1]
        length = outer[dim]
        before, after = math.prod(outer[:dim]), math.prod(outer[dim + 1 :]) * columns
        final = not self.real_out and dim == 0

        def step(source: ir.Value, at: Index, target: ir.Value, to: Index) -> None:
            def block(offset: Index, vectors: Vectors) -> None:
                places = [Columns(b, add(o, offset), 2 * after, vectors) for b, o in ((source, at), (target, to))]
                self.passes.transform(length, places[0], places[1], self.scale if final else 1.0)

            def plane(n: Index) -> None:
                start = multiply(n, 2 * length * after)
                self._over(after, lambda a, v: block(add(start, multiply(a, 2)), v), parallel="")

            nest.once_or_loop(before, 1, plane)

        return before if before > 1 else self._blocks(after), step

    def _rows(
        self,
        row: Index,
        vectors: Vectors,
        source: ir.Value,
        target: ir.Value,
        widths: list[int],
        at: Index = 0,
        to: Index = 0,
    ) -> None:
        """As many rows as lanes: brought side by side, transformed, and put back."""
        here, there = (Lanes(*place, vectors) for place in self.scratch)
        load, store = add(at, multiply(row, widths[0])), add(to, multiply(row, widths[1]))
        n, halved = self.last, self.last % 2 == 0 and (self.real_in or self.real_out)
        scale = self.scale if len(self.of.lengths) == 1 or self.real_out else 1.0
        if self.real_in and not halved:
            load_real(source, load, n, here)
        else:
            turn(source, load, widths[0], here, widths[0], vectors, store=False)
        if self.real_out:
            merge(n, here, there, self.tables) if halved else mirror(n, here)
            here, there = (there, here) if halved else (here, there)
        length = n // 2 if halved else n
        # a half transform has twice the weight
        result = self.passes.transform(length, here, there, scale * (2 if halved and self.real_out else 1))
        assert isinstance(result, Lanes)
        other = here if result is there else there
        if self.real_in and halved:
            split(n, result, other, self.tables)
            result = other
        if self.real_out and not halved:
            store_real(result, target, store, n)
        else:
            turn(target, store, widths[1], result, widths[1], vectors, store=True)
