"""Programs through the GPU target: each kernel's PTX runs on the simulator, results against NumPy."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from stablehlo_py import mlir
from stablehlo_py.errors import CompileError, UnsupportedOp
from stablehlo_py.machine.gpu import gpu_chip
from stablehlo_py.mlir import ir
from stablehlo_py.targets.gpu import GpuProgram, compile_ptx
from stablehlo_py.targets.gpu.ptx import assemble, find_ptxas
from stablehlo_py.targets.gpu.simulate import simulate

needs_ptxas = pytest.mark.skipif(find_ptxas() is None, reason="ptxas of the CUDA toolkit is not installed")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(11)


def compiled(source: str, chip: str = "sm_80") -> GpuProgram:
    with mlir.new_context(), ir.Location.unknown():
        return compile_ptx(ir.Module.parse(source), chip=chip)


def kinds(program: GpuProgram) -> list[str]:
    """The emitter of each launch, in order: the word before the number in the kernel's name."""
    return [launch.kernel.rsplit("_", 2)[1] for launch in program.launches]


def floats(rng: np.random.Generator, *shape: int, dtype: type = np.float32) -> np.ndarray:
    return rng.uniform(-1, 1, shape).astype(dtype)


# --- elementwise


def test_a_chain_of_elementwise_ops_is_one_launch(rng: np.random.Generator) -> None:
    source = """func.func @main(%a: tensor<7x13xf32>, %b: tensor<13xf32>) -> tensor<7x13xf32> {
      %0 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<13xf32>) -> tensor<7x13xf32>
      %1 = stablehlo.multiply %a, %0 : tensor<7x13xf32>
      %2 = stablehlo.subtract %1, %a : tensor<7x13xf32>
      %3 = stablehlo.maximum %2, %0 : tensor<7x13xf32>
      return %3 : tensor<7x13xf32> }"""
    program = compiled(source)
    assert kinds(program) == ["loops"]
    a, b = floats(rng, 7, 13), floats(rng, 13)
    np.testing.assert_array_equal(simulate(program, [a, b])[0], np.maximum(a * b - a, b))


@pytest.mark.parametrize("shape", [(), (1,), (31,), (257,), (3, 5, 7), (2, 0, 3)])
def test_shapes(shape: tuple[int, ...], rng: np.random.Generator) -> None:
    ty = "x".join([*map(str, shape), "f32"])
    source = f"""func.func @main(%a: tensor<{ty}>, %b: tensor<{ty}>) -> tensor<{ty}> {{
      %0 = stablehlo.add %a, %b : tensor<{ty}>
      return %0 : tensor<{ty}> }}"""
    a, b = floats(rng, *shape), floats(rng, *shape)
    np.testing.assert_array_equal(simulate(compiled(source), [a, b])[0], a + b)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("f16", np.float16), ("bf16", ml_dtypes.bfloat16), ("f64", np.float64), ("i8", np.int8), ("i64", np.int64)],
)
def test_element_types(name: str, dtype: type, rng: np.random.Generator) -> None:
    source = f"""func.func @main(%a: tensor<50x{name}>, %b: tensor<50x{name}>) -> (tensor<50x{name}>, tensor<50xi1>) {{
      %0 = stablehlo.multiply %a, %b : tensor<50x{name}>
      %1 = stablehlo.compare LT, %a, %b : (tensor<50x{name}>, tensor<50x{name}>) -> tensor<50xi1>
      return %0, %1 : tensor<50x{name}>, tensor<50xi1> }}"""
    a, b = (rng.uniform(-90, 90, 50).astype(dtype) for _ in range(2))
    product, less = simulate(compiled(source), [a, b])
    np.testing.assert_array_equal(product, a * b)
    np.testing.assert_array_equal(less, a < b)


def test_complex(rng: np.random.Generator) -> None:
    source = """func.func @main(%a: tensor<9xcomplex<f32>>, %b: tensor<9xcomplex<f32>>) -> tensor<9xcomplex<f32>> {
      %0 = stablehlo.multiply %a, %b : tensor<9xcomplex<f32>>
      return %0 : tensor<9xcomplex<f32>> }"""
    a, b = (floats(rng, 9) + 1j * floats(rng, 9) for _ in range(2))
    np.testing.assert_allclose(simulate(compiled(source), [a, b])[0], a * b, rtol=1e-6)


# --- reductions


@pytest.mark.parametrize(
    ("shape", "dims", "kind"),
    [
        ((3, 300), (1,), "rowprogram"),
        ((3, 64), (1,), "rowprogram"),
        ((2, 5, 101), (1, 2), "rowprogram"),
        ((1000,), (0,), "rowprogram"),
        ((300, 3), (0,), "rows"),  # few outputs: a block each, though the rows do not lie along memory
        ((3, 63), (1,), "rowthreads"),
        ((128, 4096), (0,), "loops"),  # many outputs side by side: a thread each
    ],
)
def test_sums(shape: tuple[int, ...], dims: tuple[int, ...], kind: str, rng: np.random.Generator) -> None:
    result = tuple(n for d, n in enumerate(shape) if d not in dims)
    given, out = ("x".join([*map(str, s), "f32"]) for s in (shape, result))
    source = f"""func.func @main(%a: tensor<{given}>, %z: tensor<f32>) -> tensor<{out}> {{
      %0 = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = {list(dims)}
        : (tensor<{given}>, tensor<f32>) -> tensor<{out}>
      return %0 : tensor<{out}> }}"""
    program = compiled(source)
    assert kinds(program) == [kind]
    a = floats(rng, *shape)
    found = simulate(program, [a, np.float32(0.5)])[0]
    np.testing.assert_allclose(found, a.astype(np.float64).sum(dims) + 0.5, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("f32", np.float32), ("f64", np.float64), ("bf16", ml_dtypes.bfloat16), ("i8", np.int8), ("i64", np.int64)],
)
def test_the_largest_of_a_row_of_any_type(name: str, dtype: type, rng: np.random.Generator) -> None:
    """Each width of value takes its own way through the shuffles."""
    source = f"""func.func @main(%a: tensor<4x200x{name}>, %z: tensor<{name}>) -> tensor<4x{name}> {{
      %0 = stablehlo.reduce(%a init: %z) applies stablehlo.maximum across dimensions = [1]
        : (tensor<4x200x{name}>, tensor<{name}>) -> tensor<4x{name}>
      return %0 : tensor<4x{name}> }}"""
    program = compiled(source)
    assert kinds(program) == ["rowprogram"]
    a = (rng.uniform(-1, 1, (4, 200)) * 120).astype(dtype)
    np.testing.assert_array_equal(simulate(program, [a, dtype(-99)])[0], a.max(1))


def test_a_reduction_of_two_operands_takes_the_general_emitter(rng: np.random.Generator) -> None:
    """Largest value and its index."""
    source = """func.func @main(%a: tensor<3x90xf32>, %i: tensor<3x90xi32>) -> (tensor<3xf32>, tensor<3xi32>) {
      %low = stablehlo.constant dense<-2.0> : tensor<f32>
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %0:2 = stablehlo.reduce(%a init: %low), (%i init: %zero) across dimensions = [1]
        : (tensor<3x90xf32>, tensor<3x90xi32>, tensor<f32>, tensor<i32>) -> (tensor<3xf32>, tensor<3xi32>)
        reducer(%x: tensor<f32>, %y: tensor<f32>) (%m: tensor<i32>, %n: tensor<i32>) {
          %less = stablehlo.compare GE, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
          %v = stablehlo.select %less, %x, %y : tensor<i1>, tensor<f32>
          %k = stablehlo.select %less, %m, %n : tensor<i1>, tensor<i32>
          stablehlo.return %v, %k : tensor<f32>, tensor<i32>
        }
      return %0#0, %0#1 : tensor<3xf32>, tensor<3xi32> }"""
    program = compiled(source)
    assert "rows" not in kinds(program)
    a = floats(rng, 3, 90)
    value, index = simulate(program, [a, np.tile(np.arange(90, dtype=np.int32), (3, 1))])
    np.testing.assert_array_equal(value, a.max(1))
    np.testing.assert_array_equal(index, a.argmax(1))


@pytest.mark.parametrize(
    ("rows", "columns", "kind"), [(4, 130, "rowprogram"), (3, 2000, "rowprogram"), (5, 20, "rowthreads")]
)
def test_softmax_is_one_launch(rows: int, columns: int, kind: str, rng: np.random.Generator) -> None:
    """A block a row, with the row kept in shared memory; short rows by a thread each."""
    source = """func.func @main(%a: tensor<4x130xf32>) -> tensor<4x130xf32> {
      %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %0 = stablehlo.reduce(%a init: %low) applies stablehlo.maximum across dimensions = [1]
        : (tensor<4x130xf32>, tensor<f32>) -> tensor<4xf32>
      %1 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<4xf32>) -> tensor<4x130xf32>
      %2 = stablehlo.subtract %a, %1 : tensor<4x130xf32>
      %3 = stablehlo.exponential %2 : tensor<4x130xf32>
      %4 = stablehlo.reduce(%3 init: %zero) applies stablehlo.add across dimensions = [1]
        : (tensor<4x130xf32>, tensor<f32>) -> tensor<4xf32>
      %5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<4xf32>) -> tensor<4x130xf32>
      %6 = stablehlo.divide %3, %5 : tensor<4x130xf32>
      return %6 : tensor<4x130xf32> }"""
    source = source.replace("4x130", f"{rows}x{columns}").replace("<4xf32>", f"<{rows}xf32>")
    program = compiled(source)
    assert kinds(program) == [kind]
    a = floats(rng, rows, columns) * 5
    e = np.exp(a.astype(np.float64) - a.max(1, keepdims=True))
    np.testing.assert_allclose(simulate(program, [a])[0], e / e.sum(1, keepdims=True), rtol=2e-6)


def test_layernorm_is_one_launch(rng: np.random.Generator) -> None:
    """Two reductions, the second of what the first one gives."""
    source = """func.func @main(%x: tensor<6x200xf32>, %g: tensor<200xf32>, %b: tensor<200xf32>) -> tensor<6x200xf32> {
      %z = stablehlo.constant dense<0.0> : tensor<f32>
      %n = stablehlo.constant dense<200.0> : tensor<6xf32>
      %eps = stablehlo.constant dense<1.0e-5> : tensor<6xf32>
      %s = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [1]
        : (tensor<6x200xf32>, tensor<f32>) -> tensor<6xf32>
      %m = stablehlo.divide %s, %n : tensor<6xf32>
      %mb = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<6xf32>) -> tensor<6x200xf32>
      %d = stablehlo.subtract %x, %mb : tensor<6x200xf32>
      %q = stablehlo.multiply %d, %d : tensor<6x200xf32>
      %v0 = stablehlo.reduce(%q init: %z) applies stablehlo.add across dimensions = [1]
        : (tensor<6x200xf32>, tensor<f32>) -> tensor<6xf32>
      %v = stablehlo.divide %v0, %n : tensor<6xf32>
      %ve = stablehlo.add %v, %eps : tensor<6xf32>
      %r = stablehlo.rsqrt %ve : tensor<6xf32>
      %rb = stablehlo.broadcast_in_dim %r, dims = [0] : (tensor<6xf32>) -> tensor<6x200xf32>
      %y = stablehlo.multiply %d, %rb : tensor<6x200xf32>
      %gb = stablehlo.broadcast_in_dim %g, dims = [1] : (tensor<200xf32>) -> tensor<6x200xf32>
      %bb = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<200xf32>) -> tensor<6x200xf32>
      %y1 = stablehlo.multiply %y, %gb : tensor<6x200xf32>
      %y2 = stablehlo.add %y1, %bb : tensor<6x200xf32>
      return %y2 : tensor<6x200xf32> }"""
    program = compiled(source)
    assert kinds(program) == ["rowprogram"]
    x, g, b = floats(rng, 6, 200), floats(rng, 200), floats(rng, 200)
    wide = x.astype(np.float64)
    expected = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5) * g + b
    np.testing.assert_allclose(simulate(program, [x, g, b])[0], expected, rtol=1e-5, atol=1e-5)


# --- contractions


@pytest.mark.parametrize(
    ("m", "k", "n", "kind"),
    [(16, 16, 16, "contraction"), (65, 37, 70, "contraction"), (17, 3, 200, "contraction"), (5, 40, 64, "loops")],
)
def test_products(m: int, k: int, n: int, kind: str, rng: np.random.Generator) -> None:
    source = f"""func.func @main(%a: tensor<{m}x{k}xf32>, %b: tensor<{k}x{n}xf32>) -> tensor<{m}x{n}xf32> {{
      %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
        : (tensor<{m}x{k}xf32>, tensor<{k}x{n}xf32>) -> tensor<{m}x{n}xf32>
      return %0 : tensor<{m}x{n}xf32> }}"""
    program = compiled(source)
    assert kinds(program)[-1] == kind
    a, b = floats(rng, m, k), floats(rng, k, n)
    np.testing.assert_allclose(simulate(program, [a, b])[0], a.astype(np.float64) @ b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("name", "dtype"), [("f16", np.float16), ("bf16", ml_dtypes.bfloat16)])
@pytest.mark.parametrize(
    ("m", "k", "n", "kind"),
    [(64, 32, 64, "tensorcores"), (70, 50, 90, "tensorcores"), (16, 16, 130, "tensorcores"), (8, 64, 64, "rows")],
)
def test_products_of_16_bit_floats(
    name: str, dtype: type, m: int, k: int, n: int, kind: str, rng: np.random.Generator
) -> None:
    """Tensor cores sum in f32; edges of every dimension are not multiples of the tile."""
    source = f"""func.func @main(%a: tensor<{m}x{k}x{name}>, %b: tensor<{k}x{n}x{name}>) -> tensor<{m}x{n}xf32> {{
      %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
        : (tensor<{m}x{k}x{name}>, tensor<{k}x{n}x{name}>) -> tensor<{m}x{n}xf32>
      return %0 : tensor<{m}x{n}xf32> }}"""
    program = compiled(source)
    assert kinds(program)[-1] == kind
    assert ("mma.sync.aligned.m16n8k16" in program.as_text()) == (kind == "tensorcores")
    a, b = floats(rng, m, k, dtype=dtype), floats(rng, k, n, dtype=dtype)
    np.testing.assert_allclose(simulate(program, [a, b])[0], a.astype(np.float64) @ b.astype(np.float64), atol=2e-6)


def test_tensor_cores_with_batches_and_transposed_operands(rng: np.random.Generator) -> None:
    """Attention scores: both operands have the summed dimension last."""
    source = """func.func @main(%a: tensor<2x3x40x32xf16>, %b: tensor<2x3x33x32xf16>) -> tensor<2x3x40x33xf16> {
      %0 = stablehlo.dot_general %a, %b, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3]
        : (tensor<2x3x40x32xf16>, tensor<2x3x33x32xf16>) -> tensor<2x3x40x33xf16>
      return %0 : tensor<2x3x40x33xf16> }"""
    program = compiled(source)
    assert "tensorcores" in kinds(program)
    a, b = floats(rng, 2, 3, 40, 32, dtype=np.float16), floats(rng, 2, 3, 33, 32, dtype=np.float16)
    expected = np.einsum("xyik,xyjk->xyij", a.astype(np.float64), b.astype(np.float64))
    np.testing.assert_allclose(simulate(program, [a, b])[0].astype(np.float64), expected, rtol=1e-3, atol=1e-3)


def test_products_with_batches_and_split_dimensions(rng: np.random.Generator) -> None:
    """Several row and summed dimensions in odd places."""
    source = """func.func @main(%a: tensor<3x2x20x5x4xf64>, %b: tensor<4x3x17x5xf64>) -> tensor<3x2x20x17xf64> {
      %0 = stablehlo.dot_general %a, %b, batching_dims = [0] x [1], contracting_dims = [3, 4] x [3, 0]
        : (tensor<3x2x20x5x4xf64>, tensor<4x3x17x5xf64>) -> tensor<3x2x20x17xf64>
      return %0 : tensor<3x2x20x17xf64> }"""
    program = compiled(source)
    assert kinds(program)[-1] == "contraction"
    a, b = floats(rng, 3, 2, 20, 5, 4, dtype=np.float64), floats(rng, 4, 3, 17, 5, dtype=np.float64)
    np.testing.assert_allclose(simulate(program, [a, b])[0], np.einsum("xabij,jxci->xabc", a, b), rtol=1e-12)


# --- everything else falls to the general emitters


def test_a_convolution_with_padding(rng: np.random.Generator) -> None:
    source = """func.func @main(%x: tensor<1x6x7x2xf32>, %w: tensor<3x3x2x4xf32>) -> tensor<1x6x7x4xf32> {
      %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
        window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
        : (tensor<1x6x7x2xf32>, tensor<3x3x2x4xf32>) -> tensor<1x6x7x4xf32>
      return %0 : tensor<1x6x7x4xf32> }"""
    x, w = floats(rng, 1, 6, 7, 2), floats(rng, 3, 3, 2, 4)
    padded = np.pad(x.astype(np.float64), ((0, 0), (1, 1), (1, 1), (0, 0)))
    expected = sum(
        np.einsum("bhwi,io->bhwo", padded[:, i : i + 6, j : j + 7], w[i, j]) for i in range(3) for j in range(3)
    )
    np.testing.assert_allclose(simulate(compiled(source), [x, w])[0], expected, rtol=1e-4, atol=1e-5)


def test_a_while_loop_of_the_program(rng: np.random.Generator) -> None:
    """The Program keeps the loop; its condition and body are launches."""
    source = """func.func @main(%x: tensor<5xf32>) -> tensor<5xf32> {
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %end = stablehlo.constant dense<4> : tensor<i32>
      %0:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, tensor<5xf32>
        cond { %c = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
               stablehlo.return %c : tensor<i1> }
        do { %j = stablehlo.add %i, %one : tensor<i32>
             %w = stablehlo.multiply %v, %x : tensor<5xf32>
             stablehlo.return %j, %w : tensor<i32>, tensor<5xf32> }
      return %0#1 : tensor<5xf32> }"""
    x = floats(rng, 5)
    np.testing.assert_allclose(simulate(compiled(source), [x])[0], x**5, rtol=1e-6)


def test_a_dynamic_slice_reads_its_start_on_the_device(rng: np.random.Generator) -> None:
    source = """func.func @main(%x: tensor<10xf32>, %i: tensor<i32>) -> tensor<4xf32> {
      %0 = stablehlo.dynamic_slice %x, %i, sizes = [4] : (tensor<10xf32>, tensor<i32>) -> tensor<4xf32>
      return %0 : tensor<4xf32> }"""
    program, x = compiled(source), floats(rng, 10)
    for start, clamped in ((3, 3), (-5, 0), (99, 6)):
        np.testing.assert_array_equal(simulate(program, [x, np.int32(start)])[0], x[clamped : clamped + 4])


def test_gather_is_a_thread_per_element(rng: np.random.Generator) -> None:
    """Rows of a table; an index beyond the end is held inside."""
    source = """func.func @main(%t: tensor<10x6xf32>, %i: tensor<4xi32>) -> tensor<4x6xf32> {
      %0 = "stablehlo.gather"(%t, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
        collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 6>}>
        : (tensor<10x6xf32>, tensor<4xi32>) -> tensor<4x6xf32>
      return %0 : tensor<4x6xf32> }"""
    program = compiled(source)
    assert kinds(program) == ["loops"]
    t = floats(rng, 10, 6)
    np.testing.assert_array_equal(simulate(program, [t, np.int32([3, 9, -7, 88])])[0], t[[3, 9, 0, 9]])


def test_sorting_falls_to_one_thread(rng: np.random.Generator) -> None:
    source = """func.func @main(%x: tensor<2x9xf32>) -> tensor<2x9xf32> {
      %0 = "stablehlo.sort"(%x) <{dimension = 1 : i64, is_stable = true}> ({
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %c = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
          stablehlo.return %c : tensor<i1>
      }) : (tensor<2x9xf32>) -> tensor<2x9xf32>
      return %0 : tensor<2x9xf32> }"""
    x = floats(rng, 2, 9)
    np.testing.assert_array_equal(simulate(compiled(source), [x])[0], np.sort(x, 1))


# --- the edges


ADD = """func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %a, %a : tensor<4xf32>
  return %0 : tensor<4xf32> }"""


def test_text_holds_the_program_its_launches_and_the_ptx() -> None:
    program = compiled(ADD)
    text = program.as_text()
    (launch,) = program.launches
    assert launch.grid == (1, 1, 1) and launch.block == (32, 1, 1) and launch.args == ("a0", "r0")
    assert f"// launch {launch.kernel}<<<1x1x1, 32x1x1>>>(a0, r0)" in text
    assert f".visible .entry {launch.kernel}(" in text
    assert ".target sm_80" in text


def test_the_module_stays_as_it_was() -> None:
    with mlir.new_context(), ir.Location.unknown():
        module = ir.Module.parse(ADD)
        before = str(module)
        compile_ptx(module)
        assert str(module) == before


def test_a_chip_that_is_not_known() -> None:
    with pytest.raises(CompileError, match="sm_10 is not known"):
        compiled(ADD, chip="sm_10")


def test_an_op_that_nothing_lowers_is_named() -> None:
    source = """func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
      %0 = stablehlo.custom_call @nobody(%a) : (tensor<4xf32>) -> tensor<4xf32>
      return %0 : tensor<4xf32> }"""
    with pytest.raises(UnsupportedOp, match=r"stablehlo\.custom_call"):
        compiled(source)


@needs_ptxas
@pytest.mark.parametrize("chip", ["sm_80", "sm_90"])
def test_ptxas_takes_every_kernel_without_spills(chip: str) -> None:
    source = """func.func @main(%a: tensor<128x96xf32>, %b: tensor<96x80xf32>, %h: tensor<96x96xbf16>)
        -> (tensor<128x80xf32>, tensor<128xf32>, tensor<96x96xf32>) {
      %z = stablehlo.constant dense<0.0> : tensor<f32>
      %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
        : (tensor<128x96xf32>, tensor<96x80xf32>) -> tensor<128x80xf32>
      %1 = stablehlo.abs %0 : tensor<128x80xf32>
      %2 = stablehlo.reduce(%1 init: %z) applies stablehlo.add across dimensions = [1]
        : (tensor<128x80xf32>, tensor<f32>) -> tensor<128xf32>
      %3 = stablehlo.dot_general %h, %h, contracting_dims = [1] x [1]
        : (tensor<96x96xbf16>, tensor<96x96xbf16>) -> tensor<96x96xf32>
      return %1, %2, %3 : tensor<128x80xf32>, tensor<128xf32>, tensor<96x96xf32> }"""
    program = compiled(source, chip)
    assert kinds(program) == ["contraction", "rowprogram", "tensorcores"]
    for ptx in (*program.kernels.values(), program.as_text()):
        cubin, log = assemble(ptx, gpu_chip(chip))
        assert cubin.startswith(b"\x7fELF")
        assert "0 bytes spill stores" in log
