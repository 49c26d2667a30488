"""What holds for every test: JAX on the CPU, quiet logs, passes that are verified, examples that are the same in every run."""

from __future__ import annotations

import os

# Before jax is first imported: it must not look for accelerators, nor say that it found none.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from hypothesis import HealthCheck, settings

from stablehlo_py.core import pipeline

pipeline.TRUSTS_NONE = True  # what passes make is verified here, so that compilations need not

# `--hypothesis-profile=explore` looks for new examples; by default a failure is a failure for everyone.
settings.register_profile("same", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("explore", deadline=None, max_examples=1000, print_blob=True)
settings.load_profile("same")
