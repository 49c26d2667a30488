"""The listing of a Program: its buffers with live ranges and places, then its numbered commands."""

from __future__ import annotations

from stablehlo_py.runtime.host import title_of
from stablehlo_py.runtime.plan import Plan, plan_memory
from stablehlo_py.runtime.program import Case, Command, Copy, Fill, Host, Launch, Program, View, While


def listing(program: Program, plan: Plan | None = None) -> str:
    """One line a buffer, one line a command; numbers in front of commands are the positions of the live ranges."""
    plan = plan or plan_memory(program)
    lines = [f"program({_types(program.arguments)}) -> ({_types(program.results)})"]
    lines.append(f"arena {plan.arena_bytes} bytes, at least {plan.lower_bound}")
    for buffer in program.buffers:
        line = f"  {_name(program, buffer.id):<6} {buffer.bytes:>10} bytes"
        if plan.liveness.used(buffer.id):
            line += f"  live {plan.liveness.first[buffer.id]}..{plan.liveness.last[buffer.id]}"
        if plan.offsets[buffer.id] >= 0:
            line += f"  at {plan.offsets[buffer.id]}"
        lines.append(line)
    _write(program, program.commands, 0, 1, lines)
    return "\n".join(lines) + "\n"


def _write(program: Program, commands: tuple[Command, ...], position: int, depth: int, lines: list[str]) -> int:
    for command in commands:
        prefix, indent = f"{position:>4}", "  " * depth
        position += 1
        lines.append(prefix + indent + _command(program, command))
        if isinstance(command, While):
            position = _write(program, command.condition, position, depth + 1, lines)
            lines.append(f"    {indent}do")
            position = _write(program, command.body, position, depth + 1, lines)
            lines.append(f"{position:>4}{indent}end")
            position += 1
        if isinstance(command, Case):
            for number, branch in enumerate(command.branches):
                lines.append(f"    {indent}branch {number}")
                position = _write(program, branch, position, depth + 1, lines)
    return position


def _command(program: Program, command: Command) -> str:
    match command:
        case Launch(number, buffers, begin, end):
            kernel = program.kernels[number]
            written = buffers[kernel.inputs : kernel.inputs + kernel.outputs]
            scratch = buffers[kernel.inputs + kernel.outputs :]
            over = f" over {begin}..{end}" if end > begin else ""
            using = f" using {_names(program, scratch)}" if scratch else ""
            inputs = _names(program, buffers[: kernel.inputs])
            return f"{_names(program, written)} = {kernel.name}({inputs}){using}{over}"
        case Copy(source, target, count, source_offset, target_offset):
            source_name, target_name = _name(program, source), _name(program, target)
            return f"{target_name}[{target_offset}:] = copy {count} bytes of {source_name}[{source_offset}:]"
        case Fill(target, count, value):
            return f"{_name(program, target)} = fill {count} bytes with {value}"
        case View(target, source, offset, indices):
            at = [str(offset)] if offset or not indices else []
            at += [f"{_name(program, i.buffer)} * {i.stride}" for i in indices]
            return f"{_name(program, target)} = view of {_name(program, source)} at {' + '.join(at)}"
        case While(_, predicate, _):
            return f"while {_name(program, predicate)}"
        case Case(index, _):
            return f"case {_name(program, index)}"
        case Host(call, inputs, outputs):
            return f"{_names(program, outputs)} = host {title_of(program.host_calls[call])}({_names(program, inputs)})"


def _name(program: Program, buffer: int) -> str:
    """Arguments, constants and results by their number, temporaries and views by their id: a0 c0 r0 t7 v8."""
    found = program.buffers[buffer]
    return f"{found.kind[0]}{buffer if found.kind in ('temporary', 'view') else found.index}"


def _names(program: Program, buffers: tuple[int, ...]) -> str:
    return ", ".join(_name(program, buffer) for buffer in buffers)


def _types(types: tuple[object, ...]) -> str:
    return ", ".join(map(str, types))
