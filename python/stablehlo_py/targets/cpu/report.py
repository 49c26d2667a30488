"""What became of a program on the CPU: which ops went into which kernel, what passes between kernels through memory, and why.

Ops are counted as the `cost` rules count them, after simplification, once for each call in the text: what a loop repeats
is said, not multiplied.
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import asdict
from typing import Any

from stablehlo_py.analysis.cost import program_cost
from stablehlo_py.core import pipeline
from stablehlo_py.core.collect import operations_where
from stablehlo_py.core.diagnostics import describe_location
from stablehlo_py.core.types import tensor_type
from stablehlo_py.dialects.stablehlo import view
from stablehlo_py.mlir import ir
from stablehlo_py.ops.cost import Cost, cost_of
from stablehlo_py.records import field, record
from stablehlo_py.transforms.kernels.apart import Apart
from stablehlo_py.transforms.kernels.grouping import LOOP
from stablehlo_py.transforms.kernels.hlo_form_kernels import KERNEL, HloFormKernels

FORM = HloFormKernels.name
MOST_LINES = 6  # source lines shown of a file
_FRAME = ("func.func", "func.return", "stablehlo.return")
_FREE = frozenset({"stablehlo.constant", "stablehlo.iota", "stablehlo.broadcast_in_dim", "stablehlo.reshape"})


@record(frozen=False)
class Kernel:
    """One kernel function. ops: how often each op is in it, without what only names or repeats elements. calls: in the text.

    read, written: bytes of its operands and results, of one call. flops, transcendentals: of one call. places: the source
    lines that its ops come from, as the program carries them.
    """

    name: str
    kind: str
    ops: dict[str, int]
    calls: int = 0
    in_loop: bool = False
    read: int = 0
    written: int = 0
    flops: int = 0
    transcendentals: int = 0
    places: tuple[str, ...] = ()


@record
class Report:
    """kernels: in the order of the program. apart: the values that one kernel leaves in memory for another."""

    kernels: tuple[Kernel, ...]
    apart: tuple[Apart, ...]
    stays: dict[str, int] = field(default_factory=dict)  # ops that are no kernels: control flow and host calls

    def as_json(self) -> dict[str, Any]:  # Any: JSON
        return {
            "kernels": [asdict(k) for k in self.kernels],
            "apart": [asdict(a) for a in self.apart],
            "stays": self.stays,
        }

    def as_text(self) -> str:
        lines = [f"{'kernel':34} {'calls':>6} {'read':>9} {'written':>9} {'flop/byte':>9}  ops"]
        for k in self.kernels:
            moved = max(k.read + k.written, 1)
            calls = f"{k.calls}{'*' if k.in_loop else ''}"
            ops = ", ".join(f"{name} x{n}" if n > 1 else name for name, n in k.ops.items())
            rate = (k.flops + k.transcendentals) / moved
            lines.append(f"{k.name:34.34} {calls:>6} {_bytes(k.read):>9} {_bytes(k.written):>9} {rate:9.2f}  {ops}")
            if k.places:
                lines.append(f"{'':36}from {'; '.join(k.places)}")
        if any(k.in_loop for k in self.kernels):
            lines.append("* within a loop, which calls it once a step")
        if self.stays:
            lines.append("no kernels: " + ", ".join(f"{name} x{n}" for name, n in sorted(self.stays.items())))
        if self.apart:
            lines += ["", "through memory from one kernel to another, largest first:"]
            for a in sorted(self.apart, key=lambda a: -a.bytes):
                lines.append(f"{_bytes(a.bytes):>9}  {a.first} -> {a.second}: {a.why}")
        return "\n".join(lines)


def report(module: ir.Operation) -> Report:
    """The report of a program on StableHLO; the module is consumed."""
    plan = pipeline.load("cpu")
    pipeline.run(plan, module, stop_after="simplify")
    before = list(itertools.takewhile(lambda step: step.name != FORM, plan.after("simplify").steps))
    pipeline.run(before, module)
    step = next(step for step in plan.steps if step.name == FORM)
    former = HloFormKernels.from_options(step.options)
    assert isinstance(former, HloFormKernels)
    with module.context, ir.Location.unknown():
        apart = former.form(module, explain=True)
    functions = [f.operation for f in module.regions[0].blocks[0].operations]
    kernels = {_symbol(f): _kernel(f) for f in functions if KERNEL in f.attributes}
    stays: Counter[str] = Counter()
    for f in functions:
        if KERNEL not in f.attributes and f.name == "func.func":
            _count(f.regions[0].blocks[0], kernels, stays, in_loop=False)
    called = sorted((k for k in kernels.values() if k.calls), key=lambda k: int(k.name.rpartition("_")[2]))
    return Report(tuple(called), tuple(apart), dict(stays))


def _count(block: ir.Block, kernels: dict[str, Kernel], stays: Counter[str], *, in_loop: bool) -> None:
    for op in block.operations:
        name = op.operation.name
        if name == "func.call":
            kernel = kernels.get(ir.FlatSymbolRefAttr(op.operation.attributes["callee"]).value)
            if kernel is not None:
                kernel.calls += 1
                kernel.in_loop |= in_loop
        elif name in ("stablehlo.while", "stablehlo.case", "stablehlo.custom_call"):
            stays[_short(name)] += 1
        for region in op.operation.regions:
            for inner in region.blocks:
                _count(inner, kernels, stays, in_loop=in_loop or name == "stablehlo.while")


def _kernel(function: ir.Operation) -> Kernel:
    block = function.regions[0].blocks[0]
    *ops, terminator = [op.operation for op in block.operations]
    if ir.StringAttr(function.attributes[KERNEL]).value == LOOP:
        cost = program_cost(function).total  # of a loop of unknown length, one step
        ops = operations_where(function, lambda op: op.name not in _FRAME)
    else:
        cost = sum((cost_of(view(op)) for op in ops), Cost())
    counted = Counter(_short(op.name) for op in ops if op.name not in _FREE) or Counter(_short(op.name) for op in ops)
    return Kernel(
        _symbol(function),
        ir.StringAttr(function.attributes[KERNEL]).value,
        dict(counted),
        read=sum(tensor_type(a.type).bytes for a in block.arguments),
        written=sum(tensor_type(v.type).bytes for v in terminator.operands),
        flops=cost.flops,
        transcendentals=cost.transcendentals,
        places=_places(ops),
    )


def _places(ops: list[ir.Operation]) -> tuple[str, ...]:
    """`file:line, line ...` for each of the user's files that the ops come from."""
    lines: dict[str, dict[str, None]] = {}
    for op in ops:
        place, _, _ = describe_location(op.location).partition(" ")
        file, _, rest = place.rpartition(":")[0].rpartition(":")
        if file:
            lines.setdefault(file, {})[rest] = None
    shown = []
    for file, numbers in lines.items():
        some = sorted(numbers, key=int)
        shown.append(f"{file}:{', '.join(some[:MOST_LINES])}{' ...' if len(some) > MOST_LINES else ''}")
    return tuple(shown)


def _symbol(function: ir.Operation) -> str:
    return ir.StringAttr(function.attributes["sym_name"]).value


def _short(name: str) -> str:
    return name.removeprefix("stablehlo.")


def _bytes(count: int) -> str:
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} B"
