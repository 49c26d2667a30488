"""A process that tries bytecode before this one reads it: what the parser does not survive takes only that process down.

A fork would do, but each costs as much as this process has memory: 10 to 30 ms beside JAX and its arrays. The process
here is ready 30 ms after it begins, while the first compilation still imports what it needs, and takes half a millisecond
for a small program. It ends with this process, whose end of the pipe it waits on.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import select
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from typing import IO

from stablehlo_py.installed import bindings_library

LARGEST = 1 << 20  # bytes of a program that is sent: for a larger one a fork is cheaper
SECONDS = 20.0  # how long it may think about one program
_PATIENCE = 0.1  # seconds that are waited for a process which begins: it is a matter of a fork or two


class Prober:
    """The other process; `begin` and `survives` may be called by any thread."""

    def __init__(
        self, seconds: float = SECONDS, command: Sequence[str] | None = None, patience: float = _PATIENCE
    ) -> None:
        """seconds: how long it may think about one program. command: what starts it, if not that which parses."""
        self._seconds, self._command, self._patience = seconds, command, patience
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_ready = False
        self._asked = 0
        self._is_wanted = bool(command) or (bool(sys.executable) and not getattr(sys, "frozen", False))

    def begin(self) -> None:
        """Start the process, if this one has another core to run it on, or there has been a program before."""
        if self._lock.acquire(blocking=False):
            try:
                if self._process is None and (self._asked or _cores() > 1):
                    self._begin()
            finally:
                self._lock.release()

    def survives(self, data: bytes, meanwhile: Callable[[], object] = lambda: None) -> bool | None:
        """Whether the process outlives parsing `data`; None when it cannot be asked now.

        meanwhile: what this process does before it waits for the answer; not done where there is none.
        """
        if len(data) > LARGEST or not self._lock.acquire(blocking=False):
            return None
        try:
            return self._ask(data, meanwhile)
        finally:
            self._lock.release()

    def _ask(self, data: bytes, meanwhile: Callable[[], object]) -> bool | None:
        self._asked += 1
        if self._is_ready and self._process is not None and self._process.poll() is not None:
            self.end()  # by another hand: it says nothing of a program
        if self._process is None:
            if self._asked > 1:  # most processes that do not compile read one program
                self._begin()
            return None
        pipes = self._process.stdin, self._process.stdout
        assert pipes[0] is not None
        assert pipes[1] is not None
        if not self._is_ready:
            self._is_ready = _answers(pipes[1], self._patience)
            if not self._is_ready:
                self._patience = 0.0  # once
                if self._process.poll() is not None:
                    self.give_up()
                return None
        lives = False
        try:
            with contextlib.suppress(BrokenPipeError):
                pipes[0].write(struct.pack("<Q", len(data)) + data)
                pipes[0].flush()
                meanwhile()
                lives = _answers(pipes[1], self._seconds)
        finally:
            if not lives:  # also where an exception leaves an answer behind
                self.end()
        return lives

    def _begin(self) -> None:
        command = self._command
        if command is None and self._is_wanted and (library := bindings_library()):
            command = (sys.executable, "-I", "-S", os.path.join(os.path.dirname(__file__), "probe_parser.py"), library)
        if not command or not self._is_wanted:
            return
        with contextlib.suppress(OSError):
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )

    def end(self) -> None:
        """End the process; the next program begins another."""
        process, self._process, self._is_ready = self._process, None, False
        if process is not None:
            process.kill()
            process.communicate()

    def give_up(self) -> None:
        """It does not work here: no other attempt."""
        self._is_wanted = False
        self.end()

    def forget(self) -> None:
        """In a fork: the process belongs to the parent."""
        self._lock = threading.Lock()
        self._process, self._is_ready = None, False


def _answers(pipe: IO[bytes], seconds: float) -> bool:
    ears = select.poll()  # not select.select, which knows no numbers above 1,023
    ears.register(pipe, select.POLLIN)
    return bool(ears.poll(1000 * seconds)) and bool(os.read(pipe.fileno(), 1))  # nothing at the end of a pipe


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _make() -> Prober:
    """A prober that ends with this process and is left alone by forks."""
    prober = Prober()
    if hasattr(os, "register_at_fork"):
        atexit.register(prober.end)
        os.register_at_fork(after_in_child=prober.forget)
    else:
        prober.give_up()
    return prober


PROBER = _make()
