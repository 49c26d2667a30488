"""chlo functions against SciPy in f64: error functions, gamma and its kin, Bessel, inverse hyperbolics."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest
from ops.programs import Applied, compiled, floats
from scipy import special

import stablehlo_py
from stablehlo_py.core import registry
from stablehlo_py.core.ulp import ulp_distance
from stablehlo_py.ops import CHLO_RULES, chlo_functions

# op -> the function in f64, and an interval to sample beside values of every size
FUNCTIONS: dict[str, tuple[Callable, tuple[float, float]]] = {
    "acos": (np.arccos, (-1, 1)),
    "acosh": (np.arccosh, (1, 9)),
    "asin": (np.arcsin, (-1, 1)),
    "asinh": (np.arcsinh, (-9, 9)),
    "atan": (np.arctan, (-9, 9)),
    "atanh": (np.arctanh, (-1, 1)),
    "bessel_i1e": (special.i1e, (-20, 20)),
    "cosh": (np.cosh, (-9, 9)),
    "digamma": (lambda x: np.where((x <= 0) & (x == np.floor(x)), np.nan, special.digamma(x)), (0.5, 20)),
    "erf": (special.erf, (-4, 4)),
    "erf_inv": (special.erfinv, (-1, 1)),
    "erfc": (special.erfc, (-4, 9)),
    "lgamma": (special.gammaln, (2.5, 30)),
    "sinh": (np.sinh, (-9, 9)),
    "tan": (np.tan, (-9, 9)),
}
PREDICATES = {"is_inf": np.isinf, "is_pos_inf": np.isposinf, "is_neg_inf": np.isneginf}


def samples(dtype: object, low: float, high: float) -> np.ndarray:
    with np.errstate(over="ignore"):
        return np.concatenate([floats(dtype), np.linspace(low, high, 200).astype(dtype)])


@pytest.mark.parametrize(("dtype", "most"), [(np.float32, 3), (np.float16, 1), (ml_dtypes.bfloat16, 1)])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_against_f64(dtype: object, most: int) -> None:
    worst = {}
    columns = [samples(dtype, *interval) for _, interval in FUNCTIONS.values()]
    results = compiled([Applied(f"chlo.{name}", (i,)) for i, name in enumerate(FUNCTIONS)], *columns)
    for (name, (function, _)), x, got in zip(FUNCTIONS.items(), columns, results, strict=True):
        wanted = function(x.astype(np.float64))
        if name == "lgamma":
            wanted[x == -np.inf] = np.inf  # as in C
        worst[name] = int(ulp_distance(got, wanted.astype(dtype)).max())
    assert {name: d for name, d in worst.items() if d > most} == {}


def test_erf_inv_in_f32() -> None:
    """Up to the largest float below 1, and ends."""
    rng = np.random.default_rng(5)
    near_one, small = 1 - np.exp2(-rng.uniform(0, 24, 20000)), np.exp2(-rng.uniform(0, 126, 5000))
    x = np.concatenate([rng.uniform(-1, 1, 50000), near_one, small, [1 - 2.0**-24]]).astype(np.float32)
    x = x[np.abs(x) < 1]
    (got,) = compiled([Applied("chlo.erf_inv", (0,))], x)
    wanted = special.erfinv(x.astype(np.float64))
    error = np.abs(got.astype(np.float64) - wanted) / np.spacing(np.abs(wanted).astype(np.float32))
    assert error.max() < 3
    ends = np.array([0.0, -0.0, 1, -1, np.nan, 1.5, -np.inf, 1e-45, -1e-40], np.float32)
    (got,) = compiled([Applied("chlo.erf_inv", (0,))], ends)
    with np.errstate(invalid="ignore"):
        wanted = special.erfinv(ends.astype(np.float64)).astype(np.float32)
    np.testing.assert_array_equal(got, wanted)
    assert (np.signbit(got) == np.signbit(ends))[[0, 1, 2, 3, 7, 8]].all()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_f64() -> None:
    """Where SciPy itself is accurate: away from the zeros of lgamma and digamma, and from the tail of erfc."""
    names = ["erf_inv", "bessel_i1e", "digamma", "lgamma", "erf", "erfc"]
    columns = [np.linspace(*FUNCTIONS[name][1], 500) for name in names]
    columns[2], columns[5] = np.linspace(1.6, 30, 500), np.linspace(-4, 1.5, 500)
    results = compiled([Applied(f"chlo.{name}", (i,)) for i, name in enumerate(names)], *columns)
    worst = {
        name: int(ulp_distance(got, FUNCTIONS[name][0](x)).max())
        for name, x, got in zip(names, columns, results, strict=True)
    }
    assert {name: d for name, d in worst.items() if d > 6} == {}


def test_digamma_left_of_zero() -> None:
    """Beside its poles it is -1 / (x + n); near its zeros it is off by no more than a rounding of x would make it."""
    zeros = np.array([-0.5040830082644554093, -1.573498473162390459, -2.610720868444144650, -3.635293366436901098])
    poles = np.repeat(-np.arange(8.0), 40)
    beside = poles + np.tile(np.geomspace(1e-9, 1e-4, 40), 8)
    beside = np.concatenate([beside, 2 * poles - beside])
    at_zeros, at_poles = compiled([Applied("chlo.digamma", (0,)), Applied("chlo.digamma", (1,))], zeros, beside)
    assert np.abs(at_zeros).max() < 5e-15
    gap = beside - np.rint(beside)
    series = (
        -1 / gap
        + special.digamma(1 - np.rint(beside))
        + gap * (np.pi**2 / 3 - special.polygamma(1, 1 - np.rint(beside)))
    )
    np.testing.assert_allclose(at_poles, series, rtol=1e-11)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_zeta_and_polygamma(dtype: object) -> None:
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(1.01, 20, 200), [1, 0.5, 2, np.inf, 2, 3]]).astype(dtype)
    q = np.concatenate([rng.uniform(0.01, 30, 200), [2, 2, 0, 2, -1, 1e-3]]).astype(dtype)
    n = np.concatenate([rng.integers(0, 12, 204), [-1, 1.5]]).astype(dtype)
    zeta, polygamma = compiled([Applied("chlo.zeta", (0, 1)), Applied("chlo.polygamma", (2, 1))], x, q, n)
    wanted = special.zeta(x[:200].astype(np.float64), q[:200])
    most = 1 if dtype == np.float32 else 8
    assert ulp_distance(zeta[:200], wanted.astype(dtype)).max() <= most
    assert np.isposinf(zeta[200]) and np.isnan(zeta[201]) and np.isposinf(zeta[202])
    order = n[:200].astype(int)
    wanted = np.where(
        order == 0, special.digamma(q[:200].astype(np.float64)), special.polygamma(order, q[:200].astype(np.float64))
    )
    near_root = (order == 0) & (np.abs(q[:200] - 1.4616) < 0.1)
    assert ulp_distance(polygamma[:200], wanted.astype(dtype))[~near_root].max() <= most
    assert np.isnan(polygamma[204:]).all()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_zeta_and_polygamma_left_of_zero() -> None:
    """Against the sum of the terms below zero and SciPy for the rest; polygamma follows."""
    q = np.array([-0.5, -1.25, -7.75, -30.5, -1000.25, -2.0, -0.5], np.float32)
    x = np.array([2, 3, 4, 2, 5, 2, 2.5], np.float32)
    zeta, polygamma = compiled([Applied("chlo.zeta", (0, 1)), Applied("chlo.polygamma", (2, 1))], x, q, x - 1)
    for i in range(5):
        terms = np.arange(np.ceil(-q[i])) + np.float64(q[i])
        wanted = np.sum(terms ** -np.float64(x[i])) + special.zeta(np.float64(x[i]), terms[-1] + 1)
        np.testing.assert_allclose(zeta[i], wanted, rtol=2e-7)
        factor = (-1) ** int(x[i]) * special.gamma(x[i])
        np.testing.assert_allclose(polygamma[i], factor * wanted, rtol=2e-7)
    assert np.isposinf(zeta[5]) and np.isnan(zeta[6])


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_next_after(dtype: object) -> None:
    x = np.array([0, 0, -0.0, 1, 1, -1, np.inf, -np.inf, 2, np.nan, 1, 3], dtype)
    y = np.array([1, -1, 0, 2, -2, 0, 0, 0, 2, 1, np.nan, np.inf], dtype)
    (got,) = compiled([Applied("chlo.next_after", (0, 1))], x, y)
    np.testing.assert_array_equal(got.astype(np.float64), np.nextafter(x, y).astype(np.float64))


def test_predicates_and_products() -> None:
    x = np.array([np.inf, -np.inf, np.nan, 0, 3], np.float32)
    results = compiled([Applied(f"chlo.{name}", (0,), "i1") for name in PREDICATES], x)
    for function, got in zip(PREDICATES.values(), results, strict=True):
        np.testing.assert_array_equal(got, function(x))
    (square,) = compiled([Applied("chlo.square")], x)
    np.testing.assert_array_equal(square, x * x)
    a, b = np.array([2**31 - 1, -7, 5], np.int32), np.array([2**30, 2**30, 3], np.int32)
    (high,) = compiled([Applied("chlo.mulhi", (0, 1))], a, b)
    np.testing.assert_array_equal(high, (a.astype(np.int64) * b >> 32).astype(np.int32))


def test_rules_are_those_of_the_module() -> None:
    """The list stands elsewhere, for passes that need no function."""
    assert set(chlo_functions.TABLE) | {"chlo.next_after"} == CHLO_RULES
    assert all(registry.lower.find(name) for name in CHLO_RULES)


def test_rules_are_used() -> None:
    """The pipeline leaves these ops alone until they are lowered by their own rules."""
    exe = stablehlo_py.compile(
        """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
          %0 = chlo.erf_inv %x : tensor<4xf32> -> tensor<4xf32>
          return %0 : tensor<4xf32>
        }"""
    )
    assert "chlo.erf_inv" in CHLO_RULES
    assert "chlo.erf_inv" in exe.as_text("kernels")
