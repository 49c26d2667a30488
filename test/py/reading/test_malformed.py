"""What is no program is refused with its place, what is wrong and what to try; nothing takes the process down."""

from __future__ import annotations

import random

import pytest

from stablehlo_py.errors import BadInput
from stablehlo_py.mlir import ir, new_context, stablehlo
from stablehlo_py.reading import diagnose, guard, read_module

GOOD = """func.func @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %arg0, %arg0 : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""
ADD = "stablehlo.add %arg0, %arg0 : tensor<4xf32>"


@pytest.fixture(scope="module")
def context() -> ir.Context:
    return new_context()


def refusal(source: object, context: ir.Context) -> BadInput:
    with pytest.raises(BadInput) as error:
        read_module(source, context)
    return error.value


@pytest.mark.parametrize(
    ("op", "where", "message", "hint"),
    [
        ("stablehlo.ad %arg0, %arg0 : tensor<4xf32>", "2:8", "'stablehlo.ad' is unknown", "stablehlo.add"),
        (
            "stablehl.add %arg0, %arg0 : tensor<4xf32>",
            "2:8",
            "dialect stablehl is not known",
            "did you mean stablehlo?",
        ),
        ("mhlo.add %arg0, %arg0 : tensor<4xf32>", "2:8", "dialect mhlo is not known", "export StableHLO instead"),
        ('"foo.bar"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>', "2:8", "foo.bar is not an op", "StableHLO"),
        ('"stablehlo.tahn"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>', "2:8", "stablehlo.tahn", "stablehlo.tanh"),
        ("stablehlo.add %arg0, %arg1 : tensor<4xf32>", "2:29", "undeclared SSA value", "did you mean %arg0?"),
        ("stablehlo.add %arg0, %arg0 : tensor<5xf32>", "2:22", "different type than prior uses", "convert, reshape"),
        ("stablehlo.reshape %arg0 : (tensor<4xf32>) -> tensor<4xf", "2:", "expected", ""),
    ],
)
def test_mistakes_in_text(context, op, where, message, hint):
    error = refusal(GOOD.replace(ADD, op), context)
    assert error.where.startswith(f"<text>:{where}")
    assert message in error.message
    assert hint in error.hint


def test_the_source_line_with_a_mark(context):
    error = refusal(GOOD.replace("stablehlo.add", "stablehlo.ad"), context)
    assert error.message.splitlines()[1:] == ["  |   %0 = stablehlo.ad %arg0, %arg0 : tensor<4xf32>", "  |        ^"]


def test_a_file_is_named(context, tmp_path):
    file = tmp_path / "model.mlir"
    file.write_text(GOOD.replace("stablehlo.add", "stablehlo.ad"))
    assert refusal(file, context).where == f"{file}:2:8"


def test_text_cut_short(context):
    assert "cut short" in refusal(GOOD[:-3], context).hint


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("", "empty"),
        (b"  \n", "empty"),
        (b"\x1f\x8b\x08\x00", "gzip"),
        (b"PK\x03\x04zip", "zip archive"),
        (b"HloModule m, entry_computation_layout={}\n", "HLO text"),
        (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS pointer"),
        (b"\xff\xfe\xfd", "neither bytecode nor UTF-8"),
        ("hello\nworld", "'hello' is unknown"),
        (3, "not a program"),
        (len, "a Python function"),
    ],
)
def test_other_things(context, source, message):
    assert message in refusal(source, context).message


def test_paths(context, tmp_path):
    (tmp_path / "model.mlir").write_text(GOOD)
    assert "model.mlir" in refusal(tmp_path, context).hint
    assert refusal(tmp_path / "modle.mlir", context).hint == "did you mean model.mlir?"
    assert "no folder" in refusal(str(tmp_path / "nowhere" / "model.mlir"), context).hint


@pytest.mark.parametrize("name", diagnose.OPS)
def test_ops_to_suggest_exist(context, name):
    assert context.is_registered_operation(name)


def test_elided_and_missing_constants(context):
    text = GOOD.replace(ADD, "stablehlo.constant dense_resource<__elided__> : tensor<4xf32>")
    assert "elided" in refusal(text, context).message
    assert "<text>:2:8" in refusal(text, context).where
    assert "dense_resource<w> has no data" in refusal(text.replace("__elided__", "w"), context).message
    short = text.replace("__elided__", "w") + '{-# dialect_resources: { builtin: { w: "0x04000000AABB" } } #-}\n'
    assert "2 bytes where tensor<4xf32> needs 16" in refusal(short, context).message


# --- what would crash ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "module {\n" * 5000 + "}\n" * 5000,
        "module attributes {a.b = " + "[" * 20000 + "]" * 20000 + "} {}\n",
        "func.func private @f(" + "tuple<" * 20000 + ">" * 20000 + ")\n",
        "#map = affine_map<(d0) -> (" + "(" * 20000 + "d0" + ")" * 20000 + ")>\n",
        "module {\n" * 5000,
    ],
)
def test_deep_nesting(context, text):
    error = refusal(text, context)
    assert "nest deeper than 1,000" in error.message
    assert error.where.startswith("<text>:")


def test_nesting_that_is_allowed(context):
    read_module("module {\n" * 900 + "}\n" * 900, context)
    read_module('module attributes {a.b = "' + "[" * 5000 + '"} {}\n', context)
    read_module("// " + "[" * 5000 + "\nmodule {}\n", context)
    read_module('module attributes {a.b = "\\"' + "[" * 5000 + '"} {}\n', context)


def nesting(text: str) -> int:
    """The deepest nesting, one character at a time."""
    level = lowest = deepest = 0
    is_string = is_comment = False
    for at, character in enumerate(text):
        if character == "\n":
            is_string = is_comment = False
        elif is_comment:
            continue
        elif character == '"' and not (is_string and text[at - 1] == "\\"):
            is_string = not is_string
        elif is_string:
            continue
        elif text[at : at + 2] == "//":
            is_comment = True
        elif character in "([{<":
            level += 1
        elif character in ")]}>" and text[at - 1 : at] != "-":
            level -= 1
        lowest = min(lowest, level)
        deepest = max(deepest, level - lowest)
    return deepest


@pytest.mark.parametrize("seed", range(20))
def test_the_scanner_agrees_with_a_simple_one(monkeypatch, seed):
    choose = random.Random(seed)
    words = [
        "(",
        ")",
        "<",
        ">",
        "[",
        "]",
        "{",
        "}",
        "->",
        " ",
        "\n",
        "a",
        '"("',
        '"a\\"<b"',
        "/",
        '// "(\n',
        "// (\n",
        "//",
    ]
    for _ in range(50):
        text = "".join(choose.choices(words, k=60))
        deepest = nesting(text)
        monkeypatch.setattr(guard, "CHUNK", choose.choice([4, 16, 1 << 20]))
        monkeypatch.setattr(guard, "MAX_DEPTH", deepest)
        guard.refuse_deep_nesting(text.encode(), "")
        monkeypatch.setattr(guard, "MAX_DEPTH", deepest - 1)
        if deepest > 0:
            with pytest.raises(BadInput):
                guard.refuse_deep_nesting(text.encode(), "")


def test_the_op_whose_verifier_traps(context):
    op = '"stablehlo.all_to_all"(%arg0) <{concat_dimension = 0 : i64, replica_groups = dense<> : tensor<0x0xi64>, '
    op += "split_count = 1 : i64, split_dimension = 0 : i64}> : (tensor<4xf32>) -> tensor<4xf32>"
    assert "crashes the MLIR parser" in refusal(GOOD.replace(ADD, op), context).message
    sharded = op.replace("split_dimension", "sdy.sharding = #sdy.sharding<@m, [{}]>, split_dimension")
    assert "crashes the MLIR parser" in refusal(GOOD.replace(ADD, sharded), context).message


def test_damaged_artifacts(context):
    data = stablehlo.serialize_portable_artifact_str(GOOD, stablehlo.get_current_version())
    choose = random.Random(0)
    refused = 0
    for round_number in range(40):
        damaged = bytearray(data)
        if round_number < 10:
            damaged = damaged[: choose.randrange(5, len(damaged) - 1)]
        else:
            damaged[choose.randrange(len(damaged))] = choose.randrange(256)
        try:
            read_module(bytes(damaged), context)
        except BadInput as error:
            assert error.where or error.message
            refused += 1
    assert refused >= 20


@pytest.mark.parametrize(
    ("op", "element", "said", "hint"),
    [
        ("add", "tf32", "'stablehlo.add' op operand #0 cannot have elements of type tf32", "StableHLO has no tf32"),
        ("add", "i3", "'stablehlo.add' op operand #0 cannot have elements of type i3", "StableHLO has no i3"),
        ("and", "f32", "'stablehlo.and' op operand #0 cannot have elements of type f32", "not defined on these"),
    ],
)
def test_an_element_type_that_an_op_does_not_take(op, element, said, hint):
    text = f"""func.func @main(%x: tensor<2x3x{element}>) -> tensor<2x3x{element}> {{
      %0 = stablehlo.{op} %x, %x : tensor<2x3x{element}>
      return %0 : tensor<2x3x{element}>
    }}"""
    with pytest.raises(BadInput, match=said) as caught, new_context() as context, ir.Location.unknown():
        read_module(text, context)
    assert hint in caught.value.hint
