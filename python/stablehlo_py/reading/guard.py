"""What would take the process down is found before the C++ parser sees it: deep nesting, and ops whose verifier traps."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import select
import signal
import threading
import warnings
from collections.abc import Callable

import numpy as np

from stablehlo_py.errors import BadInput
from stablehlo_py.patterns import pattern
from stablehlo_py.probe import PROBER, SECONDS

MAX_DEPTH = 1000  # the parser's recursion overflows the stack at about 3,000 regions

CHUNK = 1 << 23  # bytes looked at together: bounds the memory of the scan

_STEP = np.zeros(256, np.int8)
_STEP[list(b"([{<")] = 1
_STEP[list(b")]}>")] = -1
_EVENTS = _STEP != 0
_EVENTS[list(b'"/\n')] = True
_QUOTE, _SLASH, _NEWLINE = b'"'[0], b"/"[0], b"\n"[0]
_ESCAPES = pattern(rb'"[^"\\\n]*(?:\\.[^"\\\n]*)+"')

# An all_to_all with no replica groups divides by zero in the bindings' verifier; the dimensions of a convolution are
# the size of a vector that their parser makes, whatever they are.
_TRAPPING = pattern(
    rb"all_to_all|\[[bfio\d, ?]{0,99}\d{6}[bfio\d, ?]{0,99}\](?:x\[|->)|(?:x|->)\[[bfio\d, ?]{0,99}\d{6}"
)


def refuse_deep_nesting(text: bytes, where: str) -> None:
    """Refuse text whose brackets nest deeper than the parser's stack can follow."""
    if b"\\" in text:  # strings with escapes are blanked out: below, every quote starts or ends a string
        text = _ESCAPES.sub(lambda match: b" " * len(match[0]), text)
    level = lowest = start = 0
    while start < len(text):
        end = text.find(b"\n", start + CHUNK) + 1 or len(text)
        steps, offsets = _brackets(np.frombuffer(text, np.uint8, end - start, start))
        if offsets.size > 0:
            levels = level + np.cumsum(steps, dtype=np.int64)
            # Against the lowest level so far: stray closing brackets hide nothing.
            depths = levels - np.minimum(np.minimum.accumulate(levels), lowest)
            if int(depths.max()) > MAX_DEPTH:
                raise _too_deep(text, start + int(offsets[np.argmax(depths > MAX_DEPTH)]), where)
            level, lowest = int(levels[-1]), min(lowest, int(levels.min()))
        start = end


def _brackets(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """+1 or -1 for each bracket of some whole lines that stands outside of strings and comments, and its offset."""
    offsets = np.flatnonzero(_EVENTS[codes])
    events = codes[offsets]
    if offsets.size == 0:
        return events.astype(np.int8), offsets
    after = codes[np.minimum(offsets + 1, codes.size - 1)]
    if np.isin(events, (_QUOTE, _SLASH)).any():
        order = np.arange(events.size)
        line_start = np.maximum.accumulate(np.where(events == _NEWLINE, order, 0))
        quotes = np.cumsum(events == _QUOTE)
        in_string = (quotes - quotes[line_start]) & 1 == 1
        if events[0] == _QUOTE:  # the first line starts with no newline whose count could be taken away
            in_string ^= line_start == 0
        comment = np.maximum.accumulate(np.where((events == _SLASH) & (after == _SLASH) & ~in_string, order, -1))
        shown = ~in_string & (comment < line_start)
        shown |= ~in_string & (comment < 0)
    else:
        shown = np.ones(events.size, bool)
    before = codes[np.maximum(offsets - 1, 0)]
    # Arrows and comparisons (affine sets) are no brackets.
    sign = ((events == ord(">")) & (before == ord("-"))) | (np.isin(events, list(b"<>")) & (after == ord("=")))
    shown &= ~sign & (_STEP[events] != 0)
    return _STEP[events[shown]], offsets[shown]


def _too_deep(text: bytes, offset: int, where: str) -> BadInput:
    line = text.count(b"\n", 0, offset) + 1
    column = offset - text.rfind(b"\n", 0, offset)
    return BadInput(
        f"brackets nest deeper than {MAX_DEPTH:,}",
        where=f"{where}:{line}:{column}",
        hint="no compiler writes such a program; is the file damaged?",
    )


def refuse_trapping(text: bytes, where: str, parse: Callable[[], object]) -> None:
    """Refuse text with an op whose verifier stops the process."""
    if _TRAPPING.search(text) and not survives(parse):
        raise BadInput(
            "the program crashes the MLIR parser",
            where=where,
            hint="an all_to_all needs replica groups; the dimension numbers of a convolution are small",
        )


def refuse_crashing_bytecode(
    data: bytes, where: str, parse: Callable[[], object], meanwhile: Callable[[], object]
) -> None:
    """Refuse bytecode that the parser does not survive: where it is damaged, the parser frees memory twice."""
    lives = PROBER.survives(data, meanwhile)
    if lives is None:
        lives = survives(parse, meanwhile)
    if not lives:
        raise BadInput(
            "the bytecode is damaged: it crashes the MLIR parser",
            where=where,
            hint=f"it is {len(data):,} bytes long; was it cut short, or opened as text on the way?",
        )


def survives(parse: Callable[[], object], meanwhile: Callable[[], object] = lambda: None) -> bool:
    """Whether a fork of this process outlives `parse` within SECONDS; ordinary errors count as outliving.

    meanwhile: work of this process that it does before it waits for the fork.
    The fork only parses, answers and exits, so the locks of other threads do not matter to it. It costs a few
    milliseconds; the answer comes by a pipe, since taking a fork's memory down lasts as long as all the rest.
    """
    if not hasattr(os, "fork"):
        return True
    answer, mouth = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # JAX and Python warn of forks beside threads
        child = os.fork()
    if child == 0:
        _parse_and_exit(parse, mouth)
    os.close(mouth)
    try:
        meanwhile()
        ears = select.poll()  # not select.select, which knows no numbers above 1,023
        ears.register(answer, select.POLLIN)
        # The pipe of a dead process is at its end.
        lived = bool(ears.poll(1000 * SECONDS)) and os.read(answer, 1) == _ALIVE
    finally:
        os.close(answer)
    if not lived:
        os.kill(child, signal.SIGKILL)  # not reaped yet, so the number is still its own
    # Someone has to wait for it, or it stays in the table of processes.
    threading.Thread(target=_reap, args=(child,), daemon=True).start()
    return lived


_ALIVE = b"a"


def _reap(child: int) -> None:
    with contextlib.suppress(ChildProcessError):  # someone else has waited for it
        os.waitpid(child, 0)


def _parse_and_exit(parse: Callable[[], object], mouth: int) -> None:
    import resource  # not on Windows, which has no fork either

    faulthandler.disable()  # a crash here is an answer, not news
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    try:
        parse()
    except Exception:
        pass  # the parent meets the same error and reports it
    finally:
        os.write(mouth, _ALIVE)
        os._exit(0)
