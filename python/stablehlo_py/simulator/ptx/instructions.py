"""What each PTX instruction does to the registers of the threads that take it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from stablehlo_py.simulator.ptx.arithmetic import BINARY, COMPARE, TERNARY, UNARY, convert
from stablehlo_py.simulator.ptx.machine import SHARED, Lanes, Machine, Step
from stablehlo_py.simulator.ptx.parse import DTYPES, Instruction, PtxError
from stablehlo_py.simulator.ptx.tensor_cores import compile_mma

SPACES = ("global", "shared", "local", "param", "const")
CONTROL = ("bra", "ret", "exit", "bar", "barrier")


def compile_instruction(machine: Machine, instruction: Instruction) -> Step:
    """A function that takes the numbers of the threads and does the instruction."""
    opcode = instruction.opcode
    if opcode in CONTROL:
        return lambda lanes: None
    if instruction.has("cc") or opcode in ("addc", "subc", "madc"):
        return _carried(machine, instruction)
    special = SPECIAL.get(opcode)
    if special is not None:
        return special(machine, instruction)
    for table in (UNARY, BINARY, TERNARY):
        if opcode in table:
            return _arithmetic(machine, instruction, table[opcode])
    raise PtxError(f"instruction {instruction.text} is not simulated")


def _arithmetic(machine: Machine, i: Instruction, function: Callable[..., np.ndarray]) -> Step:
    """d = f(a, b, ...), all of the instruction's last type except the second operand of a shift."""
    ty = i.type
    packed = ty in ("f16x2", "bf16x2")
    types = [ty] * (len(i.operands) - 1)
    if i.opcode in ("shl", "shr"):
        types[1] = "u32"
    if i.has("wide") and len(types) == 3:
        types[2] = ty[0] + str(2 * int(ty[1:]))
    write = machine.write(i.operands[0])
    if packed:
        reads = [machine.read(o, "b32") for o in i.operands[1:]]
        half = DTYPES[ty[:-2]]

        def step(lanes: Lanes) -> None:
            values = [np.ascontiguousarray(r(lanes)).view(half).reshape(-1, 2) for r in reads]
            write(lanes, np.ascontiguousarray(function(i, *values)).reshape(-1).view(np.uint32))

        return step
    reads = [machine.read(o, t) for o, t in zip(i.operands[1:], types, strict=True)]
    return lambda lanes: write(lanes, function(i, *(r(lanes) for r in reads)))


def _carried(machine: Machine, i: Instruction) -> Step:
    """add, sub and mad that take the carry of the step before (addc, ...) or leave their own (.cc)."""
    write, reads = machine.write(i.operands[0]), [machine.read(o, "u" + i.type[1:]) for o in i.operands[1:]]
    bits = int(i.type[1:])
    mask = (1 << bits) - 1
    takes, leaves = i.opcode.endswith("c"), i.has("cc")

    def step(lanes: Lanes) -> None:
        values = [r(lanes).astype(object) for r in reads]
        if i.opcode.startswith("mad"):
            product = values[0] * values[1]
            total = (product >> bits if i.has("hi") else product & mask) + values[2]
        else:
            total = values[0] - values[1] if i.opcode.startswith("sub") else values[0] + values[1]
        if takes:
            carry = machine.carry[lanes].astype(object)
            total = total - carry if i.opcode == "subc" else total + carry
        if leaves:
            machine.carry[lanes] = [int(t) < 0 or int(t) > mask for t in total]
        write(lanes, np.array([int(t) & mask for t in total], DTYPES[f"u{bits}"]))

    return step


# --- moves and memory ------------------------------------------------------------------------------------------------


def _mov(machine: Machine, i: Instruction) -> Step:
    target, source = i.operands
    if target.startswith("{"):  # unpack: b64 -> {b32, b32}
        parts = [machine.write(p) for p in _parts(target)]
        read, width = machine.read(source, i.type), DTYPES[i.type].itemsize // len(parts)

        def unpack(lanes: Lanes) -> None:
            values = np.ascontiguousarray(read(lanes)).view(f"u{width}").reshape(-1, len(parts))
            for number, write in enumerate(parts):
                write(lanes, np.ascontiguousarray(values[:, number]))

        return unpack
    write = machine.write(target)
    if source.startswith("{"):
        names = _parts(source)
        width = DTYPES[i.type].itemsize // len(names)
        reads = [machine.read(n, f"b{8 * width}") for n in names]
        whole = DTYPES[i.type]
        return lambda lanes: write(lanes, np.stack([r(lanes) for r in reads], 1).reshape(-1).view(whole))
    read = machine.read(source, i.type)
    if i.type == "pred":
        return lambda lanes: machine.registers[target].__setitem__(lanes, read(lanes))
    return lambda lanes: write(lanes, read(lanes))


def _parts(vector: str) -> list[str]:
    return [p.strip() for p in vector.strip("{}").split(",")]


def _space(i: Instruction) -> str:
    return next((m for m in i.modifiers if m in SPACES), "")


def _ld(machine: Machine, i: Instruction) -> Step:
    dtype, space = DTYPES[i.type], _space(i)
    names = _parts(i.operands[0])
    writes, address = [machine.write(n) for n in names], machine.address(i.operands[1])

    def step(lanes: Lanes) -> None:
        data = machine.load(lanes, space, address(lanes), dtype.itemsize * len(names))
        for number, write in enumerate(writes):
            part = data[:, number * dtype.itemsize : (number + 1) * dtype.itemsize]
            write(lanes, np.ascontiguousarray(part).view(dtype).reshape(-1))

    return step


def _st(machine: Machine, i: Instruction) -> Step:
    space, address = _space(i), machine.address(i.operands[0])
    reads = [machine.read(n, i.type) for n in _parts(i.operands[1])]

    def step(lanes: Lanes) -> None:
        data = np.stack([r(lanes) for r in reads], 1)
        machine.store(lanes, space, address(lanes), np.ascontiguousarray(data).view(np.uint8).reshape(len(lanes), -1))

    return step


def _cvta(machine: Machine, i: Instruction) -> Step:
    """Shared addresses have a window of their own among the generic ones; the rest are generic already."""
    write, read = machine.write(i.operands[0]), machine.read(i.operands[1], i.type)
    if not i.has("shared"):
        return lambda lanes: write(lanes, read(lanes))
    sign = -1 if i.has("to") else 1
    return lambda lanes: write(lanes, (read(lanes).astype(np.int64) + sign * SHARED).astype(np.uint64))


# --- predicates and conversions --------------------------------------------------------------------------------------


def _setp(machine: Machine, i: Instruction) -> Step:
    """p = a < b, or p = (a < b) and q."""
    compare, combine = COMPARE[i.modifiers[0]], None
    if i.modifiers[1] in ("and", "or", "xor"):
        combine = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}[i.modifiers[1]]
    a, b = machine.read(i.operands[1], i.type), machine.read(i.operands[2], i.type)
    other = machine.read(i.operands[3], "pred") if combine else None
    target = machine.registers[i.operands[0].split("|")[0]]

    def step(lanes: Lanes) -> None:
        result = compare(a(lanes), b(lanes))
        target[lanes] = combine(result, other(lanes)) if combine and other else result

    return step


def _selp(machine: Machine, i: Instruction) -> Step:
    write, p = machine.write(i.operands[0]), machine.read(i.operands[3], "pred")
    a, b = machine.read(i.operands[1], i.type), machine.read(i.operands[2], i.type)
    return lambda lanes: write(lanes, np.where(p(lanes), a(lanes), b(lanes)))


def _logical(function: Callable[..., np.ndarray]) -> Callable[[Machine, Instruction], Step]:
    """and, or, xor, not on predicates or on bits."""

    def compile_one(machine: Machine, i: Instruction) -> Step:
        reads = [machine.read(o, i.type) for o in i.operands[1:]]
        if i.type == "pred":
            target = machine.registers[i.operands[0]]
            return lambda lanes: target.__setitem__(lanes, function(*(r(lanes) for r in reads)))
        write = machine.write(i.operands[0])
        return lambda lanes: write(lanes, function(*(r(lanes) for r in reads)))

    return compile_one


def _cvt(machine: Machine, i: Instruction) -> Step:
    write, (to, source) = machine.write(i.operands[0]), i.modifiers[-2:]
    reads = [machine.read(o, source) for o in i.operands[1:]]
    if to in ("f16x2", "bf16x2"):  # the first operand becomes the upper half
        half = DTYPES[to[:-2]]
        return lambda lanes: write(
            lanes, np.stack([r(lanes).astype(half) for r in reversed(reads)], 1).reshape(-1).view(np.uint32)
        )
    return lambda lanes: write(lanes, convert(reads[0](lanes), DTYPES[to], i.modifiers))


# --- across threads --------------------------------------------------------------------------------------------------


def _shfl(machine: Machine, i: Instruction) -> Step:
    """d = the value of another lane of the warp: bfly (lane ^ b), down, up, idx; segments by the mask c."""
    target, _, predicate = i.operands[0].partition("|")
    write, value = machine.write(target), machine.read(i.operands[1], "b32")
    offset, bounds = machine.read(i.operands[2], "s32"), machine.read(i.operands[3], "u32")
    mode = next(m for m in i.modifiers if m in ("bfly", "down", "up", "idx"))

    def step(lanes: Lanes) -> None:
        _whole_warps(machine, lanes)
        lane, by, c = machine.lane_in_warp[lanes], offset(lanes), bounds(lanes).astype(np.int64)
        segment, clamp = (c >> 8) & 31, c & 31
        low, high = lane & segment, (lane & segment) | (clamp & ~segment & 31)
        source = {"bfly": lane ^ by, "down": lane + by, "up": lane - by, "idx": low | (by & ~segment)}[mode]
        inside = source >= high if mode == "up" else source <= high
        source = np.where(inside, source, lane)
        everyone = np.zeros(machine.count, np.uint32)
        everyone[lanes] = value(lanes)
        write(lanes, everyone[lanes - lane + source])
        if predicate:
            machine.registers[predicate][lanes] = inside

    return step


def _whole_warps(machine: Machine, lanes: Lanes) -> None:
    present = np.bincount(machine.warp[lanes], minlength=len(machine.warp_size))
    if ((present != 0) & (present != machine.warp_size)).any():
        raise PtxError("a warp is split at an instruction that all its threads must take together")


def _nothing(machine: Machine, i: Instruction) -> Step:
    return lambda lanes: None


SPECIAL: dict[str, Callable[[Machine, Instruction], Step]] = {
    "mov": _mov,
    "ld": _ld,
    "ldu": _ld,
    "st": _st,
    "cvta": _cvta,
    "setp": _setp,
    "selp": _selp,
    "and": _logical(np.bitwise_and),
    "or": _logical(np.bitwise_or),
    "xor": _logical(np.bitwise_xor),
    "not": _logical(np.invert),
    "cvt": _cvt,
    "shfl": _shfl,
    "mma": compile_mma,
    "membar": _nothing,
    "fence": _nothing,
}
