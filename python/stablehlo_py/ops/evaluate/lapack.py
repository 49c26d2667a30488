"""LAPACK under the names by which JAX calls it on the CPU: factorisations and solves, in f64 with one rounding."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import blas, lapack

from stablehlo_py.dialects.stablehlo import Op
from stablehlo_py.mlir import ir
from stablehlo_py.ops.evaluate.custom_call import CUSTOM_CALLS
from stablehlo_py.ops.evaluate.numeric import narrow, wide

Routine = Callable[..., tuple[np.ndarray, ...]]  # (op, letter, *matrices) -> the results for one matrix of the batch


def _option(op: Op, name: str) -> str:
    """A letter of the call's configuration, such as L for lower."""
    for key in ("mhlo.backend_config", "backend_config"):
        if op.has(key) and isinstance(op.operation.attributes[key], ir.DictAttr):
            options = ir.DictAttr(op.operation.attributes[key])
            if name in options:
                return chr(int(ir.IntegerAttr(options[name]).value))
    return ""


def _routine(module: object, letter: str, name: str) -> Callable:
    return getattr(module, letter + name)


def potrf(op: Op, letter: str, a: np.ndarray) -> tuple[np.ndarray, ...]:
    """(factor in the triangle that `uplo` names, info)."""
    factor, info = _routine(lapack, letter, "potrf")(a, lower=_option(op, "uplo") == "L", clean=0)
    return factor, np.asarray(info)


def getrf(op: Op, letter: str, a: np.ndarray) -> tuple[np.ndarray, ...]:
    """(L and U in one matrix, pivots counted from 1, info)."""
    factors, pivots, info = _routine(lapack, letter, "getrf")(a)
    return factors, pivots + 1, np.asarray(info)


def geqrf(op: Op, letter: str, a: np.ndarray) -> tuple[np.ndarray, ...]:
    """(R above the Householder vectors, their factors)."""
    factors, tau, _work, _info = _routine(lapack, letter, "geqrf")(a)
    return factors, tau


def orgqr(op: Op, letter: str, a: np.ndarray, tau: np.ndarray) -> tuple[np.ndarray, ...]:
    """Q from the Householder vectors and their factors."""
    name = "orgqr" if letter == "d" else "ungqr"
    return (_routine(lapack, letter, name)(a, tau)[0],)


def syevd(op: Op, letter: str, a: np.ndarray) -> tuple[np.ndarray, ...]:
    """(eigenvectors in columns, eigenvalues in ascending order, info) of the triangle that `uplo` names."""
    name = "syevd" if letter == "d" else "heevd"
    values, vectors, info = _routine(lapack, letter, name)(
        a, compute_v=_option(op, "mode") == "V", lower=_option(op, "uplo") == "L"
    )
    return vectors, values, np.asarray(info)


def gesdd(op: Op, letter: str, a: np.ndarray) -> tuple[np.ndarray, ...]:
    """(what is left of the operand, singular values, U, V^H, info)."""
    mode = _option(op, "mode")
    u, s, vh, info = _routine(lapack, letter, "gesdd")(a, compute_uv=mode != "N", full_matrices=mode == "A")
    return a, s, u, vh, np.asarray(info)


def trsm(op: Op, letter: str, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, ...]:
    """x with op(a) x = b, or x op(a) = b where `side` is R."""
    solved = _routine(blas, letter, "trsm")(
        1.0,
        a,
        b,
        side=_option(op, "side") == "R",
        lower=_option(op, "uplo") == "L",
        trans_a={"N": 0, "T": 1, "C": 2}[_option(op, "trans_x")],
        diag=_option(op, "diag") == "U",
    )
    return (solved,)


def _on_batches(routine: Routine, core_ranks: tuple[int, ...]) -> Callable[..., tuple[np.ndarray, ...]]:
    """The routine on every matrix of the leading dimensions; core_ranks are the ranks of one matrix's operands."""

    def evaluate_batches(op: Op, *operands: np.ndarray) -> tuple[np.ndarray, ...]:
        types = op.types
        batch = operands[0].shape[: operands[0].ndim - core_ranks[0]]
        results = [np.zeros(t.shape, t.element.dtype) for t in types]
        letter = "z" if operands[0].dtype.kind == "c" else "d"
        for place in np.ndindex(*batch):
            if any(x[place].size == 0 for x in operands):
                continue
            made = routine(op, letter, *[wide(x[place]) for x in operands])
            for result, value in zip(results, made, strict=True):
                if result[place].size:
                    result[place] = narrow(np.asarray(value), result.dtype)
        return tuple(results)

    return evaluate_batches


def _register() -> None:
    table: dict[str, tuple[str, Routine, tuple[int, ...]]] = {
        "potrf": ("sdcz", potrf, (2,)),
        "getrf": ("sdcz", getrf, (2,)),
        "geqrf": ("sdcz", geqrf, (2,)),
        "orgqr": ("sd", orgqr, (2, 1)),
        "ungqr": ("cz", orgqr, (2, 1)),
        "syevd": ("sd", syevd, (2,)),
        "heevd": ("cz", syevd, (2,)),
        "gesdd": ("sdcz", gesdd, (2,)),
    }
    for name, (letters, routine, ranks) in table.items():
        for letter in letters:
            CUSTOM_CALLS[f"lapack_{letter}{name}_ffi"] = _on_batches(routine, ranks)
    for letter in "sdcz":
        CUSTOM_CALLS[f"lapack_{letter}trsm_ffi"] = _on_batches(trsm, (2, 2))


_register()
