"""The interpreter: runs a module op by op over the evaluate rules. The oracle that every target is compared with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import stablehlo_py.ops.evaluate  # noqa: F401 - registers the rules
from stablehlo_py.core.types import TensorType
from stablehlo_py.errors import CompileError
from stablehlo_py.mlir import ir
from stablehlo_py.reference.plan import Plan, Planner, Step

Values = tuple[Any, ...]  # Any: arrays, and what has no array: tokens (None) and tuples


def interpret(module: ir.Module, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    """The results of @main, or of the only public function, on `arrays`."""
    return Interpreter(module)(*arrays)


class Interpreter:
    """A module ready to run; call it with the arguments of its entry function."""

    def __init__(self, module: ir.Module, entry: str = "") -> None:
        self._module = module  # the views look into it
        self._planner = Planner(module)
        self._entry = self._planner.function(entry or self._planner.entry())

    def __call__(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        wanted = self._entry.types
        if len(arrays) != len(wanted):
            raise TypeError(f"{len(arrays)} arguments given, {len(wanted)} wanted")
        values = tuple(_checked(i, x, ty) for i, (x, ty) in enumerate(zip(arrays, wanted, strict=True)))
        with np.errstate(all="ignore"):
            results = self._run(self._entry, {}, values)
        return tuple(np.array(x) if isinstance(x, np.ndarray) else x for x in results)

    def _run(self, plan: Plan, env: dict[int, Any], values: Values, whole: bool = False) -> Values:
        """Run one block. whole: its scalars stand for arrays of one shape."""
        env.update(zip(plan.arguments, values, strict=True))
        for step in plan.steps:
            results = self._step(step, env, whole)
            env.update(zip(step.results, results, strict=True))
            for number in step.dead:
                env.pop(number, None)
        return tuple(env[number] for number in plan.returns)

    def _step(self, step: Step, env: dict[int, Any], whole: bool) -> Values:
        operands = tuple(env[number] for number in step.operands)
        if step.callee:
            return self._run(self._planner.function(step.callee), {}, operands, whole)
        options = {"run": self._region_runner(step, env)} if step.regions else {}
        try:
            made = step.rule(step.op, *operands, **options)  # type: ignore[misc] - a step without a callee has a rule
        except CompileError:
            raise
        except Exception as error:
            raise RuntimeError(f"{step.op.location}: {step.op.name} could not be evaluated: {error}") from error
        results = made if isinstance(made, tuple) else (made,)
        return tuple(_as_declared(step, x, ty, whole) for x, ty in zip(results, step.types, strict=True))

    def _region_runner(self, step: Step, env: dict[int, Any]) -> Callable[..., Values]:
        def run(region: int, *arrays: np.ndarray) -> Values:
            plan = step.regions[region]
            if all(ty is None or x.ndim == ty.rank for x, ty in zip(arrays, plan.types, strict=True)):
                return self._run(plan, env, arrays)
            shape = np.broadcast_shapes(*[x.shape for x in arrays])
            if plan.elementwise:
                return tuple(np.broadcast_to(x, shape) for x in self._run(plan, env, arrays, whole=True))
            return self._run_each(plan, env, arrays, shape)

        return run

    def _run_each(self, plan: Plan, env: dict[int, Any], arrays: Values, shape: tuple[int, ...]) -> Values:
        """Run a body that is not elementwise once for each element."""
        spread = [np.broadcast_to(x, shape) for x in arrays]
        results: list[np.ndarray] = []
        for place in np.ndindex(*shape):
            values = self._run(plan, env, tuple(np.asarray(x[place]) for x in spread))
            results = results or [np.empty(shape, v.dtype) for v in values]
            for result, value in zip(results, values, strict=True):
                result[place] = value
        return tuple(results) if results else tuple(spread[: len(plan.returns)])


def _checked(index: int, array: np.ndarray, ty: TensorType | None) -> np.ndarray:
    array = np.asarray(array)
    if ty is None:
        return array
    same_shape = len(array.shape) == ty.rank and all(d in (-1, n) for d, n in zip(ty.shape, array.shape, strict=True))
    if array.dtype != ty.element.dtype or not same_shape:
        raise TypeError(f"argument {index} is {array.dtype}{list(array.shape)}, {ty} is wanted")
    return array


def _as_declared(step: Step, value: Any, ty: TensorType | None, whole: bool) -> Any:  # Any: see Values
    """The result as an array; a rule that gives another type than the op declares is a bug that must not spread."""
    if ty is None:
        return value
    array = np.asarray(value)
    same_shape = whole or (
        array.ndim == ty.rank and all(d in (-1, n) for d, n in zip(ty.shape, array.shape, strict=True))
    )
    if array.dtype != ty.element.dtype or not same_shape:
        given = f"{array.dtype}{list(array.shape)}"
        raise RuntimeError(f"{step.op.location}: the evaluate rule of {step.op.name} gave {given}, not {ty}")
    return array
