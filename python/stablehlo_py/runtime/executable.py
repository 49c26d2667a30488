"""What a compiled program is to its user: something to call with arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from stablehlo_py.errors import OutOfMemory, WrongMachine
from stablehlo_py.runtime.arguments import array_of, type_problem
from stablehlo_py.runtime.donation import places_of_results, sole_owners
from stablehlo_py.runtime.entry import call_of
from stablehlo_py.runtime.executor import Executor, NativeExecutor
from stablehlo_py.runtime.memory import MemoryAnalysis, analyse_memory
from stablehlo_py.runtime.program import ArrayType, Program


class Executable:
    """A compiled program; calling it is safe from several threads.

    signature: the types of arguments and results. stages: the program's text after each stage of compilation, made
    when asked for. timing: seconds spent in each step of compilation. donate: arguments whose memory results may take.
    lacks: what this machine does not have of the instructions in the code; a call says so and runs nothing.
    """

    def __init__(
        self,
        program: Program,
        executor: Executor,
        *,
        target: str,
        stages: Mapping[str, str],
        timing: Mapping[str, float],
        cost: Callable[[], Mapping[str, int]] = dict,
        donate: Sequence[int] = (),
        lacks: str = "",
    ) -> None:
        self.program, self.executor, self.target = program, executor, target
        self.stages, self.timing, self._cost = stages, dict(timing), cost
        self._arguments = tuple((ty.shape, ty.numpy) for ty in program.arguments)
        self._results = tuple((ty.shape, ty.numpy) for ty in program.results)
        self._places = places_of_results(program, donate)
        self._call = _refuse_for(lacks) if lacks else call_of(executor, self._places) or _take_none

    @property
    def signature(self) -> Signature:
        return Signature(self.program.arguments, self.program.results)

    def as_text(self, stage: str = "program") -> str:
        """The text of the program after a stage; KeyError names the stages there are."""
        if stage not in self.stages:
            raise KeyError(f"no stage {stage!r}; there are {', '.join(self.stages)}")
        return self.stages[stage]

    def cost_analysis(self) -> Mapping[str, int]:
        """What one call has to do, counted on StableHLO: `flops`, `transcendentals`, `bytes` of all operands and results.

        `flops.f32`, `flops.f64`, `flops.bf16`, `flops.i8` and `flops.ui8` are the flops by what they are done in: bf16 and
        bytes in products of them, f32 for all that is not listed. `unknown_loops` says how many while loops were counted as
        one step for want of a trip count.
        """
        return self._cost()

    def memory_analysis(self) -> MemoryAnalysis:
        """The bytes that a call takes, by kind."""
        return analyse_memory(self.program, self.executor.plan, self.executor.threads)

    def __call__(self, *arguments: Any) -> tuple[np.ndarray, ...]:  # Any: whatever numpy makes an array of
        """Results for arguments of exactly the signature's shapes and dtypes; TypeError says which is not.

        Where an argument's memory was donated and a result takes it, the result is that array itself, if numpy's own,
        writable, contiguous and apart from the others, and a copy else. OutOfMemory, which is a MemoryError, says how
        much there was no memory for.
        """
        try:
            returned = self._call(*arguments)
            return returned if isinstance(returned, tuple) else self._call_again(returned, arguments)
        except MemoryError as error:
            raise self._out_of_memory(error) from None

    def _call_again(self, status: int | None, arguments: tuple[Any, ...]) -> tuple[np.ndarray, ...]:  # Any: as above
        """The call after the native entry gave a status, or took none of the arguments as they were."""
        if status is None:
            arguments = self._arrays(arguments)
            if max(self._places, default=-1) >= 0:
                arguments = sole_owners(arguments, self._places)
            returned = self._call(*arguments)
            if isinstance(returned, tuple):
                return returned
            status = returned
        if status is not None:
            assert isinstance(self.executor, NativeExecutor)
            raise self.executor.failure(status)
        places = zip(self._places, self._results, strict=True)
        results = tuple(arguments[n] if n >= 0 else np.empty(shape, dtype) for n, (shape, dtype) in places)
        self.executor.run(arguments, results)
        return results

    def _arrays(self, arguments: tuple[Any, ...]) -> tuple[np.ndarray, ...]:  # Any: as above
        """Arguments as contiguous arrays of exactly the wanted types."""
        if len(arguments) != len(self._arguments):
            raise TypeError(self._count_problem(len(arguments)))
        arrays = []
        for number, (argument, (shape, dtype)) in enumerate(zip(arguments, self._arguments, strict=True)):
            wanted = self.program.arguments[number]
            array = argument if type(argument) is np.ndarray else array_of(argument, number, wanted)
            if array.dtype != dtype or array.shape != shape:
                raise TypeError(type_problem(argument, array, number, wanted))
            flags = array.flags
            if not (flags.c_contiguous and flags.aligned):
                array = array.copy("C")
            # An equal dtype may be another object; a view has the one that the entry knows.
            arrays.append(array if array.dtype is dtype else array.view(dtype))
        return tuple(arrays)

    def _out_of_memory(self, error: MemoryError) -> MemoryError:
        """What is too large: the results, or the temporaries between them."""
        if isinstance(error, OutOfMemory):
            return error
        needed = self.memory_analysis()
        largest = max(self.program.results, key=lambda ty: ty.bytes, default=None)
        return OutOfMemory(
            f"no memory for {needed.results:,} bytes of results and {needed.temporaries:,} bytes of temporaries",
            hint=f"the largest result is {largest}, of {largest.bytes:,} bytes" if largest else "",
        )

    def _count_problem(self, given: int) -> str:
        wanted = ", ".join(map(str, self.program.arguments)) or "none"
        return f"{given} arguments given, {len(self._arguments)} wanted: {wanted}"

    def __repr__(self) -> str:
        return f"<Executable for {self.target}: {self.signature}>"


def _refuse_for(lacks: str) -> Callable[..., None]:
    def refuse(*arguments: object) -> None:
        raise WrongMachine(
            f"the program was compiled for a CPU with {lacks}, which this machine does not have",
            hint="compile it without Options.codegen, or for this machine's features, to run it here",
        )

    return refuse


def _take_none(*arguments: object) -> None:
    """Stands for the native entry where there is none."""


class Signature:
    """The types of arguments and results."""

    def __init__(self, arguments: tuple[ArrayType, ...], results: tuple[ArrayType, ...]) -> None:
        self.arguments, self.results = arguments, results

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.arguments))}) -> ({', '.join(map(str, self.results))})"

    def __repr__(self) -> str:
        return f"Signature{self}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Signature) and (self.arguments, self.results) == (other.arguments, other.results)

    def __hash__(self) -> int:
        return hash((self.arguments, self.results))


class Stages(Mapping[str, str]):
    """Stage name -> text, each made once, when first asked for."""

    def __init__(self, names: Callable[[], tuple[str, ...]], make: Callable[[str], str]) -> None:
        self._list_names, self._make = names, make
        self._texts: dict[str, str] = {}

    @functools.cached_property
    def _names(self) -> tuple[str, ...]:
        return self._list_names()

    def __getitem__(self, name: str) -> str:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._texts:
            self._texts[name] = self._make(name)
        return self._texts[name]

    def __iter__(self):  # type: ignore[no-untyped-def] - as Mapping has it
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
