"""Products with sparse matrices, as jax.experimental.sparse calls them on the CPU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse

from stablehlo_py.custom_calls.registry import register_custom_call
from stablehlo_py.runtime.program import ArrayType


@register_custom_call("cpu_csr_sparse_dense_ffi")
def csr_times_dense(
    inputs: list[np.ndarray], attributes: Mapping[str, Any], results: tuple[ArrayType, ...]
) -> np.ndarray:
    """data[nse], row pointers[m + 1], columns[nse], dense [k] or [k, n]   ->   [m] or [m, n]; duplicates add up."""
    data, pointers, columns, dense = inputs
    rows, count = len(pointers) - 1, dense.shape[0]
    inside = pointers[0] >= 0 and pointers[-1] <= len(data) and bool(np.all(np.diff(pointers) >= 0))
    used = columns[pointers[0] : pointers[-1]] if inside else columns
    if not inside or (len(used) and (used.min() < 0 or used.max() >= count)):
        raise ValueError(f"the indices of a sparse matrix of {rows} rows and {count} columns are not sound")
    product = sparse.csr_array((data, columns, pointers), shape=(rows, count)) @ dense
    return np.asarray(product, results[0].numpy)
