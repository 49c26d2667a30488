"""Transforms of n real numbers, or to them: by one of n / 2 complex numbers where n is even, else by the whole spectrum."""

from __future__ import annotations

from stablehlo_py.mlir import arith, ir
from stablehlo_py.targets.cpu.emit import nest
from stablehlo_py.targets.cpu.fourier.fft_butterflies import Pair, constant
from stablehlo_py.targets.cpu.fourier.fft_places import Lanes
from stablehlo_py.targets.cpu.fourier.fft_tables import Tables

Index = int | ir.Value


def split(n: int, source: Lanes, target: Lanes, tables: Tables) -> None:
    """The half spectrum of x from the transform Z of x[2k] + i x[2k + 1], of length m = n / 2.

    With E = (Z[k] + conj Z[m - k]) / 2 and O = (Z[k] - conj Z[m - k]) / 2i:
    X[k] = E + w^k O, X[m - k] = conj(E - w^k O).
    """
    m, vectors = n // 2, source.vectors
    z = source.at(0).load()
    zero = vectors.zero()
    target.at(0).store(Pair(arith.addf(z.re, z.im), zero))
    target.at(m).store(Pair(arith.subf(z.re, z.im), zero))

    def pair(k: Index) -> None:
        near, far = source.at(k).load(), source.at(nest.subtract(m, k)).load().conjugate()
        half = constant(vectors, 0.5)
        even, odd = (near + far).scaled(half), (near - far).scaled(half).turned(False)
        turned = odd * tables.half_turn(n, k, vectors)
        target.at(k).store(even + turned)
        target.at(nest.subtract(m, k)).store((even - turned).conjugate())

    if m > 1:
        nest.loop(1, m // 2 + 1, 1, lambda k: pair(k))


def merge(n: int, source: Lanes, target: Lanes, tables: Tables) -> None:
    """The other way: Z[k] = E + i O, Z[m - k] = conj(E) + i conj(O), with O = w^-k (X[k] - conj X[m - k]) / 2."""
    m, vectors = n // 2, source.vectors
    first, last = source.at(0).load().re, source.at(m).load().re
    half = constant(vectors, 0.5)
    ends = arith.addf(first, last), arith.subf(first, last)
    target.at(0).store(Pair(*ends).scaled(half))

    def pair(k: Index) -> None:
        near, far = source.at(k).load(), source.at(nest.subtract(m, k)).load().conjugate()
        even = (near + far).scaled(half)
        odd = (near - far).scaled(half) * tables.half_turn(n, k, vectors)
        target.at(k).store(even + odd.turned(True))
        target.at(nest.subtract(m, k)).store(even.conjugate() + odd.conjugate().turned(True))

    if m > 1:
        nest.loop(1, m // 2 + 1, 1, lambda k: pair(k))


def mirror(n: int, values: Lanes) -> None:
    """The rest of the spectrum of a real signal of odd length: X[n - k] = conj X[k]."""
    values.at(0).store(Pair(values.at(0).load().re, values.vectors.zero()))
    if n > 1:
        nest.loop(1, n // 2 + 1, 1, lambda k: values.at(nest.subtract(n, k)).store(values.at(k).load().conjugate()))
