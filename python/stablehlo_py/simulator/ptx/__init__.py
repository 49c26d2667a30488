"""A functional simulator of PTX: runs the text that a driver would get, on NumPy, without a GPU.

All threads of a grid step together, instruction by instruction; threads that branch apart follow the lowest address
first, so they meet again. Reads outside an allocation, reads of memory and registers that nobody wrote (poison),
barriers that not all threads reach and shuffles in split warps are found. Time is not modelled.
"""

from stablehlo_py.simulator.ptx.machine import Memory, PtxError, run

__all__ = ["Memory", "PtxError", "run"]
