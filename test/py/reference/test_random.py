"""Random bits are those of XLA, bit by bit, whatever the shape and the width."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from jax import lax
from reference.judges import agrees_with_jax

KEY = np.array([0x123456789ABCDEF0, 2**64 - 2], np.uint64).view(np.uint32)  # the counter overflows


@pytest.mark.parametrize("algorithm", ("RNG_THREE_FRY", "RNG_PHILOX", "RNG_DEFAULT"))
@pytest.mark.parametrize("dtype", ("uint8", "uint32", "uint64"))
def test_bits_are_those_of_xla(algorithm, dtype):
    chosen = getattr(lax.RandomAlgorithm, algorithm)
    shapes = ((), (5,), (3, 4), (7, 1, 3), (0, 3), (1, 2, 3, 1, 5, 1))
    agrees_with_jax(lambda k: [lax.rng_bit_generator(k, s, dtype=dtype, algorithm=chosen) for s in shapes], KEY)


def test_distributions_of_jax():
    def draw(key):
        a, b, c = jax.random.split(key, 3)
        return (
            jax.random.uniform(a, (5, 3), np.float64),
            jax.random.randint(b, (9,), 0, 100),
            jax.random.permutation(c, 13),
        )

    agrees_with_jax(draw, np.array([1, 2], np.uint32))
    agrees_with_jax(lambda k: jax.random.normal(k, (7,), np.float64), np.array([1, 2], np.uint32), rtol=1e-7)
