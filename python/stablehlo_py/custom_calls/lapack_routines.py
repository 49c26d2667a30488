"""LAPACK's routines for one matrix, by SciPy, with arguments and results in JAX's order.

Each takes the options of the call, the letter of the precision (s, d, c, z) and arrays; it gives all of its results as
LAPACK leaves them, `info` last. A matrix without elements gives nothing.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import blas, lapack

from stablehlo_py.records import record

BAD_INPUT = -4  # what JAX's own kernels report for infinities and NaN, on which some routines do not end


@record(frozen=False)
class Options:
    """A call's options: letters such as uplo as text, sizes as numbers."""

    values: dict[str, Any]  # Any: text, int, bool or a number

    def letter(self, name: str, default: str) -> str:
        return str(self.values.get(name, default))

    def number(self, name: str, default: int) -> int:
        return int(self.values.get(name, default))


Results = tuple[Any, ...]  # Any: arrays and numbers, as LAPACK's wrappers give them
Routine = Callable[..., Results]


def _of(letter: str, real: str, complex_: str | None = None) -> Callable[..., Any]:
    """The routine of a precision; some have another name where the numbers are complex."""
    return getattr(lapack, letter + (complex_ if complex_ and letter in "cz" else real))


@functools.lru_cache(maxsize=512)
def _lwork(letter: str, name: str, *sizes: int) -> int:
    """How large a workspace the routine likes."""
    work, info = getattr(lapack, f"{letter}{name}_lwork")(*sizes)[:2]
    if info:
        raise ValueError(f"LAPACK has no workspace for {name} of {sizes}")
    return int(np.real(work) * (1 + 2 * np.finfo(np.float32).eps)) + 1


def potrf(options: Options, letter: str, a: np.ndarray) -> Results:
    """(factor in the triangle that `uplo` names, info)."""
    if not a.size:
        return ()
    return _of(letter, "potrf")(a, lower=options.letter("uplo", "L") == "L", clean=0)


def getrf(options: Options, letter: str, a: np.ndarray) -> Results:
    """(L and U in one matrix, pivots counted from 1, info)."""
    if not a.size:
        return ()
    factors, pivots, info = _of(letter, "getrf")(a)
    return factors, pivots + 1, info


def geqrf(options: Options, letter: str, a: np.ndarray) -> Results:
    """(R above the Householder vectors, their factors, info)."""
    if not a.size:
        return ()
    factors, tau, _work, info = _of(letter, "geqrf")(a, lwork=_lwork(letter, "geqrf", *a.shape))
    return factors, tau, info


def geqp3(options: Options, letter: str, a: np.ndarray, jpvt: np.ndarray) -> Results:
    """(R above the Householder vectors, pivots counted from 1, their factors, info); columns with jpvt > 0 come first."""
    if not a.size:
        return a, jpvt
    m, n = a.shape
    factors = np.array(a, order="F")
    pivots = np.array(jpvt, np.intc)
    tau = np.zeros(min(m, n), a.dtype)
    lwork = max(2 * n + (n + 1) * 64, n + 1)
    work, rwork = np.zeros(lwork, a.dtype), np.zeros(2 * n, np.real(a).dtype)
    info = np.zeros(1, np.intc)
    sizes = [np.array([size], np.intc) for size in (m, n, m, lwork)]
    arrays = [sizes[0], sizes[1], factors, sizes[2], pivots, tau, work, sizes[3]]
    arrays += [rwork, info] if letter in "cz" else [info]
    _pointer(letter + "geqp3", len(arrays))(*[x.ctypes.data for x in arrays])
    return factors, pivots.astype(jpvt.dtype), tau, info[0]


@functools.cache
def _pointer(name: str, arguments: int) -> Callable[..., None]:
    """A routine that SciPy wraps with less than we need, by its address."""
    capsule = importlib.import_module("scipy.linalg.cython_lapack").__pyx_capi__[name]
    python = ctypes.pythonapi
    python.PyCapsule_GetName.restype, python.PyCapsule_GetName.argtypes = ctypes.c_char_p, [ctypes.py_object]
    python.PyCapsule_GetPointer.restype = ctypes.c_void_p
    python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    address = python.PyCapsule_GetPointer(capsule, python.PyCapsule_GetName(capsule))
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * arguments)(address)


def orgqr(options: Options, letter: str, a: np.ndarray, tau: np.ndarray) -> Results:
    """(Q from the Householder vectors and their factors, info)."""
    if not a.size:
        return ()
    if not tau.size:
        return np.eye(*a.shape, dtype=a.dtype), 0
    name = "ungqr" if letter in "cz" else "orgqr"
    q, _work, info = getattr(lapack, letter + name)(a, tau, lwork=max(64 * a.shape[1], 1))
    return q, info


def ormqr(options: Options, letter: str, a: np.ndarray, tau: np.ndarray, c: np.ndarray) -> Results:
    """(Q c or c Q, with Q or its adjoint, info)."""
    if not c.size or not tau.size:
        return c, 0
    side = "L" if options.values.get("left", True) else "R"
    adjoint = "N" if not options.values.get("transpose", False) else "C" if letter in "cz" else "T"
    lwork = 64 * max(c.shape) + 65 * 64
    made, _work, info = _of(letter, "ormqr", "unmqr")(side, adjoint, a, tau, c, lwork)
    return made, info


def gesdd(options: Options, letter: str, a: np.ndarray) -> Results:
    """(what is left of the operand, singular values, U, V^H, info), by divide and conquer."""
    return _singular_values("gesdd", options, letter, a)


def gesvd(options: Options, letter: str, a: np.ndarray) -> Results:
    """(what is left of the operand, singular values, U, V^H, info), by QR."""
    return _singular_values("gesvd", options, letter, a)


def _singular_values(name: str, options: Options, letter: str, a: np.ndarray) -> Results:
    if not a.size:
        return ()
    if not np.isfinite(a).all():
        return a, *_nothing(3), BAD_INPUT
    mode = options.letter("mode", "A")
    wanted, full = int(mode != "N"), int(mode == "A")
    u, s, vh, info = _of(letter, name)(
        a, compute_uv=wanted, full_matrices=full, lwork=_lwork(letter, name, *a.shape, wanted, full)
    )
    return (a, s, u, vh, info) if wanted else (a, s, *_nothing(2), info)


def _nothing(count: int) -> Results:
    """Results that were not computed: their places stay zero."""
    return tuple(np.zeros(0) for _ in range(count))


def syevd(options: Options, letter: str, a: np.ndarray) -> Results:
    """(eigenvectors in columns, eigenvalues in ascending order, info) of the triangle that `uplo` names."""
    if not a.size:
        return ()
    if not np.isfinite(a).all():
        return a, *_nothing(1), BAD_INPUT
    values, vectors, info = _of(letter, "syevd", "heevd")(
        a, compute_v=options.letter("mode", "V") == "V", lower=options.letter("uplo", "L") == "L"
    )
    return (vectors if vectors.size else a), values, info


def geev(options: Options, letter: str, a: np.ndarray) -> Results:
    """(eigenvalues, left and right eigenvectors in columns, info); real ones give two arrays of eigenvalues."""
    if not a.size:
        return ()
    left, right = (options.letter(name, "V") == "V" for name in ("compute_left", "compute_right"))
    is_complex = letter in "cz"
    if not np.isfinite(a).all():
        return *_nothing(3 if is_complex else 4), BAD_INPUT
    made = _of(letter, "geev")(a, compute_vl=left, compute_vr=right, lwork=_lwork(letter, "geev", len(a), left, right))
    *values, vl, vr, info = made
    if not is_complex:
        vl, vr = (_unpacked(values[1], v) if wanted else v for v, wanted in ((vl, left), (vr, right)))
    none = np.zeros(0)
    return *values, (vl if left else none), (vr if right else none), info


def _unpacked(imaginary: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Complex eigenvectors: a conjugate pair has its real and imaginary parts in two columns next to each other."""
    made = vectors.astype(np.result_type(vectors.dtype, np.complex64))
    column = 0
    while column < len(imaginary):
        if imaginary[column] == 0 or column + 1 == len(imaginary):
            column += 1
            continue
        made[:, column] = vectors[:, column] + 1j * vectors[:, column + 1]
        made[:, column + 1] = made[:, column].conj()
        column += 2
    return made


def gees(options: Options, letter: str, a: np.ndarray) -> Results:
    """(Schur form, Schur vectors, eigenvalues, how many were sorted, info); real ones give two arrays of eigenvalues."""
    if not a.size:
        return ()
    if options.letter("sort", "N") == "S":
        raise ValueError("eigenvalues cannot be sorted by a function")
    is_complex = letter in "cz"
    if not np.isfinite(a).all():
        return a, *_nothing(2 if is_complex else 3), 0, BAD_INPUT
    wanted = options.letter("mode", "V") == "V"
    form, sorted_, *values, vectors, _work, info = _of(letter, "gees")(lambda *_: 0, a, compute_v=wanted, sort_t=0)
    return form, (vectors if wanted else np.zeros(0)), *values, sorted_, info


def gehrd(options: Options, letter: str, a: np.ndarray) -> Results:
    """(Hessenberg form above the Householder vectors, their factors, info)."""
    if not a.size:
        return ()
    low, high = options.number("low", 1), options.number("high", len(a))
    if not 1 <= low <= high <= len(a):
        raise ValueError(f"rows {low} to {high} of a matrix of {len(a)}")
    lwork = _lwork(letter, "gehrd", len(a), low - 1, high - 1)
    form, tau, info = _of(letter, "gehrd")(a, lo=low - 1, hi=high - 1, lwork=lwork)
    return form, tau[: len(a) - 1], info


def sytrd(options: Options, letter: str, a: np.ndarray) -> Results:
    """(the Householder vectors around the tridiagonal form, diagonal, what is next to it, their factors, info)."""
    if not a.size:
        return ()
    lower = int(options.letter("uplo", "L") == "L")
    name = "hetrd" if letter in "cz" else "sytrd"
    lwork = _lwork(letter, name, len(a), lower)
    return getattr(lapack, letter + name)(a, lower=lower, lwork=lwork)


def gtsv(options: Options, letter: str, lower: np.ndarray, diagonal: np.ndarray, upper: np.ndarray, b: np.ndarray):
    """(lower, diagonal, upper as the elimination leaves them, x, info); lower[0] and upper[-1] are not read."""
    if not b.size:
        return lower, diagonal, upper, b, 0
    if len(diagonal) == 1:
        zero = diagonal[0] == 0
        return lower, diagonal, upper, b if zero else b / diagonal[0], int(zero)
    second, middle, first, x, info = _of(letter, "gtsv")(lower[1:], diagonal, upper[:-1], b)
    left_lower, left_upper = lower.copy(), upper.copy()
    left_lower[1 : 1 + len(second)], left_upper[:-1] = second, first
    return left_lower, middle, left_upper, x, info


def trsm(options: Options, letter: str, a: np.ndarray, b: np.ndarray) -> Results:
    """(x,) with op(a) x = alpha b, or x op(a) = alpha b where `side` is R."""
    if not b.size:
        return (b,)
    return (
        getattr(blas, letter + "trsm")(
            options.values.get("alpha", 1.0),
            a,
            b,
            side=options.letter("side", "L") == "R",
            lower=options.letter("uplo", "L") == "L",
            trans_a="NTC".index(options.letter("trans_x", "N")),
            diag=options.letter("diag", "N") == "U",
        ),
    )
