"""compile(): what its user sees: the signature, the stages, errors of a call, threads, no leaks, and no argument changed."""

from __future__ import annotations

import gc
import threading
from pathlib import Path

import numpy as np
import pytest

import stablehlo_py
from stablehlo_py import BadInput, CompileError, OutOfMemory, UnsupportedOp, compiler
from stablehlo_py.testing.mutate import absurd_programs

SMALL = """
func.func @main(%x: tensor<2x3xf32>, %n: tensor<i32>) -> (tensor<2x3xf32>, tensor<i32>) {
  %c = stablehlo.constant dense<2.0> : tensor<2x3xf32>
  %0 = stablehlo.multiply %x, %c : tensor<2x3xf32>
  %1 = stablehlo.negate %n : tensor<i32>
  return %0, %1 : tensor<2x3xf32>, tensor<i32>
}
"""
LOOP = """
func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %end = stablehlo.constant dense<10> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, tensor<64xf32>
  cond {
    %c = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %next = stablehlo.add %i, %one : tensor<i32>
    %r = stablehlo.reverse %v, dims = [0] : tensor<64xf32>
    %s = stablehlo.subtract %r, %v : tensor<64xf32>
    stablehlo.return %next, %s : tensor<i32>, tensor<64xf32>
  }
  return %0#1 : tensor<64xf32>
}
"""
X, N = np.arange(6, dtype=np.float32).reshape(2, 3), np.int32(5)


@pytest.fixture(scope="module")
def small():
    return stablehlo_py.compile(SMALL)


# --- calls


def test_results(small):
    doubled, negated = small(X, N)
    np.testing.assert_array_equal(doubled, 2 * X)
    assert (negated.shape, negated.dtype, negated[()]) == ((), np.int32, -5)


def test_signature(small):
    assert str(small.signature) == "(float32[2,3], int32[]) -> (float32[2,3], int32[])"
    assert small.signature == stablehlo_py.compile(SMALL).signature
    assert "cpu" in repr(small)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_argument_count(small, count):
    with pytest.raises(TypeError, match=rf"{count} arguments given, 2 wanted: float32\[2,3\], int32\[\]"):
        small(*[X] * count)


def test_argument_shape(small):
    with pytest.raises(TypeError, match=r"argument 0 is float32\[3,2\], wanted is float32\[2,3\]"):
        small(X.T, N)
    with pytest.raises(TypeError, match=r"argument 1 is int32\[1\], wanted is int32\[\]"):
        small(X, np.int32([5]))


def test_argument_dtype(small):
    with pytest.raises(TypeError, match=r"argument 0 is float64\[2,3\], wanted is float32\[2,3\].*astype\('float32'\)"):
        small(X.astype(np.float64), N)
    with pytest.raises(TypeError, match=r"argument 1 is int64\[\], wanted is int32\[\]"):
        small(X, 5)


def test_strided_and_foreign_arguments(small):
    wide = np.arange(12, dtype=np.float32).reshape(2, 6)
    np.testing.assert_array_equal(small(wide[:, ::2], N)[0], 2 * wide[:, ::2])
    np.testing.assert_array_equal(small(np.asfortranarray(X), N)[0], 2 * X)
    np.testing.assert_array_equal(small(X[::-1, ::-1], N)[0], 2 * X[::-1, ::-1])
    with pytest.raises(TypeError, match="argument 0"):
        small(X.astype(">f4"), N)  # bytes in the other order


def test_unaligned_arguments(small):
    raw = np.zeros(X.nbytes + 1, np.uint8)
    raw[1:] = X.reshape(-1).view(np.uint8)
    np.testing.assert_array_equal(small(raw[1:].view(np.float32).reshape(2, 3), N)[0], 2 * X)


def test_arguments_are_read_only(small):
    x = X.copy()
    x.flags.writeable = False
    small(x, N)
    np.testing.assert_array_equal(x, X)


def test_results_of_calls_are_apart(small):
    first = small(X, N)[0]
    kept = first.copy()
    small(X + 1, N)
    np.testing.assert_array_equal(first, kept)
    first[:] = 0
    assert small(X, N)[0].any()


# --- sizes at the edge


def test_no_elements():
    program = stablehlo_py.compile(
        """func.func @main(%x: tensor<0x3xf32>, %y: tensor<2x3xf32>) -> (tensor<0x3xf32>, tensor<3xf32>, tensor<2x3xf32>) {
          %zero = stablehlo.constant dense<0.0> : tensor<f32>
          %0 = stablehlo.add %x, %x : tensor<0x3xf32>
          %1 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0]
            : (tensor<0x3xf32>, tensor<f32>) -> tensor<3xf32>
          %2 = stablehlo.concatenate %x, %y, dim = 0 : (tensor<0x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
          return %0, %1, %2 : tensor<0x3xf32>, tensor<3xf32>, tensor<2x3xf32>
        }"""
    )
    none, zeros, same = program(np.zeros((0, 3), np.float32), X)
    assert none.shape == (0, 3)
    np.testing.assert_array_equal(zeros, np.zeros(3))
    np.testing.assert_array_equal(same, X)


def test_no_arguments_and_no_results():
    program = stablehlo_py.compile(
        "func.func @main() -> tensor<i32> { %0 = stablehlo.constant dense<7> : tensor<i32> return %0 : tensor<i32> }"
    )
    assert program()[0][()] == 7
    assert stablehlo_py.compile("func.func @main(%x: tensor<f32>) { return }")(np.float32(1)) == ()


@pytest.mark.parametrize("executor", ["native", "python"])
def test_aliases(executor):
    """An argument as a result, one value twice, a constant as a result: each result is an array of its own."""
    program = stablehlo_py.compile(
        """func.func @main(%x: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3x1xf32>) {
          %c = stablehlo.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
          %0 = stablehlo.add %x, %c : tensor<3xf32>
          %1 = stablehlo.reshape %x : (tensor<3xf32>) -> tensor<3x1xf32>
          return %x, %0, %0, %c, %1 : tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3x1xf32>
        }""",
        options=stablehlo_py.Options(executor=executor),
    )
    x = np.float32([5, 6, 7])
    for _ in range(2):
        results = program(x)
        for result, want in zip(results, (x, [6, 8, 10], [6, 8, 10], [1, 2, 3], x[:, None]), strict=True):
            np.testing.assert_array_equal(result, want)
        for result in results:
            result[:] = -1
    np.testing.assert_array_equal(x, [5, 6, 7])


# --- stages


def test_stages(small):
    assert next(iter(small.stages)) == "input"
    assert {"simplify", "kernels", "linalg", "memref", "llvm", "llvm-ir", "asm", "program"} <= set(small.stages)
    for stage in small.stages:
        assert small.as_text(stage).strip()
    assert "stablehlo.multiply" in small.as_text("input")
    assert "linalg.generic" in small.as_text("linalg")
    assert "stablehlo." not in small.as_text("linalg")
    assert "define void" in small.as_text("llvm-ir")
    assert "float32[2,3]" in small.as_text()


def test_unknown_stage(small):
    with pytest.raises(KeyError, match=r"no stage 'nonsense'; there are input, simplify"):
        small.as_text("nonsense")


def test_timing():
    timing = stablehlo_py.compile(SMALL, cache=False).timing
    assert {"read", "passes", "program", "codegen", "load"} <= set(timing)
    assert all(seconds >= 0 for seconds in timing.values())


# --- errors of compile


def test_unknown_target():
    with pytest.raises(CompileError, match="no target 'vax'"):
        stablehlo_py.compile(SMALL, target="vax")


def test_not_a_program():
    with pytest.raises(BadInput):
        stablehlo_py.compile("func.func @main( {\n")
    with pytest.raises(BadInput):
        stablehlo_py.compile("no/such/file.mlir")
    with pytest.raises(BadInput):
        stablehlo_py.compile(b"")
    with pytest.raises(BadInput):
        stablehlo_py.compile(42)


def test_unsupported_op_names_itself():
    text = """func.func @main(%x: tensor<f32>) -> tensor<f32> {
      %0 = stablehlo.custom_call @nobody_has_this(%x) : (tensor<f32>) -> tensor<f32>
      return %0 : tensor<f32>
    }"""
    with pytest.raises(UnsupportedOp, match="custom_call"):
        stablehlo_py.compile(text)


def test_after_an_error_all_is_well():
    for _ in range(3):
        with pytest.raises(CompileError):
            stablehlo_py.compile("func.func @main(%x: tensor<f32>) -> tensor<f32> { return %y : tensor<f32> }")
    stablehlo_py.compile(SMALL)(X, N)


# --- threads and memory


def test_calls_from_several_threads():
    program = stablehlo_py.compile(LOOP)
    problems = []

    def work(seed):
        x = np.random.default_rng(seed).standard_normal(64).astype(np.float32)
        want = program(x)[0]
        for _ in range(100):
            if not np.array_equal(program(x)[0], want):
                problems.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems


def test_compiling_in_several_threads():
    results, problems = {}, []

    def work(number):
        try:
            results[number] = stablehlo_py.compile(SMALL.replace("2.0", f"{number}.0"), cache=False)(X, N)[0]
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    for number, result in results.items():
        np.testing.assert_array_equal(result, number * X)


def resident() -> int:
    """Bytes of memory that the process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


needs_proc = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="no /proc here")


@needs_proc
def test_calls_leak_nothing():
    program = stablehlo_py.compile(LOOP.replace("64", "20000"))
    x = np.ones(20000, np.float32)
    for _ in range(50):
        program(x)
    before = resident()
    for _ in range(2000):
        program(x)
    assert resident() - before < 4 << 20  # one result kept each time would be 160 MB


@needs_proc
def test_failed_calls_leak_nothing(small):
    big = np.ones((300, 300), np.float32)
    before = resident()
    for _ in range(500):
        with pytest.raises(TypeError):
            small(big, N)
    assert resident() - before < 4 << 20


@needs_proc
def test_compiles_leak_little():
    for _ in range(20):
        stablehlo_py.compile(SMALL, cache=False)
    gc.collect()
    before = resident()
    for _ in range(100):
        stablehlo_py.compile(SMALL, cache=False)
    gc.collect()
    grown = (resident() - before) / 100
    assert grown < 200_000, f"{grown:.0f} bytes a compilation"


# --- sizes beyond all memory

HUGE = 1 << 40


def test_a_result_that_no_memory_holds():
    ty = f"tensor<{HUGE}xf32>"
    text = f"func.func @main() -> {ty} {{ %0 = stablehlo.iota dim = 0 : {ty} return %0 : {ty} }}"
    executable = stablehlo_py.compile(text)
    with pytest.raises(OutOfMemory, match=r"4,398,046,511,104 bytes of results(.|\n)*float32\[1099511627776\]"):
        executable()
    with pytest.raises(MemoryError):
        executable()


def test_a_temporary_that_no_memory_holds():
    text = f"""
    func.func @main(%x: tensor<f32>) -> tensor<1xf32> {{
      %0 = stablehlo.broadcast_in_dim %x, dims = [] : (tensor<f32>) -> tensor<{HUGE}xf32>
      %1 = "stablehlo.sort"(%0) ({{
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %c = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
      }}) {{dimension = 0 : i64}} : (tensor<{HUGE}xf32>) -> tensor<{HUGE}xf32>
      %2 = stablehlo.slice %1 [5:6] : (tensor<{HUGE}xf32>) -> tensor<1xf32>
      return %2 : tensor<1xf32>
    }}"""
    with pytest.raises(OutOfMemory, match=r"4 bytes of results and [0-9,]{17,} bytes of temporaries"):
        stablehlo_py.compile(text)(np.float32(1))


def test_a_size_that_a_call_decides_and_no_memory_holds():
    text = """func.func @main(%n: tensor<1xi64>) -> tensor<?xf32> {
      %0 = stablehlo.dynamic_iota %n, dim = 0 : (tensor<1xi64>) -> tensor<?xf32>
      return %0 : tensor<?xf32>
    }"""
    executable = stablehlo_py.compile(text)
    assert np.asarray(executable(np.array([3]))[0]).tolist() == [0, 1, 2]
    with pytest.raises(OutOfMemory):
        executable(np.array([HUGE]))


def test_more_dimensions_than_arrays_have():
    def reshaped(rank: int, result: str) -> str:
        ty = f"tensor<{'1x' * rank}f32>"
        return f"""func.func @main(%x: tensor<f32>) -> {result or ty} {{
          %0 = stablehlo.reshape %x : (tensor<f32>) -> {ty}
          %1 = stablehlo.add %0, %0 : {ty}
          %2 = stablehlo.reshape %1 : ({ty}) -> tensor<f32>
          return {"%2" if result else "%1"} : {result or ty}
        }}"""

    assert stablehlo_py.compile(reshaped(64, ""))(np.float32(2))[0].shape == (1,) * 64
    assert stablehlo_py.compile(reshaped(65, "tensor<f32>"))(np.float32(2))[0] == 4
    with pytest.raises(BadInput, match="has 65 dimensions, arrays of NumPy have at most 64"):
        stablehlo_py.compile(reshaped(65, ""))


def test_nested_regions():
    """10,000 are refused before the parser, which would overflow its stack, sees them."""
    with pytest.raises(BadInput, match="nest deeper than"):
        stablehlo_py.compile(dict(absurd_programs())["nested_10000"])


def test_no_garbage_is_collected_during_a_compilation(monkeypatch):
    load, during = compiler._load, []
    monkeypatch.setattr(compiler, "_load", lambda *arguments: (during.append(gc.isenabled()), load(*arguments))[1])
    stablehlo_py.compile(SMALL, cache=False)
    assert during == [False]
    assert gc.isenabled()


def test_a_compilation_leaves_little_garbage():
    """Why none need be collected meanwhile."""
    stablehlo_py.compile(SMALL, cache=False)
    gc.collect()
    gc.disable()
    try:
        stablehlo_py.compile(SMALL, cache=False)
        assert gc.collect() < 2000
    finally:
        gc.enable()
