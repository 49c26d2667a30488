"""Products of one slice a step: the whole product in front of the loop gives what the steps gave."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export, lax

import stablehlo_py


def operands(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    generator = np.random.default_rng(0)
    return [(0.1 * generator.standard_normal(shape)).astype(np.float32) for shape in shapes]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    "step",
    [
        lambda h, x, w, u: jnp.tanh(x @ w + h @ u),
        lambda h, x, w, u: jnp.tanh((w.T @ x.T).T + h @ u),
        lambda h, x, w, u: jnp.tanh(x.astype(jnp.bfloat16).astype(jnp.float32) @ w + h @ u),
    ],
)
def test_scans_agree_with_jax(step, reverse: bool) -> None:  # type: ignore[no-untyped-def]
    def run(x, w, u):  # type: ignore[no-untyped-def]
        def body(h, xt):  # type: ignore[no-untyped-def]
            h = step(h, xt, w, u)
            return h, h

        return lax.scan(body, jnp.zeros((12, 40)), x, reverse=reverse)[1]

    arguments = operands((30, 12, 24), (24, 40), (40, 40))
    exported = export.export(jax.jit(run), platforms=["cpu"])(*arguments)
    executable = stablehlo_py.compile(exported, cache=False)
    before, _, loop = executable.as_text("simplify").partition("stablehlo.while")
    assert (before.count("dot_general"), loop.count("dot_general")) == (1, 1)
    np.testing.assert_allclose(executable(*arguments)[0], run(*arguments), rtol=1e-4, atol=1e-5)
