"""Contractions: products of elements summed over shared dimensions.

Floats of every width are multiplied and summed in f64 and rounded once to the result's type. Integers and booleans are
exact modulo the result's width.
"""

from __future__ import annotations

import math

import numpy as np

from stablehlo_py.core.registry import evaluate
from stablehlo_py.core.types import ElementType
from stablehlo_py.dialects.stablehlo import DotDims, DotGeneral, Op
from stablehlo_py.ops.evaluate.numeric import element_of, exact, narrow, wide, wide_dtype, wrapped


def multipliable(x: np.ndarray, other: np.ndarray, result: ElementType) -> np.ndarray:
    """`x` in the type in which products with `other` are summed."""
    element = element_of(x.dtype)
    if element.is_float or element.is_complex:
        return x.astype(np.result_type(wide_dtype(x.dtype), wide_dtype(other.dtype)))
    if element.is_bool:
        return x.astype(np.float64)
    # Sums of 2^20 products of 16-bit integers are exact in f64, where NumPy has a fast product.
    if element.bits <= 16 and element_of(other.dtype).bits <= 16:
        return exact(x).astype(np.float64)
    container = np.uint64 if result.is_unsigned else np.int64
    return exact(x).astype(container)


def summed(x: np.ndarray, result: ElementType) -> np.ndarray:
    """A sum of products in the result's type."""
    if result.is_integer and x.dtype == np.float64:
        return wrapped(x.astype(np.int64), result)
    return narrow(x, result.dtype)


def contract(lhs: np.ndarray, rhs: np.ndarray, dims: DotDims, result: ElementType) -> np.ndarray:
    """[b.., m.., k..] x [b.., k.., n..] -> [b.., m.., n..]."""
    lhs_free, rhs_free = dims.lhs_free(lhs.ndim), dims.rhs_free(rhs.ndim)
    batch = [lhs.shape[d] for d in dims.lhs_batching]
    rows, columns = [lhs.shape[d] for d in lhs_free], [rhs.shape[d] for d in rhs_free]
    depth = math.prod(lhs.shape[d] for d in dims.lhs_contracting)
    left = multipliable(lhs, rhs, result).transpose(dims.lhs_batching + lhs_free + dims.lhs_contracting)
    right = multipliable(rhs, lhs, result).transpose(dims.rhs_batching + dims.rhs_contracting + rhs_free)
    product = left.reshape(math.prod(batch), math.prod(rows), depth) @ right.reshape(
        math.prod(batch), depth, math.prod(columns)
    )
    return summed(product.reshape([*batch, *rows, *columns]), result)


@evaluate("stablehlo.dot_general")
def evaluate_dot_general(op: DotGeneral, lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """The contraction of dot_dimension_numbers."""
    return contract(lhs, rhs, op.dims, op.type.element)


@evaluate("stablehlo.dot")
def evaluate_dot(op: Op, lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """The last dimension of lhs with the first of rhs."""
    return contract(lhs, rhs, DotDims((), (), (lhs.ndim - 1,), (0,)), op.type.element)


@evaluate("stablehlo.einsum", "stablehlo.unary_einsum")
def evaluate_einsum(op: Op, *operands: np.ndarray) -> np.ndarray:
    """The sum that einsum_config spells."""
    config = op.string("einsum_config").replace(" ", "")
    return narrow(np.einsum(config, *[wide(x) for x in operands]), op.type.element.dtype)
