"""Random numbers: rng_bit_generator (Threefry and Philox, the bits of XLA) and rng.

Both generators turn a key and a counter into bits: no element depends on another.

    THREE_FRY  state u64[2] = key, counter               two words of 32 bits a counter
    PHILOX     state u64[3] = key, counter low and high  four words of 32 bits a counter
               state u64[2] = key, counter low; the high half of the counter is the key
    DEFAULT    PHILOX

Words beyond the last element are dropped; elements of 8 and 16 bits are the low bits of a word.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from stablehlo_py.core.registry import lower
from stablehlo_py.core.types import TensorType, element_type
from stablehlo_py.dialects.stablehlo import Op
from stablehlo_py.errors import UnsupportedOp
from stablehlo_py.mlir import arith, ir, tensor
from stablehlo_py.mlir import math as math_dialect
from stablehlo_py.ops import build, layout
from stablehlo_py.ops.build import Tensor
from stablehlo_py.ops.convert import from_bits
from stablehlo_py.ops.expression import Num, constant, where

Words = list[Num]  # i32 each


@lower("stablehlo.rng_bit_generator")
def lower_rng_bit_generator(op: Op, initial_state: Tensor) -> tuple[Tensor, Tensor]:
    """(new state, random bits)."""
    algorithm = op.enum("rng_algorithm")
    state = [Num(tensor.extract(initial_state.value, [build.index(i)])) for i in range(initial_state.shape[0])]
    output = op.types[1]
    if algorithm == "THREE_FRY":
        bits, used = _threefry_tensor(state, output)
    else:
        bits, used = _philox_tensor(state, output)
    return _advanced(initial_state, used), bits


def _advanced(state: Tensor, count: int) -> Tensor:
    """The state after `count` counters: the low word of the counter grows, the others stay, the carry moves up."""

    def body(word: ir.Value) -> ir.Value:
        place = build.loop_index(0)
        at_low = Num(arith.cmpi(arith.CmpIPredicate.eq, place, build.index(1)))
        at_high = Num(arith.cmpi(arith.CmpIPredicate.eq, place, build.index(2)))
        low = Num(tensor.extract(state.value, [build.index(1)]))
        carry = (low + count).below(low).resize(64)
        old = Num(word)
        return where(at_low, old + count, where(at_high, old + carry, old)).value

    return build.generic([state], [state.type], body)[0]


# --- Threefry ---------------------------------------------------------------------------------------------------------

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


def threefry2x32(key: Words, counter: Words) -> Words:
    """20 rounds on two words (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3")."""
    keys = [*key, key[0] ^ key[1] ^ _PARITY]
    x, y = counter[0] + keys[0], counter[1] + keys[1]
    for group in range(5):
        for distance in _ROTATIONS[group % 2]:
            x = x + y
            y = ((y << distance) | y.shift_right_logical(32 - distance)) ^ x
        x = x + keys[(group + 1) % 3]
        y = y + keys[(group + 2) % 3] + (group + 1)
    return [x, y]


def _threefry_tensor(state: Words, ty: TensorType) -> tuple[Tensor, int]:
    """64-bit elements take a counter each; of smaller ones two neighbours along an even dimension share one."""
    key = _halves(state[0])
    if ty.element.bits == 64:

        def whole() -> ir.Value:
            low, high = threefry2x32(key, _halves(state[1] + _linear_index(ty.shape)))
            return from_bits(ty.element, low.resize(64) | (high.resize(64) << 32))

        return build.generic([], [ty], whole)[0], ty.size
    if ty.rank == 0:
        first = threefry2x32(key, _halves(state[1]))[0]
        return build.generic([], [ty], lambda: _element(ty, first))[0], 1
    split = _split_dimension(ty.shape)
    half = [math.ceil(d / 2) if i == split else d for i, d in enumerate(ty.shape)]
    one = build.index(1)

    def one_of_two() -> ir.Value:
        # each word is made for itself: a loop over whole vectors is quicker than one that turns two words into two
        place = build.loop_index(split)
        places = [arith.shrui(place, one) if d == split else build.loop_index(d) for d in range(ty.rank)]
        words = threefry2x32(key, _halves(state[1] + _linear_index(half, places)))
        first = Num(arith.cmpi(arith.CmpIPredicate.eq, arith.andi(place, one), build.index(0)))
        return _element(ty, where(first, *words))

    return build.generic([], [ty], one_of_two)[0], math.prod(half)


def _split_dimension(shape: Sequence[int]) -> int:
    """The first even dimension, else the first of the longest."""
    even = [i for i, d in enumerate(shape) if d % 2 == 0]
    return even[0] if even else shape.index(max(shape))  # type: ignore[attr-defined]


# --- Philox -----------------------------------------------------------------------------------------------------------

_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)


def philox4x32(key: Words, counter: Words) -> Words:
    """10 rounds on four words (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3")."""
    a, b, c, d = counter
    k, m = key
    for _ in range(10):
        first, second = _product(a, _MULTIPLIERS[0]), _product(c, _MULTIPLIERS[1])
        a, b, c, d = second[1] ^ b ^ k, second[0], first[1] ^ d ^ m, first[0]
        k, m = k + _WEYL[0], m + _WEYL[1]
    return [a, b, c, d]


def _product(x: Num, factor: int) -> Words:
    """The low and high word of a product."""
    return _halves(x.resize(64) * factor)


def _philox_tensor(state: Words, ty: TensorType) -> tuple[Tensor, int]:
    """The words of all counters one after another, in row-major order of the elements."""
    key, low = _halves(state[0]), state[1]
    high = state[2] if len(state) > 2 else state[0]
    each = 2 if ty.element.bits == 64 else 4  # elements a counter
    counters = math.ceil(ty.size / each)
    groups = ty.with_shape((counters, each))

    def body() -> ir.Value:
        step = _linear_index((counters,), [build.loop_index(0)])
        moved = low + step
        carried = high + moved.below(low).resize(64)
        words = philox4x32(key, [*_halves(moved), *_halves(carried)])
        if each == 2:
            doubles = [words[i].resize(64) | (words[i + 1].resize(64) << 32) for i in (0, 2)]
            return from_bits(ty.element, _chosen(doubles))
        return _element(ty, _chosen(words))

    bits = layout.reshape(build.generic([], [groups], body)[0], (counters * each,))
    if counters * each != ty.size:
        bits = layout.extract_slice(bits, (0,), (ty.size,), (1,))
    return layout.reshape(bits, ty.shape), counters


def _chosen(words: Words) -> Num:
    """The word that belongs to the last index of the loop."""
    place = build.loop_index(1)
    result = words[-1]
    for i, word in enumerate(words[:-1]):
        result = where(Num(arith.cmpi(arith.CmpIPredicate.eq, place, build.index(i))), word, result)
    return result


# --- what both need ---------------------------------------------------------------------------------------------------


def _halves(word: Num) -> Words:
    """The low and the high 32 bits of 64."""
    return [word.resize(32), word.shift_right_logical(32).resize(32)]


def _linear_index(shape: Sequence[int], places: Sequence[ir.Value] | None = None) -> Num:
    """The row-major index (i64) of places (of the loops when absent) in `shape`."""
    i64 = ir.IntegerType.get_signless(64)
    total = constant(i64, 0)
    for extent, place in zip(shape, places or [build.loop_index(d) for d in range(len(shape))], strict=True):
        total = total * extent + Num(arith.index_cast(i64, place))
    return total


def _element(ty: TensorType, word: Num) -> ir.Value:
    """An element of at most 32 bits from a word."""
    return from_bits(ty.element, word.resize(ty.element.bits))


# --- rng --------------------------------------------------------------------------------------------------------------


@lower("stablehlo.rng")
def lower_rng(op: Op, a: Tensor, b: Tensor, *_shape: Tensor) -> Tensor:
    """UNIFORM over [a, b) or NORMAL with mean a and deviation b.

    The op carries no state, so the bits are those of Threefry under a fixed key: the same in each run and for each rng
    of one shape.
    """
    ty = op.type
    bits = _threefry_tensor(
        [constant(ir.IntegerType.get_signless(64), n) for n in (0x5DEECE66D, 0)],
        TensorType((*ty.shape, 2), element_type("ui64")),
    )[0]
    first, second = (_part(bits, i) for i in range(2))
    distribution = op.enum("rng_distribution")
    if distribution == "NORMAL" and ty.element.is_float:
        body = _normal
    elif distribution == "UNIFORM" and not ty.element.is_complex:
        body = _uniform
    else:
        raise UnsupportedOp(op.name, f"{distribution} of {ty.element}", where=str(op.location))
    scalar = build.dims_map(ty.rank, ())
    every = build.identity_map(ty.rank)
    return build.generic(
        [a, b, first, second],
        [ty],
        lambda *xs: body(ty, *(Num(x) for x in xs)),
        maps=[scalar, scalar, every, every, every],
    )[0]


def _part(bits: Tensor, place: int) -> Tensor:
    rank = bits.rank
    start = (0,) * (rank - 1) + (place,)
    shape = bits.shape[:-1]
    return layout.reshape(layout.extract_slice(bits, start, (*shape, 1), (1,) * rank), shape)


def _unit(word: Num) -> Num:
    """An f64 in [0, 1) from 64 bits."""
    return Num(arith.uitofp(ir.F64Type.get(), word.shift_right_logical(11).value)) * 2.0**-53


def _uniform(ty: TensorType, low: Num, high: Num, word: Num, _: Num) -> ir.Value:
    if ty.element.is_float:
        value = low.to_f64() + (high.to_f64() - low.to_f64()) * _unit(word)
        rounded = Num(build.rounded(ty.element, value.to(low.type).value))
        return where(rounded < high, rounded, low).value  # rounding may reach the excluded end
    if ty.element.is_bool:
        return where(high, (word & 1).ne(0), low).value
    # the remainder of 64 bits is as good as uniform for ranges far below 2**64
    span = (high - low).resize(64)
    offset = Num(arith.remui(word.value, where(span.eq(0), 1, span).value))
    return (low + offset.resize(low.width)).value


def _normal(ty: TensorType, mean: Num, deviation: Num, first: Num, second: Num) -> ir.Value:
    """Box and Muller: sqrt(-2 log u) cos(2 pi v)."""
    radius = (Num(math_dialect.log((1.0 - _unit(first)).value)) * -2.0).sqrt()
    angle = Num(math_dialect.cos((_unit(second) * (2 * math.pi)).value))
    return (mean.to_f64() + deviation.to_f64() * radius * angle).to(mean.type).value
