"""Functions of one variable on the GPU target: how far they are from the exact value, and what needs libdevice."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from stablehlo_py import mlir
from stablehlo_py.errors import UnsupportedOp
from stablehlo_py.machine.gpu import gpu_chip
from stablehlo_py.mlir import ir
from stablehlo_py.targets.gpu import compile_ptx, ptx
from stablehlo_py.targets.gpu.simulate import simulate

needs_libdevice = pytest.mark.skipif(ptx.find_libdevice() is None, reason="NVIDIA's libdevice.10.bc is not installed")


def apply(op: str, x: np.ndarray, ty: str = "f32") -> np.ndarray:
    source = f"""func.func @main(%a: tensor<{x.size}x{ty}>) -> tensor<{x.size}x{ty}> {{
      %0 = stablehlo.{op} %a : tensor<{x.size}x{ty}>
      return %0 : tensor<{x.size}x{ty}> }}"""
    with mlir.new_context(), ir.Location.unknown():
        program = compile_ptx(ir.Module.parse(source))
    return simulate(program, [x])[0]


def hard_floats() -> np.ndarray:
    """Random bits, the range in which exp is finite, small numbers, and every special value."""
    rng = np.random.default_rng(5)
    bits = rng.integers(0, 2**32, 3000, dtype=np.uint64).astype(np.uint32).view(np.float32)
    special = [
        0,
        -0.0,
        np.inf,
        -np.inf,
        np.nan,
        1,
        -1,
        1e-45,
        -1e-45,
        1.17549435e-38,
        3.4e38,
        88.72,
        88.73,
        -103.9,
        -104.1,
    ]
    ranges = [rng.uniform(-110, 100, 3000), rng.uniform(-2, 2, 3000), special]
    return np.concatenate([bits, *(np.asarray(r).astype(np.float32) for r in ranges)])


@pytest.mark.parametrize(
    ("op", "exact", "ulps"),
    [("exponential", np.exp, 1.0), ("log", np.log, 1.0), ("tanh", np.tanh, 1.5), ("sqrt", np.sqrt, 0.5)],
)
def test_distance_from_the_exact_value(op: str, exact: Callable[[np.ndarray], np.ndarray], ulps: float) -> None:
    x = hard_floats()
    found = apply(op, x)
    with np.errstate(all="ignore"):
        value = exact(x.astype(np.float64))
        nearest = value.astype(np.float32)
        distance = np.abs(found - value) / np.spacing(np.abs(nearest)).astype(np.float64)
    finite = np.isfinite(nearest)
    assert distance[finite].max() <= ulps
    np.testing.assert_array_equal(found[~finite], nearest[~finite])
    np.testing.assert_array_equal(np.signbit(found[found == 0]), np.signbit(nearest[found == 0]))


@needs_libdevice
@pytest.mark.parametrize(("op", "ty"), [("sine", "f32"), ("exponential", "f64")])
def test_the_rest_comes_from_libdevice(op: str, ty: str) -> None:
    x = np.linspace(-30, 30, 200, dtype=np.float32 if ty == "f32" else np.float64)
    exact = {"sine": np.sin, "exponential": np.exp}[op]
    np.testing.assert_allclose(apply(op, x, ty), exact(x.astype(np.float64)), rtol=1e-6, atol=1e-7)


@needs_libdevice
def test_functions_of_libdevice_do_not_stay_behind() -> None:
    """Square root beside what libdevice computes with its own: all inlined, no device function is left."""
    source = """func.func @main(%a: tensor<8xf64>) -> tensor<8xf64> {
      %0 = stablehlo.sqrt %a : tensor<8xf64>
      %1 = stablehlo.atan2 %0, %a : tensor<8xf64>
      return %1 : tensor<8xf64> }"""
    with mlir.new_context(), ir.Location.unknown():
        program = compile_ptx(ir.Module.parse(source))
    assert not any(".func" in text for text in program.kernels.values())
    x = np.linspace(0.1, 3, 8)
    np.testing.assert_allclose(simulate(program, [x])[0], np.arctan2(np.sqrt(x), x), rtol=1e-14)


@needs_libdevice
@pytest.mark.skipif(ptx.find_ptxas() is None, reason="ptxas of the CUDA toolkit is not installed")
def test_kernels_that_share_a_device_function_are_one_module() -> None:
    """sine of f64 calls one for large arguments, which reads a table: both stand once in the text."""
    source = """func.func @main(%a: tensor<8xf64>, %b: tensor<9xf64>) -> (tensor<8xf64>, tensor<9xf64>) {
      %0 = stablehlo.sine %a : tensor<8xf64>
      %1 = stablehlo.cosine %a : tensor<8xf64>
      %2 = stablehlo.add %0, %1 : tensor<8xf64>
      %3 = stablehlo.sine %b : tensor<9xf64>
      %4 = stablehlo.cosine %b : tensor<9xf64>
      %5 = stablehlo.add %3, %4 : tensor<9xf64>
      return %2, %5 : tensor<8xf64>, tensor<9xf64> }"""
    with mlir.new_context(), ir.Location.unknown():
        program = compile_ptx(ir.Module.parse(source))
    assert len(program.kernels) == 2
    cubin, _ = ptx.assemble(program.as_text(), gpu_chip("sm_80"))
    assert cubin.startswith(b"\x7fELF")


def test_without_libdevice_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ptx, "find_libdevice", lambda: None)
    with pytest.raises(UnsupportedOp, match=r"__nv_sinf .*libdevice.*[\s\S]*CUDA toolkit"):
        apply("sine", np.zeros(4, np.float32))
