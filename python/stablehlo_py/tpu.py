"""A TPU-like chip one can reason about: how a product would be tiled and how long it would take. A model, not a TPU.

time_gemm(4096, 4096, 4096, chip="v5e").seconds
tiled_layout((300, 500), "bf16").text      # {1,0:T(8,128)(2,1)}
"""

from __future__ import annotations

from stablehlo_py.machine.tpu import CHIPS as CHIPS
from stablehlo_py.machine.tpu import chip as _chip
from stablehlo_py.records import record
from stablehlo_py.simulator import timed, units
from stablehlo_py.targets.tpu.gemm import compile_gemm
from stablehlo_py.targets.tpu.planning.layout import TiledLayout as TiledLayout
from stablehlo_py.targets.tpu.planning.layout import as_element
from stablehlo_py.targets.tpu.planning.layout import tiled_layout as _tiled_layout

MODES = ("overlap", "scalesim")


@record
class Timing:
    """cycles and seconds of the product on the whole chip; utilisation: of the matrix units' peak; vmem_peak: bytes."""

    cycles: float
    seconds: float
    utilisation: float
    vmem_peak: int


def time_gemm(m: int, n: int, k: int, *, dtype: object = "bf16", chip: str = "v4", mode: str = "overlap") -> Timing:
    """The time of [m,k] x [k,n] on a chip, compiled for it and run by the event simulation.

    mode "scalesim" is one array of the chip without any overlap, as SCALE-Sim counts cycles of a weight-stationary array.
    """
    if min(m, n, k) < 1:
        raise ValueError(f"a product of {m}x{n}x{k} has no elements")
    if mode not in MODES:
        raise ValueError(f"mode {mode!r} is not known; it is {' or '.join(MODES)}")
    machine = _chip(chip)
    element = as_element(dtype)
    if mode == "scalesim":
        cycles = units.systolic_cycles(m, k, n, dim=machine.mxu_dim)
        ideal = m * n * k / machine.mxu_dim**2
        return Timing(cycles, cycles / machine.clock_hz, ideal / cycles, 0)
    program = compile_gemm(m, n, k, element, chip)
    result = timed.time_program(program, machine)
    rate = machine.int8_rate if element.bits <= 8 else 1.0
    ideal = m * n * k / (machine.macs_per_cycle * machine.cores * rate)
    return Timing(result.cycles, result.seconds(machine), ideal / result.cycles, program.bytes_in("vmem"))


def tiled_layout(shape: tuple[int, ...], dtype: object, *, chip: str = "v5e") -> TiledLayout:
    """How an array is laid out in tiles (`.text`, as XLA prints it) and how many bytes that takes (`.bytes`)."""
    return _tiled_layout(tuple(shape), dtype, machine=_chip(chip))
