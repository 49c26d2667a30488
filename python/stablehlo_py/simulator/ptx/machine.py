"""The machine: registers and memory of all threads of a grid, and the order in which they step."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

import numpy as np

from stablehlo_py.simulator.ptx.parse import DTYPES, Entry, Instruction, PtxError, parse

WARP = 32
GLOBAL, SHARED, LOCAL, PARAM = 1 << 32, 1 << 48, 1 << 49, 1 << 50  # windows of generic addresses
_GUARD_BYTES = 256  # between allocations, so that running over an end is seen

Lanes = np.ndarray  # numbers of the threads that take a step
Read = Callable[[Lanes], np.ndarray]
Write = Callable[[Lanes, np.ndarray], None]
Step = Callable[[Lanes], None]


class Memory:
    """Global memory: allocations with guards between them."""

    def __init__(self) -> None:
        self.data = np.full(1 << 16, 0xFF, np.uint8)
        self.starts: list[int] = []
        self.ends: list[int] = []

    def allocate(self, size: int) -> int:
        """The address of `size` bytes of poison."""
        start = (self.ends[-1] if self.ends else 0) + _GUARD_BYTES
        start = -(-start // 256) * 256
        self.starts.append(start)
        self.ends.append(start + size)
        while len(self.data) < start + size + _GUARD_BYTES:
            self.data = np.concatenate([self.data, np.full_like(self.data, 0xFF)])
        return GLOBAL + start

    def put(self, array: np.ndarray) -> int:
        """The address of a copy of an array."""
        address = self.allocate(array.nbytes)
        self.set(address, array)
        return address

    def set(self, address: int, array: np.ndarray) -> None:
        """Copy an array to an address."""
        raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        self.data[address - GLOBAL : address - GLOBAL + len(raw)] = raw

    def get(self, address: int, shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
        """A copy of an array that lies at an address."""
        size = math.prod(shape) * np.dtype(dtype).itemsize
        raw = self.data[address - GLOBAL : address - GLOBAL + size]
        return raw.copy().view(dtype).reshape(shape)

    def check(self, offsets: np.ndarray, size: int) -> None:
        which = np.searchsorted(self.starts, offsets, side="right") - 1
        bad = (which < 0) | (offsets + size > np.asarray(self.ends)[which])
        if bad.any():
            raise PtxError(f"global access of {size} bytes outside every allocation")


class Machine:
    """One grid of one kernel."""

    def __init__(
        self,
        entry: Entry,
        memory: Memory,
        grid: Sequence[int],
        block: Sequence[int],
        arguments: Sequence[int | np.generic],
    ) -> None:
        self.entry, self.memory = entry, memory
        self.block_threads = math.prod(block)
        self.count = self.block_threads * math.prod(grid)
        lane = np.arange(self.count)
        self.block_of = lane // self.block_threads
        thread = lane % self.block_threads
        # a warp never spans two blocks, the last one of a block may be short
        self.lane_in_warp = thread % WARP
        self.warp = self.block_of * -(-self.block_threads // WARP) + thread // WARP
        self.warp_size = np.bincount(self.warp)
        self.first_lane = np.flatnonzero(self.lane_in_warp == 0)
        self.special = {"%laneid": self.lane_in_warp.astype(np.uint32), "%warpid": (thread // WARP).astype(np.uint32)}
        for name, index, extents in (("tid", thread, block), ("ctaid", self.block_of, grid)):
            for axis, extent in zip("xyz", extents, strict=True):
                self.special[f"%{name}.{axis}"] = (index % extent).astype(np.uint32)
                whole = "%n" + name
                self.special[f"{whole}.{axis}"] = np.full(self.count, extent, np.uint32)
                index = index // extent
        self.registers = {name: _poison(DTYPES[ty], self.count) for name, ty in entry.registers.items()}
        self.carry = np.zeros(self.count, np.bool_)
        self.symbols: dict[str, int] = {}
        self.shared = np.zeros((0, 0), np.uint8)
        self.local = np.zeros((0, 0), np.uint8)
        self.parameters = np.frombuffer(b"", np.uint8)
        self._lay_out_parameters(arguments)

    def _lay_out_parameters(self, arguments: Sequence[int | np.generic]) -> None:
        parameters = self.entry.parameters
        if len(parameters) != len(arguments):
            raise PtxError(f"{self.entry.name} takes {len(parameters)} arguments, {len(arguments)} given")
        raw = bytearray()
        for parameter, argument in zip(parameters, arguments, strict=True):
            raw += b"\0" * (-len(raw) % parameter.align)
            self.symbols[parameter.name] = PARAM + len(raw)
            data = (
                argument.tobytes()
                if isinstance(argument, np.generic | np.ndarray)
                else int(argument).to_bytes(8, "little")
            )
            raw += data[: parameter.bytes].ljust(parameter.bytes, b"\0")
        self.parameters = np.frombuffer(bytes(raw), np.uint8)

    def lay_out(self, variables: Sequence) -> None:
        """Give every variable its address: shared per block, local per thread, the rest in global memory."""
        sizes = {"shared": 0, "local": 0}
        for variable in variables:
            if variable.space in sizes:
                start = -(-sizes[variable.space] // variable.align) * variable.align
                sizes[variable.space] = start + variable.bytes
                self.symbols[variable.name] = start + (LOCAL if variable.space == "local" else 0)
            else:
                contents = np.frombuffer(variable.initial.ljust(variable.bytes, b"\0"), np.uint8)
                self.symbols[variable.name] = self.memory.put(contents)
        self.shared = np.full((self.block_of.max(initial=0) + 1, sizes["shared"]), 0xFF, np.uint8)
        self.local = np.full((self.count, sizes["local"]), 0xFF, np.uint8)

    # --- operands

    def read(self, operand: str, ty: str) -> Read:
        """The values of an operand, of the given PTX type, for the lanes that step."""
        dtype = DTYPES[ty]
        if operand.startswith("!"):
            inner = self.read(operand[1:], "pred")
            return lambda lanes: ~inner(lanes)
        register = self.registers.get(operand, self.special.get(operand))
        if register is not None:
            if register.dtype == dtype or register.itemsize == dtype.itemsize:
                view = register.view(dtype)
                return lambda lanes: view[lanes]
            unsigned = np.dtype(f"u{dtype.itemsize}")
            return lambda lanes: register[lanes].astype(unsigned).view(dtype)
        value = self._immediate(operand, dtype)
        return lambda lanes: np.broadcast_to(value, lanes.shape)

    def _immediate(self, operand: str, dtype: np.dtype) -> np.ndarray:
        if dtype == np.bool_:
            return np.asarray(int(operand), np.bool_)
        if operand[:2] in ("0f", "0F", "0d", "0D"):
            bits = np.array(int(operand[2:], 16), np.uint32 if operand[1] in "fF" else np.uint64)
            return bits.view(dtype) if bits.itemsize == dtype.itemsize else bits.view(f"f{bits.itemsize}").astype(dtype)
        name, _, offset = operand.partition("+")
        if name in self.symbols:
            number = self.symbols[name] + int(offset or 0)
        else:
            try:
                number = int(operand.rstrip("U"), 0)
            except ValueError:
                raise PtxError(f"operand {operand} is not known") from None
        bits = number & ((1 << 8 * dtype.itemsize) - 1)
        return np.array(bits, f"u{dtype.itemsize}").view(dtype)

    def write(self, operand: str) -> Write:
        """Store values into a register; narrower ones are sign- or zero-extended by their own type."""
        if operand == "_":
            return lambda lanes, values: None
        register = self.registers[operand]
        unsigned = register.dtype

        def store(lanes: Lanes, values: np.ndarray) -> None:
            values = np.asarray(values)
            if values.itemsize == register.itemsize:
                register[lanes] = values.view(unsigned)
            else:
                wide = values if values.dtype.kind in "iu" else values.view(f"u{values.itemsize}")
                register[lanes] = wide.astype(f"i{register.itemsize}" if wide.dtype.kind == "i" else unsigned).view(
                    unsigned
                )

        return store

    def address(self, operand: str) -> Read:
        """The addresses that `[%rd1+4]` means."""
        found = re.fullmatch(r"\[\s*([%\w$.]+)\s*(?:\+\s*(-?\w+))?\s*\]", operand)
        if found is None:
            raise PtxError(f"address {operand} is not known")
        offset = int(found[2] or "0", 0)
        base = self.registers.get(found[1])
        if base is not None:
            return lambda lanes: base[lanes].astype(np.int64) + offset
        value = np.int64(self.symbols[found[1]] + offset)
        return lambda lanes: np.broadcast_to(value, lanes.shape)

    # --- memory

    def _bytes(self, lanes: Lanes, space: str, address: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
        """The memory of a space as one array of bytes, and the places in it of `size` bytes per lane."""
        if len(address) and (address % size).any():
            raise PtxError(f"access of {size} bytes at an address that is not aligned to them")
        if space in ("", "param"):  # parameters of calls lie in the thread's own memory
            space = "param" if (address >= PARAM).all() else "local" if (address >= LOCAL).all() else ""
            space = space or ("shared" if (address >= SHARED).all() else "global")
        if space == "param":
            return self.parameters, (address - PARAM)[:, None] + np.arange(size)
        if space in ("global", "const"):
            offsets = address - GLOBAL
            self.memory.check(offsets, size)
            return self.memory.data, offsets[:, None] + np.arange(size)
        rows, memory, window = (
            (self.block_of, self.shared, SHARED) if space == "shared" else (np.arange(self.count), self.local, LOCAL)
        )
        offsets = np.where(address >= window, address - window, address)
        if len(offsets) and (offsets.min() < 0 or offsets.max() + size > memory.shape[1]):
            raise PtxError(f"{space} access of {size} bytes outside the {memory.shape[1]} bytes that there are")
        return memory.reshape(-1), (rows[lanes] * memory.shape[1] + offsets)[:, None] + np.arange(size)

    def load(self, lanes: Lanes, space: str, address: np.ndarray, size: int) -> np.ndarray:
        """[lanes, size] bytes."""
        memory, places = self._bytes(lanes, space, address, size)
        return memory[places]

    def store(self, lanes: Lanes, space: str, address: np.ndarray, data: np.ndarray) -> None:
        memory, places = self._bytes(lanes, space, address, data.shape[1])
        memory[places] = data

    # --- stepping

    def run(self, steps: Sequence[Step | Instruction], most_steps: int) -> None:
        """Step until every thread has returned; branches, barriers and returns are done here, the rest by `steps`."""
        code, end = self.entry.instructions, len(self.entry.instructions)
        pc = np.zeros(self.count, np.int64)
        waiting = np.zeros(self.count, bool)
        guards = [self.read(i.guard, "pred") if i.guard else None for i in code]
        for _ in range(most_steps):
            ready = np.flatnonzero(~waiting & (pc < end))
            if len(ready) == 0:
                if not waiting.any():
                    return
                raise PtxError("threads wait at a barrier that the others never reach")
            at = int(pc[ready].min())
            lanes = ready[pc[ready] == at]
            pc[lanes] = at + 1
            instruction, guard = code[at], guards[at]
            if guard is not None:
                lanes = lanes[guard(lanes) != instruction.negated]
                if len(lanes) == 0:
                    continue
            if instruction.opcode == "bra":
                pc[lanes] = self.entry.labels[instruction.operands[0]]
            elif instruction.opcode in ("ret", "exit"):
                pc[lanes] = end
                self._release(waiting, pc, end)
            elif instruction.opcode in ("bar", "barrier"):
                waiting[lanes] = True
                self._release(waiting, pc, end)
            else:
                try:
                    steps[at](lanes)  # pyright: ignore[reportCallIssue] - only branches are no steps
                except PtxError as error:
                    raise PtxError(f"{error}, in {self.entry.name}: {instruction.text}") from None
        raise PtxError(f"{self.entry.name} takes more than {most_steps} steps")

    def _release(self, waiting: np.ndarray, pc: np.ndarray, end: int) -> None:
        """Let go the blocks whose threads all wait or have returned."""
        blocks = (waiting | (pc >= end)).reshape(-1, self.block_threads)
        done = np.repeat(blocks.all(axis=1), self.block_threads)
        waiting[done] = False


def _poison(dtype: np.dtype, count: int) -> np.ndarray:
    if dtype == np.bool_:
        return np.zeros(count, np.bool_)
    unsigned = np.dtype(f"u{dtype.itemsize}")
    return np.full(count, np.iinfo(unsigned).max, unsigned)


def run(
    ptx: str,
    name: str,
    grid: Sequence[int],
    block: Sequence[int],
    arguments: Sequence[int | np.generic],
    memory: Memory,
    *,
    most_steps: int = 2_000_000,
) -> None:
    """Launch a kernel: arguments are addresses (int) or NumPy scalars; memory changes in place."""
    from stablehlo_py.simulator.ptx.instructions import compile_instruction

    module = parse(ptx)
    if name not in module.entries:
        raise PtxError(f"there is no kernel {name}; there are {', '.join(module.entries)}")
    entry = module.entries[name]
    machine = Machine(entry, memory, grid, block, arguments)
    machine.lay_out([*module.variables, *entry.variables])
    with np.errstate(all="ignore"):
        machine.run([compile_instruction(machine, i) for i in entry.instructions], most_steps)
