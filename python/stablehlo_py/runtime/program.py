"""The Program: what compilation leaves, a list of commands over buffers, as plain data that can be printed and stored."""

from __future__ import annotations

import contextlib
import functools
import importlib
import json
import math
import struct
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from stablehlo_py.errors import BadInput
from stablehlo_py.records import astuple, record

ALIGNMENT = 64  # bytes: a cache line, and the widest vector register
DEEPEST = 200  # levels of While and Case; more is refused, as both executors recurse
MAGIC, VERSION = b"SHLOPROG", 5

Kind = Literal["argument", "constant", "temporary", "result", "view"]
KINDS = ("argument", "constant", "temporary", "result", "view")


@record
class Buffer:
    """A piece of memory with a fixed size.

    id: its place in Program.buffers. index: the number of the argument, constant or result; 0 for a temporary.
    Arguments and constants are never written. A result that equals an argument is a Copy. A view has no memory of its
    own: one command View says, each time it runs, which part of another buffer it is from then on.
    """

    id: int
    bytes: int
    kind: Kind
    index: int = 0
    alignment: int = ALIGNMENT


@functools.cache
def _dtype(name: str) -> np.dtype:
    """The dtype of a name of numpy's or of ml_dtypes, which is imported where numpy has no such name: it takes 8 ms."""
    with contextlib.suppress(TypeError):
        return np.dtype(name)
    ml_dtypes = importlib.import_module("ml_dtypes")
    try:
        return np.dtype(getattr(ml_dtypes, name, name))
    except TypeError:
        raise BadInput(f"numpy has no dtype {name}") from None


@record
class ArrayType:
    """Shape and numpy dtype (by name, ml_dtypes included) of an argument or a result; -1: each call decides."""

    shape: tuple[int, ...]
    dtype: str

    @property
    def numpy(self) -> np.dtype:
        return _dtype(self.dtype)

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * self.numpy.itemsize

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join('?' if d == -1 else str(d) for d in self.shape)}]"


@record
class Kernel:
    """A kernel by its symbol, `void name(void *const *buffers, int64_t begin, int64_t end)`.

    Its buffers are `inputs` that it reads, then `outputs` that it writes, then `scratch` whose bytes mean nothing
    before and after. A kernel that updates in place has one buffer among its inputs and again among its outputs.
    work: what a launch costs, in elementary operations; a kernel that has any may be run in parts, each over pieces
    of begin..end and with scratch of its own. 0: never in parts. grain: steps of which a piece should have no fewer.
    """

    name: str
    inputs: int
    outputs: int
    scratch: int = 0
    work: int = 0
    grain: int = 1


@record
class Launch:
    """Call a kernel on buffers, over begin..end of its parallel dimension (0..0 when it has none)."""

    kernel: int
    buffers: tuple[int, ...]
    begin: int = 0
    end: int = 0


@record
class Copy:
    """Copy bytes from one buffer into another; they may be the same one, with ranges that overlap."""

    source: int
    target: int
    bytes: int
    source_offset: int = 0
    target_offset: int = 0


@record
class Fill:
    """Set the first `bytes` bytes of a buffer to one byte value.

    With no bytes it says that what the buffer holds so far means nothing: each byte is written before it is read.
    """

    target: int
    bytes: int
    value: int = 0


@record
class Index:
    """An integer in a buffer that says where a view begins: clamp(0, it, limit) * stride bytes from the offset.

    width: bytes of the integer; signed: whether it may be negative.
    """

    buffer: int
    width: int
    signed: bool
    limit: int
    stride: int


@record
class View:
    """Let a buffer of the kind view be a part of `source`, at `offset` bytes and what the indices add."""

    target: int
    source: int
    offset: int = 0
    indices: tuple[Index, ...] = ()


@record
class While:
    """Run condition; while the byte in predicate is not 0, run body and condition again."""

    condition: tuple[Command, ...]
    predicate: int
    body: tuple[Command, ...]


@record
class Case:
    """Run the branch whose number stands in an i32 buffer; out of range means the last one."""

    index: int
    branches: tuple[tuple[Command, ...], ...]


@record
class Host:
    """Call a host function on the bytes of its inputs and outputs."""

    call: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


Command = Launch | Copy | Fill | View | While | Case | Host


@record(eq=False)
class Program:
    """Buffers, commands, and what the commands refer to.

    constants: the bytes of each constant, as bytes or as arrays. host_calls: the names of the host functions. donors:
    arguments whose memory, says the program's author, a result may take; whether it does is the caller's choice.
    """

    buffers: tuple[Buffer, ...]
    commands: tuple[Command, ...]
    kernels: tuple[Kernel, ...] = ()
    constants: tuple[bytes | np.ndarray, ...] = ()
    arguments: tuple[ArrayType, ...] = ()
    results: tuple[ArrayType, ...] = ()
    host_calls: tuple[str, ...] = ()
    donors: tuple[int, ...] = ()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Program) or self._header() != other._header():
            return False
        pairs = zip(self.constants, other.constants, strict=True)
        return all(np.array_equal(constant_bytes(mine), constant_bytes(theirs)) for mine, theirs in pairs)

    def __hash__(self) -> int:
        return hash((self.buffers, self.commands))

    def as_text(self) -> str:
        """A listing: buffers with live range and place in the arena, then the numbered commands."""
        from stablehlo_py.runtime.listing import listing  # the listing shows the plan, which is made from programs

        return listing(self)

    def to_json(self) -> str:
        """Everything but the bytes of the constants."""
        return json.dumps(self._header(), separators=(",", ":"))

    def to_bytes(self) -> bytes:
        """Magic, length of the JSON, the JSON, then each constant at a multiple of 64 bytes."""
        header = self.to_json().encode()
        parts = [MAGIC, struct.pack("<Q", len(header)), header]
        parts.append(bytes(-sum(map(len, parts)) % ALIGNMENT))
        for constant in self.constants:
            data = constant_bytes(constant).tobytes()
            parts += [data, bytes(-len(data) % ALIGNMENT)]
        return b"".join(parts)

    @staticmethod
    def from_json(text: str, constants: tuple[bytes | np.ndarray, ...] = ()) -> Program:
        """The program of a JSON text and its constants, checked."""
        try:
            header = json.loads(text)
            if header["format"] != "program" or header["version"] != VERSION:
                raise BadInput(f"the program is of version {header['version']}", hint=f"this one reads {VERSION}")
            program = Program(
                buffers=tuple(Buffer(i, *row) for i, row in enumerate(header["buffers"])),
                commands=_commands_from(header["commands"]),
                kernels=tuple(Kernel(*row) for row in header["kernels"]),
                constants=constants,
                arguments=tuple(ArrayType(tuple(shape), dtype) for shape, dtype in header["arguments"]),
                results=tuple(ArrayType(tuple(shape), dtype) for shape, dtype in header["results"]),
                host_calls=tuple(header["host_calls"]),
                donors=tuple(header["donors"]),
            )
            if [_size(constant) for constant in constants] != header["constants"]:
                raise BadInput("the constants of a stored program do not have the sizes that it gives")
            check_program(program)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError) as error:
            raise BadInput(f"not a stored program: {error!r}") from error
        return program

    @staticmethod
    def from_bytes(data: bytes) -> Program:
        """The program that `to_bytes` stored; its constants are views of `data`."""
        if len(data) < 16 or data[:8] != MAGIC:
            raise BadInput("not a stored program: it does not start with its mark")
        (length,) = struct.unpack_from("<Q", data, 8)
        try:
            text = data[16 : 16 + length].decode()
            sizes = [int(size) for size in json.loads(text)["constants"]]
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise BadInput("not a stored program: its header is damaged") from error
        constants, position = [], aligned(16 + length)
        for size in sizes:
            if size < 0 or position + size > len(data):
                raise BadInput("the stored program is cut short")
            constants.append(np.frombuffer(data, np.uint8, size, position))
            position = aligned(position + size)
        return Program.from_json(text, tuple(constants))

    def _header(self) -> dict[str, Any]:  # JSON: any value
        return {
            "format": "program",
            "version": VERSION,
            "buffers": [[b.bytes, b.kind, b.index, b.alignment] for b in self.buffers],
            "commands": _commands_to(self.commands),
            "kernels": [[k.name, k.inputs, k.outputs, k.scratch, k.work, k.grain] for k in self.kernels],
            "constants": [_size(constant) for constant in self.constants],
            "arguments": [[list(a.shape), a.dtype] for a in self.arguments],
            "results": [[list(r.shape), r.dtype] for r in self.results],
            "host_calls": list(self.host_calls),
            "donors": list(self.donors),
        }


def constant_bytes(constant: bytes | np.ndarray) -> np.ndarray:
    """The bytes of a constant as a flat uint8 array, without a copy where the memory is contiguous."""
    if isinstance(constant, np.ndarray):
        return np.ascontiguousarray(constant).reshape(-1).view(np.uint8)
    return np.frombuffer(constant, np.uint8)


def reads(program: Program, command: Command) -> tuple[int, ...]:
    """Buffers whose bytes a command uses before it writes; of While and Case only the predicate or index.

    What a view is a part of counts where the view is read or written: see `sources`.
    """
    match command:
        case Launch(kernel, buffers):
            return buffers[: program.kernels[kernel].inputs]
        case Copy(source):
            return (source,)
        case Fill():
            return ()
        case View(indices=indices):
            return tuple(index.buffer for index in indices)
        case While(_, predicate):
            return (predicate,)
        case Case(index):
            return (index,)
        case Host(_, inputs):
            return inputs


def writes(program: Program, command: Command) -> tuple[int, ...]:
    """Buffers that a command itself writes, scratch among them."""
    match command:
        case Launch(kernel, buffers):
            return buffers[program.kernels[kernel].inputs :]
        case Copy(_, target) | Fill(target) | View(target):
            return (target,)
        case Host(_, _, outputs):
            return outputs
        case _:
            return ()


def blocks(command: Command) -> tuple[tuple[Command, ...], ...]:
    """The command lists inside a command."""
    match command:
        case While(condition, _, body):
            return (condition, body)
        case Case(_, branches):
            return branches
        case _:
            return ()


def walk(commands: tuple[Command, ...]) -> Iterator[Command]:
    """Every command, outer before inner."""
    for command in commands:
        yield command
        for block in blocks(command):
            yield from walk(block)


def sources(program: Program) -> dict[int, tuple[int, ...]]:
    """For each view the buffers that it is a part of: its source, the source of that where it is a view, and so on."""
    found: dict[int, tuple[int, ...]] = {}
    for command in walk(program.commands):
        if isinstance(command, View):
            found[command.target] = (command.source, *found.get(command.source, ()))
    return found


def check_program(program: Program) -> None:
    """Refuse a program that would touch memory outside its buffers or write what it must not; BadInput says where."""
    limits = {"argument": len(program.arguments), "constant": len(program.constants), "result": len(program.results)}
    for number, buffer in enumerate(program.buffers):
        where = f"buffer {number}"
        _require(buffer.id == number, where, f"has the id {buffer.id}")
        _require(buffer.kind in KINDS, where, f"is of unknown kind {buffer.kind}")
        _require(0 <= buffer.bytes < 2**48, where, f"has {buffer.bytes} bytes")
        _require(buffer.alignment in (1, 2, 4, 8, 16, 32, 64), where, f"is aligned to {buffer.alignment} bytes")
        _require(0 <= buffer.index < limits.get(buffer.kind, 1), where, f"is {buffer.kind} {buffer.index} of none such")
        if buffer.kind == "constant":
            held: int = _size(program.constants[buffer.index])
        elif buffer.kind in ("argument", "result"):
            held = getattr(program, buffer.kind + "s")[buffer.index].bytes
        else:
            continue
        _require(buffer.bytes == held, where, f"has {buffer.bytes} bytes, its {buffer.kind} {held}")
    for donor in program.donors:
        _require(0 <= donor < len(program.arguments), "the program", f"donates argument {donor}, which is none")
    _check_commands(program, program.commands, 0, sources(program))
    made = [command.target for command in walk(program.commands) if isinstance(command, View)]
    _require(len(made) == len(set(made)), "the program", "makes a view in two places")


def _check_commands(
    program: Program, commands: tuple[Command, ...], depth: int, behind: dict[int, tuple[int, ...]]
) -> None:
    _require(depth <= DEEPEST, "the program", f"nests more than {DEEPEST} While and Case")
    sizes = program.buffers
    for command in commands:
        where = type(command).__name__
        if isinstance(command, Launch):
            _require(0 <= command.kernel < len(program.kernels), where, f"of kernel {command.kernel}, which is none")
            kernel = program.kernels[command.kernel]
            where = f"Launch of {kernel.name}"
            counts = (kernel.inputs, kernel.outputs, kernel.scratch)
            _require(min(counts) >= 0, where, "takes a negative count of buffers")
            _require(0 <= kernel.work < 2**63, where, f"has work of {kernel.work}")
            wanted = kernel.inputs + kernel.outputs + kernel.scratch
            _require(len(command.buffers) == wanted, where, f"has {len(command.buffers)} buffers, not {wanted}")
        if isinstance(command, Host):
            _require(0 <= command.call < len(program.host_calls), where, f"of call {command.call}, which is none")
        read, written = reads(program, command), writes(program, command)
        for buffer in (*read, *written):
            _require(0 <= buffer < len(sizes), where, f"uses buffer {buffer} of {len(sizes)}")
        for buffer in written:
            if isinstance(command, View):
                _check_view(program, command)
                continue
            for one in (buffer, *behind.get(buffer, ())):
                _require(sizes[one].kind not in ("argument", "constant"), where, f"writes {sizes[one].kind} {one}")
        if isinstance(command, Copy):
            for buffer, offset in ((command.source, command.source_offset), (command.target, command.target_offset)):
                inside = min(offset, command.bytes) >= 0 and offset + command.bytes <= sizes[buffer].bytes
                _require(inside, where, f"of {command.bytes} bytes at {offset} is outside buffer {buffer}")
        if isinstance(command, Fill):
            _require(0 <= command.bytes <= sizes[command.target].bytes, where, f"is outside buffer {command.target}")
            _require(0 <= command.value <= 255, where, f"with {command.value}, which is not a byte")
        if isinstance(command, While):
            _require(sizes[command.predicate].bytes >= 1, where, "has an empty predicate")
        if isinstance(command, Case):
            _require(sizes[command.index].bytes >= 4, where, "has an index of less than 4 bytes")
            _require(len(command.branches) > 0, where, "has no branch")
        for block in blocks(command):
            _check_commands(program, block, depth + 1, behind)


def _check_view(program: Program, view: View) -> None:
    sizes = program.buffers
    _require(0 <= view.source < len(sizes), "View", f"is of buffer {view.source} of {len(sizes)}")
    _require(sizes[view.target].kind == "view", "View", f"makes {sizes[view.target].kind} {view.target}")
    _require(min((view.offset, *(min(i.limit, i.stride) for i in view.indices))) >= 0, "View", "counts backwards")
    for index in view.indices:
        _require(index.width in (1, 2, 4, 8), "View", f"has an index of {index.width} bytes")
        _require(sizes[index.buffer].bytes >= index.width, "View", f"has an index outside buffer {index.buffer}")
    end = view.offset + sum(i.limit * i.stride for i in view.indices) + sizes[view.target].bytes
    _require(end <= sizes[view.source].bytes, "View", f"of {end} bytes is outside buffer {view.source}")


def _require(holds: bool, where: str, message: str) -> None:
    if not holds:
        raise BadInput(f"not a sound program: {where} {message}")


def _size(constant: bytes | np.ndarray) -> int:
    return constant.nbytes if isinstance(constant, np.ndarray) else len(constant)


def aligned(size: int) -> int:
    """Rounded up to whole lines."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def _commands_to(commands: tuple[Command, ...]) -> list[list[Any]]:  # JSON: any value
    rows: list[list[Any]] = []
    for command in commands:
        match command:
            case While(condition, predicate, body):
                rows.append(["while", _commands_to(condition), predicate, _commands_to(body)])
            case Case(index, branches):
                rows.append(["case", index, [_commands_to(branch) for branch in branches]])
            case Launch(kernel, buffers, begin, end):
                rows.append(["launch", kernel, list(buffers), begin, end])
            case Copy(source, target, count, source_offset, target_offset):
                rows.append(["copy", source, target, count, source_offset, target_offset])
            case Fill(target, count, value):
                rows.append(["fill", target, count, value])
            case View(target, source, offset, indices):
                rows.append(["view", target, source, offset, [list(astuple(index)) for index in indices]])
            case Host(call, inputs, outputs):
                rows.append(["host", call, list(inputs), list(outputs)])
    return rows


def _commands_from(rows: list[list[Any]]) -> tuple[Command, ...]:  # JSON: any value
    commands: list[Command] = []
    for row in rows:
        match row:
            case ["while", condition, predicate, body]:
                commands.append(While(_commands_from(condition), predicate, _commands_from(body)))
            case ["case", index, branches]:
                commands.append(Case(index, tuple(map(_commands_from, branches))))
            case ["launch", kernel, buffers, begin, end]:
                commands.append(Launch(kernel, tuple(buffers), begin, end))
            case ["copy", *fields]:
                commands.append(Copy(*fields))
            case ["fill", *fields]:
                commands.append(Fill(*fields))
            case ["view", target, source, offset, indices]:
                commands.append(View(target, source, offset, tuple(Index(*fields) for fields in indices)))
            case ["host", call, inputs, outputs]:
                commands.append(Host(call, tuple(inputs), tuple(outputs)))
            case _:
                raise BadInput(f"not a stored program: the command {row!r:.60} is not known")
    return tuple(commands)
