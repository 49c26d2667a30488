"""The errors a user meets: each a sentence with the place, what is wrong, and what to try."""

from __future__ import annotations


class CompileError(Exception):
    """A program cannot be compiled.

    message: what is wrong, in the user's terms. where: the place in the input, `file:line:column` or the user's own
    source line. hint: what to try. `str()` puts them together.
    """

    def __init__(self, message: str, *, where: str = "", hint: str = "") -> None:
        self.message, self.where, self.hint = message, where, hint
        text = f"{where}: {message}" if where else message
        self.trail: tuple[str, ...] = ()
        super().__init__(f"{text}\n  hint: {hint}" if hint else text)

    def during(self, what: str) -> None:
        """Add what the compiler was doing, such as `in pass cse, stage cleanup`; inner calls come first."""
        self.trail = (*self.trail, what)
        self.args = (f"{self.args[0]}\n  {what}",)


class BadInput(CompileError):
    """The input is not a program: malformed text, a damaged artifact, a file that is not there."""


class BadOption(CompileError, ValueError):
    """An option that does not mean anything: a name that nobody knows, a number out of range."""


class WrongMachine(CompileError, RuntimeError):
    """A program for another CPU was called on a machine that lacks some of its instructions."""


class UnsupportedOp(CompileError):
    """An op that a target cannot do, found before any of the program runs."""

    def __init__(self, op: str, reason: str, *, target: str = "", where: str = "", hint: str = "") -> None:
        self.op, self.reason, self.target = op, reason, target
        on = f" on target {target}" if target else ""
        super().__init__(f"{op} is not supported{on}: {reason}", where=where, hint=hint)


class OutOfMemory(CompileError, MemoryError):
    """There is no memory for what a program needs; raised when it is called."""
