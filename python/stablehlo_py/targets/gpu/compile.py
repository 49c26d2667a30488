"""StableHLO to PTX: the gpu pipeline, then the Program of @main, then PTX of each kernel by llvmlite."""

from __future__ import annotations

from stablehlo_py.core import pipeline
from stablehlo_py.errors import CompileError
from stablehlo_py.machine.gpu import gpu_chip
from stablehlo_py.mlir import ir
from stablehlo_py.targets.gpu.plans import plans_of, ptx_of
from stablehlo_py.targets.gpu.program import GpuProgram
from stablehlo_py.transforms.kernels.build_program import KernelInfo, build_program
from stablehlo_py.transforms.kernels.hlo_form_kernels import KERNEL
from stablehlo_py.transforms.kernels.kernels_to_memref import SCRATCH, inplace_pairs, numbers


def compile_ptx(module: ir.Module, *, chip: str = "sm_80") -> GpuProgram:
    """The kernels of a StableHLO module for an NVIDIA chip; `module` stays as it is."""
    target = gpu_chip(chip)
    with module.context, ir.Location.unknown():
        work = ir.Module.create(loc=module.operation.location)
        for op in module.body.operations:
            work.body.append(op.operation.clone())
        mains: list[ir.Module] = []

        def keep_main(stage: str, now: ir.Operation) -> None:
            if stage == "kernels":
                mains.append(_main(now))

        pipeline.run(pipeline.load("gpu"), work.operation, on_stage=keep_main)
        functions = {
            ir.StringAttr(f.operation.attributes["sym_name"]).value: f.operation
            for f in work.body.operations
            if KERNEL in f.operation.attributes
        }
        infos = {name: KernelInfo(numbers(f, SCRATCH), tuple(inplace_pairs(f))) for name, f in functions.items()}
        program = build_program(mains[0].body.operations[0].operation, infos)
        return GpuProgram(chip, ptx_of(work.operation, target), plans_of(work.operation), program)


def _main(module: ir.Operation) -> ir.Module:
    """A copy of @main, which the Program is built from."""
    found = [f.operation for f in module.regions[0].blocks[0].operations if KERNEL not in f.operation.attributes]
    if len(found) != 1:
        raise CompileError(f"a program has one function, this one has {len(found)}")
    alone = ir.Module.create(loc=ir.Location.unknown())
    alone.body.append(found[0].clone())
    return alone
