"""A program with symbolic dimensions to its user: called with arrays, it is compiled for their shapes and kept."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

import numpy as np

from stablehlo_py.errors import CompileError
from stablehlo_py.runtime.arguments import array_of, type_problem
from stablehlo_py.runtime.executable import Executable, Signature
from stablehlo_py.runtime.executor import Executor
from stablehlo_py.runtime.program import ArrayType, Program

MAX_KEPT = 64  # executables for this many combinations of shapes are kept, the least recently called go first
UNKNOWN = -1  # a dimension that each call decides


class Shapes(NamedTuple):
    """What an executable is compiled for: the shape of each argument, and the values of those that decide shapes."""

    shapes: tuple[tuple[int, ...], ...]
    values: tuple[tuple[int, bytes], ...] = ()

    def arrays(self, signature: Signature) -> dict[int, np.ndarray]:
        """The values as arrays, by the number of their argument."""
        types = signature.arguments
        return {n: np.frombuffer(data, types[n].numpy).reshape(self.shapes[n]) for n, data in self.values}


class DynamicExecutable:
    """A program compiled once for each combination of shapes that it is called with; safe from several threads.

    signature: the types of arguments and results, with ? for dimensions that a call decides. program, executor, stages
    and timing are those of the last call's shapes.
    """

    def __init__(
        self,
        signature: Signature,
        by_value: tuple[int, ...],
        compile_for: Callable[[Shapes], Executable],
        *,
        target: str,
        max_kept: int = MAX_KEPT,
    ) -> None:
        self.signature, self.target, self.max_kept = signature, target, max_kept
        self._by_value, self._compile_for = by_value, compile_for
        self._types = tuple((ty.shape, ty.numpy) for ty in signature.arguments)
        self._kept: OrderedDict[Shapes, Future[Executable]] = OrderedDict()
        self._lock = threading.Lock()
        self._last: Executable | None = None

    def __call__(self, *arguments: Any) -> tuple[np.ndarray, ...]:  # Any: whatever numpy makes an array of
        """Results for arguments that fit the signature; TypeError says which does not, and in which dimension."""
        arrays = self._arrays(arguments)
        key = self._shapes(arrays)
        with self._lock:
            future = self._kept.get(key)
            if future is not None:
                self._kept.move_to_end(key)
        if future is None or not future.done():
            return self.specialized(*arrays)(*arrays)
        self._last = future.result()
        return self._last(*arrays)

    def _arrays(self, arguments: Sequence[Any]) -> list[np.ndarray]:  # Any: as in __call__
        wanted = self.signature.arguments
        if len(arguments) != len(wanted):
            types = ", ".join(map(str, wanted)) or "none"
            raise TypeError(f"{len(arguments)} arguments given, {len(wanted)} wanted: {types}")
        return [
            argument if type(argument) is np.ndarray else array_of(argument, number, wanted[number])
            for number, argument in enumerate(arguments)
        ]

    def _shapes(self, arrays: Sequence[np.ndarray]) -> Shapes:
        values = tuple([(n, arrays[n].tobytes()) for n in self._by_value if n < len(arrays)])
        return Shapes(tuple([array.shape for array in arrays]), values)

    def specialized(self, *arguments: Any) -> Executable:  # Any: as in __call__
        """The executable for the shapes of these arguments, compiled now where it is not kept."""
        arrays = self._arrays(arguments)
        self._check_all(arrays)
        key = self._shapes(arrays)
        with self._lock:
            future = self._kept.get(key)
            is_ours = future is None
            if future is None:
                future = self._kept[key] = Future()
                while len(self._kept) > self.max_kept:
                    self._kept.popitem(last=False)
            self._kept.move_to_end(key)
        if is_ours:
            try:
                future.set_result(self._compile_for(key))
            except BaseException as error:
                with self._lock:
                    if self._kept.get(key) is future:
                        del self._kept[key]
                if isinstance(error, CompileError):
                    error.during(f"for {self._described(key)}")
                future.set_exception(error)
        self._last = future.result()
        return self._last

    def _check_all(self, arrays: list[np.ndarray]) -> None:
        for number, array in enumerate(arrays):
            self._check(number, array)

    def _check(self, number: int, array: np.ndarray) -> None:
        shape, dtype = self._types[number]
        if (
            array.dtype == dtype
            and len(shape) == array.ndim
            and all(wanted in (UNKNOWN, given) for wanted, given in zip(shape, array.shape, strict=True))
        ):
            return
        text = type_problem(array, array, number, self.signature.arguments[number])
        if len(shape) != array.ndim:
            text += f"; it has {array.ndim} dimensions, not {len(shape)}"
        elif array.dtype == dtype:
            wrong = next(d for d, wanted in enumerate(shape) if wanted not in (UNKNOWN, array.shape[d]))
            text += f"; its dimension {wrong} is {array.shape[wrong]}, not {shape[wrong]}"
        raise TypeError(text)

    def _described(self, key: Shapes) -> str:
        """The arguments that the program was to be compiled for."""
        types = zip(key.shapes, self.signature.arguments, strict=True)
        said = [f"argument {number}: {ArrayType(shape, ty.dtype)}" for number, (shape, ty) in enumerate(types)]
        for number, value in key.arrays(self.signature).items():
            said[number] += f" = {value.tolist()}"
        return ", ".join(said)

    # --- what the executable for the last shapes shows -----------------------------------------------------------------

    @property
    def last(self) -> Executable:
        """The executable of the last call."""
        if self._last is None:
            raise CompileError(
                "the program has symbolic dimensions and was not called yet: there is no code for any shape",
                hint="call it, or compile it for the shapes of arguments: executable.specialized(*arguments)",
            )
        return self._last

    @property
    def program(self) -> Program:
        return self.last.program

    @property
    def executor(self) -> Executor:
        return self.last.executor

    @property
    def stages(self) -> Mapping[str, str]:
        return self.last.stages

    @property
    def timing(self) -> Mapping[str, float]:
        return self.last.timing

    def as_text(self, stage: str = "program") -> str:
        """The text after a stage of the program for the last shapes."""
        return self.last.as_text(stage)

    def __repr__(self) -> str:
        return f"<DynamicExecutable for {self.target}: {self.signature}, compiled for {len(self._kept)} shapes>"
