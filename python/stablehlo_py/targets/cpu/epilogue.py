"""What is done to a product's elements right after it, done while they are still in registers.

linalg.generic ins(%c) outs(%d) { d = f(c) }   ->   the tile stores f(c) into %d, and %c holds partial sums only
"""

from __future__ import annotations

from dataclasses import dataclass

from stablehlo_py.mlir import ir, vector


@dataclass(frozen=True)
class Epilogue:
    """An elementwise op on the product: its target buffer, and its body."""

    op: ir.Operation
    target: ir.Value
    element: ir.Type

    def apply(self, value: ir.Value, lanes: int) -> ir.Value:
        """The body on a vector of the product's elements: each op as it is, on vectors."""
        block = self.op.regions[0].blocks[0]
        known = {block.arguments[0]: value}

        def wide(operand: ir.Value) -> ir.Value:
            if operand not in known:
                known[operand] = vector.broadcast(ir.VectorType.get([lanes], operand.type), operand)
            return known[operand]

        operations = [o.operation for o in block.operations]
        for op in operations[:-1]:
            if op.name == "arith.constant":
                known[op.results[0]] = vector.broadcast(
                    ir.VectorType.get([lanes], op.results[0].type), op.clone().results[0]
                )
                continue
            known[op.results[0]] = ir.Operation.create(
                op.name,
                results=[ir.VectorType.get([lanes], op.results[0].type)],
                operands=[wide(v) for v in op.operands],
                attributes={name: op.attributes[name] for name in op.attributes},
            ).results[0]
        return wide(operations[-1].operands[0])


def epilogue_of(product: ir.Operation) -> Epilogue | None:
    """The elementwise op that alone reads a product's buffer, when its body can be done on vectors."""
    buffer = product.operands[2]
    if isinstance(buffer.owner, ir.Block) or buffer.owner.operation.name not in ("memref.alloc", "memref.alloca"):
        return None
    readers = [use.owner.operation for use in buffer.uses if use.owner.operation.name != "linalg.fill"]
    others = [op for op in readers if op != product]
    if len(others) != 1 or others[0].name != "linalg.generic" or others[0].block != product.block:
        return None
    op = others[0]
    if len(op.operands) != 2 or op.operands[0] != buffer or not _is_elementwise(op):
        return None
    target = ir.MemRefType(op.operands[1].type)
    return Epilogue(op, op.operands[1], target.element_type)


def _is_elementwise(op: ir.Operation) -> bool:
    """Same shape in and out, identity maps, and a body of arith ops that does not read what it overwrites."""
    source, target = (ir.MemRefType(v.type) for v in op.operands)
    maps = [ir.AffineMapAttr(a).value for a in ir.ArrayAttr(op.attributes["indexing_maps"])]
    if list(source.shape) != list(target.shape) or any(m != ir.AffineMap.get_identity(source.rank) for m in maps):
        return False
    block = op.regions[0].blocks[0]
    body = [o.operation for o in block.operations][:-1]
    plain = all(o.name.startswith("arith.") and len(o.results) == 1 and not len(o.regions) for o in body)
    return plain and not any(True for _ in block.arguments[1].uses)
