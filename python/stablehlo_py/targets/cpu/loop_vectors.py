"""Whether the steps of an innermost loop can run side by side, and what each of its values is then.

A value is uniform (the same in all steps: it stays a scalar, in front of the loop), an address (an index that grows by
one a step) or varying (it becomes a vector). Memory is read and written at addresses whose last index grows by one; a
buffer that is written is touched nowhere else. Buffers of different arguments do not overlap: so the planner has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from stablehlo_py.mlir import ir

# Ops that do to each lane what they do to a scalar, at the cost of one instruction or a few.
_ARITH = """addf subf mulf divf negf maximumf minimumf maxnumf minnumf addi subi muli andi ori xori shli shrsi shrui maxsi
maxui minsi minui cmpf cmpi select extf truncf extsi extui trunci sitofp uitofp fptosi fptoui bitcast"""
_MATH = "absf absi sqrt fma floor ceil trunc roundeven copysign"
LANEWISE = frozenset([f"arith.{name}" for name in _ARITH.split()] + [f"math.{name}" for name in _MATH.split()])
_HALVES = ("f16", "bf16")
_CONVERSIONS = ("arith.extf", "arith.truncf", "arith.bitcast", "arith.select")  # what halves may meet

# How the partial results of lanes are joined, and what they start from; of floats only where the order may be chosen.
JOINS = {
    "arith.addf": ("add", -0.0),
    "arith.mulf": ("mul", 1.0),
    "arith.maximumf": ("maximumf", float("-inf")),
    "arith.minimumf": ("minimumf", float("inf")),
    "arith.addi": ("add", 0),
    "arith.muli": ("mul", 1),
    "arith.andi": ("and", -1),
    "arith.ori": ("or", 0),
    "arith.xori": ("xor", 0),
}
_ORDERED = ("arith.addf", "arith.mulf")


@dataclass
class Plan:
    """A loop whose steps can run side by side. joins: for each carried value, the op that adds a step to it."""

    loop: ir.Operation
    uniform: set[ir.Value] = field(default_factory=set)
    addresses: set[ir.Value] = field(default_factory=set)
    varying: set[ir.Value] = field(default_factory=set)
    joins: list[ir.Operation] = field(default_factory=list)
    widest: int = 0  # bits of the largest element in memory or carried: what is wider in between takes two registers

    @property
    def body(self) -> ir.Block:
        return self.loop.regions[0].blocks[0]

    @property
    def steps(self) -> int | None:
        """How many there are, where it is known."""
        low, high = constant(self.loop.operands[0]), constant(self.loop.operands[1])
        return None if low is None or high is None else high - low


def constant(value: ir.Value) -> int | None:
    if isinstance(value.owner, ir.Block) or value.owner.operation.name != "arith.constant":
        return None
    attribute = value.owner.operation.attributes["value"]
    return attribute.value if isinstance(attribute, ir.IntegerAttr) else None


def plan_of(loop: ir.Operation) -> Plan | None:
    """The plan of an innermost scf.for; None where its steps depend on each other, or gain nothing side by side."""
    if constant(loop.operands[2]) != 1:
        return None
    plan = Plan(loop)
    operations = [op.operation for op in plan.body.operations]
    terminator = operations.pop()
    plan.addresses.add(plan.body.arguments[0])
    carried = list(plan.body.arguments)[1:]
    for argument, result in zip(carried, terminator.operands, strict=True):
        join = _join(argument, result, plan.body)
        if join is None:
            return None
        plan.joins.append(join)
        plan.varying.update((argument, result))
        plan.widest = max(plan.widest, _bits(result.type))
    for op in operations:
        if not _place(op, plan) or _adds_one(op, plan):
            return None
    if not plan.widest or not _buffers_are_apart(operations):
        return None
    return plan


def _join(argument: ir.Value, result: ir.Value, body: ir.Block) -> ir.Operation | None:
    """The one op that reads a carried value, where what it gives is carried on and read nowhere else."""
    users = [use.owner.operation for use in argument.uses]
    if len(users) != 1 or isinstance(result.owner, ir.Block):
        return None
    op = result.owner.operation
    if op != users[0] or op.name not in JOINS or op.block != body or len(list(result.uses)) != 1:
        return None
    if len([v for v in op.operands if v == argument]) != 1 or str(result.type) in _HALVES or _bits(result.type) < 8:
        return None
    if op.name in _ORDERED and "reassoc" not in str(op.attributes["fastmath"]):
        return None
    return op


def _adds_one(op: ir.Operation, plan: Plan) -> bool:
    """Whether lanes are counted up: LLVM subtracts a register of ones, made anew in each step from what was in it.

    So one step waits for the one before it: a random number generator took twice the time.
    """
    return op.name == "arith.addi" and op.results[0] in plan.varying and any(constant(v) == 1 for v in op.operands)


def _place(op: ir.Operation, plan: Plan) -> bool:
    """Find out what the results of an op are; False where it stands in the way."""
    name, operands = op.name, list(op.operands)
    if name == "arith.constant":
        plan.uniform.update(op.results)
        return True
    if name == "memref.load":
        return _place_access(op, operands[0], operands[1:], op.results[0].type, plan, into=op.results[0])
    if name == "memref.store":
        known = operands[0] not in plan.addresses
        return known and _place_access(op, operands[1], operands[2:], operands[0].type, plan)
    steps = [_step(v, plan) for v in operands]
    if any(isinstance(v.type, ir.IndexType) for v in (*operands, *op.results)):
        return _place_index(op, steps, plan)
    if name not in LANEWISE or any(_bits(v.type) not in (1, 8, 16, 32, 64) for v in (*operands, *op.results)):
        return False
    halves = any(str(v.type) in _HALVES for v in (*operands, *op.results))
    if halves and name not in _CONVERSIONS:
        return False
    if all(step == 0 for step in steps):
        plan.uniform.update(op.results)
        return True
    plan.varying.update(op.results)
    return True


def _place_index(op: ir.Operation, steps: Sequence[int | None], plan: Plan) -> bool:
    """Arithmetic on indices: uniform, or an address; an address as a number is varying."""
    if None in steps or not op.name.startswith("arith."):
        return False
    if not any(steps):
        plan.uniform.update(op.results)
        return True
    if op.name == "arith.addi" and sum(step or 0 for step in steps) == 1:
        plan.addresses.update(op.results)
        return True
    if op.name == "arith.subi" and steps == [1, 0]:
        plan.addresses.update(op.results)
        return True
    if op.name in ("arith.index_cast", "arith.index_castui") and isinstance(op.results[0].type, ir.IntegerType):
        plan.varying.update(op.results)
        return _bits(op.results[0].type) >= 32
    return False


def _place_access(
    op: ir.Operation, buffer: ir.Value, indices: list[ir.Value], ty: ir.Type, plan: Plan, into: ir.Value | None = None
) -> bool:
    """A load or a store: of the same element in all steps, or of one after the other."""
    steps = [_step(v, plan) for v in indices]
    if not isinstance(ty, ir.IntegerType | ir.FloatType) or _bits(ty) not in (8, 16, 32, 64) or None in steps:
        return False
    if not isinstance(buffer.owner, ir.Block) and buffer.owner.operation.block == plan.body:
        return False
    if not any(steps):
        if into is not None:
            plan.uniform.add(into)
        return into is not None
    strides, _ = ir.MemRefType(buffer.type).get_strides_and_offset()
    if any(steps[:-1]) or strides[-1] != 1:
        return False
    plan.widest = max(plan.widest, _bits(ty))
    if into is not None:
        plan.varying.add(into)
    return True


def _step(value: ir.Value, plan: Plan) -> int | None:
    """By how much an index grows in each step; 0 for what is uniform, None for what varies otherwise."""
    if value in plan.addresses:
        return 1
    return None if value in plan.varying else 0


def _buffers_are_apart(operations: Sequence[ir.Operation]) -> bool:
    """Whether each buffer that is written is touched at one place only, in all accesses of a step."""
    places: dict[ir.Value, set[tuple[ir.Value, ...]]] = {}
    written = set()
    for op in operations:
        if op.name not in ("memref.load", "memref.store"):
            continue
        place = list(op.operands)[op.name == "memref.store" :]
        root = _root(place[0])
        places.setdefault(root, set()).add(tuple(place))
        if op.name == "memref.store":
            written.add(root)
    return all(len(places[root]) == 1 for root in written)


def _root(buffer: ir.Value) -> ir.Value:
    """The buffer that a view shows."""
    while not isinstance(buffer.owner, ir.Block) and buffer.owner.operation.name.startswith("memref."):
        operands = list(buffer.owner.operation.operands)
        if not operands or not isinstance(operands[0].type, ir.MemRefType):
            break
        buffer = operands[0]
    return buffer


def _bits(ty: ir.Type) -> int:
    """Bits of a scalar; 0 for what is none."""
    return ty.width if isinstance(ty, ir.IntegerType | ir.FloatType) else 0
