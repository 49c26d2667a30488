"""A process that tries bytecode before this one reads it: what the parser does not survive takes only that process down.

A fork would do, but each costs as much as this process has memory: 10 to 30 ms beside JAX and its arrays. The process
here begins when a second program is read, is ready after a quarter of a second, and needs half a millisecond for a small
program. It ends with this process, whose end of the pipe it waits on.
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
from collections.abc import Sequence
from typing import IO

ALIVE = b"a"
LARGEST = 1 << 20  # bytes of a program that is sent: for a larger one a fork is cheaper
_USES = 100  # of one context there: it never forgets a type


class Prober:
    """The other process; `survives` may be called by any thread."""

    def __init__(self, seconds: float, command: Sequence[str] = (sys.executable, "-m", __name__)) -> None:
        """seconds: how long it may think about one program. command: what starts it."""
        self._seconds, self._command = seconds, list(command)
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_ready = False
        self._asked = 0
        self._is_wanted = bool(sys.executable) and not getattr(sys, "frozen", False)

    def survives(self, data: bytes) -> bool | None:
        """Whether the process outlives parsing `data`; None when it is not ready or busy."""
        if len(data) > LARGEST or not self._lock.acquire(blocking=False):
            return None
        try:
            return self._ask(data)
        finally:
            self._lock.release()

    def _ask(self, data: bytes) -> bool | None:
        self._asked += 1
        if self._process is None:
            if self._asked > 1 and self._is_wanted:  # most processes read one program
                self._begin()
            return None
        pipes = self._process.stdin, self._process.stdout
        assert pipes[0] is not None
        assert pipes[1] is not None
        if not self._is_ready:
            self._is_ready = _says_alive(pipes[1], 0)
            if not self._is_ready:
                if self._process.poll() is not None:
                    self.give_up()
                return None
        try:
            pipes[0].write(struct.pack("<Q", len(data)) + data)
            pipes[0].flush()
            lives = _says_alive(pipes[1], self._seconds)
        except OSError:
            lives = False
        if not lives:
            self.end()
        return lives

    def _begin(self) -> None:
        with contextlib.suppress(OSError):
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
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


def _says_alive(pipe: IO[bytes], seconds: float) -> bool:
    ears = select.poll()  # not select.select, which knows no numbers above 1,023
    ears.register(pipe, select.POLLIN)
    return bool(ears.poll(1000 * seconds)) and os.read(pipe.fileno(), 1) == ALIVE  # nothing at the end of a pipe


def make(seconds: float) -> Prober:
    """A prober that ends with this process and is left alone by forks."""
    prober = Prober(seconds)
    if hasattr(os, "register_at_fork"):
        atexit.register(prober.end)
        os.register_at_fork(after_in_child=prober.forget)
    else:
        prober.give_up()
    return prober


def serve() -> None:
    """What the other process does: parse what comes, say that it still lives."""
    import resource

    from stablehlo_py.mlir import new_context
    from stablehlo_py.reading import parse_bytecode

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a crash here is an answer, not news
    source, answers = sys.stdin.buffer, os.dup(1)
    os.dup2(2, 1)
    context, uses = new_context(), 0
    while True:
        os.write(answers, ALIVE)
        head = source.read(8)
        if len(head) < 8:
            return
        if uses == _USES:
            context, uses = new_context(), 0
        uses += 1
        with contextlib.suppress(Exception):  # whoever asks meets the same error and reports it
            parse_bytecode(source.read(struct.unpack("<Q", head)[0]), context)


if __name__ == "__main__":
    serve()
