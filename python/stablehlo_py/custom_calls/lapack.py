"""LAPACK and BLAS under the names by which JAX calls them on the CPU, on every matrix of the leading dimensions.

Three forms are known: `lapack_sgetrf_ffi` with its options as attributes, the same with workspaces as more results (2024),
and `lapack_sgetrf` with sizes and options as scalars before the operands (2023). `lapack_routines` has the routines.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from stablehlo_py.custom_calls import lapack_routines as routines
from stablehlo_py.custom_calls.call import CustomCall
from stablehlo_py.custom_calls.registry import PythonFunction, register_custom_call
from stablehlo_py.records import record
from stablehlo_py.runtime.program import ArrayType

Attributes = Mapping[str, Any]  # Any: as in CustomCall
Types = tuple[ArrayType, ...]
DTYPES = {"s": "float32", "d": "float64", "c": "complex64", "z": "complex128"}


@record
class Family:
    """One routine in up to four precisions.

    ranks: of one matrix's operands. scalars: the scalar operands of the form of 2023, by the options they stand for;
    None where there was no such form. order: the results of that form by their numbers, None for workspace; absent
    where they are the same.
    """

    name: str
    letters: str
    run: routines.Routine
    ranks: tuple[int, ...]
    scalars: tuple[str, ...] | None = None
    order: Mapping[str, tuple[int | None, ...]] | None = None
    library: str = "lapack"


_W = None
FAMILIES = (
    Family("potrf", "sdcz", routines.potrf, (2,), ("lower", "batch", "n")),
    Family("getrf", "sdcz", routines.getrf, (2,), ("batch", "m", "n")),
    Family("geqrf", "sdcz", routines.geqrf, (2,), ("batch", "m", "n", "lwork")),
    Family("geqp3", "sdcz", routines.geqp3, (2, 1), ("batch", "m", "n", "lwork")),
    Family("orgqr", "sd", routines.orgqr, (2, 1), ("batch", "m", "n", "k", "lwork")),
    Family("ungqr", "cz", routines.orgqr, (2, 1), ("batch", "m", "n", "k", "lwork")),
    Family("ormqr", "sd", routines.ormqr, (2, 1, 2)),
    Family("unmqr", "cz", routines.ormqr, (2, 1, 2)),
    Family("gesdd", "sdcz", routines.gesdd, (2,), ("full_matrices", "compute_uv", "batch", "m", "n", "lwork")),
    Family("gesvd", "sdcz", routines.gesvd, (2,)),
    Family("syevd", "sd", routines.syevd, (2,), ("lower", "batch", "n")),
    Family("heevd", "cz", routines.syevd, (2,), ("lower", "batch", "n")),
    Family(
        "geev",
        "sdcz",
        routines.geev,
        (2,),
        ("batch", "n", "compute_left", "compute_right"),
        {"real": (_W, _W, _W, 0, 1, 2, 3, 4), "complex": (_W, _W, 0, 1, 2, 3)},
    ),
    Family(
        "gees",
        "sdcz",
        routines.gees,
        (2,),
        ("batch", "n", "mode", "sort"),
        {"real": (0, 2, 3, 1, 4, 5), "complex": (0, _W, 2, 1, 3, 4)},
    ),
    Family("gehrd", "sdcz", routines.gehrd, (2,), ("n", "low", "high", "lda", "batch", "lwork")),
    Family("sytrd", "sd", routines.sytrd, (2,), ("n", "lower", "lda", "batch", "lwork")),
    Family("hetrd", "cz", routines.sytrd, (2,), ("n", "lower", "lda", "batch", "lwork")),
    Family("gtsv", "sdcz", routines.gtsv, (1, 1, 1, 2)),
    Family("trsm", "sdcz", routines.trsm, (2, 2)),
    Family(
        "trsm",
        "sdcz",
        routines.trsm,
        (2, 2),
        ("left", "lower", "trans", "unit_diagonal", "m", "n", "batch", "alpha"),
        library="blas",
    ),
)


def _register(family: Family, letter: str) -> None:
    name = f"{family.library}_{letter}{family.name}"
    # blas_?trsm_ffi had the factor alpha as its last operand
    after = ("alpha",) if family.library == "blas" else ()
    register_custom_call(
        f"{name}_ffi", _with_attributes(family, letter, after), signature=_signature(family, letter, 0, len(after))
    )
    if family.scalars is not None:
        register_custom_call(
            name, _with_scalars(family, letter), signature=_signature(family, letter, len(family.scalars), 0)
        )


def _signature(family: Family, letter: str, before: int, after: int) -> Callable[[CustomCall], str | None]:
    """What must hold of the operands: their number, rank, element type, and the same leading dimensions."""
    kinds = {DTYPES[letter], DTYPES[letter].replace("complex64", "float32").replace("complex128", "float64")}

    def check(call: CustomCall) -> str | None:
        wanted = before + len(family.ranks) + after
        if len(call.operands) != wanted:
            return f"it takes {wanted} operands, {len(call.operands)} are given"
        matrices = call.operands[before : before + len(family.ranks)]
        batch = matrices[0].shape[: max(len(matrices[0].shape) - family.ranks[0], 0)]
        for number, (ty, rank) in enumerate(zip(matrices, family.ranks, strict=True)):
            if len(ty.shape) < rank or ty.shape[: len(ty.shape) - rank] != batch:
                return f"operand {before + number} is {ty}, of rank {len(batch) + rank} it should be"
            if ty.numpy.kind in "fc" and ty.dtype not in kinds:
                return f"operand {before + number} is {ty}, {DTYPES[letter]} is wanted"
        return None

    return check


def _with_attributes(family: Family, letter: str, after: tuple[str, ...]) -> PythonFunction:
    def call(inputs: list[np.ndarray], attributes: Attributes, results: Types) -> tuple[np.ndarray, ...]:
        options = routines.Options(
            {name: chr(v) if name in _LETTERS and not isinstance(v, str) else v for name, v in attributes.items()}
        )
        matrices = inputs[: len(family.ranks)]
        options.values.update(zip(after, (x.item() for x in inputs[len(family.ranks) :]), strict=True))
        return _on_batches(family, letter, options, matrices, results, range(len(results)))

    return call


def _with_scalars(family: Family, letter: str) -> PythonFunction:
    names = family.scalars or ()
    order = (family.order or {}).get("complex" if letter in "cz" else "real")

    def call(inputs: list[np.ndarray], attributes: Attributes, results: Types) -> tuple[np.ndarray, ...]:
        values = {name: value.item() for name, value in zip(names, inputs, strict=False)}
        options = routines.Options(_options_of_scalars(values))
        matrices = inputs[len(names) :]
        return _on_batches(family, letter, options, matrices, results, order or range(len(results)))

    return call


_LETTERS = ("uplo", "side", "trans_x", "diag", "mode", "sort", "compute_left", "compute_right")


def _options_of_scalars(values: dict[str, Any]) -> dict[str, Any]:
    """The attributes of today that scalar operands stand for."""
    options = {name: chr(v) if name in _LETTERS else v for name, v in values.items()}
    if "lower" in values:
        options["uplo"] = "L" if values["lower"] else "U"
    if "left" in values:
        options["side"] = "L" if values["left"] else "R"
        options["trans_x"] = "NTC"[values["trans"]]
        options["diag"] = "U" if values["unit_diagonal"] else "N"
    if "compute_uv" in values:
        options["mode"] = "N" if not values["compute_uv"] else "A" if values["full_matrices"] else "S"
    return options


def _on_batches(
    family: Family,
    letter: str,
    options: routines.Options,
    matrices: list[np.ndarray],
    types: Types,
    order: range | tuple[int | None, ...],
) -> tuple[np.ndarray, ...]:
    """The results of the routine for each matrix; what it does not give is workspace, and zero.

    order: for each result, the number of what the routine gives.
    """
    results = [np.zeros(ty.shape, ty.numpy) for ty in types]
    batch = matrices[0].shape[: matrices[0].ndim - family.ranks[0]]
    for place in np.ndindex(*batch):
        made = family.run(options, letter, *[x[place] for x in matrices])
        for result, number in zip(results, order, strict=False):
            if number is not None and number < len(made):
                _put(result, place, np.asarray(made[number]))
    return tuple(results)


def _put(result: np.ndarray, place: tuple[int, ...], value: np.ndarray) -> None:
    target = result[place]
    if target.size and target.shape == value.shape:
        result[place] = value
    elif math.prod(value.shape) and target.size:
        raise ValueError(f"a result of shape {list(target.shape)} cannot hold {list(value.shape)}")


for _family in FAMILIES:
    for _letter in _family.letters:
        _register(_family, _letter)
