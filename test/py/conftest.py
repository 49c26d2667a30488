"""What holds for every test: JAX on the CPU, quiet logs, passes that are verified, examples that are the same in every run."""

from __future__ import annotations

import atexit
import contextlib
import os
from collections.abc import Iterator

# Before jax is first imported: it must not look for accelerators, nor say that it found none.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import pytest
from hypothesis import HealthCheck, settings

from stablehlo_py.core import pipeline
from stablehlo_py.testing.other_cpu import HERE, as_cpu, is_here

pipeline.TRUSTS_NONE = True  # what passes make is verified here, so that compilations need not

# `--hypothesis-profile=explore` looks for new examples; by default a failure is a failure for everyone.
settings.register_profile("same", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("explore", deadline=None, max_examples=1000, print_blob=True)
settings.load_profile("same")


@pytest.fixture(params=["host", "x86-64-v3", "znver4"], ids=["host", "avx2", "avx512"])
def cpu(request: pytest.FixtureRequest) -> Iterator[str]:
    """Code for this machine; for one with vectors of 256 bits and no masks; for one with 512 bits and all that we use."""
    yield from _as_cpu(request)


@pytest.fixture(params=["host", "x86-64-v3", "znver4", "sapphirerapids"], ids=["host", "avx2", "avx512", "tiles"])
def cpu_of_products(request: pytest.FixtureRequest) -> Iterator[str]:
    """The same, and one with matrix tiles: for products of bf16 and of bytes."""
    yield from _as_cpu(request)


@pytest.fixture
def cpu_with_tiles() -> Iterator[None]:
    """Code for a CPU with matrix tiles, for which functions stand in where this machine has none."""
    with _standing_in("sapphirerapids"):
        yield


def _as_cpu(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param != "host" and is_here(request.param):
        pytest.skip("this is the host itself")
    with _standing_in(request.param):
        yield request.param


@contextlib.contextmanager
def _standing_in(name: str) -> Iterator[None]:
    if name == "host":
        yield
    elif "+avx2" in HERE[1]:
        with as_cpu(name):
            yield
    else:
        pytest.skip("stands in for others only where there is AVX2")


# AS_CPU=znver4: every test as it would be on that machine.
if "AS_CPU" in os.environ:
    UNTIL_DONE = contextlib.ExitStack()
    UNTIL_DONE.enter_context(as_cpu(os.environ["AS_CPU"]))
    atexit.register(UNTIL_DONE.close)
