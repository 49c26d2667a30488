"""What one core of this machine can do: a loop of multiply-adds in registers, and a copy too large for the caches."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable

import numpy as np

from stablehlo_py.machine.cpu import cpu_of
from stablehlo_py.targets import machine_code
from stablehlo_py.targets.cpu import codegen
from stablehlo_py.targets.cpu.features import host

CHAINS = 12  # independent sums: more than latency times rate of any core so far, and they fit 16 registers
STEPS = 200_000
COPY_BYTES = 64 << 20


def flops_per_second() -> float:
    """f32 operations of one core, two for each multiply-add."""
    lanes = cpu_of(host()[1]).lanes(4)
    code = machine_code.Code([codegen.make_object(_multiply_adds(lanes), machine_code.CodegenOptions())])
    kernel = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(code.addresses[0])
    memory = np.zeros(CHAINS * lanes, np.float32)
    best = _fastest(lambda: kernel(memory.ctypes.data, 0, STEPS))
    return 2.0 * CHAINS * lanes * STEPS / best


def bytes_per_second() -> float:
    """Of a copy by one core, read and written."""
    source, target = np.ones(COPY_BYTES, np.uint8), np.ones(COPY_BYTES, np.uint8)
    return 2.0 * COPY_BYTES / _fastest(lambda: np.copyto(target, source))


def _multiply_adds(lanes: int) -> str:
    """for i in begin .. end: sum[c] = sum[c] * x + y, for each chain; the sums are stored so that none is idle."""
    vector = f"<{lanes} x float>"
    phis, steps, stores = [], [], []
    for c in range(CHAINS):
        phis.append(f"  %s{c} = phi {vector} [zeroinitializer, %0], [%n{c}, %loop]")
        steps.append(f"  %n{c} = call {vector} @llvm.fma.v{lanes}f32({vector} %s{c}, {vector} %x, {vector} %x)")
        stores.append(
            f"  %p{c} = getelementptr float, ptr %buffers, i64 {c * lanes}\n  store {vector} %n{c}, ptr %p{c}, align 4"
        )
    lines = [
        f"declare {vector} @llvm.fma.v{lanes}f32({vector}, {vector}, {vector})",
        f"define void @{machine_code.ENTRY}(ptr %buffers, i64 %begin, i64 %end) {{",
        f"  %x = load {vector}, ptr %buffers, align 4",
        "  br label %loop",
        "loop:",
        "  %i = phi i64 [%begin, %0], [%next, %loop]",
        *phis,
        *steps,
        "  %next = add i64 %i, 1",
        "  %more = icmp slt i64 %next, %end",
        "  br i1 %more, label %loop, label %done",
        "done:",
        *stores,
        "  ret void",
        "}",
    ]
    return "\n".join(lines)


def _fastest(call: Callable[[], object], runs: int = 5) -> float:
    call()
    best = float("inf")
    for _ in range(runs):
        before = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - before)
    return best
