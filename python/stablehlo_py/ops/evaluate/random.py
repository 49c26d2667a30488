"""Random bits: Threefry-2x32 and Philox-4x32 with counters laid out as XLA lays them out, so that the bits are the same."""

from __future__ import annotations

import numpy as np

from stablehlo_py.core.registry import evaluate
from stablehlo_py.dialects.stablehlo import Op
from stablehlo_py.errors import UnsupportedOp
from stablehlo_py.ops.evaluate.numeric import element_of, from_bits

_THREEFRY_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_THREEFRY_PARITY = np.uint32(0x1BD11BDA)
_PHILOX_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_PHILOX_STEPS = (np.uint32(0x9E3779B9), np.uint32(0xBB67AE85))
_LOW = np.uint64(0xFFFFFFFF)
_WORD = np.uint64(32)


def _halves(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(low, high) 32 bits of 64."""
    return (x & _LOW).astype(np.uint32), (x >> _WORD).astype(np.uint32)


def _joined(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    return low.astype(np.uint64) | (high.astype(np.uint64) << _WORD)


def threefry_2x32(key: np.ndarray, counter: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Twenty rounds over the two halves of a 64-bit counter."""
    k0, k1 = _halves(key)
    keys = (k0, k1, k0 ^ k1 ^ _THREEFRY_PARITY)
    x, y = _halves(counter)
    x, y = x + keys[0], y + keys[1]
    for group in range(5):
        for rotation in _THREEFRY_ROTATIONS[group % 2]:
            x = x + y
            y = ((y << np.uint32(rotation)) | (y >> np.uint32(32 - rotation))) ^ x
        x, y = x + keys[(group + 1) % 3], y + keys[(group + 2) % 3] + np.uint32(group + 1)
    return x, y


def philox_4x32(key: np.ndarray, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, ...]:
    """Ten rounds over the four quarters of a 128-bit counter."""
    k0, k1 = _halves(key)
    c0, c1 = _halves(low)
    c2, c3 = _halves(high)
    for _ in range(10):
        low0, high0 = _halves(c0 * _PHILOX_MULTIPLIERS[0])
        low1, high1 = _halves(c2 * _PHILOX_MULTIPLIERS[1])
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = k0 + _PHILOX_STEPS[0], k1 + _PHILOX_STEPS[1]
    return c0, c1, c2, c3


def _split_dimension(shape: tuple[int, ...]) -> int:
    """The first even dimension, else the first of the largest."""
    even = [d for d, n in enumerate(shape) if n % 2 == 0]
    return even[0] if even else shape.index(max(shape))


def threefry_bits(state: np.ndarray, shape: tuple[int, ...], bits: int) -> tuple[np.ndarray, np.ndarray]:
    """(new state, bits of `shape`) from state [key, counter].

    64 bits take one counter each; up to 32 bits share one between the two halves of one dimension.
    """
    key, start = state[0], state[1]
    if bits == 64:
        counter = start + np.arange(int(np.prod(shape)), dtype=np.uint64).reshape(shape)
        return _advanced(state, counter.size), _joined(*threefry_2x32(key, counter))
    split = _split_dimension(shape) if shape else 0
    full = shape or (1,)
    half = [-(-n // 2) if d == split else n for d, n in enumerate(full)]
    counter = start + np.arange(int(np.prod(half)), dtype=np.uint64).reshape(half)
    pair = np.stack(threefry_2x32(key, counter), axis=split + 1)
    words = pair.reshape([2 * n if d == split else n for d, n in enumerate(half)])
    words = words[tuple(slice(0, n) for n in full)].reshape(shape)
    return _advanced(state, counter.size), words


def _advanced(state: np.ndarray, count: int) -> np.ndarray:
    return np.array([state[0], state[1] + np.uint64(count), *state[2:]], np.uint64)


def philox_bits(state: np.ndarray, shape: tuple[int, ...], bits: int) -> tuple[np.ndarray, np.ndarray]:
    """(new state, bits of `shape`) from state [key, counter low, counter high]: four words of 32 bits a counter.

    A state of two has the key for the counter's high part too.
    """
    size = int(np.prod(shape))
    words = 2 * size if bits == 64 else size
    count = -(-words // 4)
    key, start = state[0], state[1]
    top = state[2] if len(state) > 2 else key
    low = start + np.arange(count, dtype=np.uint64)
    high = top + (low < start).astype(np.uint64)
    stream = np.stack(philox_4x32(key, low, high), axis=1)
    end = start + np.uint64(count)
    new = np.array([key, end, top + np.uint64(end < start)][: len(state)], np.uint64)
    if bits == 64:
        return new, _joined(stream[:, 0::2], stream[:, 1::2]).ravel()[:size].reshape(shape)
    return new, stream.ravel()[:size].reshape(shape)


@evaluate("stablehlo.rng_bit_generator")
def evaluate_rng_bit_generator(op: Op, initial_state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(output_state, bits); DEFAULT is Philox, as XLA has it on the CPU."""
    algorithm = op.enum("rng_algorithm", "DEFAULT")
    result = op.types[1]
    state = np.frombuffer(np.ascontiguousarray(initial_state).tobytes(), np.uint64)
    generate = threefry_bits if algorithm == "THREE_FRY" else philox_bits
    new, words = generate(state, result.shape, result.element.bits)
    new = np.frombuffer(new.tobytes(), initial_state.dtype).reshape(initial_state.shape)
    word = np.dtype(f"uint{8 * result.element.bytes}")
    return new, from_bits(words.astype(word), element_of(result.element.dtype).dtype)


@evaluate("stablehlo.rng")
def evaluate_rng(op: Op, a: np.ndarray, b: np.ndarray, shape: np.ndarray) -> np.ndarray:
    """Refused: its values are not determined, so there is no right answer to compare with."""
    raise UnsupportedOp(
        op.name, "its values are not determined", where=str(op.location), hint="use rng_bit_generator with a state"
    )
