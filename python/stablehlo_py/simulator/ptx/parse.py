"""PTX text to entries: parameters, registers, variables, instructions and labels."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import ml_dtypes
import numpy as np

DTYPES: dict[str, np.dtype] = {
    name: np.dtype(dtype)
    for name, dtype in {
        "pred": np.bool_,
        **{f"b{n}": f"u{n // 8}" for n in (8, 16, 32, 64)},
        **{f"u{n}": f"u{n // 8}" for n in (8, 16, 32, 64)},
        **{f"s{n}": f"i{n // 8}" for n in (8, 16, 32, 64)},
        "f16": np.float16,
        "bf16": ml_dtypes.bfloat16,
        "f32": np.float32,
        "f64": np.float64,
    }.items()
}


class PtxError(Exception):
    """PTX that the simulator does not know, or that does what no program may do."""


@dataclass(frozen=True)
class Instruction:
    """`@!guard opcode.mod.ty operands;` with the text it came from."""

    guard: str
    negated: bool
    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[str, ...]
    text: str

    @property
    def type(self) -> str:
        return self.modifiers[-1]

    def has(self, modifier: str) -> bool:
        return modifier in self.modifiers


@dataclass(frozen=True)
class Variable:
    """A variable of a state space; bytes is its size, initial its contents where given."""

    space: str
    name: str
    bytes: int
    align: int
    initial: bytes = b""


@dataclass
class Entry:
    """One kernel."""

    name: str
    parameters: list[Variable]
    registers: dict[str, str] = field(default_factory=dict)  # name -> type
    variables: list[Variable] = field(default_factory=list)
    instructions: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)


@dataclass
class Module:
    entries: dict[str, Entry]
    variables: list[Variable]


_ENTRY = re.compile(r"(?:\.visible\s+)?\.entry\s+([\w$.]+)\s*\(([^)]*)\)([^{]*)\{")
_VARIABLE = re.compile(
    r"\.(global|const|shared|local|param)\s+(?:\.align\s+(\d+)\s+)?\.(\w+)\s+(?:\.ptr\s+(?:\.\w+\s+)?(?:\.align\s+\d+\s+)?)?"
    r"([\w$.%]+)(?:\[(\d*)\])?\s*(?:=\s*(\{.*\}|[^;]*))?$",
    re.S,
)
_REGISTERS = re.compile(r"\.reg\s+\.(\w+)\s+(%?[\w$]+)(?:<(\d+)>)?$")
_GUARDED = re.compile(r"@(!?)(%[\w$]+)\s+(.*)", re.S)


def parse(text: str) -> Module:
    """Read a whole PTX file."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)
    if re.search(r"\.func\b", text):
        raise PtxError("calls of device functions are not simulated")
    entries: dict[str, Entry] = {}
    outside, position = "", 0
    while (found := _ENTRY.search(text, position)) is not None:
        end = _closing(text, found.end())
        outside += text[position : found.start()]
        parameters = [_variable(p.strip()) for p in found[2].split(",") if p.strip()]
        entries[found[1]] = _entry(Entry(found[1], parameters), text[found.end() : end])
        position = end + 1
    outside += text[position:]
    statements = (re.sub(r"^\.(?:visible|extern|weak|common)\s+", "", s.strip()) for s in outside.split(";"))
    # the header (.version, .target) has no semicolons and leads the first statement
    statements = (re.sub(r"^(?:\.(?:version|target|address_size)[^\n]*\s*)+", "", s) for s in statements)
    statements = (re.sub(r"^\.(?:visible|extern|weak|common)\s+", "", s.strip()) for s in statements)
    return Module(entries, [_variable(s) for s in statements if re.match(r"\.(global|const|shared)\b", s)])


def _closing(text: str, start: int) -> int:
    depth = 1
    for found in re.finditer(r"[{}]", text[start:]):
        depth += 1 if found[0] == "{" else -1
        if depth == 0:
            return start + found.start()
    raise PtxError("a brace is not closed")


def _entry(entry: Entry, body: str) -> Entry:
    # `label:` becomes a statement of its own
    body = re.sub(r"(?m)^\s*([\w$.]+):(?=\s|$)", r"LABEL \1;", body)
    for statement in (s.strip() for s in body.split(";")):
        # a scope of its own around a few instructions; its registers have names that nothing else has
        statement = statement.lstrip("{} \t\n")
        if not statement or statement.startswith((".loc ", ".loc\t", ".file", ".pragma", ".branchtargets")):
            continue
        if statement.startswith("LABEL "):
            entry.labels[statement[6:]] = len(entry.instructions)
        elif (registers := _REGISTERS.match(statement)) is not None:
            ty, name, count = registers.groups()
            names = [f"{name}{i}" for i in range(int(count))] if count else [name]
            entry.registers.update(dict.fromkeys(names, ty))
        elif statement.startswith("."):
            entry.variables.append(_variable(statement))
        else:
            entry.instructions.append(_instruction(statement))
    return entry


def _instruction(statement: str) -> Instruction:
    guard, negated, rest = "", False, " ".join(statement.split())
    if (found := _GUARDED.match(rest)) is not None:
        negated, guard, rest = bool(found[1]), found[2], found[3]
    opcode, _, operands = rest.partition(" ")
    name, *modifiers = opcode.split(".")
    return Instruction(guard, negated, name, tuple(modifiers), tuple(_split(operands)), rest)


def _split(operands: str) -> list[str]:
    parts = re.findall(r"(?:\{[^}]*\}|\[[^\]]*\]|[^,{\[])+", operands)
    return [p.strip() for p in parts if p.strip()]


def _variable(statement: str) -> Variable:
    found = _VARIABLE.match(statement)
    if found is None:
        raise PtxError(f"not understood: {statement}")
    space, align, ty, name, count, initial = found.groups()
    item = DTYPES[ty].itemsize
    elements = 1 if count is None else int(count or 0)
    contents = b""
    if initial:
        numbers = [_number(n) for n in initial.strip("{} \n").split(",")]
        contents = b"".join((n & ((1 << 8 * item) - 1)).to_bytes(item, "little") for n in numbers)
    return Variable(space, name, item * elements, int(align or item), contents)


def _number(text: str) -> int:
    text = text.strip()
    if text[:2].lower() in ("0f", "0d"):
        return int(text[2:], 16)
    return int(text.rstrip("U"), 0)
