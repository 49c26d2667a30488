"""Groups of elementwise ops and row reductions on the vector unit, alone and behind a product, against the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

from stablehlo_py.errors import CompileError
from stablehlo_py.mlir import ir, new_context
from stablehlo_py.reference import interpret

from .kernels import compile_text, small_integers

SOFTMAX = """
func.func @main(%x: tensor<3x7x100xf32>) -> tensor<3x7x100xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %m = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [2]
    : (tensor<3x7x100xf32>, tensor<f32>) -> tensor<3x7xf32>
  %m1 = stablehlo.reshape %m : (tensor<3x7xf32>) -> tensor<3x7x1xf32>
  %mb = stablehlo.broadcast_in_dim %m1, dims = [0, 1, 2] : (tensor<3x7x1xf32>) -> tensor<3x7x100xf32>
  %d = stablehlo.subtract %x, %mb : tensor<3x7x100xf32>
  %e = stablehlo.exponential %d : tensor<3x7x100xf32>
  %s = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2]
    : (tensor<3x7x100xf32>, tensor<f32>) -> tensor<3x7xf32>
  %sb = stablehlo.broadcast_in_dim %s, dims = [0, 1] : (tensor<3x7xf32>) -> tensor<3x7x100xf32>
  %r = stablehlo.divide %e, %sb : tensor<3x7x100xf32>
  return %r : tensor<3x7x100xf32>
}"""

LANES_AND_ROWS = """
func.func @main(%x: tensor<70x130xf32>, %lane: tensor<130xf32>, %row: tensor<70xf32>, %p: tensor<70x130xi1>)
    -> tensor<70x130xf32> {
  %lb = stablehlo.broadcast_in_dim %lane, dims = [1] : (tensor<130xf32>) -> tensor<70x130xf32>
  %rb = stablehlo.broadcast_in_dim %row, dims = [0] : (tensor<70xf32>) -> tensor<70x130xf32>
  %two = stablehlo.constant dense<2.0> : tensor<70x130xf32>
  %a = stablehlo.multiply %x, %lb : tensor<70x130xf32>
  %b = stablehlo.add %a, %rb : tensor<70x130xf32>
  %c = stablehlo.compare GT, %b, %two : (tensor<70x130xf32>, tensor<70x130xf32>) -> tensor<70x130xi1>
  %d = stablehlo.select %c, %two, %b : tensor<70x130xi1>, tensor<70x130xf32>
  %e = stablehlo.select %p, %d, %x : tensor<70x130xi1>, tensor<70x130xf32>
  return %e : tensor<70x130xf32>
}"""

EPILOGUE = """
func.func @main(%x: tensor<2x33x70xbf16>, %w: tensor<70x200xbf16>, %b: tensor<200xf32>, %y: tensor<2x33x200xf32>)
    -> tensor<2x33x200xbf16> {
  %d = stablehlo.dot_general %x, %w, contracting_dims = [2] x [0]
    : (tensor<2x33x70xbf16>, tensor<70x200xbf16>) -> tensor<2x33x200xf32>
  %bb = stablehlo.broadcast_in_dim %b, dims = [2] : (tensor<200xf32>) -> tensor<2x33x200xf32>
  %s = stablehlo.add %d, %bb : tensor<2x33x200xf32>
  %n = stablehlo.abs %s : tensor<2x33x200xf32>
  %m = stablehlo.maximum %s, %n : tensor<2x33x200xf32>
  %t = stablehlo.subtract %m, %y : tensor<2x33x200xf32>
  %r = stablehlo.convert %t : (tensor<2x33x200xf32>) -> tensor<2x33x200xbf16>
  return %r : tensor<2x33x200xbf16>
}"""


def expected_of(text: str, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    with new_context(), ir.Location.unknown():
        return interpret(ir.Module.parse(text), *arrays)


@pytest.mark.parametrize("chip", ["v4-megacore", "v5e"])
def test_softmax(chip):
    x = np.random.default_rng(20).standard_normal((3, 7, 100)).astype(np.float32)
    program = compile_text(SOFTMAX, chip=chip)
    (kernel,) = program.kernels
    assert kernel.label == "vector.0"
    np.testing.assert_allclose(program(x)[0], expected_of(SOFTMAX, x)[0], rtol=1e-6)


@pytest.mark.parametrize("chip", ["v4-megacore", "v5e"])
def test_lanes_rows_and_predicates(chip):
    rng = np.random.default_rng(21)
    x, lane, row = (small_integers(rng, s, "f32") for s in ((70, 130), (130,), (70,)))
    p = rng.random((70, 130)) < 0.5
    program = compile_text(LANES_AND_ROWS, chip=chip)
    # The numbers of the rows come along lanes, and are turned first.
    assert [k.label.partition(".")[0] for k in program.kernels] == ["move", "vector"]
    np.testing.assert_array_equal(program(x, lane, row, p)[0], expected_of(LANES_AND_ROWS, x, lane, row, p)[0])


@pytest.mark.parametrize("chip", ["v4-megacore", "v5e", "v6e"])
@pytest.mark.parametrize("limit", [0, 400_000])
def test_ops_behind_a_product(chip, limit):
    rng = np.random.default_rng(22)
    x, w = small_integers(rng, (2, 33, 70), "bf16"), small_integers(rng, (70, 200), "bf16")
    b, y = small_integers(rng, (200,), "f32"), small_integers(rng, (2, 33, 200), "f32")
    program = compile_text(EPILOGUE, chip=chip, vmem_limit=limit)
    (kernel,) = program.kernels
    assert kernel.label == "matmul.0"
    assert kernel.bytes_in("vmem") <= (limit or 32 << 20)
    np.testing.assert_array_equal(program(x, w, b, y)[0], expected_of(EPILOGUE, x, w, b, y)[0])


def test_fusing_saves_time():
    fused = compile_text(EPILOGUE).report()
    apart = compile_text(
        EPILOGUE.replace("-> tensor<2x33x200xbf16> {", "-> (tensor<2x33x200xbf16>, tensor<2x33x200xf32>) {").replace(
            "return %r : tensor<2x33x200xbf16>", "return %r, %d : tensor<2x33x200xbf16>, tensor<2x33x200xf32>"
        )
    ).report()
    assert [k.label for k in apart.kernels] == ["matmul.0", "vector.1"]
    assert fused.seconds < apart.seconds


UNARY = ("negate", "abs", "tanh", "logistic", "exponential")
BINARY = ("add", "subtract", "multiply", "maximum", "minimum")


def random_program(rng: np.random.Generator) -> tuple[str, list[np.ndarray]]:
    """Chains of elementwise ops, row reductions and broadcasts over [rows, n], with values used once or twice."""
    rows, n = int(rng.choice([1, 5, 8, 33, 130])), int(rng.choice([2, 7, 128, 129, 200]))
    full, row, lane = f"tensor<{rows}x{n}xf32>", f"tensor<{rows}xf32>", f"tensor<{n}xf32>"
    lines = ["%zero = stablehlo.constant dense<0.0> : tensor<f32>"]
    lines.append(f"%half = stablehlo.constant dense<0.5> : {full}")
    fulls = ["%x", "%y", "%half"]
    for i in range(int(rng.integers(3, 12))):
        kind = int(rng.integers(0, 5))
        a, b = (str(rng.choice(fulls[-4:])) for _ in range(2))
        if kind == 0:
            lines.append(f"%v{i} = stablehlo.{rng.choice(UNARY)} {a} : {full}")
        elif kind in (1, 2):
            lines.append(f"%v{i} = stablehlo.{rng.choice(BINARY)} {a}, {b} : {full}")
        elif kind == 3:
            lines.append(
                f"%s{i} = stablehlo.reduce({a} init: %zero) applies stablehlo.add across dimensions = [1]"
                f" : ({full}, tensor<f32>) -> {row}"
            )
            lines.append(f"%t{i} = stablehlo.tanh %s{i} : {row}")
            lines.append(f"%v{i} = stablehlo.broadcast_in_dim %t{i}, dims = [0] : ({row}) -> {full}")
        else:
            lines.append(f"%l{i} = stablehlo.broadcast_in_dim %w, dims = [1] : ({lane}) -> {full}")
            lines.append(f"%v{i} = stablehlo.multiply {a}, %l{i} : {full}")
        fulls.append(f"%v{i}")
    lines.append(f"%r = stablehlo.tanh {fulls[-1]} : {full}")
    body = "\n  ".join(lines)
    text = f"func.func @main(%x: {full}, %y: {full}, %w: {lane}) -> ({full}, {full}) {{\n  {body}\n"
    text += f"  return %r, {fulls[-2]} : {full}, {full}\n}}"
    arrays = [rng.uniform(-1, 1, shape).astype(np.float32) for shape in ((rows, n), (rows, n), (n,))]
    return text, arrays


@pytest.mark.parametrize("seed", range(40))
def test_random_programs(seed):
    text, arrays = random_program(np.random.default_rng(seed))
    program = compile_text(text, chip=("v4-megacore", "v5e")[seed % 2])
    assert program.kernels
    for ours, theirs in zip(program(*arrays), expected_of(text, *arrays), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=1e-5)


def test_a_reduction_of_what_is_repeated():
    """The number of a row, repeated and then summed: the row has to be there in full."""
    text = """
    func.func @main(%x: tensor<9x200xf32>) -> tensor<9x200xf32> {
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1]
        : (tensor<9x200xf32>, tensor<f32>) -> tensor<9xf32>
      %b = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<9xf32>) -> tensor<9x200xf32>
      %t = stablehlo.reduce(%b init: %zero) applies stablehlo.add across dimensions = [1]
        : (tensor<9x200xf32>, tensor<f32>) -> tensor<9xf32>
      %c = stablehlo.broadcast_in_dim %t, dims = [0] : (tensor<9xf32>) -> tensor<9x200xf32>
      %r = stablehlo.add %x, %c : tensor<9x200xf32>
      return %r : tensor<9x200xf32>
    }"""
    x = small_integers(np.random.default_rng(23), (9, 200), "f32")
    program = compile_text(text)
    assert len(program.kernels) == 1
    np.testing.assert_array_equal(program(x)[0], x + 200 * x.sum(1, keepdims=True))


def test_results_of_a_loop_are_inputs():
    text = """
    func.func @main(%x: tensor<9x20xf32>) -> tensor<9x20xf32> {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %three = stablehlo.constant dense<3> : tensor<i32>
      %w:2 = stablehlo.while(%i = %one, %y = %x) : tensor<i32>, tensor<9x20xf32>
        cond { %c = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
               stablehlo.return %c : tensor<i1> }
        do { %j = stablehlo.add %i, %one : tensor<i32>
             %z = stablehlo.multiply %y, %y : tensor<9x20xf32>
             stablehlo.return %j, %z : tensor<i32>, tensor<9x20xf32> }
      %r = stablehlo.negate %w#1 : tensor<9x20xf32>
      return %r : tensor<9x20xf32>
    }"""
    x = small_integers(np.random.default_rng(24), (9, 20), "f32")
    program = compile_text(text)
    assert len(program.kernels) == 2
    np.testing.assert_array_equal(program(x)[0], -(x**4))


def test_too_little_vmem_is_said():
    with pytest.raises(CompileError, match="do not fit into 1000 bytes of VMEM"):
        compile_text(SOFTMAX, vmem_limit=1000)
    with pytest.raises(CompileError, match="no blocks of a 33x200x70 product fit into 1000 bytes"):
        compile_text(EPILOGUE, vmem_limit=1000)
    with pytest.raises(CompileError, match="chip 'v1' is not known"):
        compile_text(SOFTMAX, chip="v1")
    with pytest.raises(CompileError, match="precision 'some' is not known"):
        compile_text(SOFTMAX, precision="some")
