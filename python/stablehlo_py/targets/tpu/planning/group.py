"""Groups of elementwise ops and row reductions that become one kernel of the vector unit, or the end of a product's kernel.

Seen from its result of shape [.., n] a group works on rows of n elements. Each value in it is of one kind: `full` (a row of n
each), `row` (one number a row), `lane` (one row for all rows), or `scalar` (one number). What kind a value is follows from how
it is used, from the result backwards.
"""

from __future__ import annotations

import math

from stablehlo_py.core.collect import maker
from stablehlo_py.core.types import tensor_type
from stablehlo_py.dialects.stablehlo import Op, view
from stablehlo_py.mlir import ir
from stablehlo_py.records import field, record
from stablehlo_py.targets.tpu.constants import number_of

FULL, ROW, LANE, SCALAR = "full", "row", "lane", "scalar"
FLOATS = ("f32", "bf16", "f16")

# StableHLO op -> function of mxu.vector.
FUNCTIONS = {
    f"stablehlo.{name}": name
    for name in (
        *("add", "subtract", "multiply", "divide", "maximum", "minimum", "power"),
        *("exponential", "log", "log_plus_one", "exponential_minus_one", "tanh", "logistic", "sqrt", "rsqrt"),
        *("negate", "abs", "floor", "ceil", "sign", "sine", "cosine", "select"),
    )
} | {"stablehlo.convert": "copy"}
COMPARISONS = ("EQ", "NE", "LT", "LE", "GT", "GE")
REDUCERS = {
    "stablehlo.add": ("add", 0.0),
    "stablehlo.maximum": ("maximum", -math.inf),
    "stablehlo.minimum": ("minimum", math.inf),
}
MOVES = ("stablehlo.broadcast_in_dim", "stablehlo.reshape", "mxu.unpad")
PRODUCTS = ("mxu.contract", "mxu.tiled_contract")


@record(frozen=False)
class Group:
    """root: the op of the result; members in the order of the program; inputs: values from outside, with their kinds."""

    root: ir.Operation
    kinds: dict[ir.Value, str] = field(default_factory=dict)
    members: list[ir.Operation] = field(default_factory=list)
    inputs: list[ir.Value] = field(default_factory=list)
    product: ir.Operation | None = None

    @property
    def n(self) -> int:
        return tensor_type(self.root.results[0].type).shape[-1]

    @property
    def rows(self) -> int:
        return tensor_type(self.root.results[0].type).size // self.n

    @property
    def has_rows(self) -> bool:
        return ROW in self.kinds.values()

    @property
    def works(self) -> bool:
        """Whether it takes something in and does more than conversions and moves."""
        takes = bool(self.inputs) or self.product is not None
        return takes and any(function_of(view(op)) not in (None, "copy") for op in self.members)


def function_of(op: Op) -> str | None:
    """The function of mxu.vector that an elementwise op is; None for other ops."""
    if op.name == "stablehlo.compare":
        direction = op.enum("comparison_direction")
        return f"compare_{direction.lower()}" if direction in COMPARISONS else None
    return FUNCTIONS.get(op.name)


def reducer_of(op: Op) -> str | None:
    """The function of mxu.reduce that a reduction of the last dimension is."""
    if op.name != "stablehlo.reduce" or len(op.operation.operands) != 2:
        return None
    ty = op.operand_types[0]
    body = [o.operation for o in op.block().operations]
    if op.ints("dimensions") != (ty.rank - 1,) or len(body) != 2 or body[0].name not in REDUCERS:
        return None
    if {str(v) for v in body[0].operands} != {str(v) for v in op.block().arguments}:
        return None
    function, identity = REDUCERS[body[0].name]
    return function if number_of(op.operation.operands[1]) == identity else None


def supported(value: ir.Value) -> bool:
    """A value that the vector unit can hold: floats up to 32 bits and booleans, of a static shape with elements."""
    if not str(value.type).startswith("tensor<"):
        return False
    ty = tensor_type(value.type)
    return ty.is_static and ty.size > 0 and (ty.element.name in FLOATS or ty.element.is_bool)


def operand_kinds(operation: ir.Operation, kind: str, n: int) -> list[str] | None:
    """The kinds of an op's operands when its result is used as `kind`; None where it cannot be."""
    op = view(operation)
    if not all(supported(v) for v in (*operation.operands, *operation.results)):
        return None
    if function_of(op) is not None:
        if any(ty.shape != op.type.shape for ty in op.operand_types):
            return None
        return [kind] * len(operation.operands)
    if reducer_of(op) is not None:
        rows = kind == ROW and op.operand_types[0].shape[-1] == n and number_of(operation.operands[0]) is None
        return [FULL, SCALAR] if rows else None
    if op.name in ("stablehlo.reshape", "mxu.unpad"):
        same_rows = kind in (FULL, LANE) and op.name == "stablehlo.reshape" and _last(op, 0) == n
        if kind == ROW and op.name == "stablehlo.reshape":
            same_rows = op.operand_types[0].rank > 0
        return [kind] if same_rows or op.name == "mxu.unpad" else None
    if op.name == "stablehlo.broadcast_in_dim":
        source = _broadcast_source(op, kind, n)
        return None if source is None else [source]
    return None


def _last(op: Op, operand: int) -> int:
    shape = op.operand_types[operand].shape
    return shape[-1] if shape else 1


def _broadcast_source(op: Op, kind: str, n: int) -> str | None:
    """The kind of what is broadcast."""
    source, result = op.operand_types[0], op.type
    dims = op.ints("broadcast_dimensions")
    if source.size == 1:
        return SCALAR
    prefix = tuple(range(source.rank)) == dims
    if kind == FULL:
        if prefix and source.shape == result.shape:
            return FULL
        if source.size == n and source.shape[-1] == n and dims[-1] == result.rank - 1:
            return LANE
        inner = source.shape[:-1] if source.rank == result.rank and source.shape[-1] == 1 else source.shape
        return ROW if prefix and inner == result.shape[:-1] else None
    if kind == LANE:
        return LANE if source.size == n and source.shape[-1] == n and dims[-1] == result.rank - 1 else None
    if kind == ROW:
        return ROW if prefix and source.size == result.size else None
    return None


def find_group(root: ir.Operation, taken: set[ir.Value], place: dict[ir.Value, int]) -> Group | None:
    """The largest group that ends in `root`: producers whose every use is inside it.

    taken: the results of ops of other groups. place: where the op of each result stands in the block. Results stand for
    their ops here, of which all have one: the hash of an op changes with its operands and attributes.
    """
    if function_of(view(root)) is None or not supported(root.results[0]):
        return None
    shape = tensor_type(root.results[0].type).shape
    if len(shape) < 1 or shape[-1] < 2:
        return None
    group = Group(root)
    group.kinds[root.results[0]] = FULL
    if not _enter(group, root):
        return None
    members = {root.results[0]: root}
    changed = True
    while changed:
        changed = False
        for value, kind in list(group.kinds.items()):
            producer = maker(value)
            if kind == SCALAR or producer is None or value in members or value in taken or producer.name in PRODUCTS:
                continue
            if len(producer.results) != 1:
                continue
            if _used_inside(value, members) and producer.block == root.block and _enter(group, producer):
                members[value] = producer
                changed = True
    if not group.has_rows:
        _absorb_product(group, members, taken)
    _finish(group, [members[value] for value in sorted(members, key=lambda value: place[value])])
    return group if group.works else None


def region_group(block: ir.Block) -> Group:
    """The group of a fusion's region, whose last op yields its result."""
    operations = [view.operation for view in block.operations]
    root = operations[-1].operands[0].owner.operation
    group = Group(root)
    group.kinds[root.results[0]] = FULL
    for operation in reversed(operations[:-1]):
        if operation.name in PRODUCTS:
            group.product = operation
        elif not _enter(group, operation):
            raise ValueError(f"{operation.name} has no place in an mxu.fusion")
    _finish(group, operations[:-1])
    return group


def _enter(group: Group, operation: ir.Operation) -> bool:
    """Give the operands of an op their kinds; False, and nothing done, where one is used as two kinds."""
    kinds = operand_kinds(operation, group.kinds[operation.results[0]], group.n)
    if kinds is None:
        return False
    for value, kind in zip(operation.operands, kinds, strict=True):
        known = group.kinds.get(value)
        is_number = number_of(value) is not None
        if (known is not None and known != kind and not is_number) or (kind == SCALAR and not is_number):
            return False
    for value, kind in zip(operation.operands, kinds, strict=True):
        group.kinds[value] = SCALAR if number_of(value) is not None else kind
    return True


def _used_inside(value: ir.Value, members: dict[ir.Value, ir.Operation]) -> bool:
    users = [use.owner.operation for use in value.uses]
    return all(len(user.results) == 1 and user.results[0] in members for user in users)


def _absorb_product(group: Group, members: dict[ir.Value, ir.Operation], taken: set[ir.Value]) -> None:
    """Let a product whose result only this group uses be computed in the same kernel."""
    for value, kind in list(group.kinds.items()):
        producer = maker(value)
        if kind != FULL or producer is None or producer.name not in PRODUCTS or value in taken:
            continue
        if (
            _used_inside(value, members)
            and producer.block == group.root.block
            and tensor_type(value.type).shape[-1] == group.n
        ):
            group.product = producer
            members[value] = producer
            return


def _finish(group: Group, members: list[ir.Operation]) -> None:
    """Note the members, in order, and what they take from outside."""
    group.members = members
    made = {result for op in members for result in op.results}
    group.inputs = [value for value, kind in group.kinds.items() if value not in made and kind != SCALAR]
