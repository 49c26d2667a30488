"""The host of a TPU-like chip: runs what has no mapping, and starts kernels on the functional simulator."""

from __future__ import annotations

import numpy as np

from stablehlo_py.core.registry import Rule, evaluate
from stablehlo_py.core.types import tensor_type
from stablehlo_py.dialects.stablehlo import Op, view
from stablehlo_py.mlir import ir
from stablehlo_py.reference.interpreter import Interpreter
from stablehlo_py.reference.plan import Planner, Step
from stablehlo_py.simulator import functional
from stablehlo_py.simulator.program import Program


@evaluate("mxu.pad")
def evaluate_pad(op: Op, value: np.ndarray) -> np.ndarray:
    """The array in whole tiles; what is behind it is made visibly wrong, as it may be anything."""
    ty = op.type
    padded = np.full(ty.shape, functional.poison_of(ty.element))
    padded[tuple(slice(size) for size in value.shape)] = value
    return padded


@evaluate("mxu.unpad")
def evaluate_unpad(op: Op, value: np.ndarray) -> np.ndarray:
    """The array without what is behind it."""
    return value[tuple(slice(size) for size in op.type.shape)]


@evaluate("mxu.bitcast")
def evaluate_bitcast(op: Op, value: np.ndarray) -> np.ndarray:
    """The same elements with other leading dimensions."""
    return value.reshape(op.type.shape)


@evaluate("mxu.prefetch_start", "mxu.prefetch_wait")
def evaluate_prefetch(op: Op, value: np.ndarray) -> np.ndarray:
    """The same array somewhere else."""
    return value


@evaluate("mxu.laid_out")
def evaluate_laid_out(op: Op, value: np.ndarray) -> np.ndarray:
    """The array in the order in which it lies."""
    return np.ascontiguousarray(np.swapaxes(value, -1, -2))


class Host(Interpreter):
    """A module of StableHLO and mxu kernels, ready to run."""

    def __init__(self, module: ir.Module, programs: dict[ir.Operation, Program]) -> None:
        self._module = module
        self._planner = _KernelPlanner(module, programs)
        self._entry = self._planner.function(self._planner.entry())


class _KernelPlanner(Planner):
    """Plans that know kernels: one step each, whose body is the simulator's business."""

    def __init__(self, module: ir.Module, programs: dict[ir.Operation, Program]) -> None:
        super().__init__(module)
        self._programs = programs

    def _step(self, operation: ir.Operation) -> Step:
        if operation.name != "mxu.kernel":
            return super()._step(operation)
        return Step(
            op=view(operation),
            rule=_launcher(self._programs[operation]),
            callee="",
            operands=tuple(self._number(v) for v in operation.operands),
            results=tuple(self._number(v) for v in operation.results),
            types=tuple(tensor_type(v.type) for v in operation.results),
            regions=(),
        )


def _launcher(program: Program) -> Rule:
    def launch(op: Op, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        return functional.run(program, *arrays)

    return launch
