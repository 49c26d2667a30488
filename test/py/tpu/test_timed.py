"""Times: closed forms against simulations of what they stand for, and what must hold for any product."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from stablehlo_py import tpu
from stablehlo_py.core.types import element_type
from stablehlo_py.machine.tpu import CHIPS, chip
from stablehlo_py.simulator import events, timed, units
from stablehlo_py.targets.tpu.gemm import compile_gemm

BF16 = element_type("bf16")


def systolic_array(rows: int, dim: int) -> int:
    """Cycles of one fold of a dim x dim weight-stationary array, by moving its data a cell a cycle."""
    cycle = 0
    loaded = 0
    while loaded < dim:  # weights move down a row a cycle
        loaded += 1
        cycle += 1
    fed = np.zeros((dim, dim), int)  # how many activations each cell has seen
    right, down = -np.ones((dim, dim), int), -np.ones((dim, dim), int)  # row numbers of what is in flight
    done = 0
    step = 0
    while done < rows:
        entering = np.array([step - i if 0 <= step - i < rows else -1 for i in range(dim)])
        right = np.concatenate([entering[:, None], right[:, :-1]], axis=1)
        down = np.concatenate([right[:1], down[:-1]], axis=0)
        fed += right >= 0
        assert ((down == right) | (right < 0)).all()  # partial sums meet the activations of their own row
        done = max(done, int(down[-1, -1]) + 1)
        step += 1
    assert (fed <= rows).all()
    return cycle + step


@pytest.mark.parametrize(("rows", "dim"), [(1, 4), (5, 4), (16, 8), (3, 16)])
def test_a_fold_of_the_systolic_array(rows, dim):
    assert units.systolic_cycles(rows, dim, dim, dim=dim) + 1 == systolic_array(rows, dim)


@pytest.mark.parametrize(
    ("m", "n", "k", "cycles"),
    [(128, 128, 128, 509), (256, 256, 256, 2551), (300, 700, 500, 16367), (1, 512, 512, 6127), (129, 129, 129, 2043)],
)
def test_scalesim_mode(m, n, k, cycles):
    """Cycles that SCALE-Sim 3.0.0 counts for a weight-stationary array of 128 x 128."""
    assert tpu.time_gemm(m, n, k, mode="scalesim").cycles == cycles


@pytest.mark.parametrize("name", CHIPS)
@pytest.mark.parametrize(("rows", "tiles"), [(8, 1), (8, 7), (64, 16), (128, 5), (500, 24)])
def test_passes_of_a_block_tile_by_tile(name, rows, tiles):
    """The closed form equals pushing and streaming each tile on its unit, the next push behind the current stream."""
    machine = chip(name)
    stream, push = rows / machine.rows_per_cycle, machine.weight_tile / machine.push_rows_per_cycle
    busy_until = [0.0] * machine.tiles_at_once
    for tile in range(tiles):
        unit = tile % machine.tiles_at_once
        # One shadow register: the push of a tile can begin when the tile before it has begun to stream.
        busy_until[unit] += max(stream, push)
    assert units.pass_cycles(rows, tiles, machine, BF16) == pytest.approx(max(busy_until))


def test_units_run_side_by_side_and_in_order():
    commands = [
        events.Command(events.DMA_IN, 10, ()),
        events.Command(events.MXU, 20, (0,)),
        events.Command(events.DMA_IN, 10, ()),
        events.Command(events.MXU, 20, (2,)),
        events.Command(events.VPU, 5, (3,), delay=7),
    ]
    spans = events.simulate(commands)
    assert [(s.start, s.end) for s in spans] == [(0, 10), (10, 30), (10, 20), (30, 50), (57, 62)]


def test_transfers_in_both_directions_share_the_bandwidth():
    spans = events.simulate([events.Command(events.DMA_IN, 10, ()), events.Command(events.DMA_OUT, 4, ())])
    assert [s.end for s in spans] == [14, 8]


def test_a_transfer_beside_a_product_slows_both():
    commands = [events.Command(events.MXU, 10, ()), events.Command(events.DMA_IN, 5, ())]
    spans = events.simulate(commands, overlap_rate=0.5)
    assert [s.end for s in spans] == [15, 10]


def test_commands_that_wait_for_later_ones_are_refused():
    with pytest.raises(RuntimeError, match="wait for each other"):
        events.simulate([events.Command(events.MXU, 1, (1,)), events.Command(events.MXU, 1, ())])


def test_short_runs_stand_for_long_ones():
    """The time from a few trips of each loop is the time of all trips."""
    shapes = [
        (8192, 8192, 8192, "v5e"),
        (16384, 128, 16384, "v4"),
        (5451, 11821, 11653, "v6e"),
        (3000, 20000, 3000, "v5p"),
    ]
    for m, n, k, name in shapes:
        program, machine = compile_gemm(m, n, k, BF16, name), chip(name)
        quick, exact = timed.time_program(program, machine), timed.time_program(program, machine, exact=True)
        assert quick.cycles == pytest.approx(exact.cycles, rel=1e-9)
        assert quick.hbm_bytes == pytest.approx(exact.hbm_bytes, rel=1e-9)


@pytest.mark.parametrize("name", CHIPS)
def test_no_product_is_faster_than_its_units(name):
    rng = np.random.default_rng(7)
    machine = chip(name)
    for _ in range(6):
        m, n, k = (int(2 ** rng.uniform(0, 12)) for _ in range(3))
        result = timed.time_program(compile_gemm(m, n, k, BF16, name), machine)
        assert result.cycles >= max(result.busy.values())
        ideal = m * n * k / (machine.macs_per_cycle * machine.cores)
        assert result.busy["MXU"] >= ideal
        assert result.hbm_bytes * machine.cores >= 2 * m * n  # the result goes out whole


def test_double_buffers_hide_transfers():
    machine = chip("v4")
    program = compile_gemm(2048, 2048, 2048, BF16, "v4")
    copies = {b: dataclasses.replace(b, copies=1) for b in program.allocations}
    single = _with_buffers(program, copies)
    assert timed.time_program(single, machine).cycles > 1.1 * timed.time_program(program, machine).cycles


def _with_buffers(program, changed):
    def body(nodes):
        return tuple(node(n) for n in nodes)

    def node(n):
        fields = {f.name: getattr(n, f.name) for f in dataclasses.fields(n)}
        fields = {
            name: changed.get(v, v) if isinstance(v, type(next(iter(changed)))) else v for name, v in fields.items()
        }
        if "body" in fields:
            fields["body"] = body(fields["body"])
        return type(n)(**fields)

    return dataclasses.replace(program, body=body(program.body), allocations=tuple(changed.values()))


@pytest.mark.parametrize("size", [2048, 4096])
def test_two_cores_take_half_the_time(size):
    two, one = (tpu.time_gemm(size, size, size, chip=name).cycles for name in ("v4-megacore", "v4"))
    assert 0.48 <= two / one <= 0.55


@pytest.mark.parametrize("name", CHIPS)
@pytest.mark.parametrize(("m", "n"), [(1, 4096), (4096, 1)])
def test_one_row_streams_the_matrix(name, m, n):
    machine = chip(name)
    stream = 2 * 4096 * 4096 / (machine.hbm_bytes_per_cycle * machine.cores)
    cycles = tpu.time_gemm(m, n, 4096, chip=name).cycles
    assert stream < cycles - machine.calibration.launch_seconds * machine.clock_hz < 1.4 * stream
    # Two rows take the matrix from fast memory, which is not in the time of a kernel.
    assert tpu.time_gemm(max(m, 2), max(n, 2), 4096, chip=name).cycles < cycles


def test_more_passes_and_narrow_integers():
    f32 = tpu.time_gemm(2048, 2048, 2048, dtype="f32", chip="v5e").cycles
    bf16 = tpu.time_gemm(2048, 2048, 2048, dtype="bf16", chip="v5e").cycles
    int8 = tpu.time_gemm(2048, 2048, 2048, dtype="int8", chip="v5e").cycles
    assert int8 < 0.7 * bf16 < bf16 < f32


def test_what_is_asked_must_make_sense():
    with pytest.raises(ValueError, match="chip 'v3' is not known"):
        tpu.time_gemm(8, 8, 8, chip="v3")
    with pytest.raises(ValueError, match="mode"):
        tpu.time_gemm(8, 8, 8, mode="fast")
    with pytest.raises(ValueError, match="no elements"):
        tpu.time_gemm(8, 0, 8)


def test_vmem_stays_under_the_limit():
    rng = np.random.default_rng(8)
    for _ in range(150):
        name = str(rng.choice(list(CHIPS)))
        m, n, k = (int(2 ** rng.uniform(0, 13)) for _ in range(3))
        limit = int(2 ** rng.uniform(20, 24))
        element = element_type(str(rng.choice(["bf16", "f32", "i8"])))
        assert compile_gemm(m, n, k, element, name, limit).bytes_in("vmem") <= limit
