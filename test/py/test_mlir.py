"""The seam: the traps of the bindings that it keeps away from everyone else."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from stablehlo_py import mlir
from stablehlo_py.mlir import DYNAMIC, PassManager, ir, new_context, raw_elements

ADDS = 2000
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(mlir.__file__).parents[1])}


def parse(text: str) -> ir.Module:
    """A module in a context of its own, which the module keeps alive."""
    with new_context(), ir.Location.unknown():
        return ir.Module.parse(text)


def first_op(module: ir.Module) -> ir.Operation:
    return module.body.operations[0].regions[0].blocks[0].operations[0].operation


def chain_of_adds(count: int) -> str:
    lines = "\n".join(f"  %{i + 1} = stablehlo.add %{i}, %{i} : tensor<4xf32>" for i in range(count))
    return f"func.func @f(%0: tensor<4xf32>) -> tensor<4xf32> {{\n{lines}\n  return %{count} : tensor<4xf32>\n}}"


def test_an_op_view_is_cheap():
    module = parse(chain_of_adds(ADDS))
    block = module.body.operations[0].regions[0].blocks[0]

    def once() -> float:
        begin = time.perf_counter()
        count = sum(1 for _ in block.operations)
        assert count == ADDS + 1
        return (time.perf_counter() - begin) / count

    # 25 us where the bindings look for a module of the dialect, else 0.4. The best of five, since the machine may be busy.
    assert min(once() for _ in range(5)) < 5e-6


@pytest.mark.parametrize("name", mlir.DIALECTS)
def test_dialect_builders_come_when_asked_for(name):
    assert getattr(mlir, name).__name__ == f"{mlir.PACKAGE}.dialects.{name}"


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="nonesuch"):
        mlir.nonesuch  # noqa: B018


def test_looking_at_ops_imports_no_builders():
    code = (
        "import sys; from stablehlo_py.mlir import ir, new_context\n"
        "module = ir.Module.parse('func.func @f() { return }', new_context())\n"
        "print(module.body.operations[0].operation.name, *sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=ENVIRONMENT)
    loaded = done.stdout.split()
    assert f"{mlir.PACKAGE}.ir" in loaded
    assert not [name for name in loaded if name.startswith(f"{mlir.PACKAGE}.dialects")]


# A reduction, a product, a convolution, a loop, a choice of elements, and a function of each: what most programs are made of.
MANY_OPS = """
import sys, jax, jax.numpy as jnp, stablehlo_py
def program(x, w):
    rows = jax.nn.softmax(jnp.tanh(x @ w)) + jnp.sort(x).sum()
    image = jax.lax.conv(rows[None, None], w[None, None, :3, :3], (1, 1), "SAME")[0, 0]
    image = jax.lax.fori_loop(0, 3, lambda i, y: y.at[i].set(x[0]) * 2, image)
    return jnp.where(image > 0, image.T, 1j * x)
shapes = [jax.ShapeDtypeStruct((32, 32), "float32")] * 2
stablehlo_py.compile(jax.jit(program).lower(*shapes), cache=False)
print(*sys.modules)
"""


def test_a_compilation_imports_no_builders_of_the_bindings():
    """The ops of LLVM's dialect take 25 ms, linalg's language of named ops 35, those of arith 10."""
    pytest.importorskip("jax")
    done = subprocess.run([sys.executable, "-c", MANY_OPS], capture_output=True, text=True, check=True, env=ENVIRONMENT)
    assert not [name for name in done.stdout.split() if name.startswith(f"{mlir.PACKAGE}.dialects")]


def test_whoever_imports_builders_gets_the_real_ones():
    linalg = importlib.import_module(f"{mlir.PACKAGE}.dialects.linalg")
    assert callable(linalg.matmul) and linalg.__name__ == mlir.linalg.__name__


def test_contexts_are_single_threaded():
    # A Python callback in a nested pass deadlocks on the interpreter's lock where a context has threads.
    context = new_context()
    threads: set[int] = set()
    with context, ir.Location.unknown():
        module = ir.Module.parse("".join(f"func.func @f{i}() {{ return }}\n" for i in range(8)))
        manager = PassManager("builtin.module")
        manager.add(lambda op, _: threads.add(threading.get_ident()), name="Look", argument="look")
        manager.add("func.func(cse)")
        manager.run(module.operation)
    assert threads == {threading.get_ident()}


def test_two_contexts_keep_apart():
    one, two = new_context(), new_context()
    with one:
        a = ir.Module.parse("func.func @a() { return }", one)
    with two:
        b = ir.Module.parse("func.func @b() { return }", two)
    assert a.context == one and b.context == two and one != two
    del one, a
    assert "@b" in str(b)


def test_chlo_text_parses_and_expands():
    module = parse(
        "func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {"
        "%0 = chlo.erf %x : tensor<4xf32> -> tensor<4xf32> return %0 : tensor<4xf32> }"
    )
    assert first_op(module).name == "chlo.erf"
    with module.context:
        PassManager.parse("builtin.module(func.func(chlo-legalize-to-stablehlo))").run(module.operation)
    assert "chlo." not in str(module)


OPS = [
    "stablehlo.add",
    "chlo.erf",
    "func.func",
    "arith.addf",
    "linalg.generic",
    "tensor.empty",
    "memref.alloc",
    "llvm.func",
]


@pytest.mark.parametrize("op", [*OPS, "gpu.launch_func", "nvvm.barrier"])
def test_dialects_are_at_hand(op):
    context = new_context()
    context.dialects[op.partition(".")[0]]
    assert context.is_registered_operation(op)


CONSTANTS = [
    ("dense<[(1.0, 2.0), (3.0, -4.0)]> : tensor<2xcomplex<f32>>", 8, np.array([1 + 2j, 3 - 4j], np.complex64)),
    ("dense<(0.5, -1.0)> : tensor<3xcomplex<f64>>", 16, np.array([0.5 - 1j], np.complex128)),
    ("dense<[1.0, 2.0]> : tensor<2xf32>", 4, np.array([1, 2], np.float32)),
    ("dense<7> : tensor<5xi32>", 4, np.array([7], np.int32)),
    ("dense<[true, false, true]> : tensor<3xi1>", 1, np.array([1, 0, 1], np.bool_)),
    ("dense<[1.0, -2.0]> : tensor<2xbf16>", 2, np.array([0x3F80, 0xC000], np.uint16)),
]


@pytest.mark.parametrize(("text", "element_bytes", "expected"), CONSTANTS, ids=[c[0] for c in CONSTANTS])
def test_raw_elements_reads_what_python_cannot(text, element_bytes, expected):
    kind = text.partition(" : ")[2]
    module = parse(f"func.func @f() -> {kind} {{ %0 = stablehlo.constant {text}\n return %0 : {kind} }}")
    count = int(kind[len("tensor<") :].partition("x")[0])
    data, splat = raw_elements(first_op(module), "value", element_bytes, count)
    np.testing.assert_array_equal(np.frombuffer(data, expected.dtype), expected)
    assert splat == (len(expected) == 1)


def test_raw_elements_of_an_empty_constant():
    module = parse(
        "func.func @f() -> tensor<0xf32> { %0 = stablehlo.constant dense<> : tensor<0xf32>\n return %0 : tensor<0xf32> }"
    )
    assert raw_elements(first_op(module), "value", 4, 0) == (b"", False)


def test_raw_elements_of_other_attributes_is_none():
    module = parse("func.func @f() { return }")
    assert raw_elements(module.body.operations[0].operation, "sym_name", 1, 1) is None
    assert raw_elements(module.body.operations[0].operation, "absent", 1, 1) is None


def test_a_dimension_that_is_not_known():
    with new_context():
        assert ir.RankedTensorType(ir.Type.parse("tensor<?xf32>")).shape == [DYNAMIC]


def test_stablehlo_passes_are_registered():
    with new_context():
        PassManager.parse("builtin.module(stablehlo-legalize-to-linalg)")


def test_parse_errors_carry_places():
    with new_context(), pytest.raises(ir.MLIRError) as caught:
        ir.Module.parse("func.func @f() {\n  stablehlo.nonesuch\n}")
    assert str(caught.value.error_diagnostics[0].location) == 'loc("-":2:3)'


def test_only_the_seam_names_the_bindings():
    package = Path(mlir.__file__).parent
    imports = re.compile(rf"^\s*(?:from|import) {mlir.PACKAGE}\b", re.M)
    others = [file.name for file in package.rglob("*.py") if imports.search(file.read_text(encoding="utf-8"))]
    assert sorted(others) == ["mlir.py", "mlir_builders.py"]


def test_the_hash_of_an_op_changes_with_its_operands() -> None:
    """So ops are no keys of anything that outlives a change; values are: theirs is their address."""
    with new_context(), ir.Location.unknown():
        module = ir.Module.parse(
            "func.func @f(%a: tensor<2xf32>, %b: tensor<2xf32>) -> tensor<2xf32> {\n"
            "%0 = stablehlo.add %a, %a : tensor<2xf32>\n return %0 : tensor<2xf32> }"
        )
        function = next(iter(module.body.operations))
        block = function.regions[0].blocks[0]
        op = next(iter(block.operations)).operation
        before = hash(op), hash(op.results[0])
        op.operands[1] = block.arguments[1]
        assert hash(op) != before[0]
        assert hash(op.results[0]) == before[1]


def test_raw_elements_are_those_of_the_op_also_in_a_context_that_is_used_again():
    text = "func.func @f() {{ %0 = stablehlo.constant dense<{}> : tensor<2x{}> return }}"
    rows = [
        ("1", "i32", 4, (b"\1\0\0\0", True)),
        ("1", "i16", 2, (b"\1\0", True)),
        ("[1, 2]", "i8", 1, (b"\1\2", False)),
    ]
    for _ in range(2):
        with mlir.borrowed_context() as context:
            for value, element, element_bytes, expected in rows * 2:
                module = ir.Module.parse(text.format(value, element), context)
                assert raw_elements(first_op(module), "value", element_bytes, 2) == expected


@pytest.mark.parametrize(
    "text",
    [
        "func.func @main(%a: tensor<4xf32>) { %0 = tosa.abs %a : (tensor<4xf32>) -> tensor<4xf32> return }",
        "func.func private @f(!emitc.opaque<'x'>)".replace("'", '"'),
    ],
)
def test_a_borrowed_context_reads_dialects_that_it_did_not_load(text):
    with mlir.borrowed_context() as context:
        assert ir.Module.parse(text, context).operation.verify()
