"""Values that stay in fast memory between kernels: the same numbers, fewer transfers, never more than there is."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from stablehlo_py.dialects import mxu
from stablehlo_py.dialects.mxu_verify_program import check_program
from stablehlo_py.machine.tpu import chip
from stablehlo_py.targets.tpu import emit

from .kernels import compile_text, small_integers


def chain(rows: int, widths: list[int], element: str = "bf16") -> str:
    """@main of products one after the other, each with an abs behind it; the first hidden value is used again at the end."""
    names = [f"%w{i}: tensor<{a}x{b}x{element}>" for i, (a, b) in enumerate(itertools.pairwise(widths))]
    lines, value = [], "%x"
    for i, (a, b) in enumerate(itertools.pairwise(widths)):
        left, right, out = (f"tensor<{m}x{n}x{element}>" for m, n in ((rows, a), (a, b), (rows, b)))
        lines.append(
            f"%d{i} = stablehlo.dot_general {value}, %w{i}, contracting_dims = [1] x [0] : ({left}, {right}) -> {out}"
        )
        lines.append(f"%h{i} = stablehlo.abs %d{i} : {out}")
        value = f"%h{i}"
    out = f"tensor<{rows}x{widths[-1]}x{element}>"
    lines.append(f"%r = stablehlo.add {value}, %h0 : {out}")
    head = ", ".join([f"%x: tensor<{rows}x{widths[0]}x{element}>", *names])
    return f"func.func @main({head}) -> {out} {{\n" + "\n".join(lines) + f"\nreturn %r : {out} }}"


def spaces_of(program) -> list[tuple[str, ...]]:
    """The memory space of each argument of each kernel."""
    with program.module.context:
        kernels = emit.operations_named(program.module.operation, "mxu.kernel")
        return [tuple(mxu.ref_space(a.type) for a in k.regions[0].blocks[0].arguments) for k in kernels]


@pytest.mark.parametrize(("name", "space"), [("v5e", "vmem"), ("v4-megacore", "cmem")])
def test_hidden_values_stay(name, space):
    program = compile_text(chain(50, [70, 90, 110, 90]), chip=name)
    outputs = [row[-1] for row in spaces_of(program)]
    assert outputs == [space, space, "hbm"]
    rng = np.random.default_rng(30)
    arrays = [small_integers(rng, s, "bf16") for s in ((50, 70), (70, 90), (90, 110), (110, 90))]
    wide = [a.astype(np.float32) for a in arrays]
    value = wide[0]
    hidden = []
    for w in wide[1:]:
        value = np.abs((value @ w).astype(arrays[0].dtype)).astype(np.float32)
        hidden.append(value)
    expected = (hidden[-1] + hidden[0]).astype(arrays[0].dtype)
    np.testing.assert_array_equal(program(*arrays)[0], expected)


def test_staying_saves_transfers():
    report = compile_text(chain(512, [512, 512, 512, 512])).report()
    first, second, third = report.kernels
    half = 2 * 512 * 512
    # The weights are brought before a kernel, so what is left is x at the start and the result at the end.
    assert (first.hbm_bytes, second.hbm_bytes, third.hbm_bytes) == (half, 0, half)
    assert [k.prefetch_bytes for k in report.kernels] == [half, half, half]
    assert report.seconds >= sum(k.seconds for k in report.kernels)


@pytest.mark.parametrize(("name", "rows"), [("v4", 1024), ("v4-megacore", 2048), ("v5e", 4096), ("v5p", 2048)])
def test_never_more_than_there_is(name, rows):
    """Long chains of large values: at each kernel what lives in fast memory and the blocks fit into it."""
    machine = chip(name)
    program = compile_text(chain(rows, [2048, 3072, 4096, 5120, 6144, 3072]), chip=name)
    assert any(row[-1] == machine.prefetch_space for row in spaces_of(program))
    room = machine.prefetch_bytes(machine.vmem_limit_bytes)
    with program.module.context:
        assert check_program(program.module.operation) is None
    report = program.report()
    for kernel in report.kernels:
        assert sum(array.bytes for array in kernel.arrays) <= room
    # What is brought for a kernel is there when it starts, and some of it is started before the kernel in front of it.
    assert any(sum(a.brought for a in kernel.arrays) > 1 for kernel in report.kernels)
    assert report.seconds >= sum(kernel.seconds for kernel in report.kernels)
