"""Plans: a block of a program made ready to run over and over, with values as numbers and rules looked up."""

from __future__ import annotations

from stablehlo_py.core.quantization import stored_type
from stablehlo_py.core.registry import Rule, evaluate
from stablehlo_py.core.types import TensorType
from stablehlo_py.dialects.stablehlo import Op, view
from stablehlo_py.errors import BadInput, UnsupportedOp
from stablehlo_py.mlir import ir
from stablehlo_py.ops.evaluate.pointwise import POINTWISE
from stablehlo_py.ops.evaluate.quantized import on_quantized
from stablehlo_py.records import field, record

TERMINATORS = frozenset({"func.return", "stablehlo.return"})


@record(frozen=False)
class Step:
    """One op: which values it takes, what it is evaluated by, which values it makes, and which die with it."""

    op: Op
    rule: Rule | None
    callee: str
    operands: tuple[int, ...]
    results: tuple[int, ...]
    types: tuple[TensorType | None, ...]
    regions: tuple[Plan, ...]
    dead: tuple[int, ...] = ()


@record(frozen=False)
class Plan:
    """One block. elementwise: all its ops are pointwise on scalars, so it can be run on whole arrays."""

    arguments: tuple[int, ...]
    types: tuple[TensorType | None, ...]
    steps: list[Step] = field(default_factory=list)
    returns: tuple[int, ...] = ()
    elementwise: bool = True


def type_of(ty: ir.Type) -> TensorType | None:
    """The type of the array that holds a value, or None for tokens and tuples."""
    return stored_type(ty) if str(ty).startswith("tensor<") else None


class Planner:
    """Makes plans for the functions of one module; numbers are unique in the module."""

    def __init__(self, module: ir.Module) -> None:
        self.functions = {
            ir.StringAttr(op.attributes["sym_name"]).value: op.operation
            for op in module.body.operations
            if op.operation.name == "func.func"
        }
        self._numbers: dict[ir.Value, int] = {}
        self._plans: dict[str, Plan] = {}

    def entry(self) -> str:
        """@main, or the only public function."""
        if "main" in self.functions:
            return "main"
        public = [name for name, op in self.functions.items() if not _is_private(op)]
        if len(public) != 1:
            raise BadInput(
                f"the module has {len(public)} public functions and no @main", hint="name the one to run @main"
            )
        return public[0]

    def function(self, name: str) -> Plan:
        """The plan of a function's body."""
        if name not in self._plans:
            operation = self.functions.get(name)
            if operation is None or not operation.regions[0].blocks:
                raise BadInput(f"the function @{name} is called but has no body in the module")
            self._plans[name] = self._block(operation.regions[0].blocks[0])
        return self._plans[name]

    def _number(self, value: ir.Value) -> int:
        return self._numbers.setdefault(value, len(self._numbers))

    def _block(self, block: ir.Block) -> Plan:
        arguments = list(block.arguments)
        plan = Plan(tuple(self._number(a) for a in arguments), tuple(type_of(a.type) for a in arguments))
        plan.elementwise = all(t is not None and t.rank == 0 for t in plan.types)
        for opview in block.operations:
            operation = opview.operation
            if operation.name in TERMINATORS:
                plan.returns = tuple(self._number(v) for v in operation.operands)
                continue
            plan.steps.append(self._step(operation))
            plan.elementwise &= self._is_pointwise(plan.steps[-1])
        self._mark_dead(plan)
        return plan

    def _step(self, operation: ir.Operation) -> Step:
        op = view(operation)
        callee = _callee(op)
        rule = None if callee else evaluate.find(op.name)
        if rule is None and not callee:
            raise UnsupportedOp(op.name, "it has no evaluate rule", target="reference", where=str(op.location))
        if rule is not None:
            op, rule = on_quantized(op, rule)
        return Step(
            op=op,
            rule=rule,
            callee=callee,
            operands=tuple(self._number(v) for v in operation.operands),
            results=tuple(self._number(v) for v in operation.results),
            types=tuple(type_of(v.type) for v in operation.results),
            regions=tuple(self._block(region.blocks[0]) for region in operation.regions),
        )

    def _is_pointwise(self, step: Step) -> bool:
        if step.callee:
            return self.function(step.callee).elementwise
        scalars = all(t is not None and t.rank == 0 for t in step.types)
        return scalars and step.op.name in POINTWISE and all(t.rank == 0 for t in step.op.operand_types)

    def _mark_dead(self, plan: Plan) -> None:
        """A value of this block can be dropped after the last step that uses it, itself or in its regions."""
        own = {number for step in plan.steps for number in step.results} - set(plan.returns)
        for step in reversed(plan.steps):
            last = _uses(step) & own
            step.dead = tuple(last | (set(step.results) & own))
            own -= set(step.dead)


def _uses(step: Step) -> set[int]:
    used = set(step.operands)
    for region in step.regions:
        used |= set(region.returns).union(*(_uses(inner) for inner in region.steps))
    return used


def _callee(op: Op) -> str:
    if op.name in ("func.call", "call"):
        return op.symbol("callee")
    return op.symbol("decomposition") if op.name == "stablehlo.composite" else ""


def _is_private(operation: ir.Operation) -> bool:
    return "sym_visibility" in operation.attributes and operation.attributes["sym_visibility"].value == "private"
