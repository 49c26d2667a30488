"""The models of examples/ on the simulated chip against our own CPU target: what bf16 operands leave, and no more."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import stablehlo_py
from stablehlo_py.mlir import ir, new_context
from stablehlo_py.targets.tpu.compile import TpuOptions, compile_tpu

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
# Each product rounds its operands to bf16, 2^-9 relative at most; four deep, half of them against us.
BF16 = 2e-2


def arguments_of(name: str) -> list[np.ndarray]:
    with np.load(EXAMPLES / f"{name}.npz") as stored:
        return [stored[f"in{i}"] for i in range(sum(key.startswith("in") for key in stored.files))]


def largest_errors(ours, theirs) -> list[float]:
    """Of each result, relative to its largest element."""
    assert [(a.shape, a.dtype) for a in ours] == [(b.shape, b.dtype) for b in theirs]
    return [float(np.abs(a - b).max() / np.abs(b).max()) for a, b in zip(ours, theirs, strict=True)]


@pytest.mark.parametrize("chip", ["v4-megacore", "v5e", "v6e"])
@pytest.mark.parametrize(("name", "products"), [("transformer", 6), ("mlp_grad", 8), ("conv_net", 3)])
def test_agrees_with_the_cpu_target(name, products, chip):
    arguments = arguments_of(name)
    on_cpu = stablehlo_py.compile(EXAMPLES / f"{name}.mlir", cache=False)(*arguments)
    text = (EXAMPLES / f"{name}.mlir").read_text(encoding="utf-8")
    for precision, tolerance in (("default", BF16), ("highest", 2e-5)):
        with new_context(), ir.Location.unknown():
            program = compile_tpu(ir.Module.parse(text), TpuOptions(chip=chip, precision=precision))
        assert sum(kernel.label.startswith("matmul") for kernel in program.kernels) == products
        errors = largest_errors(program(*arguments), on_cpu)
        assert max(errors) <= tolerance
        # bf16 operands show: an error of zero would mean that nothing went through the chip.
        assert precision == "highest" or max(errors) > 1e-5
