"""Where a number less the largest of its row is known to be no larger than zero, or NaN, as in a softmax.

    m = the largest v(j) of all j;  v(j) - m  ->  <= 0

v may be read, or computed in both loops the same way, or left by the first loop to the second in a buffer.
"""

from __future__ import annotations

from stablehlo_py.core.collect import made_by, maker
from stablehlo_py.mlir import ir

_DEEPEST = 12  # ops from a value to what it is read from


def is_not_positive(value: ir.Value) -> bool:
    """Whether a value is one of a row less the largest of that row."""
    difference = made_by(value, "arith.subf")
    if difference is None:
        return False
    number, largest = difference.operands
    loop = made_by(largest, "scf.for")
    if loop is None:
        return False
    block = loop.regions[0].blocks[0]
    place = list(loop.results).index(largest)
    joined = made_by(block.operations[len(block.operations) - 1].operands[place], "arith.maximumf")
    here = _loop_around(difference)
    carried = block.arguments[1 + place]
    if joined is None or here is None or carried not in joined.operands:
        return False
    if list(here.operands)[:3] != list(loop.operands)[:3]:
        return False
    of_row = [v for v in joined.operands if v != carried]
    variables = here.regions[0].blocks[0].arguments[0], block.arguments[0]
    return len(of_row) == 1 and _are_same(number, of_row[0], variables, _DEEPEST)


def _loop_around(op: ir.Operation) -> ir.Operation | None:
    parent = op.parent
    return parent.operation if parent is not None and parent.name == "scf.for" else None


def _are_same(a: ir.Value, b: ir.Value, variables: tuple[ir.Value, ir.Value], depth: int) -> bool:
    """Whether a value of one loop is that of the other in the step of the same number."""
    if (a, b) == variables or (a == b and a not in variables):
        return True
    one, other = maker(a), maker(b)
    if one is None or depth == 0:
        return False
    if one.name == "memref.load":
        buffer, *indices = one.operands
        stores = [use.owner.operation for use in buffer.uses if use.owner.name != "memref.load"]
        if len(stores) == 1 and stores[0].name == "memref.store" and _are_all(stores[0].operands, [b, buffer]):
            places = list(stores[0].operands)[2:]
            return all(_are_same(i, j, variables, depth - 1) for i, j in zip(indices, places, strict=True))
        if stores:
            return False
    if other is None or one.name != other.name or len(one.regions) or len(one.results) != 1:
        return False
    if one.name != "memref.load" and not one.name.startswith(("arith.", "math.")):
        return False
    if {k: one.attributes[k] for k in one.attributes} != {k: other.attributes[k] for k in other.attributes}:
        return False
    pairs = zip(one.operands, other.operands, strict=True)
    return all(_are_same(p, q, variables, depth - 1) for p, q in pairs)


def _are_all(operands: ir.OpOperandList, wanted: list[ir.Value]) -> bool:
    return list(operands)[: len(wanted)] == wanted
