"""mma.sync: a warp multiplies two matrices whose elements lie spread over its lanes, as the PTX manual draws them."""

from __future__ import annotations

import numpy as np

from stablehlo_py.simulator.ptx.machine import WARP, Lanes, Machine, Step
from stablehlo_py.simulator.ptx.parse import DTYPES, Instruction, PtxError

_LANE = np.arange(WARP)
_GROUP, _QUAD = _LANE >> 2, _LANE & 3


def compile_mma(machine: Machine, i: Instruction) -> Step:
    """D = A B + C for m16n8k16 of f16 or bf16 with f32 sums; the sums are exact here and rounded once."""
    if not i.has("m16n8k16") or i.modifiers[-4] != "f32" or i.type != "f32" or not (i.has("f16") or i.has("bf16")):
        raise PtxError(f"instruction {i.text} is not simulated")
    dtype = DTYPES[i.modifiers[-3]]
    d, a, b, c = ([p.strip() for p in operand.strip("{}").split(",")] for operand in i.operands)
    writes = [machine.write(r) for r in d]
    read_a, read_b = [machine.read(r, "b32") for r in a], [machine.read(r, "b32") for r in b]
    read_c = [machine.read(r, "f32") for r in c]

    def step(lanes: Lanes) -> None:
        if (machine.lane_in_warp[lanes] != np.arange(len(lanes)) % WARP).any():
            raise PtxError("a warp is split at an instruction that all its threads must take together")
        lhs = np.zeros((len(lanes) // WARP, 16, 16))
        rhs = np.zeros((len(lanes) // WARP, 16, 8))
        for number, read in enumerate(read_a):
            pair = _halves(read(lanes), dtype)
            for half in range(2):
                lhs[:, _GROUP + 8 * (number % 2), 2 * _QUAD + half + 8 * (number // 2)] = pair[:, :, half]
        for number, read in enumerate(read_b):
            pair = _halves(read(lanes), dtype)
            for half in range(2):
                rhs[:, 2 * _QUAD + half + 8 * number, _GROUP] = pair[:, :, half]
        product = lhs @ rhs
        for number, (read, write) in enumerate(zip(read_c, writes, strict=True)):
            part = product[:, _GROUP + 8 * (number // 2), 2 * _QUAD + number % 2].reshape(-1)
            write(lanes, (part + read(lanes)).astype(np.float32))

    return step


def _halves(words: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """[warp, lane, 2] values of the two 16-bit floats in each register."""
    return np.ascontiguousarray(words).view(dtype).reshape(-1, WARP, 2).astype(np.float64)
