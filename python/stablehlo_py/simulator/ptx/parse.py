"""PTX text to entries: parameters, registers, variables, instructions and labels."""

from __future__ import annotations

import re
from collections.abc import Iterator

import ml_dtypes
import numpy as np

from stablehlo_py.records import field, record

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


@record
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


@record
class Variable:
    """A variable of a state space; bytes is its size, initial its contents where given."""

    space: str
    name: str
    bytes: int
    align: int
    initial: bytes = b""


@record(frozen=False)
class Entry:
    """One kernel."""

    name: str
    parameters: list[Variable]
    registers: dict[str, str] = field(default_factory=dict)  # name -> type
    variables: list[Variable] = field(default_factory=list)
    instructions: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)


@record(frozen=False)
class Module:
    entries: dict[str, Entry]
    variables: list[Variable]


_ENTRY = re.compile(r"(?:\.visible\s+)?\.entry\s+([\w$.]+)\s*\(([^)]*)\)([^{]*)\{")
_VARIABLE = re.compile(
    r"\.(global|const|shared|local|param)\s+(?:\.align\s+(\d+)\s+)?\.(\w+)\s+(?:\.ptr\s+(?:\.\w+\s+)?(?:\.align\s+\d+\s+)?)?"
    r"([\w$.%]+)(?:\[(\d*)\])?\s*(?:=\s*(\{.*\}|[^;]*))?$",
    re.S,
)
_REGISTERS = re.compile(r"\.reg\s+\.(\w+)\s+(.*)$", re.S)
_FUNCTION = re.compile(
    r"(?:\.(?:visible|weak|extern)\s+)?\.func\s+(?:\(([^)]*)\)\s*)?([\w$.]+)\s*\(([^)]*)\)\s*(?:\.\w+\s*)*([;{])"
)
_CALL = re.compile(r"call(?:\.uni)?\s*(?:\(([^)]*)\)\s*,\s*)?([\w$.]+)\s*(?:,\s*\(([^)]*)\))?$")
_GUARDED = re.compile(r"@(!?)(%[\w$]+)\s+(.*)", re.S)


def parse(text: str) -> Module:
    """Read a whole PTX file."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)
    functions: dict[str, _Function] = {}
    while (found := _FUNCTION.search(text)) is not None:
        result, name, parameters, opened = found.groups()
        end = _closing(text, found.end()) if opened == "{" else found.end() - 1
        if opened == "{":
            functions[name] = _Function(_names(result or ""), _names(parameters), text[found.end() : end])
        text = text[: found.start()] + text[end + 1 :]
    entries: dict[str, Entry] = {}
    outside, position = "", 0
    while (found := _ENTRY.search(text, position)) is not None:
        end = _closing(text, found.end())
        outside += text[position : found.start()]
        parameters = [_variable(p.strip()) for p in found[2].split(",") if p.strip()]
        entries[found[1]] = _entry(Entry(found[1], parameters), _statements(text[found.end() : end], functions, [0]))
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


@record
class _Function:
    """A device function: the names of its result and parameters, and its body."""

    results: list[str]
    parameters: list[str]
    body: str


def _names(variables: str) -> list[str]:
    return [_variable(v.strip()).name for v in variables.split(",") if v.strip()]


def _statements(body: str, functions: dict[str, _Function], calls: list[int]) -> Iterator[str]:
    """The statements of a body, calls replaced by the statements of what they call; `LABEL x` for a label."""
    body = re.sub(r"(?m)^\s*([\w$.]+):(?=\s|$)", r"LABEL \1;", body)
    for statement in body.split(";"):
        # a scope of its own around a few instructions; its registers have names that nothing else has
        statement = statement.strip().lstrip("{} \t\n")
        if not statement or statement.startswith((".loc ", ".loc\t", ".file", ".pragma", ".branchtargets")):
            continue
        called = _CALL.match(statement)
        if called is None:
            yield statement
            continue
        result, name, arguments = (part or "" for part in called.groups())
        if name not in functions:
            raise PtxError(f"the function {name} is not there")
        calls[0] += 1
        yield from _statements(_inlined(functions[name], result, arguments, calls[0]), functions, calls)


def _inlined(function: _Function, result: str, arguments: str, number: int) -> str:
    """The body of a function with names of its own, which works on the caller's parameters."""
    given = dict(zip([*function.results, *function.parameters], _split(f"{result},{arguments}"), strict=True))
    body = re.sub(r"%(?!n?tid|n?ctaid|laneid|warpid)(\w+)", rf"%call{number}_\1", function.body)
    body = re.sub(r"\$(L\w+)|(__local_depot\d+)", lambda m: f"{m[0]}_call{number}", body)
    body = re.sub(r"[\w$.]+", lambda m: given.get(m[0], m[0]), body)
    return re.sub(r"(?m)\bret;", f"bra $end_call{number};", body) + f"\n$end_call{number}:\n"


def _entry(entry: Entry, statements: Iterator[str]) -> Entry:
    for statement in statements:
        if statement.startswith("LABEL "):
            entry.labels[statement[6:]] = len(entry.instructions)
        elif (declared := _REGISTERS.match(statement)) is not None:
            for register in declared[2].split(","):
                name, _, count = register.strip().rstrip(">").partition("<")
                names = [f"{name}{i}" for i in range(int(count))] if count else [name]
                entry.registers.update(dict.fromkeys(names, declared[1]))
        elif statement.startswith("."):
            variable = _variable(statement)
            if variable.space == "param":  # of a call: memory of the thread, one place for all calls
                size = max([variable.bytes, *(v.bytes for v in entry.variables if v.name == variable.name)])
                entry.variables = [v for v in entry.variables if v.name != variable.name]
                variable = Variable("local", variable.name, size, 16)
            entry.variables.append(variable)
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
