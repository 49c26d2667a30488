"""`shlo check` on programs that check themselves: StableHLO's own test files, of one program or of several."""

from pathlib import Path

import pytest

from stablehlo_py.cli import shlo

ONE = """func.func @twice() -> tensor<3xf32> {{
  %0 = stablehlo.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %1 = stablehlo.add %0, %0 : tensor<3xf32>
  {assertion}
  func.return %1 : tensor<3xf32>
}}
"""
TYPES = "(tensor<3xf32>, tensor<3xf32>) -> ()"


def judged(folder: Path, capsys: pytest.CaptureFixture[str], *assertions: str) -> tuple[int, list[str]]:
    """The exit code for a file of one program an assertion, and what was said with the file's name taken out."""
    path = folder / "tests.mlir"
    path.write_text("// -----\n".join(ONE.format(assertion=text) for text in assertions))
    code = shlo.main(["check", str(path)])
    said = capsys.readouterr()
    return code, (said.out + said.err).replace(str(path), "F").splitlines()


@pytest.mark.parametrize(
    "holds",
    [
        "check.expect_eq %1, %1 : tensor<3xf32>",
        "check.expect_eq_const %1, dense<[2.0,\n\n 4.0, 6.0]> : tensor<3xf32>",
        "check.expect_almost_eq_const %1, dense<[2.0, 4.0, 6.0009]> : tensor<3xf32>",
        "check.expect_almost_eq_const %1, dense<[2.0, 4.0, 6.01]> : tensor<3xf32> {tolerance = 0.1 : f64}",
        "check.expect_almost_eq_const %1, dense<[2.0, 4.0, 6.01]> : tensor<3xf32>, tolerance = 0.1",
        "check.expect_close %1, %1, max_ulp_difference = 0, min_ulp_difference = 0 : tensor<3xf32>, tensor<3xf32>",
        '"check.expect_eq_const"(%1) <{value = dense<[2.0, 4.0, 6.0]> : tensor<3xf32>}> : (tensor<3xf32>) -> ()',
        '"check.expect_eq_const"(%1) {value = dense<[2.0, 4.0, 6.0]> : tensor<3xf32>} : (tensor<3xf32>) -> ()',
        f'"check.expect_close"(%1, %1) {{max_ulp_difference = 4 : ui64}} : {TYPES}',
        f"stablehlo.custom_call @check.expect_close(%1, %1) {{has_side_effect = true}} : {TYPES}",
        "%2 = stablehlo.custom_call @check.eq(%1, %1) : (tensor<3xf32>, tensor<3xf32>) -> tensor<i1>",
    ],
)
def test_an_assertion_that_holds_in_each_form(tmp_path, capsys, holds):
    code, said = judged(tmp_path, capsys, holds)
    assert (code, said[0]) == (0, "assertions: 1 hold on the CPU")


@pytest.mark.parametrize(
    "fails, place, difference",
    [
        ("check.expect_eq %1, %0 : tensor<3xf32>", 4, "3 of 3 elements differ, first at [0]: 2.0 instead of 1.0"),
        (
            "check.expect_eq_const %1, dense<[2.0, 4.0, 5.0]> : tensor<3xf32>",
            4,
            "1 of 3 elements differ, first at [2]: 6.0 instead of 5.0",
        ),
        (
            '"check.expect_almost_eq_const"(%1) <{value = dense<[2.0, 4.002, 6.0]> : tensor<3xf32>}> '
            ": (tensor<3xf32>) -> ()",
            4,
            "1 of 3 elements differ, first at [1]: 4.0 instead of 4.002",
        ),
        (
            f'"check.expect_close"(%1, %1) {{min_ulp_difference = 1 : ui64}} : {TYPES}',
            4,
            "3 of 3 elements differ, first at [0]: 2.0 instead of 2.0, 0 ULP apart",
        ),
        (
            "%2 = stablehlo.custom_call @check.eq(%1, %0) : (tensor<3xf32>, tensor<3xf32>) -> tensor<i1>",
            4,
            "3 of 3 elements differ",
        ),
    ],
)
def test_the_first_element_that_differs(tmp_path, capsys, fails, place, difference):
    code, said = judged(tmp_path, capsys, fails)
    assert code == 3
    assert said[0].startswith("assertions: FAIL on the CPU: ")
    assert f":{place}:" in said[0]
    assert difference in said[0]
    assert said[1].startswith("assertions: FAIL on the reference: ")


def test_each_program_of_a_file(tmp_path, capsys):
    good, bad = "check.expect_eq %1, %1 : tensor<3xf32>", "check.expect_eq %1, %0 : tensor<3xf32>"
    code, said = judged(tmp_path, capsys, good, "stablehlo.no_such_op", bad)
    assert code == 3
    assert said[0] == "F:1: assertions: 1 hold on the CPU"
    assert "F:15: assertions: FAIL on the CPU: F:18:" in said[3]
    assert "3 programs: 1 agree, 2 DO NOT" in said
    assert any(line.startswith("error: F:11:3: ") for line in said)
    code, said = judged(tmp_path, capsys, good, good)
    assert (code, said[-1]) == (0, "2 programs: 2 agree")


def test_an_assertion_that_cannot_be_read(tmp_path, capsys):
    code, said = judged(tmp_path, capsys, "check.expect_eq %1 to %0 : tensor<3xf32>")
    assert code == 1
    assert said[0] == "error: F:4:3: check.expect_eq is not written as StableHLO's test programs write it"


def test_run_says_in_a_sentence_that_an_assertion_fails(tmp_path, capsys):
    path = tmp_path / "one.mlir"
    path.write_text(ONE.format(assertion="check.expect_eq %1, %0 : tensor<3xf32>"))
    assert shlo.main(["run", str(path)]) == 1
    assert "3 of 3 elements differ" in capsys.readouterr().err
