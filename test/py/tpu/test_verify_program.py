"""Each rule for what lives in fast memory between kernels, broken once."""

from __future__ import annotations

import re

import pytest

from stablehlo_py.dialects.mxu_verify_program import check_program, live_values
from stablehlo_py.mlir import ir, new_context
from stablehlo_py.targets.tpu import emit

from .kernels import compile_text, parse
from .test_memory import chain


@pytest.fixture(scope="module")
def good() -> str:
    """Three layers; the second one's weights are brought while the first one runs, and hidden values stay."""
    return compile_text(chain(512, [512, 512, 512, 512])).as_text()


def problem_of(text: str) -> str | None:
    with new_context(), ir.Location.unknown():
        problem = check_program(parse(text).operation)
        return None if problem is None else f"{problem[0].name} {problem[1]}"


def line_of(text: str, op: str, number: int) -> str:
    return [line for line in text.splitlines() if f'"{op}"' in line][number]


def test_the_good_program_is_fine(good):
    assert problem_of(good) is None
    with new_context(), ir.Location.unknown():
        module = parse(good)
        block = emit.operations_named(module.operation, "mxu.kernel")[0].block
        live = live_values(block)
        assert sorted((own.first, own.last, own.made) for own in live) == [
            (0, 0, False),
            (0, 1, False),
            (0, 2, True),
            (1, 2, False),
            (1, 2, True),
        ]


def test_a_place_is_needed(good):
    text = re.sub(r'(label = "matmul.0"[^}]*?), offset = \d+ : i64', r"\1", good)
    assert "is in vmem and has no place there" in (problem_of(text) or "")


def test_places_do_not_overlap(good):
    line = line_of(good, "mxu.prefetch_start", 1)
    first = re.search(r"offset = (\d+)", line_of(good, "mxu.prefetch_start", 0))
    assert first is not None
    text = good.replace(line, re.sub(r"offset = \d+", f"offset = {int(first[1]) + 128}", line))
    assert re.search(r"lies at \d+, but vmem below \d+ is taken at kernel 0", problem_of(text) or "")


def test_blocks_count(good):
    line = line_of(good, "mxu.prefetch_start", 0)
    text = good.replace(line, re.sub(r"offset = \d+", "offset = 0", line))
    assert re.search(r"lies at 0, but vmem below \d+ is taken at kernel 0", problem_of(text) or "")


def test_the_memory_ends(good):
    line = line_of(good, "mxu.prefetch_start", 0)
    text = good.replace(line, re.sub(r"offset = \d+", "offset = 134217728", line))
    assert "ends at 134742016 bytes of vmem; v5e has 134217728" in (problem_of(text) or "")


def test_a_kernel_waits_for_what_it_takes(good):
    line = line_of(good, "mxu.prefetch_wait", 0)
    started, waited = re.findall(r"%\d+", line)[::-1]
    text = good.replace(line + "\n", "").replace(f"{waited})", f"{started})")
    assert "takes operand 1 from vmem; it is in hbm" in (problem_of(text) or "")


def test_what_is_waited_for_was_started(good):
    line = line_of(good, "mxu.prefetch_start", 0)
    source, started = re.findall(r"%[\w]+", line)[::-1]
    wait = line_of(good, "mxu.prefetch_wait", 0)
    text = good.replace(wait, wait.replace(started + ")", source + ")"))
    assert "waits for what was not started" in (problem_of(text) or "")


def test_nothing_else_takes_what_is_on_its_way(good):
    line = line_of(good, "mxu.prefetch_start", 0)
    started = re.findall(r"%\d+", line)[0]
    ty = re.findall(r"tensor<[^>]*>", line)[0]
    text = good.replace(line, f"{line}\n    %early = stablehlo.abs {started} : {ty}")
    assert "is on its way; wait for it first" in (problem_of(text) or "")


def test_only_kernels_take_from_fast_memory(good):
    line = line_of(good, "mxu.prefetch_wait", 0)
    waited = re.findall(r"%\d+", line)[0]
    ty = re.findall(r"tensor<[^>]*>", line)[0]
    text = good.replace(line, f"{line}\n    %host = stablehlo.abs {waited} : {ty}")
    assert "takes an array from vmem; only kernels do" in (problem_of(text) or "")
