"""A child process that compiles and runs programs until it dies; the parent lives and says what happened.

The child is `python -m stablehlo_py.testing.worker`; jobs and answers are pickled over two pipes of their own, since
what the C++ libraries print goes to the child's standard streams.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import resource
import select
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import stablehlo_py
from stablehlo_py.records import record

MEMORY = 8 << 30  # of address space
PATIENCE = 10  # times the limit on a child's own time may pass on the clock
COMPARE = "compare"  # with the reference interpreter
COMPILE = "compile"  # only


@record
class Verdict:
    """kind: ok, mismatch, refused (a CompileError), error (any other exception), crash, hang. detail: one line or more."""

    kind: str
    detail: str = ""
    seconds: float = 0.0


class Worker:
    """One child at a time, made anew after a death. plugin: a Python file that each child runs first."""

    def __init__(self, *, seconds: float = 60.0, plugin: str = "", memory: int = MEMORY) -> None:
        self.seconds, self.plugin, self.memory = seconds, plugin, memory
        self._child: subprocess.Popen[bytes] | None = None
        self.started = 0

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def judge(self, program: str | bytes, arrays: list[Any] | None = None, others: Sequence[list[Any]] = ()) -> Verdict:
        """Compile `program`; with arrays also run it and compare with the reference, and with others after them."""
        began = time.monotonic()
        for attempt in (0, 1):
            self._start()
            busy = self._busy()
            try:
                self._send(pickle.dumps((COMPILE if arrays is None else COMPARE, program, arrays, others)))
                break
            except BrokenPipeError:  # it died between two jobs
                self.close()
                if attempt:
                    return Verdict("crash", "the child dies before it takes a job")
        answer = self._receive(time.monotonic(), busy)
        if answer is not None:
            kind, detail = pickle.loads(answer)
            return Verdict(kind, detail, time.monotonic() - began)
        return self._bury(time.monotonic() - began)

    def close(self) -> None:
        if self._child is None:
            return
        self._child.kill()
        self._child.wait()
        for fd in (self._to, self._from):
            with contextlib.suppress(OSError):
                os.close(fd)
        self._log.close()
        self._child = None

    def _start(self) -> None:
        if self._child is not None:
            return
        job_in, self._to = os.pipe()
        self._from, answer_out = os.pipe()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the child
        command = [sys.executable, "-m", "stablehlo_py.testing.worker", str(job_in), str(answer_out), str(self.memory)]
        # the child finds this package where we did, installed or not
        path = os.pathsep.join([str(Path(stablehlo_py.__file__).parent.parent), os.environ.get("PYTHONPATH", "")])
        self._child = subprocess.Popen(
            [*command, self.plugin],
            pass_fds=(job_in, answer_out),
            stdout=self._log,
            stderr=self._log,
            env={**os.environ, "PYTHONPATH": path.rstrip(os.pathsep)},
        )
        self.started += 1
        os.close(job_in)
        os.close(answer_out)

    def _send(self, data: bytes) -> None:
        data = struct.pack("<Q", len(data)) + data
        while data:
            data = data[os.write(self._to, data) :]

    def _receive(self, began: float, busy: float) -> bytes | None:
        """An answer; None when the child is dead or late: by its own time where the system tells it, else by the clock.

        began, busy: the clock and the child's own time when it got the job. On a machine with other work the clock says
        little; a child that sleeps for PATIENCE times as long is late all the same.
        """
        data = b""
        while len(data) < 8 or len(data) < 8 + struct.unpack_from("<Q", data)[0]:
            passed = time.monotonic() - began
            spent = self._busy() - busy if sys.platform == "linux" else passed
            left = min(self.seconds - spent, self.seconds * PATIENCE - passed)
            if left <= 0:
                return None
            if not select.select([self._from], [], [], min(max(left, 0.1), 5.0))[0]:
                continue
            chunk = os.read(self._from, 1 << 16)
            if not chunk:
                return None
            data += chunk
        return data[8:]

    def _busy(self) -> float:
        """Seconds of processor time that the child has had; 0 where the system does not tell."""
        assert self._child is not None
        try:
            fields = Path(f"/proc/{self._child.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _bury(self, seconds: float) -> Verdict:
        """What became of a child that gives no answer."""
        child = self._child
        assert child is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(0.5)
        code = child.poll()
        self._log.seek(0)
        said = self._log.read()[-2000:].decode("utf-8", "replace").strip()
        self.close()
        if code is None:
            return Verdict("hang", f"no answer after {self.seconds:.0f} s of its own time", seconds)
        name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return Verdict("crash", f"{name}: {said}", seconds)


def _serve(jobs: int, answers: int, memory: int, plugin: str) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    from stablehlo_py.testing.judge import judge

    if plugin:
        with open(plugin) as file:
            exec(compile(file.read(), plugin, "exec"), {"__name__": "plugin"})
    with os.fdopen(jobs, "rb") as source, os.fdopen(answers, "wb") as sink:
        while head := source.read(8):
            answer = pickle.dumps(judge(*pickle.loads(source.read(struct.unpack("<Q", head)[0]))))
            sink.write(struct.pack("<Q", len(answer)) + answer)
            sink.flush()


if __name__ == "__main__":
    _serve(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
