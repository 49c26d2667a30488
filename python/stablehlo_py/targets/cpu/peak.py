"""What one core of this machine can do: loops of multiply-adds in registers, and a copy too large for the caches."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Mapping

import numpy as np

from stablehlo_py.machine.cpu import cpu_of
from stablehlo_py.targets import machine_code
from stablehlo_py.targets.cpu.code import codegen
from stablehlo_py.targets.cpu.emit.matrix_tiles import LANES, ROWS, shapes
from stablehlo_py.targets.cpu.features import host
from stablehlo_py.targets.cpu.products.matrix_tile import SUMS, form_of_tiles
from stablehlo_py.targets.cpu.products.product_forms import Form, form_of

CHAINS = 12  # independent sums: more than latency times rate of any core so far, and they fit 16 registers
STEPS = 200_000
COPY_BYTES = 64 << 20


def flops_per_second(element: str = "f32") -> float:
    """Operations of one core in products of `element`, two for each multiply-add, by the instruction that products use."""
    cpu = cpu_of(host()[1])
    form = form_of_tiles(element, cpu) or form_of(element, cpu, accumulates=False)
    text = _tile_multiply_adds(form) if form.tiles else _multiply_adds(form)
    code = machine_code.Code([codegen.make_object(text, machine_code.CodegenOptions())])
    kernel = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(code.addresses[0])
    memory = np.zeros(CHAINS * form.lanes * form.bytes, np.uint8)
    best = _fastest(lambda: kernel(memory.ctypes.data, 0, STEPS))
    sums = SUMS * ROWS * LANES * LANES if form.tiles else CHAINS * form.lanes
    return 2.0 * sums * form.group * STEPS / best


def mixed_flops_per_second(flops: Mapping[str, int]) -> float:
    """What one core can do of work that has so many flops of each element; that of f32 where there are none."""
    asked = {element: count for element, count in flops.items() if count} or {"f32": 1}
    return sum(asked.values()) / sum(count / flops_per_second(element) for element, count in asked.items())


def bytes_per_second() -> float:
    """Of a copy by one core, read and written."""
    source, target = np.ones(COPY_BYTES, np.uint8), np.ones(COPY_BYTES, np.uint8)
    return 2.0 * COPY_BYTES / _fastest(lambda: np.copyto(target, source))


def _multiply_adds(form: Form) -> str:
    """for i in begin .. end: sum[c] = sum[c] + x * x, for each chain; the sums are stored so that none is idle."""
    if form.group == 1:
        sums = taken = f"<{form.lanes} x {'double' if form.element == 'f64' else 'float'}>"
        name = f"llvm.fma.v{form.lanes}f{8 * form.bytes}"
    else:
        sums = f"<{form.lanes} x {'float' if form.element == 'bf16' else 'i32'}>"
        part = "bfloat" if form.element == "bf16" else f"i{32 // form.group}"
        taken = f"<{form.lanes * form.group} x {part}>"
        name = form.dot
    phis, steps, stores = [], [], []
    for c in range(CHAINS):
        phis.append(f"  %s{c} = phi {sums} [zeroinitializer, %0], [%n{c}, %loop]")
        if form.group == 1:
            steps.append(f"  %n{c} = call {sums} @{name}({taken} %x, {taken} %x, {sums} %s{c})")
        elif form.adds:
            steps.append(f"  %n{c} = call {sums} @{name}({sums} %s{c}, {taken} %x, {taken} %x)")
        else:  # of the sum itself, so that the product is not one for all steps
            steps += [
                f"  %f{c} = bitcast {sums} %s{c} to {taken}",
                f"  %p{c} = call {sums} @{name}({taken} %f{c}, {taken} %x)",
                f"  %n{c} = add {sums} %s{c}, %p{c}",
            ]
        stores.append(
            f"  %place{c} = getelementptr i8, ptr %buffers, i64 {c * form.lanes * form.bytes}\n"
            f"  store {sums} %n{c}, ptr %place{c}, align 4"
        )
    factors = f"{taken}, {taken}"
    order = f"{factors}, {sums}" if form.group == 1 else f"{sums}, {factors}" if form.adds else factors
    lines = [
        f"declare {sums} @{name}({order})",
        f"define void @{machine_code.ENTRY}(ptr %buffers, i64 %begin, i64 %end) {{",
        f"  %x = load {taken}, ptr %buffers, align 4",
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


def _tile_multiply_adds(form: Form) -> str:
    """for i in begin .. end: sum[c] += x * y on matrix tiles, for as many tiles of sums as products have."""
    rows = "".join(f"  call void @{form.dot}(i8 {c}, i8 {SUMS + c // 2}, i8 {SUMS + 2 + c % 2})\n" for c in range(SUMS))
    numbers = ", ".join(f"i8 {number}" for number in shapes())
    return f"""@shapes = internal constant [64 x i8] [{numbers}]
declare void @llvm.x86.ldtilecfg(ptr)
declare void @llvm.x86.tilerelease()
declare void @{form.dot}(i8, i8, i8)
define void @{machine_code.ENTRY}(ptr %buffers, i64 %begin, i64 %end) {{
  call void @llvm.x86.ldtilecfg(ptr @shapes)
  br label %loop
loop:
  %i = phi i64 [%begin, %0], [%next, %loop]
{rows}  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %done
done:
  call void @llvm.x86.tilerelease()
  ret void
}}
"""


def _fastest(call: Callable[[], object], runs: int = 5) -> float:
    call()
    best = float("inf")
    for _ in range(runs):
        before = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - before)
    return best
