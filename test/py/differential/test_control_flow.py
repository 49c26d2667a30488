"""Control flow and updates in place: the two executors give, bit for bit, what the reference interpreter gives."""

from __future__ import annotations

import numpy as np
import pytest

import stablehlo_py
from differential.control_programs import PROGRAMS
from stablehlo_py.mlir import ir, new_context
from stablehlo_py.reference import interpret


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name):
    text, arguments = PROGRAMS[name]
    arguments = tuple(np.asarray(a) for a in arguments)
    copies = tuple(a.copy() for a in arguments)
    with new_context(), ir.Location.unknown():
        wanted = interpret(ir.Module.parse(text), *arguments)
    for executor in ("native", "python"):
        program = stablehlo_py.compile(text, options=stablehlo_py.Options(executor=executor))
        for _ in range(2):
            results = program(*arguments)
            for result, want in zip(results, wanted, strict=True):
                np.testing.assert_array_equal(result, want, err_msg=executor)
        for argument, copy in zip(arguments, copies, strict=True):
            np.testing.assert_array_equal(argument, copy)
