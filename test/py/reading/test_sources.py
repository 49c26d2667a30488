"""Every kind of source becomes the same module."""

from __future__ import annotations

import io

import numpy as np
import pytest

from stablehlo_py.errors import BadInput
from stablehlo_py.interop import jax as interop_jax
from stablehlo_py.mlir import PassManager, ir, new_context, stablehlo
from stablehlo_py.reading import read_module

TEXT = """func.func @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %arg0, %arg0 : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""


@pytest.fixture
def context() -> ir.Context:
    return new_context()


def bytecode(module: ir.Module) -> bytes:
    buffer = io.BytesIO()
    module.operation.write_bytecode(buffer)
    return buffer.getvalue()


def artifact(text: str, version: str) -> bytes:
    with new_context() as context:
        return stablehlo.serialize_portable_artifact_str(str(ir.Module.parse(text, context)), version)


def test_text_pretty_and_generic(context):
    pretty = read_module(TEXT, context)
    generic = read_module(pretty.operation.get_asm(print_generic_op_form=True), context)
    assert str(pretty) == str(generic)
    assert "stablehlo.add" in str(pretty)


def test_path_as_str_and_path_keeps_the_file_name_in_locations(context, tmp_path):
    file = tmp_path / "program.mlir"
    file.write_text(TEXT)
    assert str(read_module(str(file), context)) == str(read_module(file, context)) == str(read_module(TEXT, context))
    assert "program.mlir" in read_module(file, context).operation.get_asm(enable_debug_info=True)


def test_one_line_of_text_is_no_path(context):
    one_line = (
        "func.func @main() -> tensor<f32> { %0 = stablehlo.constant dense<1.0> : tensor<f32> return %0 : tensor<f32> }"
    )
    assert "@main" in str(read_module(one_line, context))


def test_bytecode_and_modules_of_another_context(context):
    module = read_module(TEXT, new_context())
    assert str(read_module(bytecode(module), context)) == str(module)
    again = read_module(module, context)
    assert str(again) == str(module)
    assert again.context is not module.context


@pytest.mark.parametrize("version", ["0.9.0", "1.0.0", "1.7.0", "current"])
def test_portable_artifacts_of_old_and_new_versions(context, version):
    version = stablehlo.get_current_version() if version == "current" else version
    assert str(read_module(artifact(TEXT, version), context)) == str(read_module(TEXT, context))


def test_resources_of_pytorch_in_text_and_bytecode(context):
    weights = np.arange(6, dtype=np.float32)
    text = f"""func.func @main() -> (tensor<2x3xf32>, tensor<2xi64>) {{
  %0 = arith.constant dense_resource<w.1> : tensor<2x3xf32>
  %1 = arith.constant dense<[1, 2]> : tensor<2xi64>
  return %0, %1 : tensor<2x3xf32>, tensor<2xi64>
}}
{{-#
  dialect_resources: {{
    builtin: {{
      w.1: "0x04000000{weights.tobytes().hex()}"
    }}
  }}
#-}}
"""
    # Resource names belong to a context: the second reading must not get the first one's data, nor none.
    other = text.replace(weights.tobytes().hex(), (weights + 1).tobytes().hex())
    for source, offset in ((text, 0), (other, 1), (text, 0), (bytecode(ir.Module.parse(other, new_context())), 1)):
        module = read_module(source, context)
        constants = [op.operation for op in module.body.operations[0].regions[0].blocks[0].operations][:2]
        assert [op.name for op in constants] == ["stablehlo.constant"] * 2
        np.testing.assert_array_equal(np.asarray(constants[0].attributes["value"]), weights.reshape(2, 3) + offset)


@pytest.mark.parametrize(
    ("element", "data", "shown"),
    [
        ("bf16", "803F0040", "[1.000000e+00, 2.000000e+00]"),
        ("i1", "0100", "[true, false]"),
        ("ui8", "FF01", "[255, 1]"),
        (
            "complex<f32>",
            "0000803F000000400000000000000000",
            "[(1.000000e+00,2.000000e+00), (0.000000e+00,0.000000e+00)]",
        ),
    ],
)
def test_resources_of_other_element_types(context, element, data, shown):
    text = f"""func.func @main() -> tensor<2x{element}> {{
  %0 = stablehlo.constant dense_resource<w> : tensor<2x{element}>
  return %0 : tensor<2x{element}>
}}
{{-# dialect_resources: {{ builtin: {{ w: "0x01000000{data}" }} }} #-}}
"""
    assert f"dense<{shown}>" in str(read_module(text, context))


def test_versioned_ops_without_an_artifacts_header(context):
    module = ir.Module.parse(TEXT, context)
    with context:
        PassManager.parse("builtin.module(stablehlo-legalize-to-vhlo)").run(module.operation)
    assert "stablehlo.add" in str(read_module(bytecode(module), new_context()))


# --- JAX -----------------------------------------------------------------------------------------------------------


def jax_program():
    jax = pytest.importorskip("jax")
    jnp = jax.numpy

    def mlp(x, w):
        return jax.nn.softmax(jnp.tanh(x @ w) + jax.scipy.special.erf(x.sum()))

    return jax, jax.jit(mlp), (jnp.ones((2, 3)), jnp.ones((3, 3)))


def test_jax_lowered_traced_exported_and_module(context):
    jax, function, arguments = jax_program()
    lowered = function.lower(*arguments)
    for source in (lowered, function.trace(*arguments), lowered.compiler_ir(), lowered.as_text()):
        assert "chlo.erf" in str(read_module(source, context))
    exported = jax.export.export(function)(*arguments)
    assert "dot_general" in str(read_module(exported, context))
    assert "dot_general" in str(read_module(exported.mlir_module_serialized, context))


def test_jax_export_serialized(context):
    pytest.importorskip("flatbuffers")
    jax, function, arguments = jax_program()
    data = jax.export.export(function)(*arguments).serialize()
    assert "dot_general" in str(read_module(data, context))


def test_typed_keys_carry_shardy_ops_which_go(context):
    jax, _, _ = jax_program()
    draw = jax.jit(lambda key: jax.random.normal(jax.random.split(key)[0], (3,)))
    lowered = draw.lower(jax.random.key(0))
    assert "sdy." in lowered.as_text()
    for source in (lowered, lowered.as_text(), jax.export.export(draw)(jax.random.key(0))):
        assert "sdy" not in str(read_module(source, context))


def test_shardy_artifact_without_jaxlib_says_what_to_do(context, monkeypatch):
    jax, _, _ = jax_program()
    exported = jax.export.export(jax.jit(jax.random.split))(jax.random.key(0))
    monkeypatch.setattr(interop_jax, "artifact_as_text", lambda _: None)
    with pytest.raises(BadInput, match="Shardy's annotations") as error:
        read_module(exported, context)
    assert "jax_use_shardy_partitioner" in error.value.hint


def test_jaxlib_that_takes_too_long_is_named(context, monkeypatch):
    jax, _, _ = jax_program()
    exported = jax.export.export(jax.jit(jax.random.split))(jax.random.key(0))
    monkeypatch.setattr(interop_jax, "SECONDS", 0.001)
    with pytest.raises(BadInput, match="has not read") as error:
        read_module(exported, context)
    assert "less to do" in error.value.hint


def test_jax_objects_that_are_no_programs(context):
    jax, function, arguments = jax_program()
    with pytest.raises(BadInput, match=r"lower it: f\.lower"):
        read_module(function, context)
    with pytest.raises(BadInput, match=r"before \.compile"):
        read_module(function.lower(*arguments).compile(), context)
    with pytest.raises(BadInput, match="HLO text"):
        read_module(function.lower(*arguments).as_text(dialect="hlo"), context)
    with pytest.raises(BadInput, match="a jaxpr"):
        read_module(str(jax.make_jaxpr(function)(*arguments)), context)
