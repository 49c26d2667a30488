"""The NVIDIA target: kernels through the gpu and NVVM dialects to PTX."""

from stablehlo_py.targets.gpu import lower_gather as lower_gather
from stablehlo_py.targets.gpu.compile import compile_ptx
from stablehlo_py.targets.gpu.program import GpuProgram, Launch, Plan

__all__ = ["GpuProgram", "Launch", "Plan", "compile_ptx"]
