"""Layouts of arrays that products take and make: the same numbers, less padding, and no kernel only to turn an array."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from stablehlo_py.dialects.mxu_verify_program import check_program
from stablehlo_py.mlir import ir, new_context
from stablehlo_py.reference import interpret
from stablehlo_py.targets.tpu.passes import mxu_layouts

from .kernels import compile_text, parse, small_integers


def check(text: str, *shapes: tuple[int, ...], **options):
    rng = np.random.default_rng(60)
    arrays = [small_integers(rng, shape, "bf16") for shape in shapes]
    program = compile_text(text, **options)
    with new_context(), ir.Location.unknown():
        expected = interpret(ir.Module.parse(text), *arrays)
    for ours, theirs in zip(program(*arrays), expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    return program


def skinny(m: int, n: int, k: int) -> str:
    """Two products, the first with n columns, both results returned turned and not."""
    return f"""func.func @main(%x: tensor<{m}x{k}xbf16>, %w: tensor<{k}x{n}xbf16>, %v: tensor<{n}x{k}xbf16>)
        -> (tensor<{m}x{k}xbf16>, tensor<{k}x{m}xbf16>) {{
      %h = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
        : (tensor<{m}x{k}xbf16>, tensor<{k}x{n}xbf16>) -> tensor<{m}x{n}xbf16>
      %r = stablehlo.dot_general %h, %v, contracting_dims = [1] x [0]
        : (tensor<{m}x{n}xbf16>, tensor<{n}x{k}xbf16>) -> tensor<{m}x{k}xbf16>
      %t = stablehlo.transpose %r, dims = [1, 0] : (tensor<{m}x{k}xbf16>) -> tensor<{k}x{m}xbf16>
      return %r, %t : tensor<{m}x{k}xbf16>, tensor<{k}x{m}xbf16> }}"""


@pytest.mark.parametrize("chip", ["v4", "v5e", "v5p"])
@pytest.mark.parametrize("sizes", [(512, 8, 300), (8, 512, 130), (300, 1, 257), (129, 3, 5)])
def test_skinny_products(sizes, chip):
    m, n, k = sizes
    check(skinny(m, n, k), (m, k), (k, n), (n, k), chip=chip)


@pytest.mark.parametrize("form", mxu_layouts.FORMS)
def test_every_form_gives_the_same_numbers(form, monkeypatch):
    """Whatever is chosen, turned arrays and all: only how it moves changes."""

    def only(sizes, tables):
        return {v: mxu_layouts.FORMS.index(form) if n == len(mxu_layouts.FORMS) else n - 1 for v, n in sizes.items()}

    monkeypatch.setattr(mxu_layouts, "choose", only)
    text = """func.func @main(%x: tensor<2x70x96xbf16>, %w: tensor<2x96x150xbf16>, %v: tensor<2x40x150xbf16>)
        -> tensor<2x70x40xbf16> {
      %h = stablehlo.dot_general %x, %w, batching_dims = [0] x [0], contracting_dims = [2] x [1]
        : (tensor<2x70x96xbf16>, tensor<2x96x150xbf16>) -> tensor<2x70x150xbf16>
      %t = stablehlo.transpose %v, dims = [0, 2, 1] : (tensor<2x40x150xbf16>) -> tensor<2x150x40xbf16>
      %r = stablehlo.dot_general %h, %t, batching_dims = [0] x [0], contracting_dims = [2] x [1]
        : (tensor<2x70x150xbf16>, tensor<2x150x40xbf16>) -> tensor<2x70x40xbf16>
      return %r : tensor<2x70x40xbf16> }"""
    check(text, (2, 70, 96), (2, 96, 150), (2, 40, 150))


def test_few_columns_save_padding():
    """8 of 128 lanes: a sixteenth of the bytes, once they lie along rows."""
    text = """func.func @main(%x: tensor<4096x512xbf16>, %w: tensor<512x8xbf16>) -> tensor<4096x8xbf16> {
      %r = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
        : (tensor<4096x512xbf16>, tensor<512x8xbf16>) -> tensor<4096x8xbf16>
      return %r : tensor<4096x8xbf16> }"""
    (kernel,) = compile_text(text).report().kernels
    assert kernel.shape == (1, 8, 4096, 512)
    assert kernel.hbm_bytes < 2 * 4096 * 128 / 8


def test_the_heads_of_attention_are_not_turned_twice():
    """k and v come as [tokens, heads, width]: each is moved once, by rows, and never through the cross-lane unit."""
    text = """func.func @main(%q: tensor<4x128x64xbf16>, %k: tensor<128x4x64xbf16>) -> tensor<4x128x128xbf16> {
      %t = stablehlo.transpose %k, dims = [1, 2, 0] : (tensor<128x4x64xbf16>) -> tensor<4x64x128xbf16>
      %r = stablehlo.dot_general %q, %t, batching_dims = [0] x [0], contracting_dims = [2] x [1]
        : (tensor<4x128x64xbf16>, tensor<4x64x128xbf16>) -> tensor<4x128x128xbf16>
      return %r : tensor<4x128x128xbf16> }"""
    program = check(text, (4, 128, 64), (128, 4, 64))
    report = program.report()
    assert [k.label.partition(".")[0] for k in report.kernels] == ["move", "matmul"]
    assert all(k.busy["XLU"] == 0 for k in report.kernels)


def test_the_choice_is_the_cheapest_of_all():
    """The pass's own costs, all combinations tried."""
    text = skinny(512, 8, 300)
    with new_context(), ir.Location.unknown():
        module = parse(text)
        from stablehlo_py.machine.tpu import chip
        from stablehlo_py.targets.tpu import emit
        from stablehlo_py.targets.tpu.passes.mxu_contractions import MxuContractions
        from stablehlo_py.targets.tpu.planning.choose import choose, cost_of

        MxuContractions().run(module.operation)
        contracts = emit.operations_named(module.operation, "mxu.contract")
        problem = mxu_layouts._Problem(contracts, chip("v5e"), 0)
        best = min(
            cost_of(dict(zip(problem.sizes, options, strict=True)), problem.tables)
            for options in itertools.product(*(range(n) for n in problem.sizes.values()))
        )
        assert cost_of(choose(problem.sizes, problem.tables), problem.tables) == pytest.approx(best)


def test_laid_out_is_for_what_enters_and_leaves():
    def problem_of(text: str) -> str | None:
        with new_context(), ir.Location.unknown():
            problem = check_program(parse(text).operation)
            return None if problem is None else problem[1]

    good = compile_text("""func.func @main(%x: tensor<4096x512xbf16>, %w: tensor<512x8xbf16>) -> tensor<4096x8xbf16> {
      %r = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
        : (tensor<4096x512xbf16>, tensor<512x8xbf16>) -> tensor<4096x8xbf16>
      return %r : tensor<4096x8xbf16> }""").as_text()
    assert good.count('"mxu.laid_out"') == 2
    assert problem_of(good) is None
    line = next(line for line in good.splitlines() if '"mxu.laid_out"' in line)
    name = line.split("=")[0].strip()
    broken = good.replace(line, line.replace(name, "%a") + f"\n{name} = stablehlo.abs %a : tensor<1x8x512xbf16>")
    broken = broken.replace('mxu.laid_out"(%0)', 'mxu.laid_out"(%0)')
    assert problem_of(broken) is None  # an argument: who takes it does not matter
    inner = line.split("(")[1].split(")")[0]
    broken = good.replace(
        line, f"%b = stablehlo.abs {inner} : tensor<1x512x8xbf16>\n" + line.replace(f"({inner})", "(%b)")
    )
    assert "neither of an argument nor of a result" in (problem_of(broken) or "")
