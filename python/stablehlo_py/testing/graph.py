"""A random program in the making: its SSA values, its lines of generic MLIR, and its arguments."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from random import Random

from stablehlo_py.core.types import ELEMENT_TYPES, ElementType
from stablehlo_py.records import field, record

MOST_ELEMENTS = 3000
SIZES = (1, 1, 2, 2, 3, 3, 4, 5, 7, 8, 13, 16, 17, 0)

INTEGERS = tuple(n for n, e in ELEMENT_TYPES.items() if e.is_integer and n != "index")
SMALL_FLOATS = tuple(n for n, e in ELEMENT_TYPES.items() if e.is_float and e.bits <= 8)
FLOATS = ("f32", "f32", "f32", "f64", "f64", "f16", "bf16", *SMALL_FLOATS)
COMPLEX = ("complex<f32>", "complex<f64>")


@record
class Value:
    """An SSA value."""

    name: str
    shape: tuple[int, ...]
    element: str

    @property
    def type(self) -> str:
        return tensor(self.shape, self.element)

    @property
    def info(self) -> ElementType:
        return ELEMENT_TYPES[self.element]

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def is_quantized(self) -> bool:
        return self.element.startswith("!quant")


@record
class Argument:
    """A value that comes from outside; style: which numbers it holds (see values.py)."""

    value: Value
    style: str
    seed: int


def tensor(shape: Sequence[int], element: str) -> str:
    return f"tensor<{''.join(f'{d}x' for d in shape)}{element}>"


def array(numbers: Sequence[int] | Sequence[bool]) -> str:
    """A dense array attribute."""
    kind = "i1" if numbers and isinstance(numbers[0], bool) else "i64"
    inside = ", ".join(str(n).lower() for n in numbers)
    return f"array<{kind}: {inside}>" if inside else f"array<{kind}>"


def matrix(rows: Sequence[tuple[int, int]]) -> str:
    """Dense i64 elements of n x 2, such as a padding."""
    return f"dense<{[list(r) for r in rows]}> : tensor<{len(rows)}x2xi64>"


@record(frozen=False)
class Graph:
    """Values in scope, lines so far, arguments; `random` decides everything."""

    random: Random
    prefix: str = ""
    values: list[Value] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    arguments: list[Argument] = field(default_factory=list)
    count: int = 0
    depth: int = 0

    # --- drawing

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def element(self) -> str:
        """Any element type; the common ones more often."""
        pool = self.random.choices(
            (("f32",), FLOATS, INTEGERS, ("i1",), COMPLEX, ("i32",), ("i64",)), (6, 6, 5, 1, 2, 3, 1)
        )[0]
        return self.random.choice(pool)

    def shape(self, *, least: int = 0, most: int = 6, limit: int = 600) -> tuple[int, ...]:
        """An awkward shape; a zero is rare."""
        weights = [5, 8, 10, 8, 4, 2, 1]
        rank = self.random.choices(range(least, most + 1), weights[least : most + 1])[0]
        shape: list[int] = []
        for _ in range(rank):
            size = self.random.choice(SIZES if self.chance(0.4) else SIZES[:-1])
            shape.append(size if math.prod(shape) * size <= limit else self.random.choice((1, 2)))
        return tuple(shape) if math.prod(shape) <= limit else (1,) * rank

    # --- values

    def name(self) -> str:
        self.count += 1
        return f"%{self.prefix}v{self.count}"

    def argument(self, shape: Sequence[int], element: str, style: str = "any") -> Value:
        value = Value(self.name(), tuple(shape), element)
        self.arguments.append(Argument(value, style, self.random.randrange(1 << 30)))
        if not value.is_quantized:
            self.values.append(value)
        return value

    def pick(
        self,
        wanted: Callable[[ElementType], bool] = lambda e: True,
        *,
        rank: int = 0,
        most_rank: int = 6,
        limit: int = MOST_ELEMENTS,
        style: str = "any",
    ) -> Value:
        """A value in scope of a wanted element type, recent ones more often, or a new argument."""

        def fits(v: Value) -> bool:
            return wanted(v.info) and rank <= len(v.shape) <= most_rank and v.size <= limit

        fitting = [v for v in self.values if fits(v)]
        if fitting and self.chance(0.85):
            return self.random.choice(fitting[-4:] if self.chance(0.7) else fitting)
        pool = [n for n in ELEMENT_TYPES if n != "index" and wanted(ELEMENT_TYPES[n])]
        element = next((e for e in (self.element() for _ in range(8)) if e in pool), None) or self.random.choice(pool)
        shape = self.shape(least=rank, most=most_rank, limit=min(limit, 600))
        return self.argument(shape, element, style)

    def like(self, shape: Sequence[int], element: str, style: str = "any") -> Value:
        """A value of this very type: in scope, a constant, or a new argument."""
        fitting = [v for v in self.values if (v.shape, v.element) == (tuple(shape), element)]
        if fitting and self.chance(0.8):
            return self.random.choice(fitting)
        if self.chance(0.25):
            return self.constant(shape, element, str(self.random.choice((0, 1, 1))))
        return self.argument(shape, element, style)

    def constant(self, shape: Sequence[int], element: str, literal: str) -> Value:
        """A splat; literal is a whole number."""
        info = ELEMENT_TYPES[element]
        if info.is_bool:
            literal = "true" if literal != "0" else "false"
        if info.is_float and literal.lstrip("-").isdigit():
            literal += ".0"
        if info.is_complex:
            literal = f"({literal}.0, 0.0)"
        ty = tensor(shape, element)
        return self.emit("stablehlo.constant", (), (shape, element), f"value = dense<{literal}> : {ty}")

    def emit(
        self,
        op: str,
        operands: Sequence[Value],
        result: tuple[Sequence[int], str],
        attributes: str = "",
        regions: Sequence[str] = (),
    ) -> Value:
        """An op of one result."""
        return self.emit_several(op, operands, [result], attributes, regions)[0]

    def emit_several(
        self,
        op: str,
        operands: Sequence[Value],
        results: Sequence[tuple[Sequence[int], str]],
        attributes: str = "",
        regions: Sequence[str] = (),
    ) -> list[Value]:
        name = self.name()
        given, types = ", ".join(v.name for v in operands), ", ".join(v.type for v in operands)
        made = ", ".join(tensor(shape, element) for shape, element in results)
        many = f":{len(results)}" if len(results) > 1 else ""
        bodies = f" ({', '.join(regions)})" if regions else ""
        attributes = f" {{{attributes}}}" if attributes else ""
        self.lines.append(f'{name}{many} = "{op}"({given}){bodies}{attributes} : ({types}) -> ({made})')
        names = [f"{name}#{i}" for i in range(len(results))] if many else [name]
        values = [Value(n, tuple(shape), element) for n, (shape, element) in zip(names, results, strict=True)]
        self.values.extend(v for v in values if not v.is_quantized)  # few ops take those: their family keeps them
        return values

    # --- regions

    def body(self, op: str, element: str) -> str:
        """A region of two scalars combined by one op."""
        a, b, c = self.name(), self.name(), self.name()
        ty = tensor((), element)
        inside = f'{c} = "{op}"({a}, {b}) : ({ty}, {ty}) -> {ty}'
        return f'{{ ^bb0({a}: {ty}, {b}: {ty}): {inside} "stablehlo.return"({c}) : ({ty}) -> () }}'

    def region(self, arguments: Sequence[Value], fill: Callable[[], Sequence[Value]]) -> str:
        """A region with arguments; fill emits ops and says what is returned."""
        outer_values, outer_lines = self.values, self.lines
        self.values, self.lines, self.depth = [*outer_values, *arguments], [], self.depth + 1
        returned = fill()
        inner = self.lines
        made = self.arguments_since(outer_values)
        self.values, self.lines, self.depth = [*outer_values, *made], outer_lines, self.depth - 1
        head = f"^bb0({', '.join(f'{v.name}: {v.type}' for v in arguments)}): " if arguments else ""
        names, types = ", ".join(v.name for v in returned), ", ".join(v.type for v in returned)
        text = "\n    ".join([*inner, f'"stablehlo.return"({names}) : ({types}) -> ()'])
        return f"{{ {head}\n    {text}\n  }}"

    def arguments_since(self, before: list[Value]) -> list[Value]:
        """Arguments of the program that a region has asked for: in scope everywhere."""
        known = {v.name for v in before}
        return [a.value for a in self.arguments if a.value.name not in known and not a.value.is_quantized]
