"""LAPACK under JAX's names: every routine in every precision, by what its results must satisfy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy import linalg

from stablehlo_py import UnsupportedOp, compile
from stablehlo_py.custom_calls import CustomCall, find_for, registered_names
from stablehlo_py.custom_calls.host import run_on_arrays
from stablehlo_py.runtime.program import ArrayType

DTYPES = {"s": np.float32, "d": np.float64, "c": np.complex64, "z": np.complex128}
LETTERS = list(DTYPES)
BATCH = (2, 3)


def matrices(letter: str, *shape: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(shape)
    if letter in "cz":
        values = values + 1j * rng.standard_normal(shape)
    return values.astype(DTYPES[letter])


def adjoint(a: np.ndarray) -> np.ndarray:
    return np.conj(np.swapaxes(a, -1, -2))


def hermitian(letter: str, *shape: int) -> np.ndarray:
    a = matrices(letter, *shape)
    return (a + adjoint(a)) / 2


def positive(letter: str, *shape: int) -> np.ndarray:
    a = matrices(letter, *shape)
    return (a @ adjoint(a) + np.eye(shape[-1])).astype(a.dtype)


def real(letter: str) -> str:
    return {"c": "float32", "z": "float64"}.get(letter, np.dtype(DTYPES[letter]).name)


def call(
    name: str, inputs: Sequence[np.ndarray], *results: tuple[Any, ...], **attributes: Any
) -> tuple[np.ndarray, ...]:
    """The results of a call; each result is given as (*shape, dtype)."""
    operands = tuple(ArrayType(np.shape(x), np.asarray(x).dtype.name) for x in inputs)
    types = tuple(ArrayType(tuple(shape), dtype) for *shape, dtype in results)
    letters = {key: ord(value) if isinstance(value, str) else value for key, value in attributes.items()}
    return run_on_arrays(CustomCall(name, letters, operands, types), [np.asarray(x) for x in inputs])


def close(letter: str, got: np.ndarray, want: np.ndarray) -> None:
    limit = 2e-4 if letter in "sc" else 1e-11
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=limit, atol=limit * max(1.0, float(np.abs(want).max(initial=0))))


@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize("uplo", ["L", "U"])
def test_potrf(letter, uplo):
    a = positive(letter, *BATCH, 4, 4)
    kind = np.dtype(DTYPES[letter]).name
    factor, info = call(f"lapack_{letter}potrf_ffi", [a], (*BATCH, 4, 4, kind), (*BATCH, "int32"), uplo=uplo)
    triangle = np.tril(factor) if uplo == "L" else adjoint(np.triu(factor))
    close(letter, triangle @ adjoint(triangle), a)
    assert not info.any()


def test_potrf_counts_the_minor_that_is_not_positive():
    a = np.stack([np.diag([1.0, -1.0, 1.0]), np.eye(3)])
    _, info = call("lapack_dpotrf_ffi", [a], (2, 3, 3, "float64"), (2, "int32"), uplo="L")
    np.testing.assert_array_equal(info, [2, 0])


@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize(("m", "n"), [(4, 4), (5, 3), (3, 5)])
def test_getrf(letter, m, n):
    a, kind, k = matrices(letter, 2, m, n), np.dtype(DTYPES[letter]).name, min(m, n)
    factors, pivots, info = call(f"lapack_{letter}getrf_ffi", [a], (2, m, n, kind), (2, k, "int32"), (2, "int32"))
    lower, upper = np.tril(factors[..., :k], -1) + np.eye(m, k), np.triu(factors[..., :k, :])
    (permutation,) = call("lu_pivots_to_permutation", [pivots - 1], (2, m, "int32"))
    for place in range(2):
        close(letter, lower[place] @ upper[place], a[place][permutation[place]])
    assert not info.any()


def test_getrf_counts_the_pivot_that_is_zero():
    *_, info = call("lapack_dgetrf_ffi", [np.ones((3, 3))], (3, 3, "float64"), (3, "int32"), ("int32",))
    assert info == 2


@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize(("m", "n"), [(5, 3), (4, 4)])
def test_geqrf_and_orgqr_and_ormqr(letter, m, n):
    a, kind = matrices(letter, 2, m, n), np.dtype(DTYPES[letter]).name
    factors, tau = call(f"lapack_{letter}geqrf_ffi", [a], (2, m, n, kind), (2, n, kind))
    prefix = "un" if letter in "cz" else "or"
    (q,) = call(f"lapack_{letter}{prefix}gqr_ffi", [factors, tau], (2, m, n, kind))
    close(letter, q @ np.triu(factors[..., :n, :]), a)
    close(letter, adjoint(q) @ q, np.broadcast_to(np.eye(n, dtype=kind), (2, n, n)))
    c = matrices(letter, 2, m, 2, seed=1)
    (product,) = call(f"lapack_{letter}{prefix}mqr_ffi", [factors, tau, c], (2, m, 2, kind), left=True, transpose=True)
    close(letter, product[:, :n], adjoint(q) @ c)


@pytest.mark.parametrize("letter", LETTERS)
def test_geqp3(letter):
    a, kind = matrices(letter, 2, 5, 4), np.dtype(DTYPES[letter]).name
    asked = np.int32([[0, 0, 0, 0], [0, 0, 1, 0]])
    factors, pivots, tau = call(f"lapack_{letter}geqp3_ffi", [a, asked], (2, 5, 4, kind), (2, 4, "int32"), (2, 4, kind))
    (q,) = call(f"lapack_{letter}{'un' if letter in 'cz' else 'or'}gqr_ffi", [factors, tau], (2, 5, 4, kind))
    for place in range(2):
        close(letter, (q @ np.triu(factors[..., :4, :]))[place], a[place][:, pivots[place] - 1])
    assert pivots[1, 0] == 3


@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize("routine", ["gesdd", "gesvd"])
@pytest.mark.parametrize(("m", "n"), [(5, 3), (3, 5)])
@pytest.mark.parametrize("mode", ["A", "S", "N"])
def test_singular_values(letter, routine, m, n, mode):
    a, kind, k = matrices(letter, 2, m, n), np.dtype(DTYPES[letter]).name, min(m, n)
    rows, columns = (m, n) if mode == "A" else (k, k)
    _, s, u, vh, info = call(
        f"lapack_{letter}{routine}_ffi",
        [a],
        (2, m, n, kind),
        (2, k, real(letter)),
        (2, m, rows, kind),
        (2, columns, n, kind),
        (2, "int32"),
        mode=mode,
    )
    close(letter, s, np.linalg.svd(a, compute_uv=False))
    assert not info.any()
    if mode != "N":
        close(letter, (u[..., :k] * s[..., None, :]) @ vh[..., :k, :], a)


@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize("uplo", ["L", "U"])
def test_syevd(letter, uplo):
    a, kind = hermitian(letter, 2, 4, 4), np.dtype(DTYPES[letter]).name
    half = np.tril(a) if uplo == "L" else np.triu(a)
    name = f"lapack_{letter}{'he' if letter in 'cz' else 'sy'}evd_ffi"
    vectors, values, info = call(name, [half], (2, 4, 4, kind), (2, 4, real(letter)), (2, "int32"), mode="V", uplo=uplo)
    close(letter, (vectors * values[..., None, :]) @ adjoint(vectors), a)
    assert np.all(np.diff(values) >= 0)
    assert not info.any()


@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize(("left", "right"), [("V", "V"), ("N", "V"), ("V", "N"), ("N", "N")])
def test_geev(letter, left, right):
    a, kind = matrices(letter, 2, 5, 5), np.dtype(DTYPES[letter]).name
    wide = np.result_type(kind, np.complex64).name
    values = [(2, 5, kind)] * (1 if letter in "cz" else 2)
    *w, vl, vr, info = call(
        f"lapack_{letter}geev_ffi",
        [a],
        *values,
        (2, 5, 5, wide),
        (2, 5, 5, wide),
        (2, "int32"),
        compute_left=left,
        compute_right=right,
    )
    w = w[0] if letter in "cz" else w[0] + 1j * w[1]
    assert not info.any()
    assert vr.any() == (right == "V")
    assert vl.any() == (left == "V")
    close(letter, a @ vr, (vr * w[..., None, :]).astype(wide))
    close(letter, adjoint(vl) @ a, (w[..., :, None] * adjoint(vl)).astype(wide))


@pytest.mark.parametrize("letter", LETTERS)
def test_gees(letter):
    a, kind = matrices(letter, 2, 5, 5), np.dtype(DTYPES[letter]).name
    values = [(2, 5, kind)] * (1 if letter in "cz" else 2)
    form, vectors, *w, sorted_, info = call(
        f"lapack_{letter}gees_ffi",
        [a],
        (2, 5, 5, kind),
        (2, 5, 5, kind),
        *values,
        (2, "int32"),
        (2, "int32"),
        mode="V",
        sort="N",
    )
    close(letter, vectors @ form @ adjoint(vectors), a)
    assert not np.tril(form, -2).any()
    close(letter, np.real(w[0]), np.real(np.diagonal(form, axis1=-2, axis2=-1)))
    assert not info.any()
    assert not sorted_.any()


@pytest.mark.parametrize("letter", LETTERS)
def test_gehrd(letter):
    a, kind = matrices(letter, 2, 5, 5), np.dtype(DTYPES[letter]).name
    form, tau, info = call(f"lapack_{letter}gehrd_ffi", [a], (2, 5, 5, kind), (2, 4, kind), (2, "int32"), low=1, high=5)
    for place in range(2):
        close(letter, np.triu(form[place], -1), linalg.hessenberg(a[place]).astype(kind))
    assert tau.any()
    assert not info.any()


@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize("uplo", ["L", "U"])
def test_sytrd(letter, uplo):
    a, kind = hermitian(letter, 2, 4, 4), np.dtype(DTYPES[letter]).name
    name = f"lapack_{letter}{'he' if letter in 'cz' else 'sy'}trd_ffi"
    _, diagonal, beside, _, info = call(
        name,
        [a],
        (2, 4, 4, kind),
        (2, 4, real(letter)),
        (2, 3, real(letter)),
        (2, 3, kind),
        (2, "int32"),
        uplo=uplo,
    )
    for place in range(2):
        close(letter, linalg.eigvalsh_tridiagonal(diagonal[place], beside[place]), np.linalg.eigvalsh(a[place]))
    assert not info.any()


@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize("n", [1, 2, 5])
def test_gtsv(letter, n):
    lower, diagonal, upper = (matrices(letter, 2, n, seed=seed) for seed in range(3))
    diagonal += 4
    b, kind = matrices(letter, 2, n, 3, seed=4), np.dtype(DTYPES[letter]).name
    *_, x, info = call(
        f"lapack_{letter}gtsv_ffi",
        [lower, diagonal, upper, b],
        *[(2, n, kind)] * 3,
        (2, n, 3, kind),
        (2, "int32"),
    )
    for place in range(2):
        matrix = np.diag(diagonal[place]) + np.diag(lower[place][1:], -1) + np.diag(upper[place][:-1], 1)
        close(letter, matrix @ x[place], b[place])
    assert not info.any()


@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize("side", ["L", "R"])
@pytest.mark.parametrize("uplo", ["L", "U"])
@pytest.mark.parametrize("trans", ["N", "T", "C"])
@pytest.mark.parametrize("diag", ["N", "U"])
def test_trsm(letter, side, uplo, trans, diag):
    a, kind = matrices(letter, 2, 3, 3) + 3 * np.eye(3, dtype=DTYPES[letter]), np.dtype(DTYPES[letter]).name
    b = matrices(letter, 2, *((3, 4) if side == "L" else (4, 3)), seed=1)
    (x,) = call(f"lapack_{letter}trsm_ffi", [a, b], (*b.shape, kind), side=side, uplo=uplo, trans_x=trans, diag=diag)
    triangle = np.tril(a) if uplo == "L" else np.triu(a)
    if diag == "U":
        triangle = triangle * (1 - np.eye(3)) + np.eye(3)
    triangle = {"N": triangle, "T": np.swapaxes(triangle, -1, -2), "C": adjoint(triangle)}[trans]
    close(letter, (triangle @ x if side == "L" else x @ triangle).astype(kind), b)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("name", ["gesdd", "gesvd", "syevd", "geev", "gees"])
def test_what_is_not_finite_is_reported(name, value):
    results = {
        "gesdd": [(3, 3), (3,), (3, 3), (3, 3)],
        "gesvd": [(3, 3), (3,), (3, 3), (3, 3)],
        "syevd": [(3, 3), (3,)],
        "geev": [(3,), (3,)],
        "gees": [(3, 3), (3, 3), (3,), (3,)],
    }[name]
    types: list[tuple[Any, ...]] = [(*shape, "float64") for shape in results]
    types += [(3, 3, "complex128")] * 2 if name == "geev" else [("int32",)] if name == "gees" else []
    *_, info = call(f"lapack_d{name}_ffi", [np.full((3, 3), value)], *types, ("int32",))
    assert info != 0


@pytest.mark.parametrize("shape", [(0, 3, 3), (2, 0, 0)])
def test_nothing_to_factor(shape):
    batch, n, _ = shape
    factors, pivots, info = call(
        "lapack_dgetrf_ffi", [np.zeros(shape)], (*shape, "float64"), (batch, n, "int32"), (batch, "int32")
    )
    assert factors.shape == shape
    assert pivots.shape == (batch, n)
    assert not info.any()


def i32(value: int) -> np.ndarray:
    return np.int32(value)


@pytest.mark.parametrize("letter", "dz")
def test_the_form_with_scalars_first(letter):
    """What JAX wrote in 2023: options and sizes as operands, workspaces as results."""
    kind, n = np.dtype(DTYPES[letter]).name, 4
    a, h = matrices(letter, 2, n, n), hermitian(letter, 2, n, n)
    lapack = f"lapack_{letter}"
    work = (64, kind)
    factor, _ = call(
        f"{lapack}potrf", [i32(0), i32(2), i32(n), positive(letter, 2, n, n)], (2, n, n, kind), (2, "int32")
    )
    close(letter, adjoint(np.triu(factor)) @ np.triu(factor), positive(letter, 2, n, n))
    qr, tau, *_ = call(
        f"{lapack}geqrf", [i32(2), i32(n), i32(n), i32(64), a], (2, n, n, kind), (2, n, kind), (2, "int32"), work
    )
    q, *_ = call(
        f"{lapack}{'un' if letter == 'z' else 'or'}gqr",
        [i32(2), i32(n), i32(n), i32(n), i32(64), qr, tau],
        (2, n, n, kind),
        (2, "int32"),
        work,
    )
    close(letter, q @ np.triu(qr), a)
    _, s, u, vh, *_ = call(
        f"{lapack}gesdd",
        [i32(1), i32(1), i32(2), i32(n), i32(n), i32(64), a],
        (2, n, n, kind),
        (2, n, real(letter)),
        (2, n, n, kind),
        (2, n, n, kind),
        (2, "int32"),
        (8 * n, "int32"),
        work,
    )
    close(letter, (u * s[..., None, :]) @ vh, a)
    v, w, _, *_ = call(
        f"{lapack}{'he' if letter == 'z' else 'sy'}evd",
        [i32(1), i32(2), i32(n), h],
        (2, n, n, kind),
        (2, n, real(letter)),
        (2, "int32"),
        work,
        (64, "int32"),
    )
    close(letter, (v * w[..., None, :]) @ adjoint(v), h)
    values = [(2, n, kind)] * (1 if letter == "z" else 2)
    space = [(n, n, kind), (2 * n, "float64")] if letter == "z" else [(n, n, kind)] * 3
    *w, vl, vr, _ = call(
        f"{lapack}geev",
        [i32(2), i32(n), np.uint8(ord("N")), np.uint8(ord("V")), a],
        *space,
        *values,
        (2, n, n, "complex128"),
        (2, n, n, "complex128"),
        (2, "int32"),
    )
    w = w[2] if letter == "z" else w[3] + 1j * w[4]
    close(letter, a @ vr, vr * w[..., None, :])
    assert not vl.any()
    space = [(n, "float64")] if letter == "z" else []
    form, *rest = call(
        f"{lapack}gees",
        [i32(2), i32(n), np.uint8(ord("V")), np.uint8(ord("N")), a],
        (2, n, n, kind),
        *space,
        *values,
        (2, n, n, kind),
        (2, "int32"),
        (2, "int32"),
    )
    vectors = rest[-3]
    close(letter, vectors @ form @ adjoint(vectors), a)
    (x,) = call(
        f"blas_{letter}trsm",
        [i32(1), i32(1), i32(0), i32(0), i32(n), i32(n), i32(2), np.asarray(2, kind), qr, a],
        (2, n, n, kind),
    )
    close(letter, np.tril(qr) @ x, 2 * a)


def test_workspaces_as_results_and_alpha_as_an_operand():
    """What JAX wrote early in 2024."""
    a = matrices("d", 3, 3)
    qr, tau, info, work = call("lapack_dgeqrf_ffi", [a], (3, 3, "float64"), (3, "float64"), ("int32",), (96, "float64"))
    close("d", np.abs(np.triu(qr)), np.abs(np.linalg.qr(a).R))
    assert info == 0
    assert tau.any()
    assert work.shape == (96,)
    (x,) = call(
        "blas_dtrsm_ffi",
        [a, np.eye(3), np.float64(3)],
        (3, 3, "float64"),
        side="L",
        uplo="U",
        trans_x="N",
        diag="N",
    )
    close("d", np.triu(a) @ x, 3 * np.eye(3))


@pytest.mark.parametrize(
    ("operands", "reason"),
    [
        (["float64[3,3]", "float64[3,3]"], "takes 1 operands, 2 are given"),
        (["float64[3]"], "operand 0 is float64"),
        (["float32[3,3]"], "float64 is wanted"),
    ],
)
def test_operands_that_do_not_fit_are_refused(operands, reason):
    types = []
    for text in operands:
        dtype, _, shape = text.rstrip("]").partition("[")
        types.append(ArrayType(tuple(map(int, shape.split(","))), dtype))
    with pytest.raises(UnsupportedOp, match=reason):
        find_for(CustomCall("lapack_dgetrf_ffi", {}, tuple(types)))


def test_all_that_jax_calls_is_there():
    """Names of jaxlib 0.10's own registrations for linear algebra on the CPU."""
    names = set(registered_names())
    for routine in ("potrf", "getrf", "geqrf", "geqp3", "gesdd", "gesvd", "geev", "gees", "gehrd", "gtsv", "trsm"):
        assert {f"lapack_{letter}{routine}_ffi" for letter in LETTERS} <= names
    for two, letters in (("or", "sd"), ("un", "cz")):
        assert {f"lapack_{letter}{two}{name}_ffi" for letter in letters for name in ("gqr", "mqr")} <= names
    for two, letters in (("sy", "sd"), ("he", "cz")):
        assert {f"lapack_{letter}{two}{name}_ffi" for letter in letters for name in ("evd", "trd")} <= names


def test_a_factorisation_inside_a_program():
    text = """
    func.func @main(%a: tensor<2x3x3xf64>) -> tensor<2x3x3xf64> {
      %0:2 = stablehlo.custom_call @lapack_dpotrf_ffi(%a) {api_version = 4 : i32, backend_config = {uplo = 76 : ui8},
        operand_layouts = [dense<[1, 2, 0]> : tensor<3xindex>],
        result_layouts = [dense<[1, 2, 0]> : tensor<3xindex>, dense<0> : tensor<1xindex>],
        output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0,
          operand_tuple_indices = []>]} : (tensor<2x3x3xf64>) -> (tensor<2x3x3xf64>, tensor<2xi32>)
      %1 = stablehlo.convert %0#1 : (tensor<2xi32>) -> tensor<2xf64>
      %2 = stablehlo.broadcast_in_dim %1, dims = [0] : (tensor<2xf64>) -> tensor<2x3x3xf64>
      %3 = stablehlo.add %0#0, %2 : tensor<2x3x3xf64>
      return %3 : tensor<2x3x3xf64>
    }"""
    a = positive("d", 2, 3, 3)
    (result,) = compile(text, cache=False)(a)
    close("d", np.tril(result), np.linalg.cholesky(a))
