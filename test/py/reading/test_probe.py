"""The process that tries bytecode first: what kills it is refused, and it comes back."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from stablehlo_py import probe, probe_parser
from stablehlo_py.building import bytecode
from stablehlo_py.installed import bindings_library
from stablehlo_py.mlir import PassManager, ir, new_context, stablehlo
from stablehlo_py.reading import guard, parse_bytecode

PROGRAM = "func.func @main(%arg0: tensor<4xf32>) -> tensor<4xf32> { return %arg0 : tensor<4xf32> }"
ADD = PROGRAM.replace("return %arg0", "%0 = stablehlo.add %arg0, %arg0 : tensor<4xf32> return %0")
# Lives as long as nothing tells it to die; does not answer "sleep" for long.
ACTOR = """
import os, sys, time
while True:
    os.write(1, b"a")
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


def test_a_compilation_starts_it_at_once(actor, monkeypatch):
    monkeypatch.setattr(probe, "_cores", lambda: 1)  # it would only take this process's time
    actor.begin()
    assert actor._process is None
    monkeypatch.setattr(probe, "_cores", lambda: 2)
    actor.begin()
    first = actor._process
    actor.begin()
    assert actor._process is first is not None
    assert ask(actor, b"live")


def test_it_dies_and_comes_back(actor):
    assert ask(actor, b"live")
    first = actor._process
    assert not ask(actor, b"die")
    assert actor._process is None
    assert ask(actor, b"live")
    assert actor._process is not first


def test_one_that_was_killed_says_nothing_of_programs(actor):
    assert ask(actor, b"live")
    actor._process.kill()
    actor._process.wait()
    assert actor.survives(b"live") is None
    assert ask(actor, b"live")


def test_an_interrupted_question_leaves_no_answer(actor):
    def interrupt():
        raise KeyboardInterrupt

    assert ask(actor, b"live")
    with pytest.raises(KeyboardInterrupt):
        actor.survives(b"live", interrupt)
    assert not ask(actor, b"die")


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


def test_one_that_begins_is_waited_for_once(monkeypatch):
    waited = []
    monkeypatch.setattr(probe, "_answers", lambda _pipe, seconds: waited.append(seconds))
    prober = probe.Prober(8, [sys.executable, "-c", "input()"], patience=0.3)
    prober.begin()
    try:
        for _ in range(3):
            assert prober.survives(b"one") is None
    finally:
        prober.end()
    assert waited == [0.3, 0.0, 0.0]


ERF = PROGRAM.replace("return %arg0", "%0 = chlo.erf %arg0 : tensor<4xf32> -> tensor<4xf32> return %0")


@pytest.fixture(scope="module")
def parser():
    """What the process does, as a process: answers of one byte to programs."""
    script = probe_parser.__file__
    command = [sys.executable, "-I", "-S", script, bindings_library()]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:

        def answer(data: bytes) -> bytes:
            process.stdin.write(len(data).to_bytes(8, "little") + data)
            process.stdin.flush()
            return process.stdout.read(1)

        assert process.stdout.read(1) == probe_parser.READY
        yield answer
        process.stdin.close()


def plain(text: str) -> bytes:
    return bytecode(ir.Module.parse(text, new_context()))


def versioned(text: str) -> bytes:
    """Bytecode of vhlo without an artifact's header."""
    module = ir.Module.parse(text, new_context())
    with module.context:
        PassManager.parse("builtin.module(stablehlo-legalize-to-vhlo)").run(module.operation)
    return bytecode(module)


@pytest.mark.parametrize(
    "make",
    [
        lambda: stablehlo.serialize_portable_artifact_str(PROGRAM, stablehlo.get_current_version()),
        lambda: plain(PROGRAM),
        lambda: plain(ERF),
        lambda: versioned(PROGRAM),
        lambda: plain(PROGRAM.replace("f32", "!quant.uniform<i8:f32, 0.5>")),
        lambda: plain("module @m { memref.global @g : memref<2xi32> }"),
    ],
    ids=["artifact", "bytecode", "chlo", "vhlo", "quant", "upstream"],
)
def test_the_process_knows_what_this_one_knows(parser, make):
    """A refusal there would leave the crash to this process. Twice as often as a context is used."""
    data = make()
    for _ in range(2 if data != plain(ERF) else 250):
        assert parser(data) == probe_parser.PARSED
    assert parser(data[: len(data) // 2]) == probe_parser.REFUSED


def test_what_takes_a_fork_down_takes_the_process_down():
    """One damaged byte each: the two must agree, or the parser's crash is this process's."""
    data = stablehlo.serialize_portable_artifact_str(ADD, stablehlo.get_current_version())
    context = new_context()
    prober = probe.Prober(guard.SECONDS)
    crashes = 0
    try:
        for at in range(40, len(data), 11):
            for value in (0x00, 0xFF):
                damaged = data[:at] + bytes([value]) + data[at + 1 :]
                lives = guard.survives(lambda: parse_bytecode(damaged, context))  # noqa: B023 - called at once
                assert ask(prober, damaged) == lives, (at, value)
                crashes += not lives
    finally:
        prober.end()
    assert crashes > 0


def test_the_real_one_parses():
    data = stablehlo.serialize_portable_artifact_str(PROGRAM, stablehlo.get_current_version())
    prober = probe.Prober(guard.SECONDS)
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
