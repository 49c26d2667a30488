"""Cut a StableHLO program into kernels: @main keeps calls and control flow, each kernel becomes a private function.

Kernels are formed while the ops still say what they mean; `grouping` decides which ops go together. Equal kernels, by
their text, are one function. What is cheap to make (splats, iotas) and what only renames elements (broadcasts, reshapes by
size-1 dimensions) is repeated inside each kernel that reads it; so are slices, which such a kernel reads where they lie.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar

from stablehlo_py.core import registry
from stablehlo_py.core.collect import maker
from stablehlo_py.core.passes import Pass
from stablehlo_py.core.rewire import remap
from stablehlo_py.mlir import ir
from stablehlo_py.transforms.kernels.grouping import (
    CONTROL,
    ELEMENTWISE,
    JOINS,
    PRODUCT,
    ROWS,
    SINGLE,
    Grouping,
    Unit,
    is_cheap,
    name_of,
    uses,
)
from stablehlo_py.transforms.kernels.views import is_piece, is_view
from stablehlo_py.transforms.simplify.panels import is_unpacking

if TYPE_CHECKING:
    from stablehlo_py.transforms.kernels.apart import Apart

KERNEL = "kernel"  # marks a kernel function; its value is the kernel's kind
KERNEL_ROWS = "kernel.rows"  # in a row program: how many leading dimensions make a row
INPLACE = "kernel.inplace"  # pairs of numbers: an operand, and the result that updates it in place


class HloFormKernels(Pass):
    """Cut @main into kernels: private functions that it calls, equal ones only once."""

    name: ClassVar[str] = "hlo-form-kernels"
    fuse: bool = True  # join elementwise ops of one shape
    rows: bool = False  # join them with reductions of trailing dimensions, row by row
    products: bool = False  # join them with the product whose elements they are of
    pieces: bool = False  # let them read slices where these lie in memory

    def run(self, op: ir.Operation) -> None:
        self.form(op)

    def form(self, op: ir.Operation, *, explain: bool = False) -> list[Apart]:
        """Cut it, and where it is asked for, say of each two kernels that share a value in memory why they are two."""
        import stablehlo_py.ops  # noqa: F401 - registers every family

        body = op.regions[0].blocks[0]
        functions = [f.operation for f in body.operations if f.operation.name == "func.func"]
        former = _Former(op, self, explain=explain)
        for function in functions:
            if KERNEL not in function.attributes:
                for region in function.regions:
                    for block in region.blocks:
                        former.cut(block)
        return former.apart


class _Former:
    def __init__(self, module: ir.Operation, options: HloFormKernels, *, explain: bool) -> None:
        self.options, self.explain = options, explain
        self.apart: list[Apart] = []
        self.body = module.regions[0].blocks[0]
        self.names: dict[str, str] = {}  # kernel text -> symbol

    def cut(self, block: ir.Block) -> None:
        """Replace the ops of a block by calls of kernels; regions of control flow first."""
        for op in list(block.operations):
            if op.operation.name == "stablehlo.if":
                _if_to_case(op.operation)
        for op in block.operations:
            if op.operation.name in CONTROL:
                for region in op.operation.regions:
                    for inner in region.blocks:
                        self.cut(inner)
        operations = [o.operation for o in block.operations]
        terminator = operations.pop()
        options = self.options
        grouping = Grouping(fuse=options.fuse, rows=options.rows, products=options.products, pieces=options.pieces)
        units = grouping.units(operations)
        explanations = []
        if self.explain:
            from stablehlo_py.transforms.kernels import apart  # a compilation does not ask

            explanations = [
                (a, b, partial(apart.Apart, bytes=count, why=why)) for a, b, count, why in apart.pairs(grouping)
            ]
        symbols: dict[int, str] = {}
        gone: set[int] = set()  # places in `operations`: an op that is erased cannot be asked anything
        for unit in units:
            if unit.kind:
                symbols[unit.number], places = self.outline(unit, grouping, terminator)
                gone.update(places)
            else:
                unit.ops[0].move_before(terminator)
        self.apart += [explained(first=symbols[a.number], second=symbols[b.number]) for a, b, explained in explanations]
        for place in reversed(range(len(operations))):
            if place not in gone and _is_dead(operations[place]):
                operations[place].erase()

    def outline(self, unit: Unit, grouping: Grouping, terminator: ir.Operation) -> tuple[str, list[int]]:
        """Move a unit's ops into a function and call it in their place; its symbol, the places of the ops that are gone."""
        repeated = grouping.repeated
        inside = {op.results[0] for op in unit.ops}
        outputs = [v for op in unit.ops for v in op.results if _used_outside(v, inside, repeated)]
        ops = _with_repeated(unit, repeated)
        produced = {v for op in ops for v in op.results}
        inputs = list(dict.fromkeys(v for op in ops for v in uses(op) if v not in produced))
        symbol = self.kernel(unit, ops, inputs, outputs)
        with ir.InsertionPoint(terminator), unit.ops[-1].location:
            call = ir.Operation.create(
                "func.call",
                results=[v.type for v in outputs],
                operands=inputs,
                attributes={"callee": ir.FlatSymbolRefAttr.get(symbol)},
            )
        for old, new in zip(outputs, call.results, strict=True):
            old.replace_all_uses_with(new)
        # what only this unit repeats still reads its values, and goes with it
        gone = []
        for op in reversed(ops):
            if op.results[0] in inside or (op.results[0] in repeated and _is_dead(op)):
                gone.append(grouping.order[op.results[0]])
                op.erase()
        return symbol, gone

    def kernel(self, unit: Unit, ops: list[ir.Operation], inputs: list[ir.Value], outputs: list[ir.Value]) -> str:
        """The symbol of a function that does `ops`; an equal one that is there already is taken."""
        location = ops[-1].location
        with ir.InsertionPoint(self.body), location:
            function = ir.Operation.create(
                "func.func",
                attributes={
                    "sym_name": ir.StringAttr.get("kernel"),
                    "sym_visibility": ir.StringAttr.get("private"),
                    "function_type": ir.TypeAttr.get(
                        ir.FunctionType.get([v.type for v in inputs], [v.type for v in outputs])
                    ),
                    KERNEL: ir.StringAttr.get(unit.kind),
                },
                regions=1,
            )
            if unit.kind == ROWS:
                function.attributes[KERNEL_ROWS] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), unit.rows)
        block = function.regions[0].blocks.append(*[v.type for v in inputs], arg_locs=[location] * len(inputs))
        values = dict(zip(inputs, block.arguments, strict=True))
        with ir.InsertionPoint(block):
            for op in ops:
                clone = op.clone()
                remap(clone, values)
                values.update(zip(op.results, clone.results, strict=True))
            ir.Operation.create("func.return", operands=[values[v] for v in outputs], loc=location)
        # not str(): that numbers the values of the whole program each time
        text = function.get_asm(use_local_scope=True)
        symbol = self.names.get(text)
        if symbol is not None:
            function.erase()
            return symbol
        pairs = _updates_in_place(ops[-1], inputs, outputs) if unit.kind == SINGLE else []
        if pairs:
            function.attributes[INPLACE] = ir.DenseI64ArrayAttr.get(pairs)
        symbol = self.names[text] = f"{_title(unit)}_{len(self.names)}"
        function.attributes["sym_name"] = ir.StringAttr.get(symbol)
        return symbol


def _with_repeated(unit: Unit, repeated: set[ir.Value]) -> list[ir.Operation]:
    """The unit's ops after the cheap ops around them that they read, and the views and slices that they look through."""
    known = {op.results[0] for op in unit.ops}
    listed = list(unit.ops)
    sees_through = unit.kind in (ELEMENTWISE, ROWS, PRODUCT)
    for op in listed:  # grows while it is walked
        if sees_through and is_piece(op):
            continue  # of what is in memory
        for value in uses(op):
            producer = maker(value)
            if producer is None:
                continue
            if producer.results[0] not in known and (
                is_cheap(producer)
                or is_unpacking(producer)
                or (sees_through and is_view(producer) and not _is(op, unit.product))
                or ((sees_through or op.name in JOINS) and is_piece(producer) and value in repeated)
            ):
                known.add(producer.results[0])
                listed.append(producer)
    return _producers_first(listed[len(unit.ops) :] + unit.ops)


def _is(op: ir.Operation, other: ir.Operation | None) -> bool:
    return other is not None and op.results[0] == other.results[0]


def _producers_first(ops: list[ir.Operation]) -> list[ir.Operation]:
    done: list[ir.Operation] = []
    seen: set[ir.Value] = set()
    wanted = {op.results[0] for op in ops}

    def visit(op: ir.Operation) -> None:
        if op.results[0] in seen:
            return
        seen.add(op.results[0])
        for value in op.operands:
            producer = maker(value)
            if producer is not None and producer.results[0] in wanted:
                visit(producer)
        done.append(op)

    for op in ops:
        visit(op)
    return done


def _if_to_case(op: ir.Operation) -> None:
    """if p: a else: b == case (p ? 0 : 1) of a, b."""
    predicate = op.operands[0]
    number = ir.RankedTensorType.get([], ir.IntegerType.get_signless(32), loc=op.location)
    with ir.InsertionPoint(op), op.location:
        flipped = ir.Operation.create("stablehlo.not", results=[predicate.type], operands=[predicate])
        index = ir.Operation.create("stablehlo.convert", results=[number], operands=[flipped.results[0]])
        case = ir.Operation.create(
            "stablehlo.case", results=[r.type for r in op.results], operands=[index.results[0]], regions=2
        )
    for old, new in zip(op.regions, case.regions, strict=True):
        old.blocks[0].append_to(new)
    for old, new in zip(op.results, case.results, strict=True):
        old.replace_all_uses_with(new)
    op.erase()


def _updates_in_place(op: ir.Operation, inputs: list[ir.Value], outputs: list[ir.Value]) -> list[int]:
    """The pairs of `INPLACE` for a kernel of one op, by the op's own declaration."""
    pairs: list[int] = []
    operands = list(op.operands)
    for result, operand in registry.in_place(op.name, operands=len(operands), results=len(op.results)):
        value = operands[operand]
        if value in inputs and op.results[result] in outputs and operands.count(value) == 1:
            pairs += [inputs.index(value), outputs.index(op.results[result])]
    return pairs


def _title(unit: Unit) -> str:
    """A readable name: the kind, and for a group its last op."""
    last = unit.ops[-1].name.rpartition(".")[2]
    return last if unit.kind == SINGLE else f"{unit.kind}_{last}"


def _used_outside(value: ir.Value, inside: set[ir.Value], repeated: set[ir.Value]) -> bool:
    """Whether something outside a unit reads a value, itself or through what its readers repeat."""
    for use in value.uses:
        reader = use.owner.operation
        if name_of(reader) in repeated:
            if any(_used_outside(result, inside, repeated) for result in reader.results):
                return True
        elif not _is_within(reader, inside):
            return True
    return False


def _is_within(op: ir.Operation | None, inside: set[ir.Value]) -> bool:
    """Whether an op is one of those known by `inside`, or in a region of one."""
    while op is not None and op.name != "func.func":
        if name_of(op) in inside:
            return True
        op = op.parent.operation if op.parent is not None else None
    return False


def _is_dead(op: ir.Operation) -> bool:
    return op.name not in CONTROL and all(not any(True for _ in v.uses) for v in op.results)
