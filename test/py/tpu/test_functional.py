"""Values: products on the functional simulator equal NumPy's, whatever the shape, the chip and the order of dimensions."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from stablehlo_py.core.types import element_type
from stablehlo_py.machine.tpu import CHIPS
from stablehlo_py.simulator import functional
from stablehlo_py.simulator.program import Buffer, Program
from stablehlo_py.targets.tpu.gemm import compile_gemm

from .kernels import compile_text, product_text, small_integers

SIZES = (1, 2, 7, 8, 9, 31, 64, 97, 127, 128, 129, 131, 200, 251, 256, 257)
LIMITS = (400_000, 1_000_000, 8_000_000)  # the first is so small that most of these products take several blocks


def _shapes() -> list[tuple[int, int, int]]:
    """300 shapes m, n, k, each another one."""
    numbers = np.random.default_rng(1).choice(len(SIZES) ** 3, 300, replace=False)
    return [tuple(SIZES[i] for i in np.unravel_index(number, (len(SIZES),) * 3)) for number in numbers]


def test_the_shapes_are_hard():
    shapes = _shapes()
    assert len(set(shapes)) == 300
    for size in (1, 127, 129, 31, 97, 131, 251, 257):
        assert sum(size in shape for shape in shapes) >= 20


@pytest.mark.parametrize("chip", CHIPS)
def test_three_hundred_shapes_are_exact(chip):
    """Each shape on one of the chips: small integers, of which every order of sums gives the same, against NumPy.

    Then random bf16: the same bits as sums in the order of the tiles.
    """
    first = list(CHIPS).index(chip)
    rng = np.random.default_rng(first)
    for m, n, k in _shapes()[first :: len(CHIPS)]:
        kernel = compile_gemm(m, n, k, element_type("bf16"), chip, int(rng.choice(LIMITS)))

        def on_chip(x: np.ndarray, y: np.ndarray, kernel: Program = kernel) -> np.ndarray:
            inputs = (_in_tiles(a, b) for a, b in zip((x, y), kernel.inputs, strict=True))
            return functional.run(kernel, *inputs)[0][0, : x.shape[0], : y.shape[1]]

        x, y = small_integers(rng, (m, k), "bf16"), small_integers(rng, (k, n), "bf16")
        expected = (x.astype(np.float32) @ y.astype(np.float32)).astype(ml_dtypes.bfloat16)
        np.testing.assert_array_equal(on_chip(x, y), expected, err_msg=f"{chip} {m}x{n}x{k}")
        x, y = (rng.standard_normal(s, np.float32).astype(ml_dtypes.bfloat16) for s in ((m, k), (k, n)))
        expected = _in_tile_order(x, y).astype(ml_dtypes.bfloat16)
        np.testing.assert_array_equal(on_chip(x, y), expected, err_msg=f"{chip} {m}x{n}x{k}")


def _in_tile_order(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Each 128 products summed wide and rounded once to f32, these sums added in f32."""
    total = np.zeros((x.shape[0], y.shape[1]), np.float32)
    for start in range(0, x.shape[1], 128):
        part = slice(start, start + 128)
        total += (x[:, part].astype(np.float64) @ y[part].astype(np.float64)).astype(np.float32)
    return total


def _in_tiles(array: np.ndarray, buffer: Buffer) -> np.ndarray:
    """The array in its physical shape, with NaN in the padding."""
    padded = np.full(buffer.shape, np.nan, array.dtype)
    padded[0, : array.shape[0], : array.shape[1]] = array
    return padded


@pytest.mark.parametrize("chip", CHIPS)
def test_a_whole_program_on_each_chip(chip):
    rng = np.random.default_rng(1)
    x, y = small_integers(rng, (129, 300), "bf16"), small_integers(rng, (300, 257), "bf16")
    (result,) = compile_text(product_text(129, 257, 300), chip=chip)(x, y)
    np.testing.assert_array_equal(result, (x.astype(np.float32) @ y.astype(np.float32)).astype(ml_dtypes.bfloat16))


@pytest.mark.parametrize(
    ("element", "out"), [("f32", "f32"), ("bf16", "f32"), ("f16", "f16"), ("i8", "i32"), ("ui8", "i32"), ("i4", "i32")]
)
def test_element_types(element, out):
    rng = np.random.default_rng(2)
    x, y = small_integers(rng, (33, 140), element), small_integers(rng, (140, 129), element)
    (result,) = compile_text(product_text(33, 129, 140, element, out))(x, y)
    assert result.dtype == element_type(out).dtype
    np.testing.assert_array_equal(result.astype(np.float64), x.astype(np.float64) @ y.astype(np.float64))


def test_sums_are_in_the_order_of_the_program():
    """Random bf16: the same bits as a loop over tiles of the contracted dimension, each summed wide and rounded once."""
    rng = np.random.default_rng(3)
    for m, n, k in [(65, 130, 700), (8, 128, 1024), (129, 257, 391)]:
        x, y = (rng.standard_normal(s).astype(ml_dtypes.bfloat16) for s in ((m, k), (k, n)))
        (result,) = compile_text(product_text(m, n, k, "bf16", "f32"))(x, y)
        expected = _in_tile_order(x, y)
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(
    ("lhs", "rhs", "contracting", "batching", "equation"),
    [
        ((5, 130), (7, 130), "[1] x [1]", "", "mk,nk->mn"),
        ((130, 5), (130, 7), "[0] x [0]", "", "km,kn->mn"),
        ((130, 5), (7, 130), "[0] x [1]", "", "km,nk->mn"),
        ((3, 5, 130), (3, 130, 7), "[2] x [1]", "[0] x [0]", "bmk,bkn->bmn"),
        ((5, 3, 130), (130, 3, 7), "[2] x [0]", "[1] x [1]", "mbk,kbn->bmn"),
        ((2, 3, 4, 5), (5, 3, 6), "[1, 3] x [1, 0]", "", "akcd,dke->ace"),
        ((4, 3), (5, 2), "[] x []", "", "ab,cd->abcd"),
        ((129,), (129,), "[0] x [0]", "", "k,k->"),
        ((1, 130), (1, 130), "[1] x [1]", "[0] x [0]", "bk,bk->b"),
    ],
)
def test_any_dimension_numbers(lhs, rhs, contracting, batching, equation):
    rng = np.random.default_rng(4)
    x, y = small_integers(rng, lhs, "f32"), small_integers(rng, rhs, "f32")
    expected = np.einsum(equation, x, y)
    types = ["tensor<" + "".join(f"{d}x" for d in shape) + "f32>" for shape in (lhs, rhs, expected.shape)]
    batch = f"batching_dims = {batching}, " if batching else ""
    text = f"""func.func @main(%x: {types[0]}, %y: {types[1]}) -> {types[2]} {{
      %r = stablehlo.dot_general %x, %y, {batch}contracting_dims = {contracting} : ({types[0]}, {types[1]}) -> {types[2]}
      return %r : {types[2]} }}"""
    program = compile_text(text, chip="v4-megacore")
    assert '"mxu.kernel"' in program.as_text()
    (result,) = program(x, y)
    np.testing.assert_array_equal(result, expected)


def test_f32_goes_through_as_bf16_unless_asked():
    rng = np.random.default_rng(5)
    x, y = (rng.standard_normal(s).astype(np.float32) for s in ((16, 100), (100, 24)))
    exact = x.astype(np.float64) @ y.astype(np.float64)
    (rough,) = compile_text(product_text(16, 24, 100, "f32"))(x, y)
    (fine,) = compile_text(product_text(16, 24, 100, "f32"), precision="highest")(x, y)
    assert 1e-4 < np.abs(rough - exact).max() < 0.2
    assert np.abs(fine - exact).max() < 1e-5


def test_the_program_can_ask_for_f32():
    text = product_text(16, 24, 100, "f32").replace("[0] :", "[0], precision = [HIGHEST, HIGHEST] :")
    program = compile_text(text)
    assert "passes = 6" in program.as_text()
    rng = np.random.default_rng(5)
    x, y = (rng.standard_normal(s).astype(np.float32) for s in ((16, 100), (100, 24)))
    np.testing.assert_allclose(program(x, y)[0], x @ y, rtol=1e-5, atol=1e-5)


def test_what_has_no_mapping_runs_on_the_host_with_a_note():
    program = compile_text(product_text(4, 5, 6, "f64"))
    assert '"mxu.kernel"' not in program.as_text()
    (note,) = program.report().notes
    assert "runs on the host: a matrix unit has no products of f64 and f64" in note
    x, y = np.ones((4, 6)), np.ones((6, 5))
    np.testing.assert_array_equal(program(x, y)[0], x @ y)


def test_bias_and_relu():
    text = """
    func.func @main(%x: tensor<7x300xf32>, %w: tensor<300x130xf32>, %b: tensor<130xf32>) -> tensor<7x130xf32> {
      %d = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
        : (tensor<7x300xf32>, tensor<300x130xf32>) -> tensor<7x130xf32>
      %bb = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<130xf32>) -> tensor<7x130xf32>
      %s = stablehlo.add %d, %bb : tensor<7x130xf32>
      %z = stablehlo.constant dense<0.0> : tensor<7x130xf32>
      %r = stablehlo.maximum %s, %z : tensor<7x130xf32>
      return %r : tensor<7x130xf32>
    }"""
    rng = np.random.default_rng(6)
    x, w, b = (small_integers(rng, s, "f32") for s in ((7, 300), (300, 130), (130,)))
    (result,) = compile_text(text)(x, w, b)
    np.testing.assert_array_equal(result, np.maximum(x @ w + b, 0))
