"""Products with what follows them: which elementwise ops may join a dot_general's kernel, and the kernel on linalg.

    c = dot_general(a, b)                      the contraction, by the target's rule
    d, e = ops of c, a row, a column, ...      one linalg.generic over (batch, m, n)

The generic reads each element of the product at its own place, so a target can do it while the element is in a register.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set

from stablehlo_py.core.types import tensor_type
from stablehlo_py.dialects.stablehlo import DotDims, view
from stablehlo_py.mlir import ir
from stablehlo_py.ops.build import Tensor
from stablehlo_py.transforms.kernels.lower_groups import Values, _Group, _Runs
from stablehlo_py.transforms.kernels.views import element, trace
from stablehlo_py.transforms.simplify.panels import is_unpacking

DOT = "stablehlo.dot_general"
LEAST_FREE = 9  # rows and columns: products of fewer read one operand once, and their sums never stay in registers
LEAST_WORK = 1 << 12
# Without calls, and without steps of a loop that vectors do not have.
JOINING = frozenset(
    f"stablehlo.{name}"
    for name in (
        *("add", "subtract", "multiply", "divide", "maximum", "minimum", "negate", "abs", "sign", "floor", "ceil"),
        *(
            "sqrt",
            "rsqrt",
            "cbrt",
            "power",
            "exponential",
            "exponential_minus_one",
            "log",
            "log_plus_one",
            "logistic",
            "tanh",
        ),
        *("sine", "cosine", "tan", "atan2", "round_nearest_even", "round_nearest_afz", "is_finite"),
        *("compare", "select", "clamp", "convert", "and", "or", "xor", "not"),
    )
)
Groups = list[list[int]]  # dimensions of a product's result: those of the batch, of lhs and of rhs, where there are any


def may_be_followed(op: ir.Operation) -> bool:
    """Whether elementwise ops can join the kernel of an op."""
    if op.name != DOT:
        return False
    ty, lhs = (tensor_type(v.type) for v in (op.results[0], op.operands[0]))
    rows, columns = (math.prod(ty.shape[d] for d in group) for group in result_groups(op)[-2:])
    dims = _dims(op)
    k = math.prod(lhs.shape[d] for d in dims.lhs_contracting)
    floats = ty.element.is_float and ty.element.bits >= 16 and lhs.element.is_float and lhs.element.bits >= 16
    return floats and min(rows, columns) >= LEAST_FREE and ty.size * k >= LEAST_WORK and k > 0


def may_follow(
    product: ir.Operation,
    ops: Sequence[ir.Operation],
    inside: Set[ir.Value],
    producers: Mapping[ir.Value, ir.Operation],
) -> bool:
    """Whether these elementwise ops, all of the product's shape, can be done on its elements; inside: what they may read."""
    rank = tensor_type(product.results[0].type).rank
    groups = result_groups(product)
    for op in ops:
        if op.name not in JOINING or any(tensor_type(v.type).element.is_complex for v in (*op.operands, *op.results)):
            return False
        for value in op.operands:
            ty = tensor_type(value.type)
            source, dims = trace(value, tuple(range(ty.rank)), producers)
            if source in inside:
                continue
            producer = producers.get(source)
            if producer is not None and producer.name == "stablehlo.iota":
                return False
            if ty.rank not in (0, rank) or not _reads_groups(
                [d for d in element(source, dims) if d is not None], groups, ty.shape
            ):
                return False
    return True


def _reads_groups(dims: list[int], groups: Groups, shape: tuple[int, ...]) -> bool:
    """Whether a value is read at whole groups of dimensions, in order."""
    wide = [[d for d in group if shape[d] != 1] for group in groups] if shape else []
    wanted = [d for group in wide if any(d in dims for d in group) for d in group]
    return [d for d in dims if shape[d] != 1] == wanted


def result_groups(op: ir.Operation) -> Groups:
    """The dimensions of a product's result by where they come from; a batch of one counts to the rows."""
    dims, ty = _dims(op), tensor_type(op.results[0].type)
    batch = len(dims.lhs_batching)
    rows = len(dims.lhs_free(tensor_type(op.operands[0].type).rank))
    groups = [list(range(batch)), list(range(batch, batch + rows)), list(range(batch + rows, ty.rank))]
    if math.prod(ty.shape[:batch]) == 1:
        groups = [groups[0] + groups[1], groups[2]]
    return groups


def _dims(op: ir.Operation) -> DotDims:
    return view(op).dims  # type: ignore[attr-defined]


def lower_after_product(block: ir.Block, values: Values, product: ir.Operation) -> list[Tensor]:
    """The outputs of a kernel whose product is lowered already: its value is in `values`."""
    return _AfterProduct(block, values, product).as_generic()


class _AfterProduct(_Group):
    """The elementwise ops behind a product, looping over batch, rows and columns."""

    def __init__(self, block: ir.Block, values: Values, product: ir.Operation) -> None:
        *operations, end = (o.operation for o in block.operations)
        self.values, self.rows = values, None
        self.take([op for op in operations if op.name != DOT and not is_unpacking(op)], end)
        self.shape = tensor_type(product.results[0].type).shape
        self.rank = len(self.shape)
        self.reads = self._all_reads()
        groups = [tuple(group) for group in result_groups(product)]
        self.runs = _Runs(tuple(groups), tuple(math.prod(self.shape[d] for d in group) for group in groups))
