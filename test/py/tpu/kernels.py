"""Compiled products for the tests of this folder."""

from __future__ import annotations

import numpy as np

from stablehlo_py.core.types import element_type
from stablehlo_py.dialects import mxu
from stablehlo_py.mlir import ir, new_context
from stablehlo_py.targets.tpu import emit
from stablehlo_py.targets.tpu.compile import TpuOptions, TpuProgram, compile_tpu


def compile_text(text: str, **options: object) -> TpuProgram:
    """A program of StableHLO text, compiled for the target."""
    with new_context(), ir.Location.unknown():
        return compile_tpu(ir.Module.parse(text), TpuOptions(**options))


def product_text(m: int, n: int, k: int, element: str = "bf16", out: str = "") -> str:
    """@main of one product [m,k] x [k,n]."""
    out = out or element
    lhs, rhs, result = f"tensor<{m}x{k}x{element}>", f"tensor<{k}x{n}x{element}>", f"tensor<{m}x{n}x{out}>"
    return f"""
    func.func @main(%x: {lhs}, %y: {rhs}) -> {result} {{
      %r = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : ({lhs}, {rhs}) -> {result}
      return %r : {result}
    }}"""


def kernel_texts(program: TpuProgram) -> list[str]:
    with program.module.context:
        return [str(op) for op in emit.operations_named(program.module.operation, "mxu.kernel")]


def small_integers(rng: np.random.Generator, shape: tuple[int, ...], element: str) -> np.ndarray:
    """Integers whose sums of products are exact in every type that is used."""
    low = 0 if element.startswith("u") else -3
    return rng.integers(low, 4, shape).astype(element_type(element).dtype)


def parsed(text: str) -> ir.Module:
    """A module with mxu ops, in a context of its own; what the verifier says is an MLIRError."""
    with new_context(), ir.Location.unknown():
        return parse(text)


def parse(text: str) -> ir.Module:
    """A module with mxu ops; the caller is inside a context."""
    mxu.load(ir.Context.current)
    return ir.Module.parse(text)
