"""fft: FFT, IFFT, RFFT and IRFFT of any length, over the last one to three dimensions.

A transform of length N goes through its factors (Stockham's order, so nothing is permuted). With R the product of the
factors still to come and L of those done, t[p, k] is the transform of every R-th element from the p-th on. A factor r:

    t'[p, k + L j] = sum over q < r of  w ** (q (k + L j))  t[p + R/r q, k],      w = exp(-2 pi i / (r L))

Lengths with a large prime factor go through a convolution of a power of two (Bluestein).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from stablehlo_py.core.registry import lower
from stablehlo_py.core.types import ElementType, TensorType, element_type
from stablehlo_py.dialects.stablehlo import Op
from stablehlo_py.mlir import arith, ir
from stablehlo_py.ops import build, layout
from stablehlo_py.ops.build import Tensor
from stablehlo_py.ops.complex_functions import Complex, parts
from stablehlo_py.ops.expression import Num

LARGEST_FACTOR = 64  # above this a factor costs more than Bluestein's two transforms
_UNROLLED = 5  # factors up to this are summed without a loop
_LONGEST_CONSTANT = 256  # elements of a table that is part of the code
_C128 = element_type("complex<f64>")


Stage = Callable[[Tensor, bool], Tensor]  # (batch, r, rest, done, after), inverse -> (batch, rest, r, done, after)


@lower("stablehlo.fft")
def lower_fft(op: Op, operand: Tensor) -> Tensor:
    """As linalg ops only, whose results are independent of each other."""
    return fourier(op, operand, stage_in_parallel)


def fourier(op: Op, operand: Tensor, stage: Stage) -> Tensor:
    """All dimensions of an fft, by this way of doing a short factor."""
    kind, lengths, ty = op.enum("fft_type"), op.ints("fft_length"), op.type
    if ty.size == 0 or operand.type.size == 0:
        return build.empty(ty)
    first = operand.rank - len(lengths)
    axes = range(first, operand.rank)
    if kind == "RFFT":
        result = transform(_to_complex(operand), axes[-1], inverse=False, stage=stage)
        sizes = ty.shape[: axes[-1] + 1]
        result = layout.extract_slice(result, (0,) * ty.rank, sizes, (1,) * ty.rank)
        for axis in axes[:-1]:
            result = transform(result, axis, inverse=False, stage=stage)
        return result
    if kind == "IRFFT":
        for axis in axes[:-1]:
            operand = transform(operand, axis, inverse=True, stage=stage)
        return _real_part(transform(_hermitian(operand, lengths[-1]), axes[-1], inverse=True, stage=stage))
    for axis in axes:
        operand = transform(operand, axis, inverse=kind == "IFFT", stage=stage)
    return operand


def _to_complex(x: Tensor) -> Tensor:
    element = element_type(f"complex<{x.element.name}>")
    zero = build.scalar(x.element, 0)
    return build.generic([x], [x.type.with_element(element)], lambda re: Complex(Num(re), Num(zero)).value)[0]


def _real_part(x: Tensor) -> Tensor:
    return build.generic([x], [x.type.with_element(x.element.part)], lambda z: parts(z).re.value)[0]


def _hermitian(half: Tensor, length: int) -> Tensor:
    """The whole spectrum of a real signal from the first length / 2 + 1 values: X[length - k] = conj X[k]."""
    ty = half.type.with_shape((*half.shape[:-1], length))

    def body() -> ir.Value:
        place = build.loop_index(ty.rank - 1)
        mirrored = arith.cmpi(arith.CmpIPredicate.sge, place, build.index(length // 2 + 1))
        source = arith.select(mirrored, arith.subi(build.index(length), place), place)
        indices = [*(build.loop_index(d) for d in range(ty.rank - 1)), source]
        z = parts(build.read(half, indices))
        return Complex(z.re, Num(arith.select(mirrored, (-z.im).value, z.im.value))).value

    return build.generic([], [ty], body)[0]


def transform(x: Tensor, axis: int, *, inverse: bool, stage: Stage) -> Tensor:
    """The discrete Fourier transform along one dimension; the inverse is scaled by 1 / length."""
    length = x.shape[axis]
    before, after = math.prod(x.shape[:axis]), math.prod(x.shape[axis + 1 :])
    rows = layout.reshape(x, (before, length, after))
    factors = _factors(length)
    by_factors = max(factors, default=1) <= LARGEST_FACTOR
    result = _by_factors(rows, factors, inverse, stage) if by_factors else _bluestein(rows, inverse, stage)
    if inverse and length > 1:
        result = _scaled(result, 1.0 / length)
    return layout.reshape(result, x.shape)


def _factors(length: int) -> list[int]:
    """4 as often as it divides, then the primes."""
    factors, rest, p = [], length, 2
    while rest % 4 == 0:
        factors.append(4)
        rest //= 4
    while rest > 1:
        while rest % p == 0:
            factors.append(p)
            rest //= p
        p += 1
    return factors


def roots(n: int, inverse: bool = False) -> np.ndarray:
    """exp(-2 pi i k / n) for k < n, the multiples of a quarter turn exact; conjugate for the inverse."""
    k = np.arange(n)
    angle = 2 * np.pi * k.astype(np.longdouble) / n if n else np.zeros(0)
    result = (np.cos(angle) - 1j * np.sin(angle)).astype(np.complex128)
    quarters = (4 * k) % n == 0
    result[quarters] = np.array([1, -1j, -1, 1j])[(4 * k[quarters]) // n]
    return result.conj() if inverse else result


def _by_factors(x: Tensor, factors: list[int], inverse: bool, stage: Stage) -> Tensor:
    """x: (batch, length, after)."""
    batch, length, after = x.shape
    done, rest = 1, length
    for r in factors:
        rest //= r
        split = layout.reshape(x, (batch, r, rest, done, after))
        x = (stage if r <= _UNROLLED else _looped_stage)(split, inverse)
        done *= r
        x = layout.reshape(x, (batch, rest, done, after))
    return layout.reshape(x, (batch, length, after))


def _product(x: Complex, y: Complex) -> Complex:
    return Complex(x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re)


def _sum(x: Complex, y: Complex) -> Complex:
    return Complex(x.re + y.re, x.im + y.im)


def _difference(x: Complex, y: Complex) -> Complex:
    return Complex(x.re - y.re, x.im - y.im)


def stage_in_parallel(x: Tensor, inverse: bool) -> Tensor:
    """(batch, r, rest, done, after) -> (batch, rest, r, done, after), every result by itself.

    w ** (q (k + L j)) is a twiddle of k times one of the r-th roots, which j and q choose.
    """
    batch, r, rest, done, after = x.shape
    turns = roots(r, inverse).astype(x.element.dtype)
    rotations = [build.constant(TensorType((r,), x.element), turns[q * np.arange(r) % r]) for q in range(1, r)]
    twiddles = [_twiddles(x.element, r * done, q, done, inverse) for q in range(1, r)] if done > 1 else []
    dims = [ir.AffineExpr.get_dim(d) for d in range(5)]
    places = [[dims[0], ir.AffineExpr.get_constant(q), dims[1], dims[3], dims[4]] for q in range(r)]
    maps = [ir.AffineMap.get(5, 0, place) for place in places]
    maps += [build.dims_map(5, (2,))] * len(rotations) + [build.dims_map(5, (3,))] * len(twiddles)

    def body(*values: ir.Value) -> ir.Value:
        numbers = [parts(v) for v in values]
        factors = numbers[r : 2 * r - 1]
        if twiddles:
            factors = [_product(f, t) for f, t in zip(factors, numbers[2 * r - 1 :], strict=True)]
        total = numbers[0]
        for value, factor in zip(numbers[1:r], factors, strict=True):
            total = _sum(total, _product(value, factor))
        return total.value

    result_type = x.type.with_shape((batch, rest, r, done, after))
    return build.generic([x] * r + rotations + twiddles, [result_type], body, maps=[*maps, build.identity_map(5)])[0]


def stage_in_order(x: Tensor, inverse: bool) -> Tensor:
    """(batch, r, rest, done, after) -> (batch, rest, r, done, after), in sequential loops.

    w ** (q (k + L j)) is a twiddle of k times one of the r-th roots: r values are turned by their twiddles once, and
    a transform of length r of them gives r results.
    """
    batch, r, rest, done, after = x.shape
    twiddles = [_twiddles(x.element, r * done, q, done, inverse) for q in range(1, r)] if done > 1 else []

    def body(place: list[ir.Value], carried: list[Tensor]) -> list[Tensor]:
        b, p, k, a = place
        values = [parts(build.read(x, [b, build.index(q), p, k, a])) for q in range(r)]
        turned = [_product(v, parts(build.read(t, [k]))) for v, t in zip(values[1:], twiddles, strict=False)]
        (target,) = carried
        for j, result in enumerate(_short_transform([values[0], *(turned or values[1:])], inverse)):
            target = build.write(target, result.value, [b, p, build.index(j), k, a])
        return [target]

    target = build.empty(x.type.with_shape((batch, rest, r, done, after)))
    return build.loops([batch, rest, done, after], [target], body)[0]


def _short_transform(values: list[Complex], inverse: bool) -> list[Complex]:
    """The transform of as many values as there are, written out."""
    r = len(values)
    if r == 4:
        even, odd = _sum(values[0], values[2]), _sum(values[1], values[3])
        other, turned = _difference(values[0], values[2]), _difference(values[1], values[3])
        quarter = Complex(-turned.im, turned.re) if inverse else Complex(turned.im, -turned.re)
        return [_sum(even, odd), _sum(other, quarter), _difference(even, odd), _difference(other, quarter)]
    if r == 2:
        return [_sum(*values), _difference(*values)]
    turns = roots(r, inverse)
    results = []
    for j in range(r):
        total = values[0]
        for q in range(1, r):
            turn, z = complex(turns[j * q % r]), values[q]
            if j:
                z = Complex(z.re * turn.real - z.im * turn.imag, z.re * turn.imag + z.im * turn.real)
            total = _sum(total, z)
        results.append(total)
    return results


def _twiddles(element: ElementType, n: int, power: int, count: int, inverse: bool) -> Tensor:
    """exp(-2 pi i power k / n) for k < count, power k < n.

    Long ones are made when the kernel runs, as products of two in f64: constants of that size take seconds to
    compile.
    """
    every = roots(n, inverse)
    ty = TensorType((count,), element)
    if count <= _LONGEST_CONSTANT:
        return build.constant(ty, every[power * np.arange(count)].astype(element.dtype))
    low_bits = (n.bit_length() + 1) // 2
    low = build.constant(TensorType((1 << low_bits,), _C128), every[: 1 << low_bits])
    steps = every[:: 1 << low_bits]
    high = build.constant(TensorType(steps.shape, _C128), steps)
    part = build.compute_type(element.part)

    def body() -> ir.Value:
        place = arith.muli(build.loop_index(0), build.index(power))
        coarse = parts(build.read(high, [arith.shrui(place, build.index(low_bits))]))
        fine = parts(build.read(low, [arith.andi(place, build.index((1 << low_bits) - 1))]))
        return _product(coarse, fine).to(part).value

    return build.generic([], [ty], body)[0]


def _looped_stage(x: Tensor, inverse: bool) -> Tensor:
    """(batch, r, rest, done, after) -> (batch, rest, r, done, after), the sum over r a loop in f64."""
    batch, r, rest, done, after = x.shape
    n = r * done
    table = build.constant(TensorType((n,), _C128), roots(n, inverse))
    wide = TensorType((batch, rest, r, done, after), _C128)

    def body(value: ir.Value, total: ir.Value) -> ir.Value:
        j, k, q = (build.loop_index(d) for d in (2, 3, 5))
        turn = arith.remui(arith.muli(q, arith.addi(k, arith.muli(j, build.index(done)))), build.index(n))
        twiddle = parts(build.read(table, [turn]))
        return _sum(parts(total), _product(parts(value).to(ir.F64Type.get()), twiddle)).value

    total = build.generic(
        [x],
        [build.splat(wide, 0)],
        body,
        maps=[build.dims_map(6, (0, 5, 1, 3, 4)), build.dims_map(6, (0, 1, 2, 3, 4))],
        iterators=[build.PARALLEL] * 5 + [build.REDUCTION],
    )[0]
    return _cast(total, x.element)


def _cast(x: Tensor, element: ElementType) -> Tensor:
    if x.element == element:
        return x
    part = build.compute_type(element.part)
    return build.generic([x], [x.type.with_element(element)], lambda z: parts(z).to(part).value)[0]


def _scaled(x: Tensor, factor: float) -> Tensor:
    def body(value: ir.Value) -> ir.Value:
        z = parts(value)
        return Complex(z.re * factor, z.im * factor).value

    return build.generic([x], [x.type], body)[0]


def _times(x: Tensor, factors: np.ndarray) -> Tensor:
    """x: (batch, n, after), multiplied by factors (n,)."""
    table = build.constant(TensorType(factors.shape, x.element), factors.astype(x.element.dtype))
    maps = [build.identity_map(3), build.dims_map(3, (1,)), build.identity_map(3)]
    return build.generic([x, table], [x.type], lambda z, f: _product(parts(z), parts(f)).value, maps=maps)[0]


def _bluestein(x: Tensor, inverse: bool, stage: Stage) -> Tensor:
    """x: (batch, n, after). nk = (n^2 + k^2 - (k - n)^2) / 2 makes the transform a convolution with a chirp; in f64."""
    batch, n, after = x.shape
    size = 1 << (2 * n - 2).bit_length()
    square = np.arange(n, dtype=np.int64) ** 2 % (2 * n)
    chirp = roots(2 * n, inverse)[square]  # exp(-+ pi i n^2 / n)
    filter_ = np.zeros(size, np.complex128)
    filter_[:n] = chirp.conj()
    filter_[size - n + 1 :] = chirp[1:][::-1].conj()
    wide = _times(_cast(x, _C128), chirp)
    zero = build.scalar(_C128, 0)
    padded = layout.pad(wide, zero, (0, 0, 0), (0, size - n, 0), (0, 0, 0))
    factors = _factors(size)
    spectrum = _times(_by_factors(padded, factors, False, stage), np.fft.fft(filter_) / size)
    back = _by_factors(spectrum, factors, True, stage)
    kept = layout.extract_slice(back, (0, 0, 0), (batch, n, after), (1, 1, 1))
    return _cast(_times(kept, chirp), x.element)
