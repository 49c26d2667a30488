"""shlo: every command, flag and exit code."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import types
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from stablehlo_py.cli import shlo
from stablehlo_py.cli.check import compare

ROOT = Path(__file__).parents[3]

ADD = """
func.func @main(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.add %x, %y : tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
"""
KINDS = """
func.func @main(%a: tensor<2xbf16>, %b: tensor<i1>, %c: tensor<2xcomplex<f32>>, %d: tensor<2xui8>)
    -> (tensor<2xbf16>, tensor<i1>, tensor<2xcomplex<f32>>, tensor<2xui8>) {
  %0 = stablehlo.add %a, %a : tensor<2xbf16>
  %1 = stablehlo.not %b : tensor<i1>
  %2 = stablehlo.multiply %c, %c : tensor<2xcomplex<f32>>
  %3 = stablehlo.add %d, %d : tensor<2xui8>
  return %0, %1, %2, %3 : tensor<2xbf16>, tensor<i1>, tensor<2xcomplex<f32>>, tensor<2xui8>
}
"""


@pytest.fixture
def add(tmp_path):
    path = tmp_path / "add.mlir"
    path.write_text(ADD)
    return str(path)


@pytest.fixture
def kinds(tmp_path):
    path = tmp_path / "kinds.mlir"
    path.write_text(KINDS)
    return str(path)


def fails(capsys, *arguments: str) -> str:
    """What a command says when it ends with 1."""
    assert shlo.main(arguments) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    return captured.err


# --- run


def test_run_prints_results_and_times(add, capsys):
    assert shlo.main(["run", add, "--input=2x3xf32=1,2,3,4,5,6", "--input=2x3xf32=0.5"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "result 0: float32[2, 3] [1.5, 2.5, 3.5, 4.5, 5.5, 6.5]"
    assert lines[1].startswith("compiled in ")
    assert lines[1].endswith(" ms on cpu")


def test_long_results_are_cut_short(tmp_path, capsys):
    path = tmp_path / "iota.mlir"
    path.write_text(
        "func.func @main() -> tensor<100xi32> { %0 = stablehlo.iota dim = 0 : tensor<100xi32> return %0 : tensor<100xi32> }"
    )
    assert shlo.main(["run", str(path)]) == 0
    assert capsys.readouterr().out.startswith("result 0: int32[100] [0, 1, 2, 3, 4, 5, ...]\n")


def test_random_inputs_follow_the_seed(add, capsys):
    outputs = []
    for seed in ("0", "0", "1"):
        assert shlo.main(["run", add, "--seed", seed]) == 0
        outputs.append(capsys.readouterr().out.splitlines()[0])
    assert outputs[0] == outputs[1] != outputs[2]


def test_inputs_from_files(add, tmp_path, capsys):
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.save(tmp_path / "x.npy", x)
    np.savez(tmp_path / "both.npz", in0=x, in1=x + 1, out0=x)
    assert shlo.main(["run", add, f"--input=@{tmp_path}/x.npy", f"--input=@{tmp_path}/x.npy"]) == 0
    assert "[0.0, 2.0, 4.0, 6.0, 8.0, 10.0]" in capsys.readouterr().out
    assert shlo.main(["run", add, f"--input=@{tmp_path}/both.npz"]) == 0
    assert "[1.0, 3.0, 5.0, 7.0, 9.0, 11.0]" in capsys.readouterr().out


def test_json(kinds, capsys):
    given = ("--input=2xbf16=1,2.5", "--input=i1=true", "--input=2xcomplex<f32>=1+2j,3", "--input=2xui8=7,200")
    assert shlo.main(["run", kinds, "--json", *given]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["target"] == "cpu"
    assert printed["compile_s"] > 0
    assert printed["run_s"] > 0
    assert printed["results"] == [
        {"shape": [2], "dtype": "bfloat16", "values": [2.0, 5.0]},
        {"shape": [], "dtype": "bool", "values": [False]},
        {"shape": [2], "dtype": "complex64", "values": [[-3.0, 4.0], [9.0, 0.0]]},
        {"shape": [2], "dtype": "uint8", "values": [14, 144]},
    ]


def test_json_of_what_is_no_number(tmp_path, capsys):
    path = tmp_path / "log.mlir"
    path.write_text(
        "func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> { %0 = stablehlo.log %x : tensor<3xf32> return %0 : tensor<3xf32> }"
    )
    assert shlo.main(["run", str(path), "--json", "--input=3xf32=0,-1,inf"]) == 0
    values = json.loads(capsys.readouterr().out)["results"][0]["values"]
    np.testing.assert_array_equal(np.float32(values), np.float32([-np.inf, np.nan, np.inf]))


def test_results_are_kept_and_can_be_inputs(kinds, tmp_path, capsys):
    kept = tmp_path / "out.npz"
    assert shlo.main(["run", kinds, "-o", str(kept), "--seed=3"]) == 0
    with np.load(kept) as stored:
        assert sorted(stored.files) == ["out0", "out1", "out2", "out3"]
        assert stored["out0"].view(ml_dtypes.bfloat16).shape == (2,)
        assert stored["out2"].dtype == np.complex64
    assert shlo.main(["run", kinds, f"--input=@{kept}"]) == 0
    capsys.readouterr()


def test_standard_input(add, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=io.BytesIO(ADD.encode())))
    assert shlo.main(["run", "-", "--input=2x3xf32=1", "--input=2x3xf32=1"]) == 0
    assert "[2.0, 2.0, 2.0, 2.0, 2.0, 2.0]" in capsys.readouterr().out


def test_run_on_the_simulated_matrix_unit(capsys):
    """f32 is multiplied as bf16 there: to 1/100 of the largest element."""
    values = {}
    for target in ("cpu", "tpu"):
        arguments = ["run", str(ROOT / "examples/dense.mlir"), "--target", target, "--json"]
        assert shlo.main(arguments) == 0
        values[target] = json.loads(capsys.readouterr().out)["results"][0]["values"]
    np.testing.assert_allclose(values["tpu"], values["cpu"], atol=0.3)
    assert values["tpu"] != values["cpu"]


# --- inputs that do not fit


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["2x3xf32=1"], "1 inputs given, the program takes 2"),
        (["2x3xf32=1"] * 3, "3 inputs given, the program takes 2"),
        (["2x3xf32=1", "3x2xf32=1"], "input 1 is float32[3,2], the program takes float32[2,3]"),
        (["2x3xf32=1", "2x3xi32=1"], "input 1 is int32[2,3]"),
        (["2x3xf32=1,2", "2x3xf32=1"], "has 2 numbers, its shape wants 6 or 1"),
        (["2x3xf32=one", "2x3xf32=1"], "one"),
        (["2x3xf99=1", "2x3xf32=1"], "f99"),
        (["nonsense", "2x3xf32=1"], "is not understood"),
        (["@no_such_file.npy", "2x3xf32=1"], "no_such_file.npy"),
    ],
)
def test_wrong_inputs(add, capsys, given, says):
    assert says in fails(capsys, "run", add, *(f"--input={text}" for text in given))


def test_input_file_that_is_none(add, tmp_path, capsys):
    (tmp_path / "x.npy").write_text("no array")
    assert "x.npy" in fails(capsys, "run", add, f"--input=@{tmp_path}/x.npy", "--input=2x3xf32=1")


# --- programs that are none


def test_missing_file(capsys):
    assert "nowhere.mlir" in fails(capsys, "run", "nowhere.mlir")


def test_malformed_program_is_placed(tmp_path, capsys):
    path = tmp_path / "bad.mlir"
    path.write_text("func.func @main(%x: tensor<f32>) -> tensor<f32> {\n  return %y : tensor<f32>\n}\n")
    for command in ("run", "check", "compile"):
        assert "bad.mlir:2:10" in fails(capsys, command, str(path))


def test_unsupported_op(tmp_path, capsys):
    path = tmp_path / "custom.mlir"
    path.write_text(
        "func.func @main(%x: tensor<f32>) -> tensor<f32> {\n"
        "  %0 = stablehlo.custom_call @nobody(%x) : (tensor<f32>) -> tensor<f32>\n  return %0 : tensor<f32>\n}\n"
    )
    message = fails(capsys, "run", str(path))
    assert "custom_call" in message
    assert "custom.mlir:2" in message


# --- usage


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["fly"],
        ["run"],
        ["run", "x.mlir", "--target=vax"],
        ["run", "x.mlir", "--seed=many"],
        ["run", "x.mlir", "--nonsense"],
        ["check", "x.mlir", "--max-ulp=few"],
        ["run", "x.mlir", "--seed=-1"],
        ["compile", "x.mlir", "--target=vax"],
        ["compile", "x.mlir", "--chip=sm_80"],
        ["explain"],
    ],
)
def test_wrong_usage(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        shlo.main(arguments)
    assert stop.value.code == 2
    assert "usage: shlo" in capsys.readouterr().err


def test_help(capsys):
    for arguments in (["--help"], ["run", "--help"], ["check", "--help"], ["compile", "--help"], ["explain", "--help"]):
        with pytest.raises(SystemExit) as stop:
            shlo.main(arguments)
        assert stop.value.code == 0
    assert "stablehlo.OP" in capsys.readouterr().out


# --- check


def test_check_agrees(kinds, capsys):
    assert shlo.main(["check", kinds, "--seed=1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "result 0: agrees, bfloat16[2]: worst 0 ULP"
    assert lines[1] == "result 1: agrees, bool[]: equal"
    assert lines[3] == "result 3: agrees, uint8[2]: equal"


def test_check_of_given_inputs(add, capsys):
    assert shlo.main(["check", add, "--input=2x3xf32=1", "--input=2x3xf32=nan"]) == 0
    assert "agrees" in capsys.readouterr().out


def test_check_finds_a_difference(add, monkeypatch, capsys):
    from stablehlo_py.reference import interpreter

    truth = interpreter.interpret
    monkeypatch.setattr(interpreter, "interpret", lambda *a: tuple(r + np.float32(1) for r in truth(*a)))
    assert shlo.main(["check", add, "--input=2x3xf32=1", "--input=2x3xf32=1"]) == 3
    assert capsys.readouterr().out == (
        "result 0: DIFFERS, float32[2, 3]: worst 4194304 ULP at [0, 0]: 2.0 against 3.0\n"
    )
    assert shlo.main(["check", add, "--input=2x3xf32=1", "--input=2x3xf32=1", "--max-ulp=4194304"]) == 0
    assert shlo.main(["check", add, "--input=2x3xf32=1", "--input=2x3xf32=1", "--atol=0.4"]) == 0
    capsys.readouterr()


@pytest.mark.parametrize(
    ("got", "want", "agrees"),
    [
        (np.float32([1, np.nan]), np.float32([1, np.nan]), True),
        (np.float32([1, np.inf]), np.float32([1, np.nan]), False),
        (np.float32([np.inf]), np.float32([-np.inf]), False),
        (np.float32([1]), np.float32([1 + 2**-22]), True),
        (np.float32([1]), np.float32([1.01]), False),
        (np.float32([1]), np.float64([1]), False),
        (np.float32([1]), np.float32([[1]]), False),
        (np.int32([1, 2]), np.int32([1, 3]), False),
        (np.zeros((0, 2), np.float32), np.zeros((0, 2), np.float32), True),
        (np.complex64([1 + 1j]), np.complex64([1 + 1j]), True),
        (np.complex64([1 + 1j]), np.complex64([1 + 2j]), False),
    ],
)
def test_what_agrees(got, want, agrees):
    assert compare(got, want, 16, 1e-6)[1] is agrees


# --- compile


def test_compile_prints_the_program(add, capsys):
    assert shlo.main(["compile", add]) == 0
    assert "program(float32[2,3], float32[2,3]) -> (float32[2,3])" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("emit", "says"),
    [
        ("simplify", "stablehlo.add"),
        ("kernels", "call @"),
        ("linalg", "linalg.generic"),
        ("memref", "memref<2x3xf32"),
        ("llvm", "llvm.func"),
        ("llvm-ir", "define void @"),
        ("asm", ".text"),
        ("program", "program("),
    ],
)
def test_compile_emits_any_stage(add, capsys, emit, says):
    assert shlo.main(["compile", add, "--emit", emit]) == 0
    assert says in capsys.readouterr().out


def test_compile_to_ptx(add, tmp_path, capsys):
    path = tmp_path / "add.ptx"
    assert shlo.main(["compile", add, "--target=gpu", "--chip=sm_80", "-o", str(path)]) == 0
    assert capsys.readouterr().out == ""
    assert ".target sm_80" in path.read_text()


def test_compile_to_mxu(capsys):
    assert shlo.main(["compile", str(ROOT / "examples/dense.mlir"), "--target=tpu", "--chip=v4"]) == 0
    assert "mxu.kernel" in capsys.readouterr().out


def test_compile_emits_no_such_stage(add, capsys):
    message = fails(capsys, "compile", add, "--emit=nonsense")
    assert "simplify" in message
    assert "llvm-ir" in message
    assert "nonsense" in fails(capsys, "compile", add, "--target=gpu", "--emit=nonsense")


@pytest.mark.parametrize("target", ["gpu", "tpu"])
def test_unknown_chip(add, capsys, target):
    assert "known are" in fails(capsys, "compile", add, f"--target={target}", "--chip=abacus")


@pytest.mark.parametrize("command", ["run", "compile"])
def test_output_that_cannot_be_written(add, tmp_path, capsys, command):
    assert shlo.main([command, add, "-o", str(tmp_path / "nowhere" / "file")]) == 1
    message = capsys.readouterr().err
    assert message.startswith("error: ")
    assert "nowhere" in message


# --- explain


def test_explain(capsys):
    assert shlo.main(["explain", "stablehlo.dot_general"]) == 0
    assert "ops/contraction.py" in capsys.readouterr().out


def test_explain_suggests(capsys):
    assert "dot_general" in fails(capsys, "explain", "stablehlo.dot_generl")


# --- as a process


def tool(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "tools/shlo"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload]


def test_process_exit_codes(add):
    assert tool("run", add, "--target=vax").returncode == 2
    failed = tool("run", "nowhere.mlir")
    assert failed.returncode == 1
    assert "Traceback" not in failed.stderr


def test_a_closed_pipe_is_no_error(add):
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, str(ROOT / "tools/shlo"), "compile", add, "--emit=asm"]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("tool", ["shlo", "stablehlo-opt"])
def test_tools_of_a_checkout_say_what_is_not_installed(add, tool):
    """-I -S: a Python that finds nothing but its own library."""
    command = [
        sys.executable,
        "-I",
        "-S",
        str(ROOT / "tools" / tool),
        "run" if tool == "shlo" else "--hlo-simplify",
        add,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("error: this Python has no ")
    assert "hint: make run" in done.stderr
