"""Normalised programs: one main, no calls, no deprecated ops, the same numbers."""

from __future__ import annotations

import numpy as np
import pytest

from stablehlo_py.errors import CompileError
from stablehlo_py.mlir import ir, new_context, stablehlo
from stablehlo_py.reading import read_module
from stablehlo_py.transforms.normalize import hlo_deprecated, hlo_expand_chlo, hlo_normalize, hlo_scalar_ops
from stablehlo_py.transforms.normalize.hlo_inline import find_main
from stablehlo_py.transforms.normalize.hlo_normalize import normalize


def normalized(text: str) -> ir.Module:
    module = read_module(text, new_context())
    normalize(module)
    return module


def run(module: ir.Module, *arrays: np.ndarray) -> list[np.ndarray]:
    """By upstream's own interpreter."""
    with module.context:
        results = stablehlo.eval_module(module, [ir.DenseElementsAttr.get(array) for array in arrays])
    return [np.array(ir.DenseElementsAttr(result)) for result in results]


def main_with(body: str, inputs: list[str], output: str) -> str:
    arguments = ", ".join(f"%a{i}: tensor<{ty}>" for i, ty in enumerate(inputs))
    return f"func.func @main({arguments}) -> tensor<{output}> {{\n{body}\n  return %r : tensor<{output}>\n}}\n"


def floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(
    ("config", "shapes"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)]),
        ("ij,jk->ki", [(2, 3), (3, 4)]),
        ("bij,bjk->bik", [(5, 2, 3), (5, 3, 4)]),
        ("bij,jkb->kib", [(5, 2, 3), (3, 4, 5)]),
        ("i,j->ij", [(2,), (3,)]),
        ("ij,ij->", [(2, 3), (2, 3)]),
        ("ijm,jk->ik", [(2, 3, 6), (3, 4)]),
        ("ij,jkn->k", [(2, 3), (3, 4, 2)]),
    ],
)
def test_einsum(config, shapes):
    arrays = [floats(*shape) for shape in shapes]
    expected = np.einsum(config, *arrays)
    types = ["x".join([*map(str, array.shape), "f32"]) for array in (*arrays, expected)]
    body = f'  %r = "stablehlo.einsum"(%a0, %a1) {{einsum_config = "{config}"}} : '
    body += f"(tensor<{types[0]}>, tensor<{types[1]}>) -> tensor<{types[2]}>"
    module = normalized(main_with(body, types[:2], types[2]))
    assert "einsum" not in str(module)
    np.testing.assert_allclose(run(module, *arrays)[0], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("config", ["ij->ji", "ij->i", "ij->j", "ij->"])
def test_unary_einsum(config):
    (array,) = (floats(2, 3),)
    expected = np.einsum(config, array)
    ty = "x".join([*map(str, expected.shape), "f32"])
    body = f'  %r = "stablehlo.unary_einsum"(%a0) {{einsum_config = "{config}"}} : (tensor<2x3xf32>) -> tensor<{ty}>'
    np.testing.assert_allclose(run(normalized(main_with(body, ["2x3xf32"], ty)), array)[0], expected, rtol=1e-5)


@pytest.mark.parametrize(("lhs", "rhs"), [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4))])
def test_dot(lhs, rhs):
    arrays = [floats(*lhs), floats(*rhs)]
    expected = np.asarray(arrays[0] @ arrays[1])
    types = ["x".join([*map(str, array.shape), "f32"]) for array in (*arrays, expected)]
    body = f"  %r = stablehlo.dot %a0, %a1 : (tensor<{types[0]}>, tensor<{types[1]}>) -> tensor<{types[2]}>"
    module = normalized(main_with(body, types[:2], types[2]))
    assert "stablehlo.dot_general" in str(module)
    np.testing.assert_allclose(run(module, *arrays)[0], expected, rtol=1e-5)


@pytest.mark.parametrize(("dim", "batch"), [(0, 0), (1, 0), (2, 0), (1, 1), (2, 1)])
def test_torch_index_select(dim, batch):
    operand = floats(2, 3, 4)
    index = np.array([[1, 0], [0, 1]], np.int32) if batch else np.array([1, 0], np.int32)
    rows = [np.take(operand[b], index[b], axis=dim - 1) for b in range(2)] if batch else []
    expected = np.stack(rows) if batch else np.take(operand, index, axis=dim)
    ty = "x".join([*map(str, expected.shape), "f32"])
    index_ty = "x".join([*map(str, index.shape), "i32"])
    body = f'  %r = "stablehlo.torch_index_select"(%a0, %a1) {{dim = {dim} : i64, batch_dims = {batch} : i64}} : '
    body += f"(tensor<2x3x4xf32>, tensor<{index_ty}>) -> tensor<{ty}>"
    module = normalized(main_with(body, ["2x3x4xf32", index_ty], ty))
    np.testing.assert_array_equal(run(module, operand, index)[0], expected)


def test_broadcast_and_map():
    text = main_with(
        """  %0 = "stablehlo.broadcast"(%a0) {broadcast_sizes = array<i64: 2>} : (tensor<3xf32>) -> tensor<2x3xf32>
  %c = stablehlo.constant dense<3.0> : tensor<f32>
  %r = "stablehlo.map"(%0, %0) ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %two = stablehlo.constant dense<2.0> : tensor<f32>
    %1 = stablehlo.multiply %x, %two : tensor<f32>
    %2 = stablehlo.compare GT, %y, %c : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %3 = stablehlo.select %2, %c, %1 : tensor<i1>, tensor<f32>
    stablehlo.return %3 : tensor<f32>
  }) {dimensions = array<i64: 0, 1>} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>""",
        ["3xf32"],
        "2x3xf32",
    )
    module = normalized(text)
    assert "stablehlo.map" not in str(module)
    x = np.array([1.0, 5.0, -2.0], np.float32)
    np.testing.assert_array_equal(run(module, x)[0], np.tile(np.where(x > 3, 3, 2 * x), (2, 1)))


CALLS = """module {
  func.func private @unused() { return }
  func.func @twice(%x: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.add %x, %x : tensor<f32>
    return %0 : tensor<f32>
  }
  func.func public @main(%x: tensor<f32>) -> tensor<f32> {
    %0 = call @twice(%x) : (tensor<f32>) -> tensor<f32>
    %1 = call @twice(%0) : (tensor<f32>) -> tensor<f32>
    return %1 : tensor<f32>
  }
}
"""


def test_one_main_without_calls_that_keeps_locations():
    module = normalized(CALLS)
    functions = [op.operation for op in module.body.operations]
    assert [str(function.attributes["sym_name"]) for function in functions] == ['"main"']
    assert "call" not in str(module)
    assert ":4:10" in module.operation.get_asm(enable_debug_info=True)
    assert run(module, np.float32(3))[0] == 12


def test_which_function_is_main():
    def name(text: str) -> str:
        return ir.StringAttr(find_main(read_module(text, new_context()).operation).attributes["sym_name"]).value

    assert name("func.func @a() { return }\nfunc.func @main() { return }") == "main"
    assert name("func.func private @a() { return }\nfunc.func @b() { return }") == "b"
    assert name("func.func @a() { return }\nfunc.func @b() { return }") == "a"


def test_tuples():
    text = main_with(
        """  %t = stablehlo.tuple %a0, %a1 : tuple<tensor<2xf32>, tensor<3xf32>>
  %r = stablehlo.get_tuple_element %t[1] : (tuple<tensor<2xf32>, tensor<3xf32>>) -> tensor<3xf32>""",
        ["2xf32", "3xf32"],
        "3xf32",
    )
    assert "tuple" not in str(normalized(text))


def test_dynamic_ops_whose_shapes_are_known():
    text = main_with(
        """  %s = stablehlo.constant dense<[3, 2]> : tensor<2xi32>
  %0 = stablehlo.dynamic_reshape %a0, %s : (tensor<2x3xf32>, tensor<2xi32>) -> tensor<?x?xf32>
  %n = stablehlo.get_dimension_size %0, dim = 0 : (tensor<?x?xf32>) -> tensor<i32>
  %1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %2 = stablehlo.constant dense<4> : tensor<1xi32>
  %3 = stablehlo.concatenate %2, %1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %4 = stablehlo.constant dense<1.0> : tensor<f32>
  %r = stablehlo.dynamic_broadcast_in_dim %4, %3, dims = [] : (tensor<f32>, tensor<2xi32>) -> tensor<4x3xf32>""",
        ["2x3xf32"],
        "4x3xf32",
    )
    module = normalized(text)
    assert "dynamic" not in str(module)
    np.testing.assert_array_equal(run(module, floats(2, 3))[0], np.ones((4, 3)))


ERF = main_with("  %r = chlo.erf %a0 : tensor<4xf32> -> tensor<4xf32>", ["4xf32"], "4xf32")
ERF_CALL = main_with(
    "  %r = stablehlo.custom_call @mhlo.erf(%a0) {mhlo.attributes = {}} : (tensor<4xf32>) -> tensor<4xf32>",
    ["4xf32"],
    "4xf32",
)
ERF_COMPOSITE = (
    main_with(
        '  %r = stablehlo.composite "chlo.erf" %a0 {decomposition = @erf} : (tensor<4xf32>) -> tensor<4xf32>',
        ["4xf32"],
        "4xf32",
    )
    + "func.func private @erf(%x: tensor<4xf32>) -> tensor<4xf32> {\n  %0 = chlo.erf %x : tensor<4xf32> -> tensor<4xf32>\n"
    + "  return %0 : tensor<4xf32>\n}\n"
)


@pytest.mark.parametrize("text", [ERF, ERF_CALL, ERF_COMPOSITE])
def test_erf_however_it_comes(monkeypatch, text):
    monkeypatch.setattr(hlo_expand_chlo, "KEEP", set())
    module = normalized(text)
    x = np.array([-1.0, 0.0, 0.5, 3.0], np.float32)
    np.testing.assert_allclose(run(module, x)[0], [-0.8427008, 0.0, 0.5204999, 0.9999779], rtol=1e-5)
    monkeypatch.setattr(hlo_expand_chlo, "KEEP", {"chlo.erf"})
    assert str(normalized(text)).count("chlo.erf") == 1


def test_top_k_of_xla(monkeypatch):
    monkeypatch.setattr(hlo_expand_chlo, "KEEP", set())
    text = """func.func @main(%x: tensor<5xf32>) -> (tensor<2xf32>, tensor<2xi32>) {
  %0:2 = stablehlo.custom_call @mhlo.topk(%x) {mhlo.attributes = {k = 2 : i64, largest = true}}
    : (tensor<5xf32>) -> (tensor<2xf32>, tensor<2xi32>)
  return %0#0, %0#1 : tensor<2xf32>, tensor<2xi32>
}
"""
    values, indices = run(normalized(text), np.array([1, 5, 2, 5, 3], np.float32))
    assert values.tolist() == [5, 5]
    assert indices.tolist() == [1, 3]
    with pytest.raises(CompileError, match="smallest"):
        normalized(text.replace("true", "false"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("module {}", "no function with a body"),
        ("module {} \nmodule {}", "holds 2 modules"),
        (
            "func.func @main() { call @f() : () -> () return }\nfunc.func @f() { call @main() : () -> () return }",
            "in a circle: main -> f -> main",
        ),
        ("func.func @main() { call @f() : () -> () return }\nfunc.func private @f()", "@f has no body"),
        ("func.func @main(%x: tensor<?xf32>) { return }", "argument 0 of main has a shape"),
        ("func.func @main(%x: tuple<tensor<f32>>) { return }", "takes or returns a tuple"),
        (
            "".join(
                f"func.func private @f{i}() {{ call @f{i + 1}() : () -> () call @f{i + 1}() : () -> () return }}\n"
                for i in range(40)
            )
            + "func.func private @f40() { return }\nfunc.func @main() { call @f0() : () -> () return }",
            "2,000,000 is the limit",
        ),
    ],
)
def test_refusals(text, message):
    with pytest.raises(CompileError, match=message):
        normalized(text)


def test_passes_are_imported_for_what_they_replace():
    assert hlo_normalize.STEPS["hlo-deprecated"] == set(hlo_deprecated.REPLACEMENTS)
    assert hlo_normalize.STEPS["hlo-scalar-ops"] == set(hlo_scalar_ops.DIALECTS)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("func.func @main(%x: tuple<tensor<2xf32>>) { return }", {hlo_normalize.TUPLE}),
        ("func.func private @f() -> tuple<tensor<2xf32>>", {hlo_normalize.TUPLE}),
        ("func.func @main(%x: tensor<?xf32>) { return }", {hlo_normalize.DYNAMIC}),
        ("func.func @main(%x: tensor<*xf32>) { return }", {hlo_normalize.DYNAMIC}),
        ("func.func @main(%x: tensor<2x!quant.uniform<i8:f32, 0.5>>) { return }", {hlo_normalize.QUANTIZED}),
        ("func.func @main(%x: tensor<2xf32>) { return }", set()),
    ],
)
def test_contents_of_types(text, found):
    with new_context():
        module = ir.Module.parse(text)
        kinds = {hlo_normalize.TUPLE, hlo_normalize.DYNAMIC, hlo_normalize.QUANTIZED}
        assert hlo_normalize.contents(module.operation) & kinds == found
