"""fft of all kinds and lengths against NumPy in f64."""

from __future__ import annotations

import numpy as np
import pytest

import stablehlo_py
from stablehlo_py import Options
from stablehlo_py.core.types import TensorType, element_type_of
from stablehlo_py.ops.fft import roots


def check(kind: str, shape: tuple[int, ...], lengths: tuple[int, ...], double: bool) -> None:
    rng = np.random.default_rng(0)
    real, number = (np.float64, np.complex128) if double else (np.float32, np.complex64)
    axes = tuple(range(len(shape) - len(lengths), len(shape)))
    if kind == "RFFT":
        x = rng.standard_normal(shape).astype(real)
        wanted, result = np.fft.rfftn(x.astype(np.float64), axes=axes), number
    else:
        last = shape[-1] // 2 + 1 if kind == "IRFFT" else shape[-1]
        x = (rng.standard_normal((*shape[:-1], last)) + 1j * rng.standard_normal((*shape[:-1], last))).astype(number)
        wide = x.astype(np.complex128)
        if kind == "IRFFT":
            wanted, result = np.fft.irfftn(wide, s=lengths, axes=axes), real
        else:
            wanted, result = (np.fft.fftn if kind == "FFT" else np.fft.ifftn)(wide, axes=axes), number
    before = TensorType(x.shape, element_type_of(x.dtype))
    after = TensorType(wanted.shape, element_type_of(np.dtype(result)))
    text = f"""func.func @main(%x: {before}) -> {after} {{
      %0 = stablehlo.fft %x, type = {kind}, length = {list(lengths)} : ({before}) -> {after}
      return %0 : {after}
    }}"""
    (got,) = stablehlo_py.compile(text)(x)
    assert got.dtype == result
    error = np.abs(got - wanted).max() / np.abs(wanted).max()
    assert error <= (1e-15 if double else 4e-7)


@pytest.mark.parametrize("kind", ["FFT", "IFFT", "RFFT", "IRFFT"])
@pytest.mark.parametrize(
    ("shape", "count"), [((3, 8), 1), ((7,), 1), ((2, 30), 1), ((2, 4, 6), 2), ((3, 4, 5), 3), ((1,), 1)], ids=str
)
def test_kinds(kind: str, shape: tuple[int, ...], count: int) -> None:
    check(kind, shape, shape[len(shape) - count :], double=False)


@pytest.mark.parametrize("length", [13, 64, 101, 1000])
def test_lengths(length: int) -> None:
    """A prime that is summed, a power of two, a prime that goes through a convolution, a mixture."""
    check("FFT", (2, length), (length,), double=True)


@pytest.mark.parametrize("kind", ["FFT", "IFFT", "RFFT", "IRFFT"])
@pytest.mark.parametrize(
    ("shape", "count"),
    [
        ((37, 96), 1),
        ((16, 210), 1),
        ((9, 13), 1),
        ((3, 24, 50), 2),
        ((2, 33, 35), 2),
        ((2, 6, 10, 18), 3),
        ((5, 1024), 1),
    ],
    ids=str,
)
@pytest.mark.usefixtures("cpu")
def test_lanes(kind: str, shape: tuple[int, ...], count: int) -> None:
    """More transforms than lanes, fewer, and as many as a vector and some; odd and even lengths, every factor."""
    check(kind, shape, shape[len(shape) - count :], double=shape[0] == 3)


@pytest.mark.parametrize("shape", [(40, 256), (3, 64, 80)], ids=str)
def test_every_number_of_threads_gives_the_same_bits(shape: tuple[int, ...]) -> None:
    ty, lengths = TensorType(shape, element_type_of(np.dtype(np.complex64))), list(shape[1:])
    text = f"""func.func @main(%x: {ty}) -> {ty} {{
      %0 = stablehlo.fft %x, type = FFT, length = {lengths} : ({ty}) -> {ty}
      return %0 : {ty}
    }}"""
    rng = np.random.default_rng(0)
    x = (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(np.complex64)
    one, two, three = (stablehlo_py.compile(text, options=Options(threads=n))(x)[0] for n in (1, 2, 3))
    np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(one, three)


@pytest.mark.parametrize("kind", ["FFT", "IFFT", "RFFT", "IRFFT"])
@pytest.mark.parametrize(
    ("lengths", "launches"),
    [((64, 160), 2), ((77, 144), 2), ((12, 20, 50), 3), ((9, 7, 400), 3), ((40, 12), 1), ((1, 4096), 1)],
)
def test_threads_share_the_dimensions_of_one(cpu: str, kind: str, lengths: tuple[int, ...], launches: int) -> None:
    rng = np.random.default_rng(0)
    last = lengths[-1] // 2 + 1 if kind == "IRFFT" else lengths[-1]
    x = rng.standard_normal((*lengths[:-1], last, 2)).astype(np.float32).view(np.complex64)[..., 0]
    x = x.real.copy() if kind == "RFFT" else x
    wide = x.astype(np.float64 if kind == "RFFT" else np.complex128)
    wanted = getattr(np.fft, f"{kind.lower()}n")(wide, s=lengths, axes=tuple(range(len(lengths))))
    result = np.float32 if kind == "IRFFT" else np.complex64
    before, after = (TensorType(a.shape, element_type_of(np.dtype(d))) for a, d in ((x, x.dtype), (wanted, result)))
    text = f"""func.func @main(%x: {before}) -> {after} {{
      %0 = stablehlo.fft %x, type = {kind}, length = {list(lengths)} : ({before}) -> {after}
      return %0 : {after}
    }}"""
    executables = [stablehlo_py.compile(text, cache=False, options=Options(threads=n)) for n in (1, 2, 3)]
    assert len(executables[0].program.commands) == launches
    (got,) = executables[0](x)
    assert np.abs(got - wanted).max() <= 4e-7 * np.abs(wanted).max()
    for executable in executables[1:]:
        np.testing.assert_array_equal(executable(x)[0], got)


def test_nothing() -> None:
    text = """func.func @main(%x: tensor<2x0x9xcomplex<f32>>) -> tensor<2x0x16xf32> {
      %0 = stablehlo.fft %x, type = IRFFT, length = [16] : (tensor<2x0x9xcomplex<f32>>) -> tensor<2x0x16xf32>
      return %0 : tensor<2x0x16xf32>
    }"""
    assert stablehlo_py.compile(text)(np.zeros((2, 0, 9), np.complex64))[0].shape == (2, 0, 16)


def test_roots_are_exact_at_quarter_turns() -> None:
    table = roots(8)
    assert table[[0, 2, 4, 6]].tolist() == [1, -1j, -1, 1j]
    np.testing.assert_array_equal(roots(12, inverse=True), roots(12).conj())
