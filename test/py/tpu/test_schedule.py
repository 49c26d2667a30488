"""Kernels in their program: their order, prefetches behind them, places in fast memory, and what cores give each other."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from stablehlo_py.core.types import element_type
from stablehlo_py.machine.tpu import chip
from stablehlo_py.simulator import exchange, timed
from stablehlo_py.simulator.schedule import Launch, Start, Wait, prefetch_cycles, read_schedule, time_schedule
from stablehlo_py.targets.tpu.gemm import compile_gemm
from stablehlo_py.targets.tpu.passes.mxu_schedule import (
    Cost,
    Need,
    Range,
    first_fit,
    latest_starts,
    length,
    list_schedule,
)

from .kernels import compile_text, small_integers
from .test_memory import chain

BF16 = element_type("bf16")


def schedule_of(program):
    with program.module.context:
        return read_schedule(program.module.operation)


def test_weights_come_behind_the_layer_before():
    program = compile_text(chain(1024, [1024, 1024, 1024, 1024, 1024]))
    times = time_schedule(schedule_of(program), chip("v5e"))
    report = program.report()
    # Only what the first layer needs is waited for.
    assert times[0].stall > 0
    assert all(time.stall == 0 for time in times[1:])
    assert all(time.brought > 0 for time in times[:-1])
    assert report.seconds < sum(k.seconds for k in report.kernels) + 0.5 * report.prefetch_seconds
    for a, b in itertools.pairwise(times):
        assert b.start >= a.end


def test_without_room_it_waits():
    """Weights of 12 MB each for a chip of 16 MB: the CMEM of a v4 holds them; VMEM of this what-if does not."""
    program = compile_text(chain(256, [2048, 3072, 2048, 3072]), chip="v5p", vmem_limit=0)
    steps = schedule_of(program)
    assert sum(isinstance(s, Start) for s in steps) == sum(isinstance(s, Wait) for s in steps) == 3
    first = next(i for i, s in enumerate(steps) if isinstance(s, Launch))
    assert any(isinstance(s, Start) for s in steps[:first])


@pytest.mark.parametrize("size", [512, 1024, 4096])
def test_a_background_slows_and_is_hidden(size):
    """More in the background takes longer, what is left grows, and no cycle of the HBM is made out of nothing."""
    machine = chip("v5e")
    program = compile_gemm(size, size, size, BF16, "v5e")
    alone = timed.time_program(program, machine)
    before = alone
    for share in (0.1, 0.5, 1.0, 4.0):
        background = share * alone.cycles
        result = timed.time_program(program, machine, background=background)
        assert result.cycles >= before.cycles - 1e-6
        assert 0 <= result.left <= background
        assert background - result.left <= result.cycles
        before = result
    assert timed.time_program(program, machine, background=4 * alone.cycles).left > 0
    assert timed.time_program(program, machine).cycles == alone.cycles


def test_a_background_behind_a_run_cut_short():
    machine = chip("v5e")
    program = compile_gemm(4096, 4096, 4096, BF16, "v5e")
    background = 0.5 * timed.time_program(program, machine).cycles
    short, exact = (timed.time_program(program, machine, exact=e, background=background) for e in (False, True))
    assert short.cycles == pytest.approx(exact.cycles, rel=0.03)


def test_a_run_cut_short_is_not_below_its_work():
    """Nests after each other: what a few trips of each say is no less than the work of the busiest resource."""
    a, b, c = "tensor<64x300x1000xi8>", "tensor<64x301x1003xi8>", "tensor<1003x64x301xi8>"
    program = compile_text(
        f"""func.func @main(%x: {a}) -> {c} {{
      %z = stablehlo.constant dense<3> : tensor<i8>
      %p = stablehlo.pad %x, %z, low = [0, 0, 1], high = [0, 1, 2], interior = [0, 0, 0] : ({a}, tensor<i8>) -> {b}
      %t = stablehlo.transpose %p, dims = [2, 0, 1] : ({b}) -> {c}
      return %t : {c} }}""",
        chip="v4",
    )
    for kernel in program.kernels:
        result = timed.time_program(kernel, chip("v4"))
        assert result.cycles >= result.busy["DMA in"] + result.busy["DMA out"]


def test_first_fit():
    taken = [Range(0, 2, 0, 100), Range(1, 3, 150, 50), Range(4, 5, 0, 1000)]
    assert first_fit(taken, 0, 3, 50, 0, 1000) == 100
    assert first_fit(taken, 0, 3, 60, 0, 1000) == 200
    assert first_fit(taken, 3, 3, 150, 0, 1000) == 0
    assert first_fit(taken, 3, 4, 10, 0, 1000) is None
    assert first_fit([], 0, 0, 10, 90, 100) == 90


def test_latest_starts():
    def need(kernel: int, cycles: float, size: int = 10, earliest: int = 0) -> Need:
        return Need(kernel, 1, "vmem", False, size, cycles, earliest)

    idle = [100.0, 100.0, 100.0, 100.0]
    # Each as late as it can be, one after the other.
    starts = latest_starts([need(1, 50.0), need(2, 150.0), need(3, 60.0)], idle, 0, 1000)
    assert [r.first for r in starts] == [0, 0, 2]
    # Not before what it is made of, nor where there is no room.
    (late,) = latest_starts([need(3, 500.0, earliest=2)], idle, 0, 1000)
    assert late.first == 2
    starts = latest_starts([need(2, 50.0, size=700), need(3, 500.0, size=700)], idle, 0, 1000)
    assert [r.first for r in starts] == [1, 3]


@pytest.mark.parametrize("seed", range(40))
def test_latest_starts_never_overlap(seed):
    """Each kernel's own needs fit together, as its plan sees to; then there is always an answer."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, 12))
    needs = [Need(k, 1, "vmem", False, int(rng.integers(1, 101)), float(rng.integers(0, 300)), 0) for k in range(count)]
    idle = [float(rng.integers(0, 200)) for _ in range(count)]
    starts = latest_starts(needs, idle, 7, 107)
    for own, need in zip(starts, needs, strict=True):
        assert own.first <= own.last == need.kernel
        assert own.offset >= 7
        assert own.offset + own.bytes <= 107
    for a, b in itertools.combinations(starts, 2):
        together = a.first <= b.last and b.first <= a.last
        assert not together or a.offset + a.bytes <= b.offset or b.offset + b.bytes <= a.offset


def test_list_schedule_puts_work_before_what_waits():
    """A kernel that needs 1000 cycles of the HBM comes behind one that leaves it idle; dependences hold."""
    costs = {0: Cost(100, 0, 1000), 1: Cost(1200, 0, 0), 2: Cost(50, 50, 0)}
    order = list_schedule([0, 1, 2], {0: set(), 1: set(), 2: {0}}, costs)
    assert order == [1, 0, 2]
    assert length(order, costs) < length([0, 1, 2], costs)
    assert list_schedule([0, 1, 2], {0: set(), 1: {0}, 2: {1}}, costs) == [0, 1, 2]


def test_another_order_has_the_same_values():
    """Two branches, the first with large weights: it comes second, and the numbers are the same."""
    text = """func.func @main(%x: tensor<512x512xbf16>, %w: tensor<512x4096xbf16>, %v: tensor<512x512xbf16>)
        -> (tensor<512x4096xbf16>, tensor<512x512xbf16>) {
      %a = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
        : (tensor<512x512xbf16>, tensor<512x4096xbf16>) -> tensor<512x4096xbf16>
      %b = stablehlo.dot_general %x, %v, contracting_dims = [1] x [0]
        : (tensor<512x512xbf16>, tensor<512x512xbf16>) -> tensor<512x512xbf16>
      return %a, %b : tensor<512x4096xbf16>, tensor<512x512xbf16> }"""
    program = compile_text(text)
    assert [k.label for k in program.report().kernels] == ["matmul.1", "matmul.0"]
    rng = np.random.default_rng(40)
    x, w, v = (small_integers(rng, s, "bf16") for s in ((512, 512), (512, 4096), (512, 512)))
    for ours, b in zip(program(x, w, v), (w, v), strict=True):
        expected = (x.astype(np.float32) @ b.astype(np.float32)).astype(x.dtype)
        np.testing.assert_array_equal(ours, expected)


def test_layers_exchange_nothing():
    """Rows of one layer are rows of the next on the same core; by columns each would need what the other has."""
    report = compile_text(chain(2048, [1024, 1024, 1024]), chip="v5p").report()
    assert {k.split for k in report.kernels} == {"rows"}
    assert report.crossing_bytes == 0


@pytest.mark.parametrize("second", ["m", "n"])
def test_crossing_is_counted_from_the_kernels(second, monkeypatch):
    """Weights made by columns: a kernel that is split by rows needs all of them on both cores, each lacks one half."""
    from stablehlo_py.targets.tpu.passes import mxu_split_cores

    def only(sizes, tables):
        return {v: mxu_split_cores.SPLITS.index("n" if v == 0 else second) for v in sizes}

    monkeypatch.setattr(mxu_split_cores, "choose", only)
    text = """func.func @main(%x: tensor<2048x1024xbf16>, %w: tensor<1024x1024xbf16>, %y: tensor<4096x2048xbf16>)
        -> tensor<4096x1024xbf16> {
      %a = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
        : (tensor<2048x1024xbf16>, tensor<1024x1024xbf16>) -> tensor<2048x1024xbf16>
      %r = stablehlo.dot_general %y, %a, contracting_dims = [1] x [0]
        : (tensor<4096x2048xbf16>, tensor<2048x1024xbf16>) -> tensor<4096x1024xbf16>
      return %r : tensor<4096x1024xbf16> }"""
    report = compile_text(text, chip="v5p").report()
    assert [k.split for k in report.kernels] == ["columns", {"m": "rows", "n": "columns"}[second]]
    assert report.crossing_bytes == (0 if second == "n" else 2 * 2048 * 1024)
    assert (report.exchange_seconds > 0) == (report.crossing_bytes > 0)


@pytest.mark.parametrize("split", ["m", "n", "b", "whole"])
def test_every_split_gives_the_same_numbers(split, monkeypatch):
    from stablehlo_py.targets.tpu.passes import mxu_split_cores

    def only(sizes, tables):
        return dict.fromkeys(sizes, mxu_split_cores.SPLITS.index(split))

    monkeypatch.setattr(mxu_split_cores, "choose", only)
    text = """func.func @main(%x: tensor<5x70x96xbf16>, %w: tensor<5x96x150xbf16>) -> tensor<5x70x150xbf16> {
      %a = stablehlo.dot_general %x, %w, batching_dims = [0] x [0], contracting_dims = [2] x [1]
        : (tensor<5x70x96xbf16>, tensor<5x96x150xbf16>) -> tensor<5x70x150xbf16>
      %r = stablehlo.abs %a : tensor<5x70x150xbf16>
      return %r : tensor<5x70x150xbf16> }"""
    program = compile_text(text, chip="v4-megacore")
    (kernel,) = program.report().kernels
    assert kernel.split == {"m": "rows", "n": "columns", "b": "batch", "whole": "both"}[split]
    rng = np.random.default_rng(41)
    x, w = small_integers(rng, (5, 70, 96), "bf16"), small_integers(rng, (5, 96, 150), "bf16")
    expected = np.abs(x.astype(np.float32) @ w.astype(np.float32)).astype(x.dtype)
    np.testing.assert_array_equal(program(x, w)[0], expected)
    cores = chip("v4-megacore").cores
    masks = exchange.touched(program.kernels[0], program.kernels[0].outputs[0], cores)
    assert np.logical_or(*masks).all()
    # Cores do not write the same tiles, but where both do all of it.
    assert np.logical_and(*masks).any() == (split == "whole")


def test_prefetches_move_their_share():
    machine = chip("v5p")
    whole, shared = (prefetch_cycles(Start(0, 1 << 20, s, "vmem"), machine) for s in (False, True))
    assert whole == 2 * shared
    megacore = chip("v4-megacore")
    a, b = (prefetch_cycles(Start(0, 1 << 20, s, "cmem"), megacore) for s in (False, True))
    assert a == b
