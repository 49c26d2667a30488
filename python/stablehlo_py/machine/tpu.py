"""TPU-like chips: what is known of each TensorCore, number by number with its source, and what was calibrated.

`Chip` holds specified and derived numbers; `Calibration` holds the constants that were fitted to measurements and are no
property that anyone has published. Sources:

- [info]  `jax.experimental.pallas.tpu.get_tpu_info_for_chip` (JAX, Apache-2.0), figures of one TensorCore
- [docs]  cloud.google.com/tpu/docs/{v4,v5e,v5p,v6e}
- [book]  jax-ml.github.io/scaling-book/tpus
- [xla]   read off the estimates and memory reports that the XLA:TPU compiler writes ahead of time
- [derived] arithmetic on the others; the formula stands beside the number
- [assumed] no source; a plausible value that is stated so that it can be changed
"""

from __future__ import annotations

from stablehlo_py.records import record, replace

MIB = 1 << 20


@record
class Calibration:
    """Constants fitted to measured products; `fitted_on` says which, `folds` the errors of the cross-validation."""

    launch_seconds: float  # from the start of a kernel to its first transfer, and from its last to its end
    mxu_efficiency: float  # share of the issue slots that the matrix units really get
    hbm_efficiency: float  # share of the nominal HBM bandwidth that transfers reach
    overlap_rate: float  # speed of MXU and DMA, each, while both are busy (they share the ports of VMEM)
    fitted_on: str = ""
    folds: tuple[float, ...] = ()  # mean absolute percentage error on each held-out fold


@record
class Chip:
    """What one program runs on: `cores` TensorCores that share a program (2 is megacore); sizes are per core."""

    name: str
    cores: int
    mxus: int  # matrix units of a core
    mxu_dim: int  # rows and columns of one matrix unit
    weight_tile: int  # rows and columns of the weights that one push loads: a part of a unit can work on its own
    rows_per_cycle: int  # rows of activations that one matrix unit takes per cycle
    push_rows_per_cycle: int  # rows of weights that one matrix unit takes per cycle
    lanes: int
    sublanes: int
    vpu_alus: int  # lanes x sublanes x ALUs of the vector unit
    clock_hz: float
    vmem_bytes: int
    vmem_limit_bytes: int  # what one kernel may use for its blocks
    cmem_bytes: int
    smem_bytes: int
    hbm_bytes: int
    hbm_bytes_per_second: float
    cmem_bytes_per_second: float
    core_bytes_per_second: float  # from one core's VMEM to the other's
    barrier_cycles: float  # until all cores have come to a barrier
    dma_issue_cycles: float  # a queue is busy with each transfer for so long, beside moving its bytes
    int8_rate: float  # speed of int8 products, bf16 being 1
    calibration: Calibration

    @property
    def tiles_at_once(self) -> int:
        """Weight tiles that all units of a core hold."""
        return self.mxus * (self.mxu_dim // self.weight_tile) ** 2

    @property
    def macs_per_cycle(self) -> int:
        """Multiply-accumulates of one core per cycle."""
        return self.mxus * self.mxu_dim * self.mxu_dim * self.rows_per_cycle

    @property
    def peak_flops(self) -> float:
        """bf16 operations per second of all cores."""
        return 2.0 * self.cores * self.macs_per_cycle * self.clock_hz

    @property
    def prefetch_space(self) -> str:
        """Where an operand that a kernel needs is brought before it starts: cmem where there is one."""
        return "cmem" if self.cmem_bytes else "vmem"

    def vmem_for_blocks(self, asked: int = 0) -> int:
        """How much VMEM the blocks of one kernel may take: what is asked for, if it is there; 0 asks for the usual limit."""
        return min(asked or self.vmem_limit_bytes, self.vmem_bytes)

    def prefetch_bytes(self, blocks: int) -> int:
        """How much may be brought there, beside kernels whose blocks take `blocks` bytes: in the CMEM that the cores of
        a chip have together, or in the VMEM that each has for itself."""
        return self.cmem_bytes * self.cores if self.cmem_bytes else self.vmem_bytes - blocks

    def held_bytes(self, size: int, shared: bool) -> int:
        """What an array of `size` bytes takes there; shared: each core needs its share of it only."""
        return size // self.cores if shared and not self.cmem_bytes else size

    @property
    def vmem_bytes_per_second(self) -> float:
        """Within the VMEM of one core: [book] about 22 times HBM."""
        return 22 * self.hbm_bytes_per_second

    @property
    def hbm_bytes_per_cycle(self) -> float:
        """Of one core, as calibrated."""
        return self.hbm_bytes_per_second * self.calibration.hbm_efficiency / self.clock_hz

    def replace(self, **changes: object) -> Chip:
        """The same chip with other numbers, for a what-if."""
        return replace(self, **changes)  # type: ignore[arg-type]


# Fitted by `python -m stablehlo_py.targets.tpu.calibrate` on measured products of a whole chip, 5-fold cross-validated.
_V4_FIT = Calibration(
    launch_seconds=0.836e-6,
    mxu_efficiency=0.979,
    hbm_efficiency=0.885,
    overlap_rate=0.83,
    fitted_on="30 bf16 products on v4-megacore",
    folds=(8.2, 8.2, 10.4, 5.0, 5.9),
)
_V6E_FIT = Calibration(
    launch_seconds=0.661e-6,
    mxu_efficiency=0.934,
    hbm_efficiency=0.968,
    overlap_rate=0.742,
    fitted_on="34 bf16 products on v6e",
    folds=(9.3, 15.6, 7.9, 8.0, 6.5),
)
# No measured products of these chips were at hand. Their arrays are v4's, so v4's constants stand in: [assumed].
_V5_FIT = replace(_V4_FIT, fitted_on="not fitted: the constants of v4, whose arrays they have", folds=())

V4 = Chip(
    name="v4",
    cores=1,
    mxus=4,  # [info] [docs]
    mxu_dim=128,  # [info]
    weight_tile=128,  # the whole unit
    rows_per_cycle=1,  # [derived] 275e12 / 2 cores / (2 * 4 * 128 * 128) = 1.05 GHz at one row per cycle
    push_rows_per_cycle=2,  # [xla] 8x4096x4096 costs (19329 - 1680) * 4 / 1024 = 69 cycles per 128-row weight tile
    lanes=128,  # [info]
    sublanes=8,  # [info]
    vpu_alus=2048,  # [book] 2 ALUs in each of 8 x 128 lanes
    clock_hz=1.05e9,  # [derived] as above
    vmem_bytes=16 * MIB,  # [info]
    vmem_limit_bytes=16 * MIB,  # [xla] the largest kernel seen used 14.7 MiB
    cmem_bytes=67_000_000,  # [info] half of the chip's 134 MB
    smem_bytes=1 * MIB,  # [info]
    hbm_bytes=17_200_000_000,  # [info] half of the chip's 32 GiB
    hbm_bytes_per_second=614.4e9,  # [docs] 1228.8 GB/s a chip, halved [derived]
    cmem_bytes_per_second=4 * 614.4e9,  # [assumed]
    core_bytes_per_second=614.4e9,  # [assumed] as from HBM
    barrier_cycles=100,  # [assumed] counted when a split is chosen; in measured times it is a part of the launch
    dma_issue_cycles=64,  # [assumed]
    int8_rate=1.0,  # [docs] "275 TFLOPS bf16 or int8"
    calibration=_V4_FIT,
)
V4_MEGACORE = V4.replace(name="v4-megacore", cores=2)
V5E = Chip(
    name="v5e",
    cores=1,
    mxus=4,  # [info]
    mxu_dim=128,  # [info]
    weight_tile=128,  # the whole unit
    rows_per_cycle=1,  # [derived] as for v4
    push_rows_per_cycle=4,  # [xla] 8x4096x4096: (13048 - 4098) * 4 / 1024 = 35 cycles per 128-row weight tile
    lanes=128,  # [info]
    sublanes=8,  # [info]
    vpu_alus=4096,  # [book] 4 additions per lane and cycle
    clock_hz=1.503e9,  # [derived] 197e12 / (2 * 4 * 128 * 128)
    vmem_bytes=128 * MIB,  # [info]
    vmem_limit_bytes=16 * MIB,  # [xla] the largest kernel seen used 15.5 MiB
    cmem_bytes=0,  # [info]
    smem_bytes=1 * MIB,  # [info]
    hbm_bytes=17_200_000_000,  # [info]
    hbm_bytes_per_second=819e9,  # [docs]
    cmem_bytes_per_second=0.0,
    core_bytes_per_second=819e9,  # [assumed] as from HBM
    barrier_cycles=100,  # [assumed]
    dma_issue_cycles=64,  # [assumed]
    int8_rate=2.0,  # [docs] 393 TOPS
    calibration=_V5_FIT,
)
V5P = V5E.replace(
    name="v5p",
    cores=2,  # [docs] megacore by default
    clock_hz=1.751e9,  # [derived] 459e12 / (2 * 2 * 4 * 128 * 128)
    vmem_bytes=64 * MIB,  # [info]
    vmem_limit_bytes=16 * MIB,  # [xla] the largest kernel seen used 15.0 MiB
    hbm_bytes=51_500_000_000,  # [info]
    hbm_bytes_per_second=1382.5e9,  # [docs] 2765 GB/s a chip, halved; [info] says 1230e9
    core_bytes_per_second=1382.5e9,  # [assumed] as from HBM
)
V6E = V5E.replace(
    name="v6e",
    mxus=2,  # [info] [docs]
    mxu_dim=256,  # [info]
    weight_tile=128,  # [derived] 3325x96x3260 measures 5.38 us: with 256 columns at a time it would be 6.2 us at peak
    rows_per_cycle=2,  # [derived] 918e12 / (2 * 2 * 256 * 256) would be 3.5 GHz at one row per cycle
    push_rows_per_cycle=1,  # [derived] 5x3517x4199 measures 9.98 us: 116 weight tiles a part at 128 cycles each
    clock_hz=1.751e9,  # [derived] 918e12 / (2 * 2 * 256 * 256 * 2)
    vmem_bytes=128 * MIB,  # [info]
    vmem_limit_bytes=32 * MIB,  # [xla] the largest kernel seen used 30.1 MiB
    hbm_bytes=34_400_000_000,  # [info]
    hbm_bytes_per_second=1638e9,  # [docs]
    core_bytes_per_second=1638e9,  # [assumed] as from HBM
    calibration=_V6E_FIT,
)

CHIPS: dict[str, Chip] = {chip.name: chip for chip in (V4, V4_MEGACORE, V5E, V5P, V6E)}


def chip(name: str) -> Chip:
    """The chip called `name`."""
    if name not in CHIPS:
        raise ValueError(f"chip {name!r} is not known; known are {', '.join(CHIPS)}")
    return CHIPS[name]
