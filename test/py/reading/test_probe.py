"""The process that tries bytecode first: what kills it is refused, and it comes back."""

from __future__ import annotations

import os
import sys
import time

import pytest

from stablehlo_py.mlir import stablehlo
from stablehlo_py.reading import guard, probe

PROGRAM = "func.func @main(%arg0: tensor<4xf32>) -> tensor<4xf32> { return %arg0 : tensor<4xf32> }"
# Lives as long as nothing tells it to die; does not answer "sleep" for long.
ACTOR = f"""
import os, sys, time
while True:
    os.write(1, {probe.ALIVE!r})
    size = sys.stdin.buffer.read(8)
    if not size:
        break
    word = sys.stdin.buffer.read(int.from_bytes(size, "little"))
    if word == b"die":
        os.abort()
    time.sleep(60 if word == b"sleep" else 0)
"""


@pytest.fixture
def actor():
    prober = probe.Prober(8, [sys.executable, "-c", ACTOR])
    yield prober
    prober.end()


def ask(prober: probe.Prober, data: bytes) -> bool:
    """The answer as soon as there is one."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        answer = prober.survives(data)
        if answer is not None:
            return answer
        time.sleep(0.01)
    raise AssertionError("no answer")


def test_one_program_starts_nothing(actor):
    assert actor.survives(b"one") is None
    assert actor._process is None
    assert actor.survives(b"two") is None
    assert actor._process is not None


def test_it_dies_and_comes_back(actor):
    assert ask(actor, b"live")
    first = actor._process
    assert not ask(actor, b"die")
    assert actor._process is None
    assert ask(actor, b"live")
    assert actor._process is not first


def test_it_thinks_for_ever(actor):
    assert ask(actor, b"live")
    assert not ask(actor, b"sleep")
    assert ask(actor, b"live")


def test_large_programs_are_not_sent(actor):
    assert ask(actor, b"live")
    assert actor.survives(b"a" * (probe.LARGEST + 1)) is None


def test_a_fork_leaves_it_alone(actor):
    assert ask(actor, b"live")
    child = os.fork()
    if child == 0:
        actor.forget()
        os._exit(actor.survives(b"die") is not None)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert ask(actor, b"live")


def test_what_does_not_start_is_given_up():
    prober = probe.Prober(1, [sys.executable, "-c", "pass"])
    for _ in range(2):
        prober.survives(b"one")
    assert prober._process is not None
    prober._process.wait(60)
    for _ in range(3):
        assert prober.survives(b"one") is None
    assert prober._process is None


def test_the_real_one_parses():
    data = stablehlo.serialize_portable_artifact_str(PROGRAM, stablehlo.get_current_version())
    prober = probe.Prober(guard.PROBE_SECONDS)
    try:
        assert ask(prober, data)
        assert ask(prober, data[: len(data) // 2])  # an ordinary error
        assert prober._process is not None
    finally:
        prober.end()


def test_work_goes_on_while_a_fork_tries():
    """The fork waits for what this process writes only in the meantime."""
    ears, mouth = os.pipe()
    assert guard.survives(lambda: os.read(ears, 1), lambda: os.write(mouth, b"x"))
    assert not guard.survives(os.abort, lambda: None)
