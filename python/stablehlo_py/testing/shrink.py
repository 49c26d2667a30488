"""Make a program smaller while it stays interesting: delta debugging on the module, its shapes and its inputs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np

from stablehlo_py.core.types import tensor_type
from stablehlo_py.mlir import ir, new_context
from stablehlo_py.reading.guard import survives
from stablehlo_py.records import field, record
from stablehlo_py.testing import edits
from stablehlo_py.testing.edits import Program
from stablehlo_py.testing.shapes import sizes_in, with_smaller_dims

Check = Callable[[Program], bool]


@record(frozen=False)
class Reduction:
    """One reduction: the best program so far, and how many candidates were tried until when."""

    best: Program
    check: Check
    deadline: float
    tried: int = 0
    _seen: set[str] = field(default_factory=set)

    def attempt(self, candidate: Program | None) -> bool:
        """Take the candidate if it is new, and as interesting."""
        if candidate is None or time.monotonic() > self.deadline:
            return False
        key = candidate.text + "".join(str(hash(a.tobytes())) for a in candidate.arrays)
        if key in self._seen:
            return False
        self._seen.add(key)
        self.tried += 1
        if not self.check(candidate):
            return False
        self.best = candidate
        return True

    @property
    def late(self) -> bool:
        return time.monotonic() > self.deadline


def shrink(program: Program, check: Check, *, seconds: float = 300.0) -> Reduction:
    """The smallest program found that `check` still likes; `program` itself is taken to be liked."""
    work = Reduction(program, check, time.monotonic() + seconds)
    if not _parses(program.text):
        _shrink_text(work)
        return work
    with new_context(), ir.Location.unknown():
        work.attempt(edits.canonical(work.best))
        before = None
        while work.best.size != before and not work.late:
            before = work.best.size
            for family in (edits.results, edits.intermediates, edits.inlined, edits.bypasses, edits.arguments):
                _exhaust(work, family)
            for candidate in _smaller_shapes(work):
                work.attempt(candidate)
            for candidate in _simpler_arrays(work.best):
                work.attempt(candidate)
    return work


def _exhaust(work: Reduction, family: Callable[[Program], Iterator[Program | None]]) -> None:
    """Try all edits of a family; after a success go on from the new program."""
    again = True
    while again and not work.late:
        again = False
        for candidate in family(work.best):
            if candidate is not None and candidate.size < work.best.size and work.attempt(candidate):
                again = True
                break
            if work.late:
                return


def _smaller_shapes(work: Reduction) -> Iterator[Program]:
    for size in sizes_in(work.best.text):
        for smaller in sorted({1, 2, size // 2, size - 1} - {0, size}):
            if smaller > size:
                continue
            for in_attributes in (True, False):
                text = with_smaller_dims(work.best.text, size, smaller, in_attributes)
                candidate = _fitted(text, work.best.arrays)
                if candidate is not None and candidate.size < work.best.size:
                    yield candidate


def _fitted(text: str, arrays: tuple[np.ndarray, ...]) -> Program | None:
    """The arrays cut to the argument types that the text has now."""
    if not _parses(text):
        return None
    module = ir.Module.parse(text)  # held: its values die with it
    types = edits.argument_types(module)
    if not arrays:
        return Program(text)
    cut = []
    for array, ty in zip(arrays, types, strict=True):
        kept = array[tuple(slice(0, n) for n in ty.shape)] if array.ndim == ty.rank else array
        cut.append(kept if kept.shape == ty.shape else np.resize(array, ty.shape).astype(array.dtype))
    return Program(text, tuple(np.ascontiguousarray(a).reshape(a.shape) for a in cut))


def _simpler_arrays(program: Program) -> Iterator[Program]:
    for i, array in enumerate(program.arrays):
        for value in (0, 1):
            plain = np.full(array.shape, value).astype(array.dtype)
            if plain.tobytes() != array.tobytes():
                yield Program(program.text, (*program.arrays[:i], plain, *program.arrays[i + 1 :]))


def _parses(text: str) -> bool:
    """Whether the text is a program of static tensors; asked in a fork, since it may be what stops the parser."""
    sound = False

    def parse() -> None:
        nonlocal sound
        try:
            with new_context(), ir.Location.unknown():
                module = ir.Module.parse(text)
                block = edits.main_of(module).regions[0].blocks[0]
                sound = all(tensor_type(a.type).is_static for a in block.arguments)
        except Exception:  # not MLIR, or not a program of tensors: it is reduced as text
            sound = False

    if survives(parse):
        parse()
    return sound


def _shrink_text(work: Reduction) -> None:
    """Remove lines, then runs of characters, in halves, quarters and so on."""
    for split, join in ((str.splitlines, "\n".join), (list, "".join)):
        pieces = split(work.best.text)
        run = max(1, len(pieces) // 2)
        while run and not work.late:
            start = 0
            while start < len(pieces) and not work.late:
                fewer = pieces[:start] + pieces[start + run :]
                if fewer and work.attempt(Program(join(fewer), work.best.arrays)):
                    pieces = fewer
                else:
                    start += run
            run //= 2
