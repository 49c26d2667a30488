"""Random programs of elementwise, shape, reduction and control ops on small integers: every order of a sum is exact."""

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
    count: int = 0
    depth: int = 0

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def emit(self, text: str, shape: tuple[int, ...], element: str, bound: int) -> Value:
        value = Value(self.name(), shape, element, bound)
        self.values.append(value)
        self.lines.append(f"{value.name} = {text}")
        return value

    def argument(self) -> None:
        shape = tuple(self.draw(st.lists(st.sampled_from(SIZES), max_size=3)))
        value = Value(self.name(), shape, self.draw(st.sampled_from(("f32", "f32", "i32"))), 8)
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

    # --- reads and writes at places known when the program runs

    def starts(self, rank: int) -> list[Value]:
        """0-d integers, in range or not: constants or computed ones."""
        known = [v for v in self.values if (v.shape, v.element) == ((), "i32")]
        return [
            self.draw(st.sampled_from(known))
            if known and self.draw(st.booleans())
            else self.constant((), "i32", self.draw(st.integers(-2, 5)))
            for _ in range(rank)
        ]

    def dynamic_slice(self) -> None:
        x = self.pick(rank=1)
        shape = tuple(self.draw(st.integers(1, s)) for s in x.shape)
        starts = self.starts(len(shape))
        result = Value("", shape, x.element, x.bound)
        text = f"stablehlo.dynamic_slice {x.name}, {', '.join(v.name for v in starts)}, sizes = {list(shape)}"
        text += f" : ({x.type}, {', '.join(v.type for v in starts)}) -> {result.type}"
        self.emit(text, shape, x.element, x.bound)

    def dynamic_update_slice(self) -> None:
        x = self.pick(rank=1)
        small = [
            v
            for v in self.values
            if v.element == x.element
            and len(v.shape) == len(x.shape)
            and all(a <= b for a, b in zip(v.shape, x.shape, strict=True))
        ]
        update = self.draw(st.sampled_from(small))
        starts = self.starts(len(x.shape))
        text = f"stablehlo.dynamic_update_slice {x.name}, {update.name}, {', '.join(v.name for v in starts)}"
        text += f" : ({x.type}, {update.type}, {', '.join(v.type for v in starts)}) -> {x.type}"
        self.emit(text, x.shape, x.element, max(x.bound, update.bound))

    def scatter(self) -> None:
        """Rows of one operand added to, or put into, rows of another."""
        x = self.pick(rank=1)
        rows = self.draw(st.integers(1, 4))
        places = self.constant((rows, 1), "i32")
        updates = self.constant((rows, *x.shape[1:]), x.element)
        scalar = f"tensor<{x.element}>"
        body = "%sum = stablehlo.add %old, %new : " + scalar if self.draw(st.booleans()) else ""
        text = (
            f'"stablehlo.scatter"({x.name}, {places.name}, {updates.name}) <{{scatter_dimension_numbers = '
            f"#stablehlo.scatter<update_window_dims = {list(range(1, len(x.shape)))}, inserted_window_dims = [0], "
            f"scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> ({{ ^bb0(%old: {scalar}, %new: {scalar}): "
            f"{body} stablehlo.return {'%sum' if body else '%new'} : {scalar} }}) "
            f": ({x.type}, {places.type}, {updates.type}) -> {x.type}"
        )
        self.emit(text, x.shape, x.element, x.bound + 16)

    # --- control flow

    def region(self, results: list[Value]) -> str:
        """Random ops, then values of the results' types."""
        outer_values, outer_lines = self.values, self.lines
        self.values, self.lines, self.depth = list(outer_values), [], self.depth + 1
        for op in self.draw(st.lists(st.sampled_from(OPS), max_size=4)):
            op(self)
        returned = [self.pick_like(r, limit=r.bound) for r in results]
        names, types = ", ".join(v.name for v in returned), ", ".join(r.type for r in results)
        text = "\n    ".join([*self.lines, f"stablehlo.return {names} : {types}"])
        self.values, self.lines, self.depth = outer_values, outer_lines, self.depth - 1
        return text

    def several(self, text: str, results: list[Value]) -> None:
        name = self.name()
        self.lines.append(f"{name}:{len(results)} = {text}")
        self.values.extend(Value(f"{name}#{i}", r.shape, r.element, r.bound) for i, r in enumerate(results))

    def branch(self) -> None:
        if self.depth > 1:
            return
        results = [self.pick() for _ in range(self.draw(st.integers(1, 3)))]
        index = self.starts(1)[0]
        regions = ", ".join(f"{{\n    {self.region(results)}\n  }}" for _ in range(self.draw(st.integers(1, 3))))
        types = ", ".join(r.type for r in results)
        self.several(f'"stablehlo.case"({index.name}) ({regions}) : (tensor<i32>) -> ({types})', results)

    def loop(self) -> None:
        """A while of a few steps that carries up to three values and reads others."""
        if self.depth > 1:
            return
        inits = [self.pick() for _ in range(self.draw(st.integers(1, 3)))]
        zero, one = self.constant((), "i32", 0), self.constant((), "i32", 1)
        steps = self.constant((), "i32", self.draw(st.integers(0, 3)))
        counter = Value(self.name(), (), "i32", 8)
        carried = [Value(self.name(), v.shape, v.element, v.bound) for v in inits]
        pairs = ", ".join(f"{c.name} = {v.name}" for c, v in zip([counter, *carried], [zero, *inits], strict=True))
        types = ", ".join(v.type for v in [counter, *carried])
        outer = self.values
        self.values = [*outer, counter, *carried]
        body = self.region(carried)
        self.values = outer
        go, following = self.name(), self.name()
        head, _, last = body.rpartition("stablehlo.return ")
        names, _, _ = last.partition(" : ")
        text = (
            f"stablehlo.while({pairs}) : {types} cond {{\n"
            f"    {go} = stablehlo.compare LT, {counter.name}, {steps.name} : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
            f"    stablehlo.return {go} : tensor<i1>\n  }} do {{\n"
            f"    {following} = stablehlo.add {counter.name}, {one.name} : tensor<i32>\n"
            f"    {head}stablehlo.return {following}, {names} : {types}\n  }}"
        )
        self.several(text, [counter, *carried])

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
    *(Program.plain_constant, Program.dynamic_slice, Program.dynamic_update_slice, Program.scatter),
    *(Program.branch, Program.loop),
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
