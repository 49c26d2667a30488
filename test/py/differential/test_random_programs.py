"""Random programs: compiled, they give exactly what the reference interpreter gives."""

from __future__ import annotations

import numpy as np
from hypothesis import given, note, settings

import stablehlo_py
from differential.random_programs import programs
from stablehlo_py.mlir import ir, new_context
from stablehlo_py.reference import interpret


@settings(max_examples=60)
@given(programs())
def test_random_program(drawn):
    text, arguments = drawn
    note(text)
    with new_context(), ir.Location.unknown():
        wanted = interpret(ir.Module.parse(text), *arguments)
    results = stablehlo_py.compile(text)(*arguments)
    for result, want in zip(results, wanted, strict=True):
        np.testing.assert_array_equal(result, want)
