"""Reductions of nothing, of one element, and of what only repeats."""

from __future__ import annotations

from stablehlo_py.core import registry
from stablehlo_py.core.registry import simplify
from stablehlo_py.dialects import make
from stablehlo_py.dialects.stablehlo import Op
from stablehlo_py.mlir import ir
from stablehlo_py.ops.simplify.match import maker, operand, operands, type_of

_IDEMPOTENT = ("maximum", "minimum", "and", "or")


@simplify("stablehlo.reduce")
def reduce_units(op: Op) -> ir.Value | None:
    """reduce(x, init, f) over dimensions of size 1 == f(init, x)."""
    dims = op.ints("dimensions")
    inner = _body(op)
    if inner is None or any(type_of(operand(op)).shape[d] != 1 for d in dims):
        return None
    x, init = make.reshape(operand(op, 0), op.type.shape), make.broadcast(operand(op, 1), op.type.shape, ())
    return make.elementwise(inner, init, x)


@simplify("stablehlo.reduce")
def reduce_fewer(op: Op) -> ir.Value | None:
    """reduce over dimensions d and e, e of size 1 == reduce of reshape(x) over d."""
    dims = op.ints("dimensions")
    ty = type_of(operand(op))
    if len(operands(op)) != 2 or _body(op) is None:
        return None
    units = [d for d in dims if ty.shape[d] == 1]
    if not units or len(units) == len(dims):
        return None
    kept = [d for d in range(ty.rank) if d not in units]
    x = make.reshape(operand(op), [ty.shape[d] for d in kept])
    new = op.operation.clone()
    new.operands[0] = x
    new.attributes["dimensions"] = make.integers([kept.index(d) for d in dims if d not in units])
    return new.results[0]


@simplify("stablehlo.reduce")
def reduce_repeated(op: Op) -> ir.Value | None:
    """reduce(broadcast(x), init, f) over repeated dimensions == f(init, x) for f one of max, min, and, or."""
    inner = maker(operand(op), "broadcast_in_dim")
    body = _body(op)
    if inner is None or body not in _IDEMPOTENT or type_of(operand(op)).size == 0:
        return None
    dims = set(op.ints("dimensions"))
    targets = inner.ints("broadcast_dimensions")
    if any(d in dims for d in targets) or not dims:
        return None
    kept = [d for d in range(inner.type.rank) if d not in dims]
    x = make.broadcast(operand(inner), op.type.shape, [kept.index(d) for d in targets])
    return make.elementwise(body, make.broadcast(operand(op, 1), op.type.shape, ()), x)


def _body(op: Op) -> str | None:
    """The name of the one elementwise op of two operands that a reduction's body is: f(accumulator, element)."""
    if len(operands(op)) != 2 or op.type.element != type_of(operand(op)).element:
        return None
    block = op.block()
    inner = [o.operation for o in block.operations]
    if len(inner) != 2 or registry.scalar.find(inner[0].name) is None or len(inner[0].attributes):
        return None
    if list(inner[0].operands) != list(block.arguments) or list(inner[1].operands) != list(inner[0].results):
        return None
    return inner[0].name.removeprefix("stablehlo.")
