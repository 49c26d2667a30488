"""NVIDIA chips as the code generator needs to know them.

Numbers of the CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability", and of the PTX ISA
manual, "Target ISA notes": ptx is the first version that knows the chip and what we emit for it.
"""

from __future__ import annotations

from stablehlo_py.errors import CompileError
from stablehlo_py.records import record


@record
class GpuChip:
    """One compute capability."""

    name: str
    ptx: int  # 70 is PTX ISA 7.0
    warp: int  # threads that run in step
    max_block_threads: int
    shared_bytes: int  # that a block may use without asking for more
    max_shared_bytes: int  # that a block may use when it asks


CHIPS = {
    chip.name: chip
    for chip in (
        GpuChip("sm_80", 70, 32, 1024, 48 << 10, 163 << 10),
        GpuChip("sm_86", 71, 32, 1024, 48 << 10, 99 << 10),
        GpuChip("sm_89", 78, 32, 1024, 48 << 10, 99 << 10),
        GpuChip("sm_90", 78, 32, 1024, 48 << 10, 227 << 10),
    )
}


def gpu_chip(name: str) -> GpuChip:
    """The chip `name`, such as sm_80."""
    chip = CHIPS.get(name)
    if chip is None:
        raise CompileError(f"GPU chip {name} is not known", hint=f"known are {', '.join(CHIPS)}")
    return chip
