"""Random programs of the kind that the TPU-like target maps, each for a random chip and VMEM limit, and the check of one.

Where all numbers are small integers the results must have the same bits as the reference interpreter's; where functions such
as exp round, they must be close.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from stablehlo_py.core.types import element_type
from stablehlo_py.dialects.mxu_verify import check_kernel
from stablehlo_py.dialects.mxu_verify_program import check_program
from stablehlo_py.machine.tpu import CHIPS, Chip, chip
from stablehlo_py.mlir import ir, new_context
from stablehlo_py.records import record
from stablehlo_py.reference import interpret
from stablehlo_py.simulator.program import Program
from stablehlo_py.targets.tpu import emit
from stablehlo_py.targets.tpu.compile import TpuOptions, compile_tpu

SIZES = (1, 2, 3, 7, 8, 13, 31, 64, 97, 127, 128, 129, 131, 200, 251, 256, 257, 383, 509)
LARGE_SIZES = (1, 129, 512, 1000, 1024, 1531, 2048, 3000, 4096, 5003, 8192)  # compiled and checked, never run
LIMITS = (0, 400_000, 600_000, 1_000_000, 4_000_000)
LARGE_LIMITS = (0, 5_000_000, 8_000_000)  # enough for eight rows of the longest norm
EXACT_ACTIVATIONS = ("abs", "negate", "relu")
ROUNDED_ACTIVATIONS = ("tanh", "logistic", "exponential")


@record
class Case:
    """One program: its text and arguments, what it is compiled for, and the error that rounding leaves (0: none).

    A large one has no arguments: it is compiled and not run.
    """

    kind: str
    text: str
    arrays: tuple[np.ndarray, ...]
    chip: str
    vmem_limit: int
    tolerance: float
    large: bool


class _Writer:
    """Lines of @main; each method adds an op and gives the name of its result."""

    def __init__(self, rng: np.random.Generator, element: str, large: bool) -> None:
        self.rng, self.element, self.large = rng, element, large
        self.arguments: list[str] = []
        self.lines: list[str] = []
        self.types: dict[str, str] = {}
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.arrays: list[np.ndarray] = []
        self.tolerance = 0.0

    def size(self) -> int:
        return int(self.rng.choice(LARGE_SIZES if self.large else SIZES))

    def rows(self) -> str:
        """An argument whose rows have more than one element: others are moves, which the host makes."""
        return self.argument((self.size(), max(2, self.size())))

    def argument(self, shape: tuple[int, ...], low: int = -3, high: int = 4) -> str:
        """Small integers: sums of their products are exact in any order."""
        if not self.large:
            self.arrays.append(self.rng.integers(low, high, shape).astype(element_type(self.element).dtype))
        self.arguments.append(self.named(f"%arg{len(self.arguments)}", shape))
        return self.arguments[-1]

    def named(self, name: str, shape: tuple[int, ...], element: str = "") -> str:
        dims = "".join(f"{d}x" for d in shape)
        self.shapes[name], self.types[name] = shape, f"tensor<{dims}{element or self.element}>"
        return name

    def op(self, text: str, shape: tuple[int, ...], signature: Callable[[str], str], element: str = "") -> str:
        name = self.named(f"%v{len(self.lines)}", shape, element)
        self.lines.append(f"{name} = stablehlo.{text} : {signature(self.types[name])}")
        return name

    def elementwise(self, function: str, *values: str) -> str:
        return self.op(f"{function} {', '.join(values)}", self.shapes[values[0]], lambda out: out)

    def number(self, value: str, shape: tuple[int, ...] = ()) -> str:
        return self.op(f"constant dense<{value}>", shape, lambda out: out)

    def product(self, lhs: str, rhs: str, lhs_dim: int, rhs_dim: int, batch: bool = False, out: str = "") -> str:
        """Contracts dimension lhs_dim with rhs_dim; with `batch`, dimension 0 of both is the batch."""
        a, b = self.shapes[lhs], self.shapes[rhs]
        first = int(batch)
        kept = [a[d] for d in range(first, len(a)) if d != lhs_dim] + [
            b[d] for d in range(first, len(b)) if d != rhs_dim
        ]
        batching = "batching_dims = [0] x [0], " if batch else ""
        types = f"({self.types[lhs]}, {self.types[rhs]})"
        return self.op(
            f"dot_general {lhs}, {rhs}, {batching}contracting_dims = [{lhs_dim}] x [{rhs_dim}]",
            (*a[:first], *kept),
            lambda result: f"{types} -> {result}",
            out,
        )

    def spread(self, value: str, shape: tuple[int, ...], dims: list[int]) -> str:
        source = self.types[value]
        return self.op(f"broadcast_in_dim {value}, dims = {dims}", shape, lambda out: f"({source}) -> {out}")

    def reduced(self, value: str, function: str, start: str) -> str:
        """Over the last dimension, and spread over it again."""
        shape, source = self.shapes[value], self.types[value]
        zero = self.number(start)
        row = self.op(
            f"reduce({value} init: {zero}) applies stablehlo.{function} across dimensions = [{len(shape) - 1}]",
            shape[:-1],
            lambda out: f"({source}, {self.types[zero]}) -> {out}",
        )
        return self.spread(row, shape, list(range(len(shape) - 1)))

    def activation(self, value: str, functions: tuple[str, ...]) -> str:
        function = str(self.rng.choice(functions))
        if function in ROUNDED_ACTIVATIONS:
            self.tolerance = 2.0**-7 if self.element == "bf16" else 1e-5
            value = self.elementwise("multiply", value, self.number("0.0078125", self.shapes[value]))
        if function == "relu":
            return self.elementwise("maximum", value, self.number("0.0", self.shapes[value]))
        return self.elementwise(function, value)

    def text(self, result: str) -> str:
        arguments = ", ".join(f"{name}: {self.types[name]}" for name in self.arguments)
        body = "\n  ".join(self.lines)
        out = self.types[result]
        return f"func.func @main({arguments}) -> {out} {{\n  {body}\n  return {result} : {out}\n}}"


def _matrix_product(w: _Writer, out: str = "") -> str:
    """[m,k] x [k,n] with each operand the one way or the other, sometimes with a batch."""
    m, n, k = w.size(), w.size(), w.size()
    batch = (int(w.rng.integers(2, 4)),) if w.rng.random() < 0.15 else ()
    turned = w.rng.random(2) < 0.25
    lhs = w.argument((*batch, *((k, m) if turned[0] else (m, k))))
    rhs = w.argument((*batch, *((n, k) if turned[1] else (k, n))))
    first = len(batch)
    return w.product(lhs, rhs, first + (not turned[0]), first + int(turned[1]), bool(batch), out)


def _single(w: _Writer) -> str:
    wide = {"bf16": "f32" if w.rng.random() < 0.5 else "bf16", "i8": "i32"}
    return _matrix_product(w, wide.get(w.element, ""))


def _epilogue(w: _Writer) -> str:
    """A product with a bias of columns or rows, an activation, sometimes a residual."""
    value = _matrix_product(w)
    shape = w.shapes[value]
    dim = len(shape) - 1 - int(w.rng.random() < 0.2)
    value = w.elementwise("add", value, w.spread(w.argument((shape[dim],)), shape, [dim]))
    if w.rng.random() < 0.4:
        value = w.elementwise(str(w.rng.choice(("add", "subtract"))), value, w.argument(shape))
    return w.activation(value, EXACT_ACTIVATIONS if w.rng.random() < 0.6 else ROUNDED_ACTIVATIONS)


def _softmax(w: _Writer, value: str = "") -> str:
    value = value or w.rows()
    w.tolerance = 2e-5
    shifted = w.elementwise("subtract", value, w.reduced(value, "maximum", "0xFF800000"))
    powers = w.elementwise("exponential", shifted)
    return w.elementwise("divide", powers, w.reduced(powers, "add", "0.0"))


def _norm(w: _Writer, value: str = "") -> str:
    value = value or w.rows()
    w.tolerance = 2e-5
    shape = w.shapes[value]
    share = w.number(repr(1 / shape[-1]), shape)
    centred = w.elementwise("subtract", value, w.elementwise("multiply", w.reduced(value, "add", "0.0"), share))
    squares = w.reduced(w.elementwise("multiply", centred, centred), "add", "0.0")
    variance = w.elementwise("add", w.elementwise("multiply", squares, share), w.number("0.5", shape))
    scaled = w.elementwise("multiply", centred, w.elementwise("rsqrt", variance))
    return w.elementwise("multiply", scaled, w.spread(w.argument(shape[-1:]), shape, [len(shape) - 1]))


def _softmax_of_product(w: _Writer) -> str:
    value = _matrix_product(w)
    return _softmax(w, w.elementwise("multiply", value, w.number("0.03125", w.shapes[value])))


def _two_products(w: _Writer) -> str:
    """Two layers: the hidden values may stay in fast memory between the kernels."""
    m, widths = w.size(), [w.size() for _ in range(3)]
    value = w.argument((m, widths[0]))
    for a, b in ((widths[0], widths[1]), (widths[1], widths[2])):
        value = w.product(value, w.argument((a, b)), 1, 0)
        if w.rng.random() < 0.7:
            value = w.elementwise("add", value, w.spread(w.argument((b,)), (m, b), [1]))
        value = w.activation(value, EXACT_ACTIVATIONS)
    return value


def _moves(w: _Writer, value: str = "", most: int = 4) -> str:
    """A chain of ops that only move elements."""
    value = value or w.argument(
        tuple(max(1, w.size() // d) for d in w.rng.choice((1, 8, 64), int(w.rng.integers(2, 4))))
    )
    for _ in range(int(w.rng.integers(1, most))):
        value = _MOVES[int(w.rng.integers(0, len(_MOVES)))](w, value)
    return value


def _transpose(w: _Writer, value: str) -> str:
    shape, source = w.shapes[value], w.types[value]
    order = [int(d) for d in w.rng.permutation(len(shape))]
    return w.op(
        f"transpose {value}, dims = {order}", tuple(shape[d] for d in order), lambda out: f"({source}) -> {out}"
    )


def _slice(w: _Writer, value: str) -> str:
    shape, source = w.shapes[value], w.types[value]
    starts = [int(w.rng.integers(0, max(1, n // 2))) for n in shape]
    ends = [int(w.rng.integers(s + 1, n + 1)) for s, n in zip(starts, shape, strict=True)]
    steps = [int(w.rng.choice((1, 1, 1, 2, 3))) for _ in shape]
    ranges = ", ".join(f"{a}:{b}:{s}" for a, b, s in zip(starts, ends, steps, strict=True))
    out = tuple(-(-(b - a) // s) for a, b, s in zip(starts, ends, steps, strict=True))
    return w.op(f"slice {value} [{ranges}]", out, lambda result: f"({source}) -> {result}")


def _reverse(w: _Writer, value: str) -> str:
    dims = [d for d in range(len(w.shapes[value])) if w.rng.random() < 0.5]
    return w.op(f"reverse {value}, dims = {dims}", w.shapes[value], lambda out: out)


def _pad(w: _Writer, value: str) -> str:
    shape, source = w.shapes[value], w.types[value]
    low, high = ([int(w.rng.integers(0, 4)) for _ in shape] for _ in range(2))
    inside = [int(w.rng.choice((0, 0, 0, 1))) for _ in shape]
    zero = w.number("3" if w.element.startswith("i") else "3.0")
    out = tuple(a + n + b + (n - 1) * i for a, n, b, i in zip(low, shape, high, inside, strict=True))
    types = f"({source}, {w.types[zero]})"
    return w.op(
        f"pad {value}, {zero}, low = {low}, high = {high}, interior = {inside}",
        out,
        lambda result: f"{types} -> {result}",
    )


def _concatenate(w: _Writer, value: str) -> str:
    shape = w.shapes[value]
    dim = int(w.rng.integers(0, len(shape)))
    other = w.argument(tuple(int(w.rng.integers(1, 40)) if d == dim else n for d, n in enumerate(shape)))
    out = tuple(n + w.shapes[other][dim] if d == dim else n for d, n in enumerate(shape))
    types = f"({w.types[value]}, {w.types[other]})"
    return w.op(f"concatenate {value}, {other}, dim = {dim}", out, lambda result: f"{types} -> {result}")


def _merge(w: _Writer, value: str) -> str:
    """Two neighbouring dimensions as one, or one as two."""
    shape, source = list(w.shapes[value]), w.types[value]
    at = int(w.rng.integers(0, len(shape) - 1)) if len(shape) > 2 else 0
    if len(shape) > 2:
        shape[at : at + 2] = [shape[at] * shape[at + 1]]
    else:
        cut = int(w.rng.choice([n for n in (1, 2, 3, 4, 8) if shape[at] % n == 0]))
        shape[at : at + 1] = [cut, shape[at] // cut]
    return w.op(f"reshape {value}", tuple(shape), lambda out: f"({source}) -> {out}")


_MOVES = (_transpose, _slice, _reverse, _pad, _concatenate, _merge)


def _moves_around_product(w: _Writer) -> str:
    """Heads out of the columns of a product, put together again behind it."""
    heads, width, m = int(w.rng.integers(1, 5)), int(w.rng.choice((16, 32, 64, 128))), w.size()
    value = w.product(w.argument((m, heads * width)), w.argument((heads * width, heads * width)), 1, 0)
    for shape, order in (((m, heads, width), [1, 0, 2]), ((heads, m, width), [1, 0, 2])):
        source = w.types[value]
        if w.shapes[value] != shape:
            value = w.op(f"reshape {value}", shape, lambda out, source=source: f"({source}) -> {out}")
        source = w.types[value]
        moved = tuple(shape[d] for d in order)
        value = w.op(f"transpose {value}, dims = {order}", moved, lambda out, source=source: f"({source}) -> {out}")
        value = w.elementwise("abs", value)
    source = w.types[value]
    return w.op(f"reshape {value}", (m, heads * width), lambda out: f"({source}) -> {out}")


KINDS: dict[str, tuple[Callable[[_Writer], str], tuple[str, ...]]] = {
    "product": (_single, ("bf16", "f32", "f16", "i8")),
    "epilogue": (_epilogue, ("bf16", "f32")),
    "softmax": (_softmax, ("f32",)),
    "norm": (_norm, ("f32",)),
    "softmax of product": (_softmax_of_product, ("f32",)),
    "two products": (_two_products, ("bf16",)),
    "moves": (_moves, ("bf16", "f32", "i8")),
    "moves of a product": (_moves_around_product, ("bf16", "f32")),
}


def random_case(seed: int, *, large: bool = False) -> Case:
    """The program of a seed."""
    rng = np.random.default_rng(seed)
    kind = str(rng.choice(list(KINDS)))
    make, elements = KINDS[kind]
    writer = _Writer(rng, str(rng.choice(elements)), large)
    text = writer.text(make(writer))
    name, limit = str(rng.choice(list(CHIPS))), int(rng.choice(LARGE_LIMITS if large else LIMITS))
    return Case(kind, text, tuple(writer.arrays), name, limit, writer.tolerance, large)


def problems(case: Case) -> list[str]:
    """What is wrong with a case: rules of the verifier, VMEM, values; none of them is the good answer."""
    machine = chip(case.chip)
    found = []
    with new_context(), ir.Location.unknown():
        module = ir.Module.parse(case.text)
        program = compile_tpu(module, TpuOptions(chip=case.chip, vmem_limit=case.vmem_limit))
        if not program.kernels and case.kind != "moves":
            found.append("nothing of it runs on the chip")
        for operation in emit.operations_named(program.module.operation, "mxu.kernel"):
            broken = check_kernel(operation)
            if broken is not None:
                found.append(f"the verifier's rule: {broken[0].name} {broken[1]}")
        broken = check_program(program.module.operation)
        if broken is not None:
            found.append(f"the rule between kernels: {broken[0].name} {broken[1]}")
        report = program.report()
        if not report.seconds >= sum(kernel.seconds for kernel in report.kernels) * (1 - 1e-9):
            found.append(f"{report.seconds} s for kernels that take more")
        for kernel in program.kernels:
            found += memory_problems(kernel, machine, machine.vmem_for_blocks(case.vmem_limit))
        if case.large:
            return found
        ours, theirs = program(*case.arrays), interpret(module, *case.arrays)
    for a, b in zip(ours, theirs, strict=True):
        found += _differences(np.asarray(a), np.asarray(b), case.tolerance)
    return found


def memory_problems(kernel: Program, machine: Chip, limit: int) -> list[str]:
    """Counted from the buffers alone, without the verifier: copies apart, within the limit, beside what is resident."""
    found, end = [], 0
    for buffer in sorted((a for a in kernel.allocations if a.space == "vmem"), key=lambda a: a.offset):
        if buffer.offset < end:
            found.append(f"{kernel.label}: {buffer.name} at {buffer.offset} lies over what ends at {end}")
        end = max(end, buffer.offset + buffer.copies * buffer.bytes)
    if end > limit:
        found.append(f"{kernel.label}: blocks end at {end} bytes of VMEM, the limit is {limit}")
    # At least a core's share of each array that is there.
    resident = sum(a.bytes for a in (*kernel.inputs, *kernel.outputs) if a.space == "vmem") // machine.cores
    if end + resident > machine.vmem_bytes:
        found.append(f"{kernel.label}: {end} and {resident} bytes of VMEM, {machine.name} has {machine.vmem_bytes}")
    return found


def _differences(ours: np.ndarray, theirs: np.ndarray, tolerance: float) -> list[str]:
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return [f"{ours.dtype}{ours.shape} where {theirs.dtype}{theirs.shape} is expected"]
    if tolerance == 0:
        wrong = int((ours.view(f"u{ours.itemsize}") != theirs.view(f"u{theirs.itemsize}")).sum())
        zeros = int(((ours == 0) & (theirs == 0) & (np.signbit(ours) != np.signbit(theirs))).sum()) if wrong else 0
        return [f"{wrong - zeros} of {ours.size} elements differ"] if wrong > zeros else []
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    if not np.all(np.isfinite(a) == np.isfinite(b)):
        return ["infinities or NaN where there should be none"]
    error = float(np.max(np.abs(a - b) - tolerance * np.abs(b), initial=0.0))
    return [f"an error of {error:.3g} beyond {tolerance:.3g} of the value"] if error > tolerance else []
