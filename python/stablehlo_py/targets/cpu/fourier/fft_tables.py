"""Roots of unity as constants of a kernel, each rounded once."""

from __future__ import annotations

import numpy as np

from stablehlo_py.mlir import ir
from stablehlo_py.ops.fft import roots
from stablehlo_py.targets.cpu.emit.nest import Vectors, multiply
from stablehlo_py.targets.cpu.emit.streaming import Address
from stablehlo_py.targets.cpu.fourier.fft_butterflies import Pair

Index = int | ir.Value


class Tables:
    """What transforms of one element type and direction read; registers: of the CPU, which decide about their passes."""

    def __init__(self, module: ir.Block, element: str, *, inverse: bool, registers: int) -> None:
        self.module, self.element_name, self.inverse, self.registers = module, element, inverse, registers
        self.element = ir.F64Type.get() if element == "f64" else ir.F32Type.get()

    def twiddles(self, length: int, factors: list[int]) -> ir.Value | None:
        """For each pass after the first, for each k < done, exp(-2 pi i q k / (r done)) for 0 < q < r."""
        numbers, done = [], 1
        for r in factors:
            if done > 1:
                every = roots(r * done, self.inverse)
                numbers.append(every[np.outer(np.arange(done), np.arange(1, r))].reshape(-1))
            done *= r
        if not numbers:
            return None
        return self._table(f"twiddles_{length}_{self.registers}", np.concatenate(numbers))

    def half_turn(self, length: int, k: Index, vectors: Vectors) -> Pair:
        """exp(-2 pi i k / length), or its conjugate for the inverse, for k <= length / 4."""
        table = self._table(f"half_turns_{length}", roots(length, self.inverse)[: length // 4 + 1])
        turn = Address.of(table, [multiply(k, 2)])
        return Pair(*(turn.moved(c).spread(vectors.type) for c in (0, 1)))

    def _table(self, name: str, numbers: np.ndarray) -> ir.Value:
        """A constant of the kernel: real and imaginary parts in turn, rounded once."""
        dtype = np.float64 if self.element_name == "f64" else np.float32
        values = np.ascontiguousarray(numbers).view(np.float64).astype(dtype)
        name = f"fft_{name}_{'inverse_' if self.inverse else ''}{self.element_name}"
        ty = ir.MemRefType.get([len(values)], self.element, loc=ir.Location.unknown())
        known = {
            ir.StringAttr(o.operation.attributes["sym_name"]).value
            for o in self.module.operations
            if o.operation.name == "memref.global"
        }
        if name not in known:
            tensor = ir.RankedTensorType.get([len(values)], self.element)
            with ir.InsertionPoint.at_block_begin(self.module):
                attributes = {
                    "sym_name": ir.StringAttr.get(name),
                    "sym_visibility": ir.StringAttr.get("private"),
                    "type": ir.TypeAttr.get(ty),
                    "initial_value": ir.DenseElementsAttr.get(values, type=tensor),
                    "constant": ir.UnitAttr.get(),
                }
                ir.Operation.create("memref.global", attributes=attributes)
        symbol = {"name": ir.FlatSymbolRefAttr.get(name)}
        return ir.Operation.create("memref.get_global", results=[ty], attributes=symbol).results[0]
