"""What JAX exports for the CPU: its own artifacts of several years with their answers, and linear algebra of today."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from stablehlo_py import UnsupportedOp, compile

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402 - after the check that there is JAX
from jax.scipy import linalg  # noqa: E402

DATA = "jax._src.internal_test_util.export_back_compat_test_data"


def artifacts() -> Iterator[Any]:
    """Every artifact for the CPU that calls LAPACK, as (routine, data)."""
    folder = importlib.import_module(DATA)
    for module in pkgutil.iter_modules(folder.__path__):
        if not module.name.startswith("cpu_"):
            continue
        for name, value in vars(importlib.import_module(f"{DATA}.{module.name}")).items():
            if name.startswith("data_"):
                for kind, data in value.items():
                    routine = module.name.rpartition("_")[2]
                    yield pytest.param(routine, data, id=f"{module.name}-{name[5:]}-{kind}")


def adjoint(a: np.ndarray) -> np.ndarray:
    return np.conj(np.swapaxes(a, -1, -2))


def eigen_products(w: np.ndarray, *vectors: np.ndarray) -> list[np.ndarray]:
    """Eigenvalues and, of each vector, the projector on its line: they do not depend on phase or order."""
    order = np.argsort(np.round(w.real, 2) + 1e-3 * np.round(w.imag, 2))
    large = [i for i in order if abs(w[i]) > 1e-3 * abs(w).max()]
    projectors = [np.outer(v[:, i], v[:, i].conj()) for v in vectors for i in large]
    return [w[large], *projectors]


# What to compare of the results, where LAPACK's answer is one of several.
INVARIANTS: dict[str, Callable[..., list[np.ndarray]]] = {
    "geev": lambda w, left, right: eigen_products(w, left, right),
    "syev": lambda v, w: [w, (v * w[..., None, :]) @ adjoint(v)],
    "gees": lambda form, z: [z @ form @ adjoint(z), z @ adjoint(z), np.tril(form, -2)],
    "gesdd": lambda u, s, vh: [s, (u[..., : s.shape[-1]] * s[..., None, :]) @ vh[..., : s.shape[-1], :]],
}


@pytest.mark.parametrize(("routine", "data"), list(artifacts()))
def test_artifacts(routine, data):
    program = compile(data["mlir_module_serialized"], cache=False)
    results = program(*[np.asarray(x) for x in data["inputs"]])
    expected = [np.asarray(x) for x in data["expected_outputs"]]
    assert [(x.shape, x.dtype) for x in results] == [(x.shape, x.dtype) for x in expected]
    limit = 1e-3 if np.finfo(expected[0].dtype).bits == 32 else 1e-10
    invariants = INVARIANTS.get(routine, lambda *arrays: list(arrays))
    for got, want in zip(invariants(*results), invariants(*expected), strict=True):
        np.testing.assert_allclose(got, want, rtol=limit, atol=limit * max(1.0, float(np.abs(want).max())))


def dynamic_artifacts() -> Iterator[Any]:
    """Artifacts with symbolic dimensions, whose custom calls stand for ops of StableHLO."""
    for name in ("dynamic_approx_top_k", "dynamic_rng_bit_generator", "dynamic_top_k"):
        module = importlib.import_module(f"{DATA}.stablehlo_{name}")
        for key, value in vars(module).items():
            if key.startswith("data_"):
                for kind, data in ({"": value} if "testdata_version" in value else value).items():
                    yield pytest.param(data, id=f"{name}-{key[5:]}{kind}")


@pytest.mark.parametrize("data", list(dynamic_artifacts()))
def test_artifacts_with_symbolic_dimensions(data):
    results = compile(data["mlir_module_serialized"], cache=False)(*[np.asarray(x) for x in data["inputs"]])
    for got, want in zip(results, data["expected_outputs"], strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)


A = np.array([[4, 1, 0.5, 0], [1, 5, -1, 0.25], [0.5, -1, 6, 2], [0, 0.25, 2, 7]], np.float32)
B = np.array([[1, 2, -3], [0.5, -1, 4], [2, 0, 1], [-1, 1, 0.25]], np.float32)


def in_a_loop(a: Any) -> Any:
    return jax.lax.fori_loop(0, 3, lambda _, x: jnp.linalg.cholesky(x).T @ jnp.linalg.cholesky(x), a)


def in_a_branch(a: Any) -> Any:
    return jax.lax.cond(a[0, 0] > 3, jnp.linalg.inv, lambda x: x, a)


FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "cholesky": (jnp.linalg.cholesky, (np.stack([A, -A]),)),  # the second is not positive: NaN
    "qr": (jnp.linalg.qr, (B,)),
    "qr with pivots": (lambda a: linalg.qr(a, pivoting=True), (B,)),
    "svd": (jnp.linalg.svd, (np.stack([B, B * np.float32(np.nan)]),)),
    "svd by qr": (lambda a: jax.lax.linalg.svd(a, algorithm=jax.lax.linalg.SvdAlgorithm.QR), (B,)),
    "eigh": (jnp.linalg.eigh, (A,)),
    "eig": (jnp.linalg.eig, (B[:3],)),
    "lu": (linalg.lu, (B,)),
    "solve": (jnp.linalg.solve, (np.stack([A, A.T]), np.stack([B, -B]))),
    "inv of a singular matrix": (jnp.linalg.inv, (np.ones((3, 3), np.float32),)),
    "slogdet": (jnp.linalg.slogdet, (A,)),
    "schur": (linalg.schur, (A,)),
    "hessenberg": (lambda a: linalg.hessenberg(a, calc_q=True), (A,)),
    "tridiagonal": (lambda a: jax.lax.linalg.tridiagonal(a), (A,)),
    "tridiagonal_solve": (jax.lax.linalg.tridiagonal_solve, (A[1], A[3] + 9, A[2], B)),
    "gradient": (jax.grad(lambda a: jnp.linalg.slogdet(a)[1]), (A,)),
    "approx_max_k": (lambda a: jax.lax.approx_max_k(a, 2), (B.T,)),
    "approx_min_k": (lambda a: jax.lax.approx_min_k(a, 3, reduction_dimension=0), (B,)),
    "in a loop": (in_a_loop, (A,)),
    "in a branch": (in_a_branch, (A,)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_linear_algebra_of_today(name):
    function, arguments = FUNCTIONS[name]
    lowered = jax.jit(function).lower(*arguments)
    results = compile(lowered, cache=False)(*arguments)
    expected = [np.asarray(x) for x in jax.tree.leaves(lowered.compile()(*arguments))]
    assert [(x.shape, x.dtype) for x in results] == [(x.shape, x.dtype) for x in expected]
    for got, want in zip(results, expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: jax.pure_callback(lambda v: v, jax.ShapeDtypeStruct(x.shape, x.dtype), x),
        lambda x: (jax.debug.print("{}", x), x)[1],
    ],
    ids=["pure_callback", "debug.print"],
)
def test_calls_back_into_the_exporting_process_are_refused(function):
    with pytest.raises(UnsupportedOp, match="Python function of the process"):
        compile(jax.jit(function).lower(B), cache=False)
