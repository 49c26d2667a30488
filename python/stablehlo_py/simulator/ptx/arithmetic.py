"""Arithmetic of PTX on NumPy arrays: tables from opcode to function, each given the instruction and its operands.

Approximate functions (ex2.approx, rcp.approx, ...) give the correctly rounded result; hardware may be a few units off.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from stablehlo_py.simulator.ptx.parse import Instruction, PtxError

Array = np.ndarray


def _wider(x: Array) -> Array:
    """The values in a type where a product of two is exact (f32, halves) or nearly so (f64)."""
    return x.astype(np.longdouble if x.dtype == np.float64 else np.float64)


def _flush(i: Instruction, x: Array) -> Array:
    """.ftz: subnormals become zero with the same sign."""
    if not i.has("ftz") or x.dtype != np.float32:
        return x
    return np.where(np.abs(x) < np.finfo(np.float32).tiny, np.copysign(np.float32(0), x), x)


def _floats(function: Callable[..., Array]) -> Callable[..., Array]:
    """A function of wide floats, rounded once, with .ftz and .sat as asked."""

    def apply(i: Instruction, *operands: Array) -> Array:
        dtype = operands[0].dtype
        result = function(*(_wider(_flush(i, x)) for x in operands)).astype(dtype)
        if i.has("sat"):
            result = np.where(np.isnan(result), 0, np.clip(result, 0, 1)).astype(dtype)
        return _flush(i, result)

    return apply


def _either(integers: Callable[..., Array], floats: Callable[..., Array]) -> Callable[..., Array]:
    rounded = _floats(floats)
    return lambda i, *xs: rounded(i, *xs) if "f" in i.type else integers(i, *xs)


def _product(i: Instruction, a: Array, b: Array) -> Array:
    """mul.lo, mul.hi, mul.wide and mul24 on integers."""
    bits = 8 * a.itemsize
    if i.has("wide"):
        wide = np.dtype(f"{a.dtype.kind}{2 * a.itemsize}")
        return a.astype(wide) * b.astype(wide)
    if not i.has("hi"):
        return a * b
    product = a.astype(object) * b.astype(object) >> bits
    return np.array([int(p) & ((1 << bits) - 1) for p in product], f"u{a.itemsize}").view(a.dtype)


def _quotient(_: Instruction, a: Array, b: Array) -> Array:
    """Towards zero; what a division by zero gives is unspecified, all ones here."""
    if a.dtype.kind == "u":
        return np.where(b == 0, np.iinfo(a.dtype).max, a // np.where(b == 0, 1, b)).astype(a.dtype)
    divisor = np.where(b == 0, 1, b)
    negative = (a < 0) != (divisor < 0)
    magnitude = np.abs(a).view(f"u{a.itemsize}") // np.abs(divisor).view(f"u{a.itemsize}")
    result = magnitude.view(a.dtype)
    return np.where(b == 0, -1, np.where(negative, -result, result)).astype(a.dtype)


def _remainder(i: Instruction, a: Array, b: Array) -> Array:
    return a - _quotient(i, a, b) * b


def _sum(_: Instruction, a: Array, b: Array) -> Array:
    return a + b


def _difference(_: Instruction, a: Array, b: Array) -> Array:
    return a - b


def _extreme(pick: Callable[[Array, Array], Array], keep: Callable[[Array, Array], Array], zero: int) -> Callable:
    """min and max: a NaN loses, or wins with .NaN; -0 is below +0."""

    def apply(i: Instruction, a: Array, b: Array) -> Array:
        if "f" not in i.type:
            return pick(a, b)
        a, b = _flush(i, a), _flush(i, b)
        result = pick(a, b) if i.has("NaN") else keep(a, b)
        signed = np.where(np.signbit(a) == bool(zero), a, b)
        return np.where((a == 0) & (b == 0), signed, result).astype(a.dtype)

    return apply


def _multiply_add(i: Instruction, a: Array, b: Array, c: Array) -> Array:
    if "f" in i.type:
        return _floats(lambda x, y, z: x * y + z)(i, a, b, c)
    return _product(i, a, b) + c


def _shift_left(_: Instruction, a: Array, by: Array) -> Array:
    return np.where(by >= 8 * a.itemsize, 0, a << np.minimum(by, 8 * a.itemsize - 1).astype(a.dtype)).astype(a.dtype)


def _shift_right(_: Instruction, a: Array, by: Array) -> Array:
    bits = 8 * a.itemsize
    shifted = a >> np.minimum(by, bits - 1).astype(a.dtype)
    return shifted if a.dtype.kind == "i" else np.where(by >= bits, 0, shifted).astype(a.dtype)


def _funnel(i: Instruction, low: Array, high: Array, by: Array) -> Array:
    """shf: 32 bits out of 64 that are shifted left or right."""
    by = (np.minimum(by, 32) if i.has("clamp") else by & 31).astype(np.uint64)
    both = high.astype(np.uint64) << np.uint64(32) | low.astype(np.uint64)
    if i.has("l"):
        return (both << by >> np.uint64(32)).astype(np.uint32)
    return (both >> by).astype(np.uint32)


def _permute(i: Instruction, a: Array, b: Array, selector: Array) -> Array:
    """prmt: each byte of the result picks one of eight, or its sign."""
    if len(i.modifiers) > 1:
        raise PtxError("only the default mode of prmt is simulated")
    source = np.stack([a, b], 1).view(np.uint8)
    result = np.zeros((len(a), 4), np.uint8)
    for place in range(4):
        choice = selector >> np.uint32(4 * place)
        byte = np.take_along_axis(source, (choice & 7).astype(np.int64)[:, None], 1)[:, 0]
        result[:, place] = np.where(choice & 8, np.where(byte & 0x80, 0xFF, 0), byte)
    return result.reshape(-1).view(np.uint32)


def _extract(_: Instruction, a: Array, start: Array, length: Array) -> Array:
    """bfe: a field of bits, sign-extended for signed types."""
    bits = 8 * a.itemsize
    start, length = start.astype(np.int64) & 255, np.minimum(length.astype(np.int64) & 255, bits)
    result = []
    for value, at, size in zip(a.view(f"u{a.itemsize}").tolist(), start.tolist(), length.tolist(), strict=True):
        field = (value >> at) & ((1 << size) - 1)
        sign = a.dtype.kind == "i" and size and field >> (size - 1) & 1
        result.append((field - (1 << size) if sign else field) & ((1 << bits) - 1))
    return np.array(result, f"u{a.itemsize}").view(a.dtype)


def _logic3(_: Instruction, a: Array, b: Array, c: Array, table: Array) -> Array:
    """lop3: any function of three bits, given as its truth table."""
    result = np.zeros_like(a)
    for row in range(8):
        if int(table[0]) >> row & 1:
            result |= (a if row & 4 else ~a) & (b if row & 2 else ~b) & (c if row & 1 else ~c)
    return result


def _leading_zeros(_: Instruction, a: Array) -> Array:
    bits = 8 * a.itemsize
    return np.array([bits - int(v).bit_length() for v in a.view(f"u{a.itemsize}")], np.uint32)


def _reverse_bits(_: Instruction, a: Array) -> Array:
    bits = 8 * a.itemsize
    return np.array([int(f"{int(v):0{bits}b}"[::-1], 2) for v in a.view(f"u{a.itemsize}")], f"u{a.itemsize}")


def _absolute(i: Instruction, a: Array) -> Array:
    return np.abs(_flush(i, a))


def _negative(i: Instruction, a: Array) -> Array:
    return -_flush(i, a)


UNARY: dict[str, Callable[..., Array]] = {
    "abs": _absolute,
    "neg": _negative,
    "sqrt": _floats(np.sqrt),
    "rsqrt": _floats(lambda x: 1 / np.sqrt(x)),
    "rcp": _floats(lambda x: 1 / x),
    "ex2": _floats(np.exp2),
    "lg2": _floats(np.log2),
    "sin": _floats(np.sin),
    "cos": _floats(np.cos),
    "tanh": _floats(np.tanh),
    "clz": _leading_zeros,
    "brev": _reverse_bits,
    "popc": lambda i, a: np.array([int(v).bit_count() for v in a.view(f"u{a.itemsize}")], np.uint32),
}

BINARY: dict[str, Callable[..., Array]] = {
    "add": _either(_sum, np.add),
    "sub": _either(_difference, np.subtract),
    "mul": _either(_product, np.multiply),
    "mul24": _product,
    "div": _either(_quotient, np.divide),
    "rem": _remainder,
    "min": _extreme(np.minimum, np.fmin, 1),
    "max": _extreme(np.maximum, np.fmax, 0),
    "shl": _shift_left,
    "shr": _shift_right,
    "copysign": lambda i, sign, magnitude: np.copysign(magnitude, sign),
}

TERNARY: dict[str, Callable[..., Array]] = {
    "fma": _multiply_add,
    "mad": _multiply_add,
    "shf": _funnel,
    "prmt": _permute,
    "bfe": _extract,
    "lop3": _logic3,
}

_ORDERED: dict[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def _unordered(ordered: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    return lambda a, b: ordered(a, b) | np.isnan(a) | np.isnan(b)


def _ordered_not_equal(a: Array, b: Array) -> Array:
    if a.dtype.kind in "iub":
        return a != b
    return (a != b) & ~np.isnan(a) & ~np.isnan(b)


COMPARE: dict[str, Callable[[Array, Array], Array]] = {
    **_ORDERED,
    "lo": np.less,
    "ls": np.less_equal,
    "hi": np.greater,
    "hs": np.greater_equal,
    "ne": _ordered_not_equal,
    **{f"{name}u": _unordered(function) for name, function in _ORDERED.items()},
    "neu": np.not_equal,
    "num": lambda a, b: ~(np.isnan(a) | np.isnan(b)),
    "nan": lambda a, b: np.isnan(a) | np.isnan(b),
}

_TO_INTEGRAL: dict[str, Callable[[Array], Array]] = {
    "rni": np.rint,
    "rzi": np.trunc,
    "rmi": np.floor,
    "rpi": np.ceil,
}


def convert(x: Array, to: np.dtype, modifiers: tuple[str, ...]) -> Array:
    """cvt: floats to integers saturate and take NaN to 0; integers wrap."""
    is_float = x.dtype.kind not in "iub"
    integral = next((f for m, f in _TO_INTEGRAL.items() if m in modifiers), None)
    if is_float and to.kind in "iu":
        wide = (integral or np.trunc)(_wider(x))
        info = np.iinfo(to)
        inside = np.where(np.isnan(wide), 0, np.clip(wide, float(info.min), float(info.max)))
        top = inside >= float(info.max)  # 2**63 - 1 is no float
        return np.where(top, info.max, np.where(top, 0, inside).astype(to)).astype(to)
    if is_float:
        wide = _wider(x)
        if "ftz" in modifiers and x.dtype == np.float32:
            wide = np.where(np.abs(wide) < np.finfo(np.float32).tiny, np.copysign(0.0, wide), wide)
        result = integral(wide) if integral else wide
        return (np.clip(np.nan_to_num(result, nan=0.0), 0, 1) if "sat" in modifiers else result).astype(to)
    return x.astype(to)
