"""Compiled kernels in parts: the same bits for any number of threads, by both executors."""

from __future__ import annotations

import numpy as np
import pytest

from stablehlo_py.compiler import compile
from stablehlo_py.runtime import parts
from stablehlo_py.runtime.executor import load_native, make_executor
from stablehlo_py.runtime.parts import parts_of
from stablehlo_py.runtime.program import Launch, walk

ACROSS = "across dimensions = [{}] : (tensor<{}xf32>, tensor<f32>) -> tensor<{}xf32>"
OF_ROWS, OF_COLUMNS = ACROSS.format(1, "37x53", "37"), ACROSS.format(0, "37x53", "53")

PROGRAMS = {
    "elementwise": """
        func.func @main(%x: tensor<37x53xf32>) -> tensor<37x53xf32> {
          %0 = stablehlo.exponential %x : tensor<37x53xf32>
          %1 = stablehlo.tanh %0 : tensor<37x53xf32>
          %2 = stablehlo.divide %1, %x : tensor<37x53xf32>
          return %2 : tensor<37x53xf32>
        }""",
    "softmax": f"""
        func.func @main(%x: tensor<37x53xf32>) -> tensor<37x53xf32> {{
          %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
          %zero = stablehlo.constant dense<0.0> : tensor<f32>
          %0 = stablehlo.reduce(%x init: %low) applies stablehlo.maximum {OF_ROWS}
          %1 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<37xf32>) -> tensor<37x53xf32>
          %2 = stablehlo.subtract %x, %1 : tensor<37x53xf32>
          %3 = stablehlo.exponential %2 : tensor<37x53xf32>
          %4 = stablehlo.reduce(%3 init: %zero) applies stablehlo.add {OF_ROWS}
          %5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<37xf32>) -> tensor<37x53xf32>
          %6 = stablehlo.divide %3, %5 : tensor<37x53xf32>
          return %6 : tensor<37x53xf32>
        }}""",
    "column sums": f"""
        func.func @main(%x: tensor<37x53xf32>) -> tensor<53xf32> {{
          %zero = stablehlo.constant dense<0.0> : tensor<f32>
          %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add {OF_COLUMNS}
          return %0 : tensor<53xf32>
        }}""",
    "transpose": """
        func.func @main(%x: tensor<37x53xf32>) -> tensor<53x37xf32> {
          %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<37x53xf32>) -> tensor<53x37xf32>
          return %0 : tensor<53x37xf32>
        }""",
    "matmul": """
        func.func @main(%x: tensor<130x140xf32>, %y: tensor<140x150xf32>) -> tensor<130x150xf32> {
          %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
            : (tensor<130x140xf32>, tensor<140x150xf32>) -> tensor<130x150xf32>
          %1 = stablehlo.tanh %0 : tensor<130x150xf32>
          return %1 : tensor<130x150xf32>
        }""",
    "batched matmul": """
        func.func @main(%x: tensor<5x20x30xf32>, %y: tensor<5x30x40xf32>) -> tensor<5x20x40xf32> {
          %0 = stablehlo.dot_general %x, %y, batching_dims = [0] x [0], contracting_dims = [2] x [1]
            : (tensor<5x20x30xf32>, tensor<5x30x40xf32>) -> tensor<5x20x40xf32>
          return %0 : tensor<5x20x40xf32>
        }""",
    "convolution": """
        func.func @main(%x: tensor<2x14x14x16xf32>, %k: tensor<3x3x16x24xf32>) -> tensor<2x14x14x24xf32> {
          %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
            window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
            : (tensor<2x14x14x16xf32>, tensor<3x3x16x24xf32>) -> tensor<2x14x14x24xf32>
          return %0 : tensor<2x14x14x24xf32>
        }""",
    "copies": """
        func.func @main(%x: tensor<1x40x30xf32>, %y: tensor<40x9xf32>)
          -> (tensor<1x17x8xf32>, tensor<40x48xf32>, tensor<40x25xf32>) {
          %zero = stablehlo.constant dense<0.0> : tensor<f32>
          %0 = stablehlo.slice %x [0:1, 5:39:2, 3:11] : (tensor<1x40x30xf32>) -> tensor<1x17x8xf32>
          %1 = stablehlo.reshape %x : (tensor<1x40x30xf32>) -> tensor<40x30xf32>
          %2 = stablehlo.concatenate %y, %1, %y, dim = 1
            : (tensor<40x9xf32>, tensor<40x30xf32>, tensor<40x9xf32>) -> tensor<40x48xf32>
          %3 = stablehlo.pad %y, %zero, low = [0, 3], high = [0, 5], interior = [0, 1]
            : (tensor<40x9xf32>, tensor<f32>) -> tensor<40x25xf32>
          return %0, %2, %3 : tensor<1x17x8xf32>, tensor<40x48xf32>, tensor<40x25xf32>
        }""",
    "rows of parts": """
        func.func @main(%x: tensor<4x30x8xf32>, %y: tensor<1x4x8xf32>)
          -> (tensor<6x30x8xf32>, tensor<8x30x8xf32>, tensor<4x30x8xf32>) {
          %zero = stablehlo.constant dense<0.0> : tensor<f32>
          %at = stablehlo.constant dense<2> : tensor<i32>
          %0 = stablehlo.pad %x, %zero, low = [1, 0, 0], high = [1, 0, 0], interior = [0, 0, 0]
            : (tensor<4x30x8xf32>, tensor<f32>) -> tensor<6x30x8xf32>
          %1 = stablehlo.concatenate %x, %x, dim = 0 : (tensor<4x30x8xf32>, tensor<4x30x8xf32>) -> tensor<8x30x8xf32>
          %2 = stablehlo.dynamic_update_slice %x, %y, %at, %at, %at
            : (tensor<4x30x8xf32>, tensor<1x4x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<4x30x8xf32>
          return %0, %1, %2 : tensor<6x30x8xf32>, tensor<8x30x8xf32>, tensor<4x30x8xf32>
        }""",
}
SPLIT = ("elementwise", "softmax", "matmul", "batched matmul", "copies")  # at least these can be


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_number_of_threads_changes_no_bit(name, monkeypatch):
    monkeypatch.setattr(parts, "WORK_PER_PART", 1)
    exe = compile(PROGRAMS[name])
    program, code = exe.program, exe.executor.owner
    launches = [command for command in walk(program.commands) if isinstance(command, Launch)]
    if name in SPLIT:
        assert max(parts_of(program, launch, 3) for launch in launches) == 3
    rng = np.random.default_rng(0)
    arguments = [rng.standard_normal(ty.shape, dtype=np.float32) for ty in program.arguments]

    def run(threads: int, prefer: str) -> list[bytes]:
        executor = make_executor(program, code.addresses, prefer=prefer, threads=threads)
        results = [np.full(ty.shape, np.nan, ty.numpy) for ty in program.results]
        executor.run(arguments, results)
        assert not any(np.isnan(result).any() for result in results)
        return [result.tobytes() for result in results]

    whole = run(1, "python")
    for prefer in ("python", "native") if load_native() is not None else ("python",):
        for threads in (1, 2, 3, 16):
            assert run(threads, prefer) == whole
