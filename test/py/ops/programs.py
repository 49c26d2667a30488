"""Programs of many elementwise ops at once: one compilation for a whole family of ops on one element type."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import stablehlo_py
from stablehlo_py.core.types import TensorType, element_type_of
from stablehlo_py.core.ulp import ulp_distance
from stablehlo_py.mlir import ir, new_context
from stablehlo_py.reference.interpreter import interpret


@dataclass(frozen=True)
class Applied:
    """An op on the arguments with the given numbers; `result` is an element type, the first operand's when empty."""

    op: str
    operands: tuple[int, ...] = (0,)
    result: str = ""
    attributes: str = ""

    def text(self, name: str, types: list[TensorType]) -> tuple[str, str]:
        """(the op, its result type) in generic form."""
        out = types[self.operands[0]].with_element(self.result) if self.result else types[self.operands[0]]
        operands = ", ".join(f"%a{i}" for i in self.operands)
        inputs = ", ".join(str(types[i]) for i in self.operands)
        attributes = f" {{{self.attributes}}}" if self.attributes else ""
        return f'  {name} = "{self.op}"({operands}){attributes} : ({inputs}) -> {out}\n', str(out)


def program(applied: list[Applied], *arrays: np.ndarray) -> str:
    """A function that returns every applied op."""
    types = [TensorType(a.shape, element_type_of(a.dtype)) for a in arrays]
    lines, results = zip(*(a.text(f"%r{i}", types) for i, a in enumerate(applied)), strict=True)
    arguments = ", ".join(f"%a{i}: {t}" for i, t in enumerate(types))
    names = ", ".join(f"%r{i}" for i in range(len(applied)))
    every = ", ".join(results)
    return f"func.func @main({arguments}) -> ({every}) {{\n{''.join(lines)}  return {names} : {every}\n}}"


def compiled(applied: list[Applied], *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    return stablehlo_py.compile(program(applied, *arrays))(*arrays)


def worst_ulp(applied: list[Applied], *arrays: np.ndarray) -> dict[str, int]:
    """Op -> the largest distance from the reference interpreter; integers that differ count as far apart."""
    text = program(applied, *arrays)
    with new_context(), ir.Location.unknown():
        wanted = interpret(ir.Module.parse(text), *arrays)
    distances = {}
    for what, ours, theirs in zip(applied, stablehlo_py.compile(text)(*arrays), wanted, strict=True):
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape, what
        if ours.dtype.kind in "iub" or "int" in ours.dtype.name:
            distances[f"{what.op} {what.attributes}".strip()] = int((ours != theirs).sum()) << 32
        else:
            distances[f"{what.op} {what.attributes}".strip()] = int(ulp_distance(ours, theirs).max(initial=0))
    return distances


def floats(dtype: object, seed: int = 0, count: int = 200) -> np.ndarray:
    """Values of every size with the special ones among them."""
    rng = np.random.default_rng(seed)
    special = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, np.inf, -np.inf, np.nan]
    tiny = [1e-40, -1e-40, 1e-310, 6e-8]
    spread = rng.standard_normal(count) * 10.0 ** rng.uniform(-12, 4, count)
    near = rng.uniform(-3, 3, count)
    with np.errstate(over="ignore"):
        return rng.permutation(np.concatenate([special, tiny, spread, near])).astype(dtype)


def integers(dtype: object, seed: int = 0, count: int = 100) -> np.ndarray:
    """Values over the whole range with its ends, zero and small numbers."""
    rng, dtype = np.random.default_rng(seed), np.dtype(dtype)
    info = np.iinfo(dtype)
    ends = [info.min, info.min + 1, info.max - 1, info.max, 0, 1, 2, 3, 5, 7]
    small = rng.integers(0 if info.min == 0 else -9, 9, count)
    wide = rng.integers(info.min, info.max, count, dtype=dtype, endpoint=True)
    return rng.permutation(np.concatenate([np.array(ends, dtype), small.astype(dtype), wide]))
