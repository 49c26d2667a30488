"""Whether two runs of a program agree: as exactly as its ops are, and no further than rounding can carry.

Where results differ, the reference is run again with every inexact op a little off (by some ULPs, at random), and with
sums and products that may be reassociated in another order and in their own type. A result that moves under this may
differ by a few times as much; one that stays must be equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stablehlo_py.core.types import ElementType, element_type_of
from stablehlo_py.mlir import ir
from stablehlo_py.ops.evaluate import complex as cx
from stablehlo_py.ops.evaluate.folding import known_body
from stablehlo_py.ops.evaluate.numeric import element_of, exact, narrow
from stablehlo_py.ops.evaluate.quantized import OnReal
from stablehlo_py.records import replace
from stablehlo_py.reference.interpreter import Interpreter
from stablehlo_py.reference.plan import Step

RUNS = 6
SLACK = 6.0  # times the largest movement seen

# Functions within a few ULP; sums whose order is free; complex arithmetic, which has several good ways.
_FUNCTIONS = {
    *("exponential", "exponential_minus_one", "log", "log_plus_one", "logistic", "sine", "cosine", "tan", "tanh"),
    *("power", "atan2", "cbrt", "rsqrt"),
}
_SUMS = {
    *(
        "reduce",
        "reduce_window",
        "select_and_scatter",
        "scatter",
        "dot",
        "dot_general",
        "convolution",
        "dynamic_conv",
        "fft",
    ),
    *("cholesky", "triangular_solve", "batch_norm_training", "batch_norm_inference", "batch_norm_grad"),
}
# Products of tiny numbers, in another order, lose other bits below the smallest normal number.
_UNDERFLOW = {"float32": 2e-44, "float64": 8e-323, "float16": 1e-6, "bfloat16": 2e-39, "complex64": 2e-44}
_ROUNDS_ON_COMPLEX = {"divide", "sqrt", "abs", "sign"}
# Functions that are right for an argument within some ULPs of the given one. Near a zero left of the origin, digamma and
# log gamma are differences of two numbers of about log |x|, and their slope there is at least 8 and 1: what the terms
# lose is less than an ULP of x is worth. x^y = exp(y log x) is that of a y which is off by an ULP of y log x over log x.
_AT_NEAR_ARGUMENTS = {"chlo.digamma": ("f64",), "chlo.lgamma": ("f64",), "stablehlo.power": ("complex<f64>",)}
_REASSOCIATED = ("add", "multiply")


def is_inexact(name: str) -> bool:
    own = name.removeprefix("stablehlo.")
    return own in _FUNCTIONS or own in _SUMS or name.startswith("chlo.")


def _name_of(step: Step) -> str:
    """The op's name; that of the chlo op where a custom call is one in disguise."""
    if step.op.name != "stablehlo.custom_call":
        return step.op.name
    return step.op.string("call_target_name").replace("mhlo.", "chlo.")


def differences(
    module: ir.Module, arrays: Sequence[np.ndarray], got: Sequence[np.ndarray], want: Sequence[np.ndarray]
) -> list[str]:
    """One line for each result that is wrong."""
    wrong = [_unequal(g, w) for g, w in zip(got, want, strict=True)]
    if not any(mask.any() for mask in wrong):
        return []
    allowed = _movements(module, arrays, want)
    said = []
    for i, (g, w, mask) in enumerate(zip(got, want, wrong, strict=True)):
        unstable, reach = allowed[i]
        bad = mask & ~unstable & ~_within(g, w, reach)
        if bad.any():
            at = tuple(int(k) for k in np.argwhere(bad)[0])
            said.append(
                f"result {i}: {int(bad.sum())} of {bad.size} elements of {w.dtype.name}{list(w.shape)} differ, "
                f"first at {list(at)}: {g[at]!s} instead of {w[at]!s}"
            )
    return said


def _unequal(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    if got.shape != want.shape or got.dtype != want.dtype:
        raise ValueError(f"{got.dtype}{list(got.shape)} instead of {want.dtype}{list(want.shape)}")
    with np.errstate(all="ignore"):
        g, w = _wide(got), _wide(want)
        if g.dtype.kind in "ui":
            return np.asarray(g != w)
        if g.dtype.kind == "c":
            other = _unequal_floats(np.real(g), np.real(w)) | _unequal_floats(np.imag(g), np.imag(w))
            return other & ~(_directionless(g) & _directionless(w))
        return _unequal_floats(g, w)


def _directionless(x: np.ndarray) -> np.ndarray:
    """An infinity beside a NaN: C's Annex G leaves its sign open."""
    re, im = np.real(x), np.imag(x)
    return np.asarray((np.isinf(re) & np.isnan(im)) | (np.isnan(re) & np.isinf(im)))


def _unequal_floats(g: np.ndarray, w: np.ndarray) -> np.ndarray:
    both = np.isnan(g) & np.isnan(w)
    return np.asarray(~both & ((g != w) | (np.signbit(g) != np.signbit(w))))


def _wide(x: np.ndarray) -> np.ndarray:
    if x.dtype.kind == "c":
        return x.astype(np.complex128)
    info = element_type_of(x.dtype)
    if info.is_float:
        return x.astype(np.float64)
    return x.astype(np.uint64 if info.is_unsigned else np.int64)


def _within(g: np.ndarray, w: np.ndarray, reach: np.ndarray) -> np.ndarray:
    """|g - w| <= reach; signs of zeros count only where nothing moves (reach 0 and unstable False are both told)."""
    with np.errstate(all="ignore"):
        g, w = _wide(g), _wide(w)
        if g.dtype.kind in "ui":
            return np.zeros(g.shape, bool)
        if g.dtype.kind == "c":
            return _near(np.real(g), np.real(w), reach) & _near(np.imag(g), np.imag(w), reach)
        return _near(g, w, reach)


def _near(g: np.ndarray, w: np.ndarray, reach: np.ndarray) -> np.ndarray:
    same = (g == w) | (np.isnan(g) & np.isnan(w))
    return np.asarray((reach > 0) & (same | (np.abs(g - w) <= reach)))


def _movements(
    module: ir.Module, arrays: Sequence[np.ndarray], want: Sequence[np.ndarray]
) -> list[tuple[np.ndarray, np.ndarray]]:
    """For each result: where it cannot be told (jumps, NaN here and not there), and how far it may be off."""
    unstable = [np.zeros(w.shape, bool) for w in want]
    reach = [np.zeros(w.shape) for w in want]
    for run in range(RUNS):
        moved = Nudged(module, run)
        results = moved(*arrays)
        if not moved.nudged:
            break
        for i, (result, w) in enumerate(zip(results, want, strict=True)):
            with np.errstate(all="ignore"):
                wide, base = _wide(result), _wide(w)
                if base.dtype.kind in "ui":
                    unstable[i] |= wide != base
                    continue
                away = _distance(wide, base)
                unstable[i] |= ~np.isfinite(away)
                step = np.abs(np.spacing(np.abs(w))).astype(np.float64) if w.dtype.kind == "f" else _step(w)
                step = np.where(np.isfinite(step), step, 0.0)
                moved_by = np.where(np.isfinite(away), away, 0.0) * SLACK + 2 * step + _UNDERFLOW.get(w.dtype.name, 0.0)
                reach[i] = np.maximum(reach[i], moved_by)
    return list(zip(unstable, reach, strict=True))


def _distance(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """|x - y|; 0 for equal infinities and for NaN and NaN, in each part by itself."""
    if x.dtype.kind == "c":
        return np.hypot(_distance(np.real(x), np.real(y)), _distance(np.imag(x), np.imag(y)))
    same = (x == y) | (np.isnan(x) & np.isnan(y))
    return np.asarray(np.where(same, 0.0, np.abs(x - y)))


def _size(x: np.ndarray) -> np.ndarray:
    """|x|; of a complex number that is not finite, that of its finite part."""
    if x.dtype.kind != "c":
        return np.abs(x)
    re, im = (np.where(np.isfinite(part), part, 0.0) for part in (np.real(x), np.imag(x)))
    return np.asarray(np.hypot(re, im))


def _step(w: np.ndarray) -> np.ndarray:
    """About one ULP of each element, for types whose spacing numpy does not know."""
    size = _size(_wide(w))
    info: ElementType = element_type_of(w.dtype)
    return size * 2.0 ** -_digits(info) + 1e-300


def _digits(info: ElementType) -> int:
    """Bits of the fraction."""
    known = {"f64": 52, "f32": 23, "f16": 10, "bf16": 7, "complex<f32>": 23, "complex<f64>": 52}
    name = info.name
    if name in known:
        return known[name]
    return int(name[name.index("M") + 1])  # f8E4M3FN has 3; f8E8M0FNU has none


class Nudged(Interpreter):
    """An interpreter whose inexact ops are a little off, at random; `nudged` says whether there was any."""

    def __init__(self, module: ir.Module, seed: int) -> None:
        super().__init__(module)
        self._random = np.random.default_rng(seed)
        self.nudged = False

    def _step(self, step: Step, env: dict[int, Any], whole: bool) -> tuple[Any, ...]:
        name = _name_of(step)
        plain = not is_inexact(name) and not self._is_complex(step)
        if plain or step.callee:
            return super()._step(step, env, whole)
        if isinstance(step.rule, OnReal):
            step = replace(step, rule=replace(step.rule, adjust=self._nudge))
        near = step.op.operand_types and step.op.operand_types[0].element.name in _AT_NEAR_ARGUMENTS.get(name, ())
        if (name.removeprefix("stablehlo.") in _SUMS and not whole) or near:
            saved = {number: env[number] for number in step.operands}
            env.update({number: self._nudge(value) for number, value in saved.items()})
            reordered = self._reordered(step, env) if name == "stablehlo.reduce" else None
            results = super()._step(step, env, whole) if reordered is None else (reordered,)
            env.update(saved)
        else:
            results = super()._step(step, env, whole)
        if name in ("stablehlo.convolution", "stablehlo.dynamic_conv"):
            results = self._without_zeros(step, env, whole, results)
        return tuple(self._nudge(r) for r in results)

    def _without_zeros(self, step: Step, env: dict[int, Any], whole: bool, results: tuple[Any, ...]) -> tuple[Any, ...]:
        """NaN that came of an infinite or NaN weight told again without that weight.

        Targets need not multiply the zeros around and between the elements of the image (docs/numerics.md).
        """
        weights = step.operands[1]
        kernel = env[weights]
        with np.errstate(all="ignore"):
            finite = np.isfinite(_wide(kernel))
            if finite.all():
                return results
            env[weights] = np.where(finite, kernel, np.zeros((), kernel.dtype)).astype(kernel.dtype)
            others = super()._step(step, env, whole)
            env[weights] = kernel
            told = zip(results, others, strict=True)
            return tuple(np.where(np.isnan(_wide(r)), o, r).astype(r.dtype) for r, o in told)

    def _reordered(self, step: Step, env: dict[int, Any]) -> np.ndarray | None:
        """A sum or a product with its elements in a random order, each step rounded: so may the target do it.

        Where the partial results of one order leave the range of the type, those of another may not.
        """
        if len(step.operands) != 2 or not env[step.operands[0]].size:
            return None
        operand, init = (env[number] for number in step.operands)
        known = known_body(step.op.block(), operand.dtype)
        info = element_of(operand.dtype)
        if known is None or known.name not in _REASSOCIATED or not (info.is_float or info.is_complex):
            return None
        axes = step.op.ints("dimensions")
        kept = [d for d in range(operand.ndim) if d not in axes]
        lines = exact(operand).transpose([*axes, *kept]).reshape(-1, *(operand.shape[d] for d in kept))
        combine = cx.multiply if info.is_complex and known.name == "multiply" else known.ufunc
        total = np.broadcast_to(exact(init), lines.shape[1:])
        with np.errstate(all="ignore"):
            for row in self._random.permutation(len(lines)):
                total = combine(total, lines[row])
        return narrow(np.asarray(total), operand.dtype)

    @staticmethod
    def _is_complex(step: Step) -> bool:
        """Arithmetic that rounds once on reals and several times on complex numbers."""
        several = step.op.name.removeprefix("stablehlo.") in _ROUNDS_ON_COMPLEX
        return several and any(t.element.is_complex for t in step.op.operand_types)

    def _nudge(self, value: Any) -> Any:  # Any: arrays, and what has no array
        if not isinstance(value, np.ndarray):
            return value
        info = element_type_of(value.dtype)
        if not (info.is_float or info.is_complex):
            return value
        self.nudged = True
        with np.errstate(all="ignore"):
            if info.is_complex:
                size = _size(value)
                off = np.empty(value.shape, value.dtype)
                off.real, off.imag = (self._noise(value.shape) * size * 2.0 ** -_digits(info) for _ in range(2))
                return np.asarray(np.where(np.isfinite(off), value + off, value)).astype(value.dtype)
            wide = value.astype(np.float64)
            # twice an ULP of the lowest number of the binade, so that a step up or down is always seen
            moved = wide * (1 + self._noise(value.shape) * 2.0 ** -_digits(info))
            return np.asarray(np.where(np.isfinite(moved), moved, wide)).astype(value.dtype)

    def _noise(self, shape: tuple[int, ...]) -> np.ndarray:
        return np.asarray(self._random.choice((-2.0, -1.0, 0.0, 1.0, 2.0), shape))
