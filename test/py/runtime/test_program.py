"""The Program as data: round trips, the listing, and what is refused."""

from __future__ import annotations

import json

import ml_dtypes
import numpy as np
import pytest

from stablehlo_py.errors import BadInput
from stablehlo_py.runtime.program import (
    ArrayType,
    Buffer,
    Case,
    Copy,
    Fill,
    Host,
    Index,
    Kernel,
    Launch,
    Program,
    View,
    While,
)

WORDS = ArrayType((4,), "int32")


def sample() -> Program:
    """One of every command."""
    buffers = (
        Buffer(0, 16, "argument"),
        Buffer(1, 16, "result"),
        Buffer(2, 12, "constant"),
        Buffer(3, 3, "constant", 1),
        Buffer(4, 16, "temporary"),
        Buffer(5, 1, "temporary", 0, 1),
    )
    loop = While((Launch(1, (4, 5)),), 5, (Launch(0, (4, 4), 0, 4), Host(0, (4,), (4,))))
    commands = (Fill(4, 16, 3), Copy(2, 4, 8, 4, 8), loop, Case(0, ((Copy(4, 1, 16),), (Fill(1, 16),))))
    kernels = (Kernel("step", 1, 1, work=12), Kernel("test", 1, 1))
    constants = (np.array([1, 2, 3], np.float32), b"abc")
    return Program(buffers, commands, kernels, constants, (WORDS,), (WORDS,), ("print",), donors=(0,))


def test_round_trip():
    program = sample()
    again = Program.from_bytes(program.to_bytes())
    assert again == program
    assert again.commands == program.commands
    assert again.kernels == program.kernels and again.donors == (0,)
    assert bytes(again.constants[1]) == b"abc"
    assert Program.from_json(program.to_json(), program.constants) == program


def test_views_round_trip():
    buffers = (Buffer(0, 16, "argument"), Buffer(1, 16, "result"), Buffer(2, 8, "view"))
    commands = (View(2, 0, 4, (Index(0, 4, True, 1, 4),)), Copy(2, 1, 8), Fill(1, 16))
    program = Program(buffers, commands, (), (), (WORDS,), (WORDS,))
    again = Program.from_bytes(program.to_bytes())
    assert again == program and again.commands == commands
    assert "v2 = view of a0 at 4 + a0 * 4\n" in program.as_text()


def test_other_constants_make_another_program():
    changed = Program.from_json(sample().to_json(), (np.array([1, 2, 4], np.float32), b"abc"))
    assert changed != sample()


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, ml_dtypes.int4, np.complex64, np.bool_])
def test_constants_of_any_dtype_and_rank(dtype):
    array = np.arange(4).reshape(2, 2).astype(dtype)
    for constant in (array, array.T, array[:1, :1].reshape(())):
        buffers = (Buffer(0, constant.nbytes, "constant"),)
        program = Program(buffers, (), (), (constant,))
        assert bytes(Program.from_bytes(program.to_bytes()).constants[0]) == constant.tobytes()


def test_array_types():
    assert ArrayType((2, 3), "bfloat16").bytes == 12
    assert ArrayType((), "complex128").bytes == 16
    assert str(ArrayType((2, 3), "float8_e4m3fn")) == "float8_e4m3fn[2,3]"
    with pytest.raises(BadInput, match="no dtype float7"):
        ArrayType((), "float7").bytes  # noqa: B018


def test_listing():
    assert sample().as_text() == (
        "program(int32[4]) -> (int32[4])\n"
        "arena 128 bytes, at least 128\n"
        "  a0             16 bytes  live 7..7\n"
        "  r0             16 bytes  live 8..10\n"
        "  c0             12 bytes  live 1..1\n"
        "  c1              3 bytes\n"
        "  t4             16 bytes  live 0..8  at 0\n"
        "  t5              1 bytes  live 3..4  at 64\n"
        "   0  t4 = fill 16 bytes with 3\n"
        "   1  t4[8:] = copy 8 bytes of c0[4:]\n"
        "   2  while t5\n"
        "   3    t5 = test(t4)\n"
        "      do\n"
        "   4    t4 = step(t4) over 0..4\n"
        "   5    t4 = host print(t4)\n"
        "   6  end\n"
        "   7  case a0\n"
        "      branch 0\n"
        "   8    r0[0:] = copy 16 bytes of t4[0:]\n"
        "      branch 1\n"
        "   9    r0 = fill 16 bytes with 0\n"
    )


@pytest.mark.parametrize("cut", [0, 7, 15, 40, -64])
def test_damaged_bytes_are_refused(cut):
    data = sample().to_bytes()
    with pytest.raises(BadInput, match="stored program"):
        Program.from_bytes(data[:cut])


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("version", 99, "version 99"),
        ("buffers", [[16, "argument", 5, 64]], "argument 5"),
        ("buffers", [[15, "argument", 0, 64]], "has 15 bytes, its argument 16"),
        ("buffers", [[-1, "temporary", 0, 64]], "has -1 bytes"),
        ("buffers", [[1, "memory", 0, 64]], "unknown kind memory"),
        ("commands", [["launch", 7, [], 0, 0]], "kernel 7"),
        ("commands", [["launch", 0, [4], 0, 0]], "has 1 buffers, not 2"),
        ("commands", [["launch", 0, [4, 99], 0, 0]], "buffer 99"),
        ("commands", [["launch", 0, [4, 0], 0, 0]], "writes argument 0"),
        ("commands", [["copy", 0, 4, 16, 1, 0]], "outside buffer 0"),
        ("commands", [["copy", 0, 4, -1, 0, 0]], "outside buffer 0"),
        ("commands", [["fill", 4, 17, 0]], "outside buffer 4"),
        ("commands", [["fill", 4, 1, 256]], "not a byte"),
        ("commands", [["case", 5, [[]]]], "less than 4 bytes"),
        ("commands", [["case", 4, []]], "no branch"),
        ("commands", [["host", 1, [], []]], "call 1"),
        ("commands", [["jump", 1]], "not known"),
        ("commands", [["copy", 1]], "not a stored program"),
        ("commands", "launch", "not known"),
        ("constants", [12, 4], "sizes"),
        ("kernels", [["step", 1, 1, 0, -1], ["test", 1, 1, 0, 0]], "work of -1"),
        ("donors", [1], "donates argument 1"),
    ],
)
def test_unsound_programs_are_refused(key, value, message):
    header = json.loads(sample().to_json())
    header[key] = value
    with pytest.raises(BadInput, match=message):
        Program.from_json(json.dumps(header), sample().constants)


def test_deep_nesting_is_refused():
    command = Fill(0, 1)
    for _ in range(300):
        command = Case(0, ((command,),))
    program = Program((Buffer(0, 4, "temporary"),), (command,))
    with pytest.raises(BadInput, match="nests"):
        Program.from_bytes(program.to_bytes())
