"""Number formats: the type that a rule computes in, and how a result goes back into its own type.

An op on small floats is computed in f32, or in f64 where it is not exact there anyway, and rounded once. Integers of
two and four bits are computed in eight and wrapped.
"""

from __future__ import annotations

import functools

import numpy as np

from stablehlo_py.core.types import ElementType, element_type_of


@functools.cache
def element_of(dtype: np.dtype) -> ElementType:
    """The element type of a numpy dtype."""
    return element_type_of(dtype)


@functools.cache
def _exact_dtype(dtype: np.dtype) -> np.dtype:
    element = element_of(dtype)
    if element.is_float and element.bits < 32:
        return np.dtype(np.float32)
    if element.is_integer and element.bits < 8:
        return np.dtype(np.uint8 if element.is_unsigned else np.int8)
    return dtype


@functools.cache
def wide_dtype(dtype: np.dtype) -> np.dtype:
    """f64 for floats, complex<f64> for complex, the computing type for the rest."""
    element = element_of(dtype)
    if element.is_float:
        return np.dtype(np.float64)
    return np.dtype(np.complex128) if element.is_complex else _exact_dtype(dtype)


def exact(x: np.ndarray) -> np.ndarray:
    """`x` in the type in which + - * / and sqrt followed by one rounding give the correctly rounded result."""
    return x.astype(_exact_dtype(x.dtype), copy=False)


def wide(x: np.ndarray) -> np.ndarray:
    """`x` in f64 or complex<f64>, for sums and for functions that no type gives exactly."""
    return x.astype(wide_dtype(x.dtype), copy=False)


def narrow(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """`x` as `dtype`: floats round to nearest even, integers wrap, float to integer saturates and takes NaN to 0."""
    x = np.asarray(x)
    if x.dtype == dtype:
        return x
    to, of = element_of(dtype), element_of(x.dtype)
    if of.is_complex and not to.is_complex and not to.is_bool:
        x, of = np.real(x), of.part
    if to.is_bool:
        return x != np.zeros((), x.dtype)
    if to.is_float:
        return _to_float(x, dtype)
    if to.is_complex:
        return x.astype(np.float64).astype(dtype) if of.is_float and of.bits < 64 else x.astype(dtype)
    return _saturated(x, to) if of.is_float else wrapped(x, to)


def _to_float(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    if dtype in (np.float16, np.float32, np.float64) or x.dtype == np.float32:
        source = x.astype(np.float64) if x.dtype.kind == "V" or x.dtype.itemsize == 1 else x
        return source.astype(dtype)
    # ml_dtypes goes from f64 by way of f32: rounding that step to odd makes the second the only one that counts.
    return _f32_rounded_to_odd(x.astype(np.float64)).astype(dtype)


def _f32_rounded_to_odd(x: np.ndarray) -> np.ndarray:
    nearest = x.astype(np.float32)
    back = nearest.astype(np.float64)
    bits = nearest.view(np.uint32) - (np.abs(back) > np.abs(x)).astype(np.uint32)
    inexact = (back != x) & ~np.isnan(x)
    return np.asarray(np.where(inexact, bits | np.uint32(1), nearest.view(np.uint32))).view(np.float32)


def integer_limits(element: ElementType) -> tuple[int, int]:
    """The least and the greatest value of an integer type."""
    if element.is_unsigned:
        return 0, (1 << element.bits) - 1
    return -(1 << (element.bits - 1)), (1 << (element.bits - 1)) - 1


def _saturated(x: np.ndarray, to: ElementType) -> np.ndarray:
    x = np.trunc(x.astype(np.float64))
    low, high = integer_limits(to)
    container = np.uint64 if to.is_unsigned else np.int64
    inside = (x > float(low) - 1) & (x < float(high) + 1)
    value = np.where(inside, x, 0).astype(container)
    value = np.where(x >= float(high) + 1, container(high), np.where(x <= float(low) - 1, container(low), value))
    return wrapped(value, to)


def wrapped(x: np.ndarray, to: ElementType) -> np.ndarray:
    """Integers or booleans modulo 2^bits."""
    if to.bits >= 8:
        return x.astype(_exact_dtype(x.dtype)).astype(to.dtype)
    low = x.astype(_exact_dtype(x.dtype)).astype(np.uint8) & np.uint8((1 << to.bits) - 1)
    if to.is_unsigned:
        return low.astype(to.dtype)
    sign = np.uint8(1 << (to.bits - 1))
    return ((low ^ sign) - sign).astype(np.int8).astype(to.dtype)


def bits_of(x: np.ndarray) -> np.ndarray:
    """The bits of integers or floats in an unsigned type of at least their width; bits above the width are 0."""
    element = element_of(x.dtype)
    if element.is_integer and element.bits < 8:
        return x.astype(np.int8).astype(np.uint8) & np.uint8((1 << element.bits) - 1)
    bits = np.ascontiguousarray(x).reshape(x.shape).view(np.dtype(f"uint{8 * x.dtype.itemsize}"))
    return bits & np.uint8((1 << element.bits) - 1) if element.bits < 8 else bits


def from_bits(bits: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The inverse of `bits_of`."""
    element = element_of(dtype)
    if element.is_integer and element.bits < 8:
        return wrapped(bits, element)
    return np.ascontiguousarray(bits).reshape(bits.shape).view(dtype)


def total_order(x: np.ndarray) -> np.ndarray:
    """Integers ordered as IEEE totalOrder has the floats `x`: -NaN < -inf < ... < -0 < +0 < ... < inf < NaN.

    The one NaN of the types that have no -0 (FNUZ), and that of f8E8M0FNU, has no sign: it is the greatest.
    """
    if element_of(x.dtype).name.endswith("NU") or element_of(x.dtype).name.endswith("NUZ"):
        x = np.where(np.isnan(x), np.float32(np.nan), x.astype(np.float32))
    bits = bits_of(x)
    sign = bits.dtype.type(1 << (element_of(x.dtype).bits - 1))
    return (
        np.where(bits & sign, ~bits, bits | sign)
        if sign.nbytes * 8 == element_of(x.dtype).bits
        else _small_order(bits, sign)
    )


def _small_order(bits: np.ndarray, sign: np.unsignedinteger) -> np.ndarray:
    magnitude = (bits & (sign - 1)).astype(np.int16)
    return np.where(bits & sign, -magnitude - 1, magnitude)
