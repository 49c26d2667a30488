"""mxu-kernels: planned products and fusions become kernels of transfers, weight pushes, matmuls, pops and vector code."""

from __future__ import annotations

from typing import ClassVar

from stablehlo_py.core.passes import Pass
from stablehlo_py.dialects import mxu
from stablehlo_py.machine.tpu import chip
from stablehlo_py.mlir import ir
from stablehlo_py.targets.tpu import emit
from stablehlo_py.targets.tpu.kernels.product_kernel import ProductKernel
from stablehlo_py.targets.tpu.kernels.vector_kernel import VectorKernel
from stablehlo_py.targets.tpu.passes.mxu_fuse import fusion_of
from stablehlo_py.targets.tpu.passes.mxu_tiles import split_of
from stablehlo_py.targets.tpu.planning.group import region_group


class MxuKernels(Pass):
    """Turn each mxu.tiled_contract and mxu.fusion into an mxu.kernel with one copy of each buffer.

    chip and vmem-limit are for fusions without a product; a product has them in its plan.
    """

    name: ClassVar[str] = "mxu-kernels"
    chip: str = "v5e"
    vmem_limit: int = 0

    def run(self, op: ir.Operation) -> None:
        mxu.load(op.context)
        machine = chip(self.chip)
        number = 0
        for found in emit.operations_named(op, "mxu.tiled_contract", "mxu.fusion"):
            if found.name == "mxu.tiled_contract" and fusion_of(found) is not None:
                continue  # its fusion makes the kernel
            group = region_group(found.regions[0].blocks[0]) if found.name == "mxu.fusion" else None
            with ir.InsertionPoint(found), found.location:
                if group is None:
                    value = ProductKernel(found).build(f"matmul.{number}")
                elif group.product is not None:
                    value = ProductKernel(group.product, group).build(f"matmul.{number}")
                else:
                    limit = machine.vmem_for_blocks(self.vmem_limit)
                    split = split_of(found) or "m"
                    value = VectorKernel(group, machine, limit, split).build(f"vector.{number}")
            emit.replace(found, value)
            number += 1
