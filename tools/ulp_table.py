#!/usr/bin/env python3
"""Print the largest error of every mathematical function in units of the last place, beside NumPy's and JAX's.

    tools/ulp_table.py [--count N] [--seed N] [--only tanh,log]

The truth is the C library's long double; erf and erfc are summed from their series in it. "n wrong" counts results that
are infinite, NaN or a zero of one sign where they should not be, or the other way round. JAX flushes subnormal numbers
to zero: for it only inputs and results that are normal count.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "test" / "py")]

import numpy as np  # noqa: E402
from transforms.math_truth import FUNCTIONS, Function, errors, samples, truth_of  # noqa: E402

import stablehlo_py  # noqa: E402

JAX_NAMES = {
    "exponential": "exp",
    "exponential_minus_one": "expm1",
    "log_plus_one": "log1p",
    "sine": "sin",
    "cosine": "cos",
    "power": "pow",
}


def jax_function(function: Function) -> Callable[..., np.ndarray] | None:
    try:
        import jax
    except ImportError:
        return None
    jax.config.update("jax_enable_x64", True)
    return jax.jit(getattr(jax.lax, JAX_NAMES.get(function.name, function.name)))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=400_000, help="inputs of a function and type")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="functions, separated by commas")
    given = parser.parse_args()
    wanted = given.only.split(",") if given.only else [f.name for f in FUNCTIONS]
    print("| function | f32 | NumPy | JAX | f64 | NumPy | JAX |\n|---|---|---|---|---|---|---|")
    for function in FUNCTIONS:
        if function.name in wanted:
            cells = [cell for ty in ("float32", "float64") for cell in _cells(function, ty, given.count, given.seed)]
            print(f"| {function.name} | {' | '.join(cells)} |", flush=True)


def _cells(function: Function, ty: str, count: int, seed: int) -> list[str]:
    arrays = samples(function, np.dtype(ty), count, seed)
    truth = truth_of(function, *arrays)
    everywhere = np.ones(truth.shape, bool)
    normal = np.logical_and.reduce([_is_normal(x, arrays[0].dtype) for x in (*arrays, truth)])
    ours = stablehlo_py.compile(function.text("f" + ty.removeprefix("float"), len(arrays[0])), cache=False)
    rows = ((ours, everywhere), (function.numpy, everywhere), (jax_function(function), normal))
    return [_worst(run, arrays, truth, where) if run is not None else "" for run, where in rows]


def _is_normal(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Not subnormal, nor so near to it that rounding decides."""
    return ~((x != 0) & (np.abs(x) < 2 * np.finfo(dtype).tiny))


def _worst(run: Callable, arrays: tuple[np.ndarray, ...], truth: np.ndarray, where: np.ndarray) -> str:
    with np.errstate(all="ignore"):
        result = run(*arrays)
    found = errors(np.asarray(result[0] if isinstance(result, tuple) else result), truth)[where]
    finite = found[np.isfinite(found)]
    wrong = len(found) - len(finite)
    worst = finite.max()
    text = f"{worst:.2f}" if worst < 1e4 else f"{worst:.0e}"
    return f"{text} and {wrong} wrong" if wrong else text


if __name__ == "__main__":
    main()
