"""stablehlo-opt as a program: exit codes, messages, streams."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

import stablehlo_py
from stablehlo_py.cli import opt
from stablehlo_py.core.passes import Pass
from stablehlo_py.mlir import ir

ADD = """\
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(stablehlo_py.__file__).parents[1])}
COMMAND = [sys.executable, "-m", "stablehlo_py.cli.opt"]


@dataclass(frozen=True)
class Crash(Pass):
    """A pass with a mistake."""

    name: ClassVar[str] = "test-opt-crash"

    def run(self, op: ir.Operation) -> None:
        raise IndexError("list index out of range")


@pytest.fixture
def tool(capsys, monkeypatch, tmp_path):
    """Run the tool on text, in this process: (exit code, stdout, stderr)."""

    def run(*args: str, text: str | bytes | None = ADD) -> tuple[int, str, str]:
        if text is not None:
            data = text.encode() if isinstance(text, str) else text
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
        try:
            code = opt.main(args)
        except SystemExit as stop:
            code = stop.code
        out, err = capsys.readouterr()
        assert "Traceback" not in err or "--traceback" in args
        return code, out, err

    return run


def test_reads_standard_input_and_prints(tool):
    code, out, err = tool("-")
    assert (code, err) == (0, "")
    assert "stablehlo.add" in out
    assert tool(text=ADD) == (code, out, err)


def test_reads_and_writes_files(tool, tmp_path):
    (tmp_path / "in.mlir").write_text(ADD)
    assert tool(str(tmp_path / "in.mlir"), "-o", str(tmp_path / "out.mlir"), text=None) == (0, "", "")
    assert "stablehlo.add" in (tmp_path / "out.mlir").read_text()


def test_one_dash_is_enough_for_long_flags(tool, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, err = tool("-one-shot-bufferize=allow-unknown-ops", "-o", "out.mlir")
    assert (code, err) == (0, "")
    assert [file.name for file in tmp_path.iterdir()] == ["out.mlir"]
    assert "stablehlo.add" in (tmp_path / "out.mlir").read_text()


def test_a_file_that_cannot_be_written(tool, tmp_path):
    code, out, err = tool("-o", str(tmp_path / "no" / "out.mlir"))
    assert (code, out) == (1, "")
    assert err == f"{tmp_path}/no/out.mlir: error: the file cannot be written: No such file or directory\n"


BAD_INPUTS = [
    ("func.func @f() {\n  stablehlo.nonesuch\n}", "<stdin>:2:3: error: custom op 'stablehlo.nonesuch' is unknown"),
    ("func.func @f() {\n  return %x : i32\n}", "<stdin>:2:10: error: use of undeclared SSA value name"),
    ("func.func @f() {", "<stdin>:1:"),
    ("", "<stdin>: error: the input is empty"),
    (b"\xff\xfe\x00junk", "<stdin>: error: "),
    (b"ML\xefRjunk", "<stdin>: error: the bytecode is damaged"),
    ("module {" * 5000, "<stdin>:1:80"),
    (ADD.replace("add %x, %x : tensor<4xf32>", "add %x, %x : tensor<5xf32>"), "<stdin>:2:22: error: "),
    ("HloModule m\n", "<stdin>: error: the input is HLO text, not MLIR"),
]


@pytest.mark.parametrize(("text", "start"), BAD_INPUTS, ids=[str(start) for _, start in BAD_INPUTS])
@pytest.mark.parametrize("flags", [(), ("--allow-unregistered-dialect",)])
def test_errors_in_the_input_are_code_1(tool, text, start, flags):
    code, out, err = tool("--canonicalize", *flags, text=text)
    assert (code, out) == (1, "")
    assert err.startswith(start.partition(" error: ")[0] if flags else start)


def test_the_source_line_has_a_caret(tool):
    _, _, err = tool(text=ADD.replace("stablehlo.add", "stablehlo.addd"))
    lines = err.splitlines()
    assert "%0 = stablehlo.addd" in lines[1]
    assert lines[2].index("^") == lines[1].index("stablehlo.addd")
    assert lines[3].startswith("  hint: did you mean stablehlo.add")


def test_a_missing_file_is_code_1(tool, tmp_path):
    (tmp_path / "model.mlir").write_text(ADD)
    code, _, err = tool(str(tmp_path / "modle.mlir"), text=None)
    assert code == 1
    assert err.splitlines() == [
        f"{tmp_path}/modle.mlir: error: the file does not exist",
        "  hint: did you mean model.mlir?",
    ]


def test_a_folder_is_code_1(tool, tmp_path):
    code, _, err = tool(str(tmp_path), text=None)
    assert code == 1 and "a directory where a program is needed" in err


WRONG_USAGE = [
    (("--no-such-pass",), "there is no pass 'no-such-pass'"),
    (("--pass-pipeline=csee",), "there is no pass 'csee'"),
    (("--pass-pipeline=func.func(cse",), "this bracket is not closed"),
    (("--pass-pipeline=cse", "--pipeline=cpu"), "give passes in one way"),
    (("--pass-pipeline=cse", "--cse"), "give passes in one way"),
    (("--pipeline=nonesuch",), "there is no pipeline 'nonesuch'"),
    (("--pipeline=cleanup", "--stop-after=x"), "pipeline cleanup has no stage 'x'"),
    (("--stop-after=x",), "--stop-after goes with --pipeline"),
    (("a.mlir", "b.mlir"), "unexpected argument 'b.mlir'"),
    (("--mlir-elide-elementsattrs-if-larger=x",), "a whole number is wanted, not 'x'"),
    (("--canonicalize=max-iterations",), "pass canonicalize cannot be made"),
    (("--load-pass-plugin=no/such.py",), "there is no such Python file"),
    (
        ("--cse", "--mlir-print-ir-after=csee"),
        "--mlir-print-ir-after=csee: no such pass runs\n  hint: did you mean 'cse'?",
    ),
    (("-o",), "expected one argument"),
]


@pytest.mark.parametrize(("args", "message"), WRONG_USAGE, ids=[" ".join(args) for args, _ in WRONG_USAGE])
def test_wrong_usage_is_code_2(tool, args, message):
    code, out, err = tool(*args)
    assert (code, out) == (2, "")
    assert message in err
    assert err.splitlines()[-1 if err.startswith("usage") else 0].startswith("stablehlo-opt: error: ")


def test_a_plugin_with_a_mistake_is_wrong_usage(tool, tmp_path):
    (tmp_path / "mine.py").write_text("1 / 0\n")
    code, _, err = tool(f"--load-pass-plugin={tmp_path}/mine.py")
    assert code == 2
    assert err == f"stablehlo-opt: error: --load-pass-plugin={tmp_path}/mine.py: ZeroDivisionError: division by zero\n"


def test_mistakes_of_ours_are_a_sentence(tool):
    code, out, err = tool("--test-opt-crash")
    assert (code, out) == (1, "")
    first, second, third = err.splitlines()
    assert first == "<stdin>: error: internal error in pass test-opt-crash: IndexError: list index out of range"
    assert second.startswith(f"  at {__file__}:")
    assert "--traceback" in third
    assert "Traceback" in tool("--test-opt-crash", "--traceback")[2]


def test_failures_in_a_stage_name_it(tool, tmp_path):
    (tmp_path / "p.pipeline").write_text("stage buffers:\n  one-shot-bufferize\n")
    code, out, err = tool(f"--pipeline={tmp_path}/p.pipeline")
    assert (code, out) == (1, "")
    lines = err.splitlines()
    assert lines[0] == "<stdin>:2:8: error: op was not bufferized"
    assert lines[-1] == "  in pass one-shot-bufferize, stage buffers"


def test_ops_that_nobody_knows(tool):
    text = 'func.func @f() {\n  "mine.op"() : () -> ()\n  return\n}'
    code, _, err = tool("--cse", text=text)
    assert code == 1 and err.startswith("<stdin>:2:3: error: mine.op is not an op that is known here")
    code, out, _ = tool("--cse", "--allow-unregistered-dialect", text=text)
    assert code == 0 and '"mine.op"()' in out


def test_the_stages_of_the_cpu_pipeline(tool):
    code, out, err = tool("--pipeline=cpu", "--stop-after=linalg")
    assert (code, err) == (0, "")
    assert "stablehlo." not in out and "linalg.generic" in out


def test_a_failed_part_leaves_the_others(tool):
    code, out, err = tool(
        "--split-input-file", text=f"{ADD}\n// -----\n\nfunc.func @f() {{\n  bad\n}}\n// -----\n{ADD}"
    )
    assert code == 1
    assert out.count("stablehlo.add") == 2 and out.count("// -----") == 1
    assert err.startswith("<stdin>:9:")


REMARK = """\
module attributes {transform.with_named_sequence} {
  func.func @f() { return }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %f = transform.structured.match ops{["func.func"]} in %root : (!transform.any_op) -> !transform.any_op
    transform.debug.emit_remark_at %f, "here it is" : !transform.any_op
    transform.yield
  }
}
"""


def test_remarks_are_shown_and_do_not_fail(tool):
    code, out, err = tool("--transform-interpreter", text=REMARK)
    assert code == 0 and "func.func @f()" in out
    assert err.splitlines()[:3] == ["<stdin>:2:3: remark: here it is", "    func.func @f() { return }", "    ^"]


def test_remarks_can_be_expected(tool):
    expected = REMARK.replace("{ return }", "{ return } // expected-remark {{here it is}}")
    assert tool("--transform-interpreter", "--verify-diagnostics", text=expected)[0::2] == (0, "")
    code, _, err = tool("--transform-interpreter", "--verify-diagnostics", text=REMARK)
    assert (code, err) == (1, "<stdin>:2: error: unexpected remark: here it is\n")


def test_help_needs_no_bindings():
    code = "import sys, contextlib; from stablehlo_py.cli import opt\n"
    code += "with contextlib.suppress(SystemExit): opt.main(['--help'])\n"
    code += "print('torch_mlir' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=ENVIRONMENT, check=True)
    assert "--pass-pipeline" in done.stdout and "exit codes" in done.stdout
    assert done.stdout.splitlines()[-1] == "False"


def test_a_reader_that_stops_early_is_fine():
    numbers = "\n".join(f"func.func @f{i}() {{ return }}" for i in range(20_000))
    process = subprocess.Popen(
        COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT
    )
    process.stdout.close()
    process.stdin.write(numbers.encode())
    process.stdin.close()
    assert process.stderr.read() == b""
    assert process.wait() == 0
