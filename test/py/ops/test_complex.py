"""Complex functions: accuracy over the plane, branch cuts, infinities and zeros as in C's Annex G."""

from __future__ import annotations

import numpy as np
import pytest
from ops.programs import Applied, compiled

from stablehlo_py.core.ulp import ulp_distance
from stablehlo_py.testing.judge import judge
from stablehlo_py.testing.values import make_array
from stablehlo_py.testing.worker import COMPARE

FUNCTIONS = {
    "stablehlo.exponential": np.exp,
    "stablehlo.exponential_minus_one": lambda z: np.exp(z) - 1,
    "stablehlo.log": np.log,
    "stablehlo.log_plus_one": lambda z: np.log(1 + z),
    "stablehlo.sqrt": np.sqrt,
    "stablehlo.rsqrt": lambda z: 1 / np.sqrt(z),
    "stablehlo.sine": np.sin,
    "stablehlo.cosine": np.cos,
    "stablehlo.tan": np.tan,
    "stablehlo.tanh": np.tanh,
    "stablehlo.cbrt": lambda z: np.exp(np.log(z) / 3),
    "stablehlo.logistic": lambda z: 1 / (1 + np.exp(-z)),
    "chlo.sinh": np.sinh,
    "chlo.cosh": np.cosh,
    "chlo.asin": np.arcsin,
    "chlo.acos": np.arccos,
    "chlo.atan": np.arctan,
    "chlo.asinh": np.arcsinh,
    "chlo.acosh": np.arccosh,
    "chlo.atanh": np.arctanh,
}


def plane(dtype: object, count: int = 400) -> np.ndarray:
    """Numbers of every size in all four quadrants."""
    rng = np.random.default_rng(0)
    size, angle = 10.0 ** rng.uniform(-3, 0.8, count), rng.uniform(-np.pi, np.pi, count)
    return (size * np.exp(1j * angle)).astype(dtype)


def relative_error(got: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """The distance of complex numbers over the size of the right one."""
    return np.abs(got.astype(np.clongdouble) - wanted) / np.abs(wanted)


@pytest.mark.parametrize(("dtype", "most"), [(np.complex64, 1e-7), (np.complex128, 2e-15)])
def test_functions(dtype: object, most: float) -> None:
    z = plane(dtype)
    results = compiled([Applied(name) for name in FUNCTIONS], z)
    wide = z.astype(np.clongdouble)
    errors = {name: relative_error(r, f(wide)).max() for (name, f), r in zip(FUNCTIONS.items(), results, strict=True)}
    assert {name: e for name, e in errors.items() if not e <= most} == {}


def test_parts_are_accurate() -> None:
    """Each part by itself is within 4 ULP where the function can be split into real ones."""
    z = plane(np.complex64)
    names = ["stablehlo.sine", "stablehlo.cosine", "stablehlo.tanh", "stablehlo.log_plus_one", "stablehlo.log"]
    for name, got in zip(names, compiled([Applied(n) for n in names], z), strict=True):
        wanted = FUNCTIONS[name](z.astype(np.clongdouble)).astype(np.complex64)
        assert ulp_distance(got, wanted).max() <= 4, name


def test_expm1_and_log1p_near_zero() -> None:
    z = (plane(np.complex64) * np.float32(1e-6)).astype(np.complex64)
    grown, logarithm = compiled([Applied("stablehlo.exponential_minus_one"), Applied("stablehlo.log_plus_one")], z)
    wide = z.astype(np.complex128)
    series = wide + wide**2 / 2 + wide**3 / 6
    assert relative_error(grown, series).max() < 1e-7
    assert relative_error(logarithm, wide - wide**2 / 2 + wide**3 / 3).max() < 1e-7


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_no_overflow_on_the_way(dtype: object) -> None:
    """abs, division and sign where squares of the parts overflow or vanish."""
    big, small = np.finfo(dtype).max / 4, np.finfo(dtype).tiny * 4
    x = np.array([big + 1j * big, small + 1j * small, 3 + 4j, big * 1j], dtype)
    y = np.array([big - 1j * big, small + 1j * small, -4 + 3j, big], dtype)
    size, sign = compiled(
        [Applied("stablehlo.abs", (0,), "f32" if dtype == np.complex64 else "f64"), Applied("stablehlo.sign")], x
    )
    np.testing.assert_allclose(size, np.hypot(x.real.astype(np.longdouble), x.imag).astype(size.dtype), rtol=1e-6)
    np.testing.assert_allclose(np.abs(sign), 1, rtol=1e-6)
    (quotient,) = compiled([Applied("stablehlo.divide", (0, 1))], x, y)
    np.testing.assert_allclose(quotient, np.array([1j, 1, -1j, 1j], dtype), atol=1e-6)


def test_division_by_zero_and_infinity() -> None:
    inf, nan = np.inf, np.nan
    x = np.array([1 + 1j, 1, complex(inf, 1), 2 + 3j, complex(nan, nan)], np.complex64)
    y = np.array([0, complex(inf, inf), 2, complex(0, inf), 1], np.complex64)
    (q,) = compiled([Applied("stablehlo.divide", (0, 1))], x, y)
    assert np.isinf(q[0]) and q[1] == 0 and np.isinf(q[2]) and q[3] == 0 and np.isnan(q[4])


def test_branch_cuts_keep_the_sign_of_zero() -> None:
    """sqrt and log just above and below the negative axis, asin and acosh beside [-1, 1]."""
    z = np.array([complex(-4, 0.0), complex(-4, -0.0)], np.complex64)
    root, logarithm = compiled([Applied("stablehlo.sqrt"), Applied("stablehlo.log")], z)
    np.testing.assert_allclose(root.imag, [2, -2])
    np.testing.assert_allclose(logarithm.imag, [np.pi, -np.pi], rtol=1e-6)
    z = np.array([complex(2, 0.0), complex(2, -0.0)], np.complex64)
    (arcs,) = compiled([Applied("chlo.asin")], z)
    np.testing.assert_allclose(arcs.imag, [np.arccosh(2), -np.arccosh(2)], rtol=1e-6)


def test_log1p_near_minus_one() -> None:
    """Where 1 + z is small it is exact, and numpy's logarithm of it the truth."""
    z = -1 + np.array([0.02142327 - 0j, 1e-5 + 1e-7j, -0.3 + 0.2j, 0.69j, -1e-9, 0.6 - 0.3j])
    (logarithm,) = compiled([Applied("stablehlo.log_plus_one")], z)
    np.testing.assert_allclose(logarithm, np.log(1 + z), rtol=4e-16)


def test_special_values() -> None:
    inf, nan = np.inf, np.nan
    z = np.array([complex(-inf, nan), complex(inf, 0), complex(0, inf), complex(-inf, 1)], np.complex64)
    exp, root, tanh = compiled(
        [Applied("stablehlo.exponential"), Applied("stablehlo.sqrt"), Applied("stablehlo.tanh")], z
    )
    assert exp[0] == 0 and exp[1] == complex(inf, 0) and np.isnan(exp[2]) and exp[3] == 0
    assert np.isinf(root[0].imag) and root[1] == complex(inf, 0) and np.isinf(root[2])
    assert tanh[1] == 1 and tanh[3].real == -1


def test_exponential_of_any_size() -> None:
    """In both parts, where e^a overflows by itself and where the angle has many turns; what C leaves open aside, as NumPy."""
    rng = np.random.default_rng(3)
    size = np.exp2(rng.uniform(-20, 7, 20000)) * rng.choice([-1, 1], 20000)
    angle = np.exp2(rng.uniform(-20, 20, 20000)) * rng.choice([-1, 1], 20000)
    ends = np.array([0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 89, 100, 200, 1e-45, -1e-45, 3e38, -3e38, -104])
    grid = np.stack(np.meshgrid(ends, ends), -1).reshape(-1, 2)
    z = np.concatenate([np.stack([size, angle], -1), grid]).astype(np.float32).view(np.complex64).reshape(-1)
    (got,) = compiled([Applied("stablehlo.exponential")], z)
    with np.errstate(all="ignore"):
        wide = np.exp(z.astype(np.complex128))
        wanted = wide.astype(np.complex64)
    unsigned = np.isneginf(z.real) & np.isinf(z.imag)  # the sign of this zero is open
    for one, other, true in ((got.real, wanted.real, wide.real), (got.imag, wanted.imag, wide.imag)):
        np.testing.assert_array_equal(np.isnan(one), np.isnan(other))
        np.testing.assert_array_equal(np.isinf(one), np.isinf(other))
        plain = ~np.isnan(other) & ~unsigned
        np.testing.assert_array_equal(np.signbit(one)[plain], np.signbit(other)[plain])
        finite = np.isfinite(other)
        error = np.abs(one[finite].astype(np.float64) - true[finite]) / np.spacing(np.abs(other[finite]))
        assert error.max() < 1.5


def test_power() -> None:
    x = np.array([0, 0, 2, 1j, -1, 0], np.complex64)
    y = np.array([0, 2, 0.5, 2, 0.5, 1 + 1j], np.complex64)
    (p,) = compiled([Applied("stablehlo.power", (0, 1))], x, y)
    np.testing.assert_allclose(p, np.array([1, 0, np.sqrt(2), -1, 1j, 0]), atol=1e-6)


def test_power_of_zeros_and_infinities() -> None:
    """exp(y log x), where a real y brings no NaN into the product."""
    inf = np.inf
    x = np.array([0, 0, 0, inf, complex(inf, 1), -inf, 2, 0.5, 1 + 1j], np.complex128)
    y = np.array([-1, complex(0, 1), complex(1, 5), 2, -1, -2, inf, inf, 0], np.complex128)
    (p,) = compiled([Applied("stablehlo.power", (0, 1))], x, y)
    assert np.isposinf(p[0].real) and p[0].imag == 0
    assert np.isnan(p[1]) and p[2] == 0
    assert p[3] == complex(inf, 0) and p[4] == 0 and p[5] == 0
    assert p[6] == complex(inf, 0) and p[7] == 0 and p[8] == 1


def test_division_at_the_ends_of_the_range() -> None:
    """Neither a sum of products nor a scale overflows where the quotient does not; subnormal parts keep their digits."""
    big, tiny = np.finfo(np.float64).max, 5e-324
    x = np.array(
        [complex(big, big), complex(big, -big), tiny, complex(0, big), 1, complex(big, 0), tiny], np.complex128
    )
    y = np.array([1 + 1j, 1 - 1j, tiny, complex(big, 0), complex(0, big), tiny, big], np.complex128)
    (q,) = compiled([Applied("stablehlo.divide", (0, 1))], x, y)
    np.testing.assert_array_equal(q[:4], [big, big, 1, 1j])
    assert q[4].imag == -1 / big and np.isposinf(q[5].real) and q[6] == 0


def test_atan2_on_its_branch_cuts() -> None:
    """-i log((x + iy) / sqrt(x^2 + y^2)) where the square root or the logarithm turns, zeros of both signs."""
    numbers = [1, -1, 1j, -1j, complex(0, -1), complex(-1, -0.0), 2j, -2, 1 + 1j, -1 + 1j, complex(-0.0, 1), 0.5]
    y, x = (v.ravel() for v in np.meshgrid(np.array(numbers, np.complex128), np.array(numbers, np.complex128)))
    (got,) = compiled([Applied("stablehlo.atan2", (0, 1))], y, x)
    with np.errstate(all="ignore"):
        wanted = -1j * np.log((x + 1j * y) / np.sqrt(x * x + y * y))
    known = np.isfinite(wanted)
    np.testing.assert_allclose(got[known], wanted[known], atol=1e-15)


def test_atan2_of_small_numbers() -> None:
    """About y / x: the logarithm of a quotient near 1 would have lost it."""
    y, x = plane(np.complex128) * 1e-12, plane(np.complex128)[::-1].copy()
    (got,) = compiled([Applied("stablehlo.atan2", (0, 1))], y, x)
    turns = np.rint(got.real / np.pi) * np.pi
    ahead = turns == 0
    assert ahead.any() and not ahead.all()
    np.testing.assert_allclose(got[ahead], (y / x)[ahead], rtol=1e-14)
    np.testing.assert_allclose(np.abs(turns[~ahead]), np.pi)


EVERY = [*FUNCTIONS, "stablehlo.sign"]


@pytest.mark.parametrize("element", ["complex<f32>", "complex<f64>"])
@pytest.mark.parametrize("style", ["any", "wide"])
def test_every_function_at_the_ends_of_the_range(element: str, style: str) -> None:
    """Infinities, NaN, zeros, subnormals and the largest numbers, in each part: as the reference has them."""
    z = make_array((700,), element, style, 5)
    ty = f"tensor<700x{element}>"
    lines = "".join(f'%r{i} = "{name}"(%z) : ({ty}) -> {ty}\n' for i, name in enumerate(EVERY))
    types = ", ".join([ty] * len(EVERY))
    names = ", ".join(f"%r{i}" for i in range(len(EVERY)))
    text = f"func.func @main(%z: {ty}) -> ({types}) {{\n{lines}func.return {names} : {types}\n}}"
    assert judge(COMPARE, text, [z]) == ("ok", "")


def test_arithmetic_and_comparison() -> None:
    x, y = plane(np.complex64), plane(np.complex64)[::-1].copy()
    names = ("add", "subtract", "multiply")
    total, difference, product = compiled([Applied(f"stablehlo.{n}", (0, 1)) for n in names], x, y)
    np.testing.assert_array_equal(total, x + y)
    np.testing.assert_array_equal(difference, x - y)
    np.testing.assert_allclose(product, x * y, rtol=1e-5)
    eq, ne = (
        Applied("stablehlo.compare", (0, 1), "i1", f"comparison_direction = #stablehlo<comparison_direction {d}>")
        for d in ("EQ", "NE")
    )
    y[::3] = x[::3]
    equal, unequal = compiled([eq, ne], x, y)
    np.testing.assert_array_equal(equal, x == y)
    np.testing.assert_array_equal(unequal, x != y)


def test_parts() -> None:
    z = plane(np.complex128)
    parts = [Applied("stablehlo.real", (0,), "f64"), Applied("stablehlo.imag", (0,), "f64"), Applied("chlo.conj")]
    re, im, conjugate = compiled(parts, z)
    np.testing.assert_array_equal(re, z.real)
    np.testing.assert_array_equal(im, z.imag)
    np.testing.assert_array_equal(conjugate, z.conj())
    (again,) = compiled([Applied("stablehlo.complex", (0, 1), "complex<f64>")], re, im)
    np.testing.assert_array_equal(again, z)


def test_abs_of_infinities() -> None:
    inf, nan = np.inf, np.nan
    for dtype, part in ((np.complex64, "f32"), (np.complex128, "f64")):
        z = np.array([complex(inf, nan), complex(nan, -inf), complex(nan, 1), complex(3, 4), 0], dtype)
        (size,) = compiled([Applied("stablehlo.abs", (0,), part)], z)
        np.testing.assert_array_equal(size, np.array([inf, inf, nan, 5, 0], size.dtype))
