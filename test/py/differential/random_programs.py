"""Random programs of elementwise, shape and reduction ops on small integers, so that every order of a sum is exact."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from hypothesis import strategies as st

SIZES = (1, 1, 2, 3, 5)
LARGEST = 1 << 10  # of a value that an op takes: sums of 125 and products stay exact in f32


@dataclass(frozen=True)
class Value:
    """An SSA value; `bound` is above its magnitude."""

    name: str
    shape: tuple[int, ...]
    element: str
    bound: int

    @property
    def type(self) -> str:
        return f"tensor<{''.join(f'{d}x' for d in self.shape)}{self.element}>"


@dataclass
class Program:
    """A program in the making: `draw` decides."""

    draw: st.DrawFn
    values: list[Value] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    arguments: list[Value] = field(default_factory=list)

    def emit(self, text: str, shape: tuple[int, ...], element: str, bound: int) -> Value:
        value = Value(f"%v{len(self.values)}", shape, element, bound)
        self.values.append(value)
        self.lines.append(f"{value.name} = {text}")
        return value

    def argument(self) -> None:
        shape = tuple(self.draw(st.lists(st.sampled_from(SIZES), max_size=3)))
        value = Value(f"%v{len(self.values)}", shape, self.draw(st.sampled_from(("f32", "f32", "i32"))), 8)
        self.values.append(value)
        self.arguments.append(value)

    def pick(self, *, rank: int = 0, limit: int = LARGEST) -> Value:
        """An earlier number of at least this rank, clamped below the limit; recent ones more often."""
        fitting = [v for v in self.values if v.element != "i1" and len(v.shape) >= rank]
        if not fitting:
            return self.constant((2,) * rank, "f32")
        recent = self.draw(st.integers(0, len(fitting) - 1))
        return self.bounded(fitting[len(fitting) - 1 - recent], limit)

    def pick_like(self, value: Value, limit: int = LARGEST) -> Value:
        fitting = [v for v in self.values if (v.shape, v.element) == (value.shape, value.element)]
        return self.bounded(self.draw(st.sampled_from(fitting)), limit)

    def bounded(self, value: Value, limit: int) -> Value:
        if value.bound <= limit:
            return value
        scalar = f"tensor<{value.element}>"
        low, high = self.constant((), value.element, -limit), self.constant((), value.element, limit)
        text = f"stablehlo.clamp {low.name}, {value.name}, {high.name} : ({scalar}, {value.type}, {scalar}) -> {value.type}"
        return self.emit(text, value.shape, value.element, limit)

    def constant(self, shape: tuple[int, ...], element: str, number: int | None = None) -> Value:
        numbers = np.arange(math.prod(shape)).reshape(shape) % 7 - 3 if number is None else np.int64(number)
        if number is None and self.draw(st.booleans()):
            numbers = np.int64(self.draw(st.integers(-3, 3)))
        literal = str(numbers.tolist() if element == "i32" else numbers.astype(float).tolist())
        ty = Value("", shape, element, 0).type
        return self.emit(f"stablehlo.constant dense<{literal}> : {ty}", shape, element, max(3, abs(number or 0)))

    # --- ops

    def unary(self) -> None:
        x = self.pick()
        op = self.draw(st.sampled_from(("abs", "negate", "sign")))
        self.emit(f"stablehlo.{op} {x.name} : {x.type}", x.shape, x.element, x.bound)

    def binary(self) -> None:
        x = self.pick()
        op = self.draw(st.sampled_from(("add", "subtract", "multiply", "maximum", "minimum")))
        y = self.pick_like(x)
        bound = x.bound * y.bound if op == "multiply" else x.bound + y.bound
        self.emit(f"stablehlo.{op} {x.name}, {y.name} : {x.type}", x.shape, x.element, bound)

    def select(self) -> None:
        x = self.pick()
        y = self.pick_like(x)
        truth = Value("", x.shape, "i1", 1).type
        mask = self.emit(
            f"stablehlo.compare LT, {x.name}, {y.name} : ({x.type}, {x.type}) -> {truth}", x.shape, "i1", 1
        )
        text = f"stablehlo.select {mask.name}, {y.name}, {x.name} : {truth}, {x.type}"
        self.emit(text, x.shape, x.element, max(x.bound, y.bound))

    def convert(self) -> None:
        x = self.pick()
        element = "i32" if x.element == "f32" else "f32"
        result = Value("", x.shape, element, x.bound)
        self.emit(f"stablehlo.convert {x.name} : ({x.type}) -> {result.type}", x.shape, element, x.bound)

    def broadcast(self) -> None:
        x = self.pick()
        rank = self.draw(st.integers(len(x.shape), 4))
        dims = sorted(self.draw(st.permutations(range(rank)))[: len(x.shape)])
        shape = [self.draw(st.sampled_from(SIZES)) for _ in range(rank)]
        for d, size in zip(dims, x.shape, strict=True):
            shape[d] = shape[d] if size == 1 else size
        result = Value("", tuple(shape), x.element, x.bound)
        text = f"stablehlo.broadcast_in_dim {x.name}, dims = {dims} : ({x.type}) -> {result.type}"
        self.emit(text, result.shape, x.element, x.bound)

    def reshape(self) -> None:
        x = self.pick()
        rest, shape = math.prod(x.shape), []
        while rest > 1:
            size = self.draw(st.sampled_from([d for d in range(2, rest + 1) if rest % d == 0]))
            shape.append(size)
            rest //= size
        for _ in range(self.draw(st.integers(0, 2))):
            shape.insert(self.draw(st.integers(0, len(shape))), 1)
        result = Value("", tuple(shape), x.element, x.bound)
        self.emit(f"stablehlo.reshape {x.name} : ({x.type}) -> {result.type}", result.shape, x.element, x.bound)

    def transpose(self) -> None:
        x = self.pick()
        order = self.draw(st.permutations(range(len(x.shape))))
        result = Value("", tuple(x.shape[d] for d in order), x.element, x.bound)
        text = f"stablehlo.transpose {x.name}, dims = {list(order)} : ({x.type}) -> {result.type}"
        self.emit(text, result.shape, x.element, x.bound)

    def reduce(self) -> None:
        x = self.pick()
        kept = self.draw(st.integers(0, len(x.shape)))
        order = range(len(x.shape)) if self.draw(st.booleans()) else self.draw(st.permutations(range(len(x.shape))))
        dims = sorted(list(order)[kept:])  # mostly the trailing ones, which join row programs
        op, start = self.draw(st.sampled_from((("add", 0), ("maximum", -LARGEST), ("minimum", LARGEST))))
        init = self.constant((), x.element, start)
        shape = tuple(s for d, s in enumerate(x.shape) if d not in dims)
        result = Value("", shape, x.element, 0)
        text = f"stablehlo.reduce({x.name} init: {init.name}) applies stablehlo.{op} across dimensions = {dims}"
        text += f" : ({x.type}, tensor<{x.element}>) -> {result.type}"
        self.emit(text, shape, x.element, x.bound * math.prod(x.shape) if op == "add" else LARGEST)

    def slice(self) -> None:
        x = self.pick()
        bounds = []
        for size in x.shape:
            start = self.draw(st.integers(0, size - 1))
            bounds.append((start, self.draw(st.integers(start + 1, size)), self.draw(st.integers(1, 2))))
        shape = tuple(-(-(end - start) // step) for start, end, step in bounds)
        parts = ", ".join(f"{start}:{end}:{step}" for start, end, step in bounds)
        result = Value("", shape, x.element, x.bound)
        self.emit(f"stablehlo.slice {x.name} [{parts}] : ({x.type}) -> {result.type}", shape, x.element, x.bound)

    def concatenate(self) -> None:
        x = self.pick(rank=1)
        y = self.pick_like(x)
        dim = self.draw(st.integers(0, len(x.shape) - 1))
        shape = tuple(2 * s if d == dim else s for d, s in enumerate(x.shape))
        if math.prod(shape) > 200:
            return
        result = Value("", shape, x.element, 0)
        text = f"stablehlo.concatenate {x.name}, {y.name}, dim = {dim} : ({x.type}, {y.type}) -> {result.type}"
        self.emit(text, shape, x.element, max(x.bound, y.bound))

    def reverse(self) -> None:
        x = self.pick(rank=1)
        dims = [d for d in range(len(x.shape)) if self.draw(st.booleans())]
        self.emit(f"stablehlo.reverse {x.name}, dims = {dims} : {x.type}", x.shape, x.element, x.bound)

    def pad(self) -> None:
        x = self.pick(rank=1)
        rank = len(x.shape)
        low = [self.draw(st.integers(-1, 1)) if s > 2 else self.draw(st.integers(0, 1)) for s in x.shape]
        inner = [self.draw(st.integers(0, 1)) for _ in range(rank)]
        shape = tuple(s + lo + i * (s - 1) for s, lo, i in zip(x.shape, low, inner, strict=True))
        if math.prod(shape) > 200:
            return
        fill = self.constant((), x.element, 2)
        result = Value("", shape, x.element, 0)
        text = f"stablehlo.pad {x.name}, {fill.name}, low = {low}, high = {[0] * rank}, interior = {inner}"
        text += f" : ({x.type}, tensor<{x.element}>) -> {result.type}"
        self.emit(text, shape, x.element, max(2, x.bound))

    def dot(self) -> None:
        x = self.pick(rank=1, limit=256)
        y = self.pick_like(x, limit=256)
        d = self.draw(st.integers(0, len(x.shape) - 1))
        free = tuple(s for i, s in enumerate(x.shape) if i != d)
        if math.prod(free) ** 2 > 200:
            return
        result = Value("", free + free, x.element, 0)
        text = f"stablehlo.dot_general {x.name}, {y.name}, contracting_dims = [{d}] x [{d}]"
        text += f" : ({x.type}, {y.type}) -> {result.type}"
        self.emit(text, result.shape, x.element, x.shape[d] * x.bound * y.bound)

    def iota(self) -> None:
        x = self.pick(rank=1)
        d = self.draw(st.integers(0, len(x.shape) - 1))
        self.emit(f"stablehlo.iota dim = {d} : {x.type}", x.shape, x.element, max(x.shape))

    def plain_constant(self) -> None:
        x = self.pick()
        self.constant(x.shape, x.element)

    def text(self, results: list[Value]) -> str:
        arguments = ", ".join(f"{v.name}: {v.type}" for v in self.arguments)
        types = ", ".join(v.type for v in results)
        body = "\n  ".join(self.lines)
        names = ", ".join(v.name for v in results)
        return f"func.func @main({arguments}) -> ({types}) {{\n  {body}\n  return {names} : {types}\n}}"


OPS = (
    *(Program.binary, Program.binary, Program.binary, Program.unary, Program.select, Program.convert),
    *(Program.broadcast, Program.broadcast, Program.reshape, Program.transpose, Program.reduce, Program.reduce),
    *(Program.slice, Program.concatenate, Program.reverse, Program.pad, Program.dot, Program.iota),
    Program.plain_constant,
)


@st.composite
def programs(draw: st.DrawFn) -> tuple[str, list[np.ndarray]]:
    """The text of a program and its arguments."""
    program = Program(draw)
    for _ in range(draw(st.integers(1, 3))):
        program.argument()
    for op in draw(st.lists(st.sampled_from(OPS), min_size=1, max_size=14)):
        op(program)
    results = draw(st.lists(st.sampled_from(program.values[-6:]), min_size=1, max_size=3))
    results.append(program.values[-1])
    random = np.random.default_rng(draw(st.integers(0, 3)))
    arrays = [
        random.integers(-8, 9, v.shape).astype(np.float32 if v.element == "f32" else np.int32)
        for v in program.arguments
    ]
    return program.text(results), [np.asarray(a) for a in arrays]
