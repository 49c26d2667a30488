"""One product, compiled and timed: what `tpu.time_gemm` does."""

from __future__ import annotations

import functools
import threading

from stablehlo_py.core.types import ElementType, TensorType, element_type
from stablehlo_py.dialects import mxu
from stablehlo_py.machine.tpu import chip
from stablehlo_py.mlir import func, ir, new_context
from stablehlo_py.simulator.program import Program, read_kernel
from stablehlo_py.targets.tpu import emit
from stablehlo_py.targets.tpu.passes.mxu_double_buffer import MxuDoubleBuffer
from stablehlo_py.targets.tpu.passes.mxu_kernels import MxuKernels
from stablehlo_py.targets.tpu.passes.mxu_tiles import MxuTiles

_lock = threading.Lock()  # the context below belongs to one thread at a time


@functools.cache
def _context() -> ir.Context:
    """One context for all products: making one costs more than compiling a product."""
    context = new_context()
    mxu.load(context)
    return context


@functools.lru_cache(maxsize=1024)
def compile_gemm(m: int, n: int, k: int, element: ElementType, chip_name: str, vmem_limit: int = 0) -> Program:
    """The kernel of [m,k] x [k,n], through the passes of the tpu pipeline."""
    chip(chip_name)
    out = element if element.is_float else element_type("i32")
    with _lock, _context(), ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            lhs, rhs = TensorType((1, m, k), element), TensorType((1, k, n), element)
            result = TensorType((1, m, n), out)
            function = func.FuncOp("gemm", ([lhs.mlir, rhs.mlir], [result.mlir]))
            with ir.InsertionPoint(function.add_entry_block()):
                # f32 goes through in one pass, as bf16: the default precision.
                lhs_value, rhs_value = function.arguments
                value = emit.contract(lhs_value, rhs_value, result, lhs_t=False, rhs_t=False, passes=1)
                func.ReturnOp([value])
        passes = (
            MxuTiles(chip=chip_name, vmem_limit=vmem_limit),
            MxuKernels(chip=chip_name),
            MxuDoubleBuffer(vmem_limit=vmem_limit),
        )
        for step in passes:
            step.run(module.operation)
        module.operation.verify()
        return read_kernel(emit.operations_named(module.operation, "mxu.kernel")[0])
