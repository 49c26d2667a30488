"""Convolutions through Fourier transforms against their sums, which precision HIGHEST asks for."""

from __future__ import annotations

import functools
import random

import jax
import numpy as np
import pytest
from jax import lax
from ops.agree import numbers

import stablehlo_py
from stablehlo_py.transforms.simplify.hlo_fft_convolutions import Window, fast_length


def programs(x: np.ndarray, w: np.ndarray, **options: object) -> tuple[str, str]:
    """The same convolution, once as it may be done and once as it must be."""

    def text(precision: str | None) -> str:
        convolve = functools.partial(lax.conv_general_dilated, precision=precision, **options)
        return jax.jit(convolve).lower(x, w).as_text()

    return text(None), text("highest")


def agree(x: np.ndarray, w: np.ndarray, **options: object) -> None:
    fast, plain = (stablehlo_py.compile(text) for text in programs(x, w, **options))
    assert "stablehlo.fft" in fast.as_text("simplify")
    assert "stablehlo.fft" not in plain.as_text("simplify")
    found, wanted = fast(x, w)[0], plain(x, w)[0]
    scale = np.linalg.norm(x.astype(np.float64)) * np.linalg.norm(w.astype(np.float64))
    np.testing.assert_allclose(found, wanted, rtol=0, atol=(1e-7 if x.dtype == np.float32 else 1e-15) * scale)


@pytest.mark.parametrize("seed", range(6))
def test_any_window(seed: int) -> None:
    """Ranks, layouts, strides, dilations, padding beyond the window and below zero, reversal by swapped layouts, groups."""
    rng = random.Random(seed)
    spatial = rng.choice([1, 2, 2, 3])
    groups, outputs, batch = rng.choice([1, 3]), rng.choice([1, 2]), rng.choice([1, 2])
    least = {1: 900, 2: 60, 3: 18}[spatial]
    window = [rng.randint(least, least + 9) for _ in range(spatial)]
    sizes = [rng.randint(3 * least, 4 * least) if spatial < 3 else rng.randint(2 * least, 3 * least) for _ in window]
    padding = [rng.choice([(0, 0), (n // 2, n // 2), (n - 1, n - 1), (n + 3, 2), (-2, n)]) for n in window]
    names = "".join("DHW"[3 - spatial :])
    first = rng.random() < 0.5
    layout = (
        ("NC" + names, "OI" + names, "NC" + names) if first else ("N" + names + "C", names + "IO", "N" + names + "C")
    )
    x = [batch, groups, *sizes] if first else [batch, *sizes, groups]
    w = [groups * outputs, 1, *window] if first else [*window, 1, groups * outputs]
    agree(
        numbers(tuple(x)),
        numbers(tuple(w), seed=1),
        window_strides=[rng.choice([1, 1, 2]) if spatial == 1 else 1 for _ in window],
        padding=padding,
        lhs_dilation=[rng.choice([1, 1, 2]) for _ in window],
        rhs_dilation=[rng.choice([1, 1, 2]) if spatial == 1 else 1 for _ in window],
        dimension_numbers=layout,
        feature_group_count=groups,
    )


def test_f64() -> None:
    with jax.enable_x64(True):
        agree(
            numbers((1, 1, 200, 190), np.float64),
            numbers((1, 1, 90, 100), np.float64, seed=1),
            window_strides=(1, 1),
            padding="SAME",
        )


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolve(mode: str) -> None:
    x, w = numbers((150, 130)), numbers((80, 75), seed=1)
    text = jax.jit(lambda x, w: jax.scipy.signal.convolve(x, w, mode=mode, precision="default")).lower(x, w).as_text()
    executable = stablehlo_py.compile(text)
    assert "stablehlo.fft" in executable.as_text("simplify")
    whole = np.fft.irfft2(np.fft.rfft2(x, (229, 204)) * np.fft.rfft2(w, (229, 204)), (229, 204))
    if mode == "same":
        whole = whole[39 : 39 + 150, 37 : 37 + 130]
    if mode == "valid":
        whole = whole[79:150, 74:130]
    np.testing.assert_allclose(executable(x, w)[0], whole, rtol=0, atol=1e-6 * np.abs(whole).max())


@pytest.mark.parametrize("element", [np.inf, np.nan, 1e38])
def test_what_is_not_finite_stays_where_it_is(element: float) -> None:
    """One such element reaches as many results as the window has taps, with the values that the sums give."""
    x, w = numbers((1, 1, 200, 200)), np.abs(numbers((1, 1, 80, 80), seed=1)) + np.float32(0.5)
    x[0, 0, 3, 4] = element
    texts = programs(x, w, window_strides=(1, 1), padding="SAME")
    fast, plain = (stablehlo_py.compile(text)(x, w)[0] for text in texts)
    assert np.isfinite(plain).sum() > 30000
    np.testing.assert_array_equal(np.isfinite(fast), np.isfinite(plain))
    if not np.isfinite(plain).all():
        np.testing.assert_array_equal(fast, plain)


def test_small_windows_and_integers_stay() -> None:
    layout = {"window_strides": (1, 1), "padding": "SAME"}
    small = programs(numbers((1, 1, 300, 300)), numbers((1, 1, 5, 5)), **layout)[0]
    x, w = numbers((1, 1, 200, 200), np.int32), numbers((1, 1, 80, 80), np.int32)
    for text in (small, programs(x, w, **layout)[0]):
        assert "stablehlo.fft" not in stablehlo_py.compile(text).as_text("simplify")


def test_lengths() -> None:
    assert [fast_length(n) for n in (1, 2, 7, 449, 599)] == [2, 2, 8, 450, 600]
    # the middle of the whole product: what wraps around falls on its ends
    assert Window.of(image=300, taps=300, places=300, stride=1, before=149).length == 450
    assert Window.of(image=300, taps=300, places=599, stride=1, before=299).length == 600
