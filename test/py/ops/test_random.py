"""rng_bit_generator bit for bit as JAX on the CPU gives it; rng by its statistics."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from ops.agree import with_jax

import stablehlo_py

SHAPES = [(), (1,), (5,), (8,), (3, 5), (4, 3), (3, 7, 5), (0, 3)]


@pytest.mark.parametrize(
    ("algorithm", "dtype", "shapes"),
    [
        ("RNG_THREE_FRY", np.uint32, SHAPES),
        ("RNG_THREE_FRY", np.uint8, [(5,), (3, 4)]),
        ("RNG_THREE_FRY", np.uint16, [(5,), (3, 4)]),
        ("RNG_THREE_FRY", np.uint64, [(), (3, 5)]),
        ("RNG_PHILOX", np.uint32, SHAPES),
        ("RNG_PHILOX", np.uint8, [(5,)]),
        ("RNG_PHILOX", np.uint16, [(3, 4)]),
        ("RNG_PHILOX", np.uint64, [(), (3, 5)]),
        ("RNG_DEFAULT", np.uint32, [(), (3, 5)]),
    ],
)
def test_bits_of_jax(algorithm: str, dtype: type, shapes: list[tuple[int, ...]]) -> None:
    """Odd sizes too; the new state is compared as well. Elements of 8 and 16 bits are the low bits of 32."""

    def draw(key: jax.Array) -> list[tuple[jax.Array, jax.Array]]:
        which = getattr(lax.RandomAlgorithm, algorithm)
        return [lax.rng_bit_generator(key, shape, np.dtype(dtype), algorithm=which) for shape in shapes]

    with_jax(draw, np.array([1, 2, 3, 0xFFFFFFFF], np.uint32))


def test_counter_carries() -> None:
    """The last counters before 2**64: Philox carries into the high half, Threefry starts again."""
    text = """func.func @main(%s: tensor<3xui64>, %t: tensor<2xui64>)
        -> (tensor<3xui64>, tensor<16xui32>, tensor<2xui64>, tensor<4xui64>) {
      %0:2 = stablehlo.rng_bit_generator %s, algorithm = PHILOX : (tensor<3xui64>) -> (tensor<3xui64>, tensor<16xui32>)
      %1:2 = stablehlo.rng_bit_generator %t, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui64>)
      return %0#0, %0#1, %1#0, %1#1 : tensor<3xui64>, tensor<16xui32>, tensor<2xui64>, tensor<4xui64>
    }"""
    exe = stablehlo_py.compile(text)
    end = 2**64 - 2
    state, words, counter, doubles = exe(np.array([9, end, 7], np.uint64), np.array([9, end], np.uint64))
    assert state.tolist() == [9, 2, 8]
    assert counter.tolist() == [9, 2]
    _, words_after, _, doubles_after = exe(np.array([9, 0, 8], np.uint64), np.array([9, 0], np.uint64))
    np.testing.assert_array_equal(words[8:], words_after[:8])
    np.testing.assert_array_equal(doubles[2:], doubles_after[:2])


def test_jax_random() -> None:
    def draw(key: jax.Array) -> tuple[jax.Array, ...]:
        first, second = jax.random.split(jax.random.wrap_key_data(key))
        return jax.random.bits(first, (7, 3)), jax.random.uniform(second, (11,)), jax.random.permutation(first, 9)

    with_jax(draw, np.array([0, 42], np.uint32))


def test_rng() -> None:
    """Within the interval, of the right moments, and the same at each run."""
    text = """func.func @main(%a: tensor<f32>, %b: tensor<f32>, %i: tensor<i32>, %j: tensor<i32>)
        -> (tensor<400x50xf32>, tensor<400x50xf32>, tensor<2000xi32>) {
      %shape = stablehlo.constant dense<[400, 50]> : tensor<2xi64>
      %line = stablehlo.constant dense<2000> : tensor<1xi64>
      %0 = stablehlo.rng %a, %b, %shape, distribution = UNIFORM
        : (tensor<f32>, tensor<f32>, tensor<2xi64>) -> tensor<400x50xf32>
      %1 = stablehlo.rng %a, %b, %shape, distribution = NORMAL
        : (tensor<f32>, tensor<f32>, tensor<2xi64>) -> tensor<400x50xf32>
      %2 = stablehlo.rng %i, %j, %line, distribution = UNIFORM : (tensor<i32>, tensor<i32>, tensor<1xi64>) -> tensor<2000xi32>
      return %0, %1, %2 : tensor<400x50xf32>, tensor<400x50xf32>, tensor<2000xi32>
    }"""
    exe = stablehlo_py.compile(text)
    arguments = np.float32(2), np.float32(5), np.int32(-1), np.int32(3)
    uniform, normal, whole = exe(*(np.array(a) for a in arguments))
    assert uniform.min() >= 2 and uniform.max() < 5
    assert abs(uniform.mean() - 3.5) < 0.02 and abs(uniform.std() - 3 / 12**0.5) < 0.02
    assert abs(normal.mean() - 2) < 0.15 and abs(normal.std() - 5) < 0.1
    assert abs(np.corrcoef(normal[:, 0], normal[:, 1])[0, 1]) < 0.15
    values, counts = np.unique(whole, return_counts=True)
    assert values.tolist() == [-1, 0, 1, 2] and counts.min() > 400
    np.testing.assert_array_equal(exe(*(np.array(a) for a in arguments))[0], uniform)


def test_dropout_uses_bits_once() -> None:
    def dropped(key: jax.Array, x: jax.Array) -> jax.Array:
        kept = jax.random.bernoulli(jax.random.wrap_key_data(key), 0.75, x.shape)
        return jnp.where(kept, x * 2, 0)

    with_jax(dropped, np.array([3, 4], np.uint32), np.arange(1, 21, dtype=np.float32).reshape(4, 5))
