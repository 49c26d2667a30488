"""What jax.export makes of functions with symbolic dimensions."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export
from ops.agree import numbers

import stablehlo_py
from stablehlo_py import BadInput


def rows(x: jax.Array, y: jax.Array) -> tuple[jax.Array, ...]:
    z = jnp.concatenate([x, y], axis=0)
    scores = jax.nn.softmax(z @ z.T)
    return (
        scores.sum(0),
        z.mean(),
        jnp.arange(z.shape[0]),
        jnp.sort(z, axis=0)[::2],
        jnp.pad(z, ((1, z.shape[0]), (0, 0))),
    )


def exported(platforms: list[str] | None = None) -> export.Exported:
    a, b = export.symbolic_shape("a, b", constraints=["a >= b"])
    arguments = [jax.ShapeDtypeStruct((size, 4), jnp.float32) for size in (a, b)]
    return export.export(jax.jit(rows), platforms=platforms)(*arguments)


@pytest.mark.parametrize("form", ["exported", "bytes", "text", "several platforms"])
def test_agrees_with_jax(form: str):
    program = exported(["cuda", "cpu"] if form == "several platforms" else None)
    forms = {"bytes": lambda: program.mlir_module_serialized, "text": program.mlir_module}
    executable = stablehlo_py.compile(forms.get(form, lambda: program)())
    for first, second in ((3, 2), (5, 5)):
        x, y = numbers((first, 4)), numbers((second, 4), seed=1)
        for got, wanted in zip(executable(x, y), rows(x, y), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


def test_a_wrong_dimension_is_said_in_the_exporters_words():
    executable = stablehlo_py.compile(exported())
    with pytest.raises(BadInput, match=r"constraint a >= b.*'a' = 2 .* dimension args\[0\]\.shape\[0\]"):
        executable(numbers((2, 4)), numbers((3, 4)))
    (size,) = export.symbolic_shape("2*d")
    pairs = export.export(jax.jit(lambda x: x.reshape(-1, 2, 3)))(jax.ShapeDtypeStruct((size, 3), jnp.float32))
    executable = stablehlo_py.compile(pairs)
    assert executable(numbers((4, 3)))[0].shape == (2, 2, 3)
    with pytest.raises(BadInput, match="Division had remainder 1"):
        executable(numbers((5, 3)))


def test_a_program_for_other_platforms_alone():
    program = export.export(jax.jit(jnp.sin), platforms=["cuda", "tpu"])(jax.ShapeDtypeStruct((2,), jnp.float32))
    with pytest.raises(BadInput, match="exported for cuda, tpu, not for cpu"):
        stablehlo_py.compile(program)


def test_the_branch_of_this_platform_is_taken():
    def f(x: jax.Array) -> jax.Array:
        return jax.lax.platform_dependent(x, cpu=lambda x: x + 1, default=lambda x: x - 1)

    program = export.export(jax.jit(f), platforms=["tpu", "cpu"])(jax.ShapeDtypeStruct((2,), jnp.float32))
    assert stablehlo_py.compile(program)(np.zeros(2, np.float32))[0].tolist() == [1, 1]


FUNCTIONS = {
    "scan": (lambda x: jax.lax.scan(lambda c, a: (c + a, c * a), jnp.zeros(x.shape[1:]), x), ["t,n"], [(5, 3)]),
    "while": (lambda x: jax.lax.while_loop(lambda c: jnp.sum(c) < 100, lambda c: c * 2 + 1, jnp.abs(x)), ["n"], [(4,)]),
    "convolution": (
        lambda x, k: jax.lax.conv_general_dilated(x, k, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")),
        ["b,h,w,3", "3,3,3,4"],
        [(1, 7, 8, 3), (3, 3, 3, 4)],
    ),
    "gradient": (jax.grad(lambda x, w: jnp.sum(jnp.tanh(x @ w) ** 2), argnums=1), ["b,n", "n,5"], [(3, 4), (4, 5)]),
    "top_k": (lambda x: jax.lax.top_k(x, 3), ["n + 3"], [(7,)]),
    "random": (lambda x: jax.random.uniform(jax.random.PRNGKey(0), x.shape) + x, ["b,4"], [(3, 4)]),
    "sizes": (lambda x: jnp.arange(x.shape[0] // 2 + x.shape[1] % 3).sum() + x.sum(), ["a,b"], [(4, 5)]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str):
    function, symbols, shapes = FUNCTIONS[name]
    scope = export.SymbolicScope()
    specs = [jax.ShapeDtypeStruct(export.symbolic_shape(text, scope=scope), jnp.float32) for text in symbols]
    arrays = [numbers(shape, seed=number) for number, shape in enumerate(shapes)]
    executable = stablehlo_py.compile(export.export(jax.jit(function))(*specs))
    wanted = jax.tree.leaves(function(*map(jnp.asarray, arrays)))
    for got, right in zip(executable(*arrays), wanted, strict=True):
        np.testing.assert_allclose(got, right, rtol=1e-4, atol=1e-5)
