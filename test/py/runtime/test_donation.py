"""Donated arguments: which results may stand in their memory, and that it is so."""

from __future__ import annotations

import numpy as np
import pytest

from stablehlo_py.errors import BadInput
from stablehlo_py.runtime import entry
from stablehlo_py.runtime.donation import places_of_results
from stablehlo_py.runtime.executable import Executable
from stablehlo_py.runtime.executor import load_native, make_executor
from stablehlo_py.runtime.program import ArrayType, Buffer, Command, Copy, Fill, Launch, Program, While

from .kernels import KERNELS, addresses

I32 = ArrayType((4,), "int32")
KINDS = [
    pytest.param("native", marks=pytest.mark.skipif(load_native() is None, reason="the native runtime is not built")),
    pytest.param("entry", marks=pytest.mark.skipif(entry._load() is None, reason="the native entry is not built")),
    "python",
]
COPY_A, COPY_B = Copy(0, 2, 16), Copy(1, 2, 16)
ADD_B = Launch(0, (2, 1, 2), 0, 4)  # in place: result += b
ADD_A = Launch(0, (2, 0, 2), 0, 4)


def program(*commands: Command, result: ArrayType = I32) -> Program:
    """Buffers 0 and 1 are the arguments a and b, 2 is the result."""
    buffers = (
        Buffer(0, 16, "argument", 0),
        Buffer(1, 16, "argument", 1),
        Buffer(2, 16, "result"),
        Buffer(3, 16, "temporary"),
        Buffer(4, 1, "temporary"),
        Buffer(5, 1, "temporary"),
    )
    kernels = (KERNELS["add_i32"], KERNELS["tick"])
    return Program(buffers, commands, kernels, arguments=(I32, I32), results=(result,))


LOOP = While((Launch(1, (4, 4, 5)),), 5, (ADD_B,))
LOOP_OVER_A = While((Launch(1, (4, 4, 5)),), 5, (ADD_A,))


@pytest.mark.parametrize(
    ("commands", "place"),
    [
        ([COPY_A, ADD_B], 0),
        ([COPY_B], 1),
        ([COPY_A, Fill(4, 1, 3), LOOP], 0),
        ([Launch(0, (0, 1, 3), 0, 4), Copy(3, 2, 16)], 0),
        ([COPY_A, ADD_A], -1),  # a is read after the result was written
        ([COPY_A, Fill(4, 1, 3), LOOP_OVER_A], -1),
        ([Launch(0, (0, 0, 2), 0, 4)], -1),  # the kernel may write before it reads
        ([Fill(2, 16), Copy(0, 2, 8)], -1),
        ([Fill(2, 16)], 0),  # a is not read at all
    ],
)
def test_a_result_takes_the_memory_of_an_argument_that_is_dead(commands, place):
    donors = (1,) if place == 1 else (0,)
    assert places_of_results(program(*commands), donors) == (place,)
    assert places_of_results(program(*commands), ()) == (-1,)


def test_the_copied_argument_is_preferred():
    made = program(Launch(0, (0, 1, 3), 0, 4), Copy(1, 2, 16), Launch(0, (2, 3, 2), 0, 4))
    assert places_of_results(made, (0, 1)) == (1,)


def test_types_must_be_equal():
    made = program(COPY_A, result=ArrayType((4,), "uint32"))
    assert places_of_results(made, (0,)) == (-1,)


def test_an_argument_that_is_not_there():
    with pytest.raises(BadInput, match="argument 2 cannot be donated"):
        places_of_results(program(COPY_A), (2,))


def executable(made: Program, kind: str, monkeypatch, donate=(0,)) -> Executable:
    if kind != "entry":
        monkeypatch.setattr(entry, "_load", lambda: None)
    names = [kernel.name for kernel in made.kernels]
    executor = make_executor(made, addresses(*names), prefer="python" if kind == "python" else "native")
    return Executable(made, executor, target="cpu", stages={}, timing={}, donate=donate)


@pytest.mark.parametrize("kind", KINDS)
def test_the_result_is_the_argument(kind, monkeypatch):
    exe = executable(program(COPY_A, Fill(4, 1, 3), LOOP), kind, monkeypatch)
    a, b = np.array([1, 2, 3, 4], np.int32), np.array([10, 20, 30, 40], np.int32)
    (result,) = exe(a, b)
    assert result is a
    np.testing.assert_array_equal(result, [31, 62, 93, 124])
    np.testing.assert_array_equal(b, [10, 20, 30, 40])


@pytest.mark.parametrize("kind", KINDS)
def test_without_donation_arguments_stay(kind, monkeypatch):
    exe = executable(program(COPY_A, ADD_B), kind, monkeypatch, donate=())
    a = np.array([1, 2, 3, 4], np.int32)
    (result,) = exe(a, a)
    np.testing.assert_array_equal(result, 2 * a)
    np.testing.assert_array_equal(a, [1, 2, 3, 4])


@pytest.mark.parametrize("kind", KINDS)
def test_shared_or_read_only_memory_is_not_overwritten(kind, monkeypatch):
    exe = executable(program(COPY_A, ADD_B), kind, monkeypatch)
    memory = np.arange(6, dtype=np.int32)
    for a, b in [(memory[:4], memory[:4]), (memory[:4], memory[2:]), (memory[2:], memory[:4])]:
        (result,) = exe(a, b)
        np.testing.assert_array_equal(result, a + b)
        np.testing.assert_array_equal(memory, np.arange(6))
    fixed = np.arange(4, dtype=np.int32)
    fixed.flags.writeable = False
    np.testing.assert_array_equal(exe(fixed, memory[:4])[0], 2 * np.arange(4))
    np.testing.assert_array_equal(fixed, np.arange(4))


def test_marks_of_jax():
    jax = pytest.importorskip("jax")
    from jax import export

    from stablehlo_py.compiler import Options, compile

    def write_rows(x, row):
        def step(i, x):
            return jax.lax.dynamic_update_slice(x, row * i, (i, 0))

        return jax.lax.fori_loop(0, 5, step, x)

    types = [jax.ShapeDtypeStruct(shape, "float32") for shape in [(8, 4), (1, 4)]]
    exported = export.export(jax.jit(write_rows, donate_argnums=0), platforms=["cpu"])(*types)
    x, row = np.full((8, 4), 7, np.float32), np.ones((1, 4), np.float32)
    expected = np.concatenate([np.arange(5)[:, None] * row, x[5:]])

    (kept,) = compile(exported)(x, row)
    assert kept is not x and (x == 7).all()
    np.testing.assert_array_equal(kept, expected)
    exe = compile(exported, options=Options(donate=True))
    assert exe.program.donors == (0,)
    (result,) = exe(x, row)
    assert result is x
    np.testing.assert_array_equal(result, expected)
    y = np.full((8, 4), 7, np.float32)
    assert compile(exported, options=Options(donate=(0,)))(y, row)[0] is y
