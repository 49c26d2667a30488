"""What kernels for a CPU are shaped by: vector registers and caches.

Numbers of a cache hierarchy: AMD's software optimisation guide for Zen 4 (32 KiB L1 data, 1 MiB L2 a core) and Intel's
for the Skylake server family (32 KiB, 1 MiB; from Sapphire Rapids on 48 KiB, 2 MiB); cores without AVX-512 have half of the
L2 or a quarter, which the block sizes here leave room for.
"""

from __future__ import annotations

import functools

from stablehlo_py.records import record


@record
class Cpu:
    """vector_bytes: of one register; registers: how many there are; l1, l2: bytes of the caches of one core."""

    vector_bytes: int
    registers: int
    l1: int = 32 << 10
    l2: int = 1 << 20
    bf16_dot: bool = False  # vdpbf16ps, as many a cycle as multiply-adds of f32
    int8_dot: bool = False  # vpdpbusd and vpdpwssd on whole registers
    int16_pairs: bool = False  # vpmaddwd on whole registers, and an instruction that widens bytes
    masks: bool = False  # loads and stores of some lanes, for elements of every size
    float_steps: bool = False  # vrangeps, vfixupimmps and vscalefps
    fetches_ahead: bool = False  # by itself, what is read next: of one stream as far as memory allows, of several rows
    # ops of a loop's step, most of which wait for the one before: from so many on two vectors a step pay, since a core sees
    # few such steps at once and has instructions for two. On a Zen 3, which looks 256 ops ahead, 1.35 times the speed for
    # powers and normal random numbers, 1.1 for tanh; on a Sapphire Rapids, which has 97 waiting, 1.1 for exp as well
    chain: int = 24
    # bytes: how far ahead a loop over long buffers asks all the same, 0 where nobody measured that it pays
    asks_ahead: int = 0
    # whether the largest element of a row is looked for beside the work on the row before: it takes registers, and what one
    # core sees at once does not reach that far by itself. Measured on a Sapphire Rapids alone
    rows_early: bool = False
    bf16_tiles: bool = False  # tdpbf16ps: products of tiles of 16 rows of 64 bytes
    int8_tiles: bool = False  # tdpbssd and the like

    def lanes(self, element_bytes: int) -> int:
        """Elements in one vector register."""
        return self.vector_bytes // element_bytes


@functools.lru_cache(maxsize=16)
def cpu_of(features: str) -> Cpu:
    """The CPU that LLVM's feature string describes; AArch64 has none of these names and 128-bit vectors."""
    has = {name[1:] for name in features.split(",") if name.startswith("+")}
    if "avx512f" in has and "avx512vl" in has:
        amd = "sse4a" in has
        large = {"l1": 48 << 10, "l2": 2 << 20} if "avx512fp16" in has else {}
        return Cpu(
            64,
            32,
            **large,
            # a Sapphire Rapids takes four times as long for one, so that bf16 widened to f32 is multiplied twice as fast
            bf16_dot="avx512bf16" in has and amd,
            int8_dot="avx512vnni" in has,
            int16_pairs="avx512bw" in has,
            masks="avx512bw" in has,
            float_steps="avx512dq" in has,
            # measured on a Sapphire Rapids, and not on Intel's smaller cores
            fetches_ahead=not amd,
            chain=24 if amd else 8,
            asks_ahead=0 if amd else 2048,
            rows_early=not amd,
            bf16_tiles={"amx-tile", "amx-bf16"} <= has,
            int8_tiles={"amx-tile", "amx-int8"} <= has,
        )
    if "avx2" in has:
        return Cpu(32, 16, l2=512 << 10, int16_pairs=True)
    return Cpu(16, 32 if "neon" in has else 16, int16_pairs="sse4.2" in has)
