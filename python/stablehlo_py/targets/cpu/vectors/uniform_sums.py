"""(v + u) + w -> v + (u + w), where u and w are the same in each step of a loop: one sum a vector instead of two.

Integers only, which wrap. A counter-based random number generator adds its keys and round numbers so.
"""

from __future__ import annotations

from stablehlo_py.mlir import arith, ir
from stablehlo_py.targets.cpu.vectors.vector_legality import Innermost


def join_uniform_sums(loop: Innermost) -> bool:
    """Rewrite the sums of a loop's body; whether there were any. What is known of the loop does not hold any longer then."""
    sums: dict[ir.Value, tuple[ir.Value, ir.Value]] = {}  # of a varying and a uniform value
    found = False
    for op in loop.body:
        if op.name != "arith.addi" or isinstance(op.results[0].type, ir.IndexType):
            continue
        uniform = [v for v in op.operands if loop.is_uniform(v)]
        varying = [v for v in op.operands if not loop.is_uniform(v)]
        if len(uniform) != 1:
            continue
        result, (inner,), (w,) = op.results[0], varying, uniform
        if inner in sums and len(list(inner.uses)) == 1:
            v, u = sums[inner]
            with ir.InsertionPoint(op), op.location:
                w = arith.addi(u, w)
                result = arith.addi(v, w)
            op.results[0].replace_all_uses_with(result)
            op.erase()
            inner.owner.erase()
            loop.varying.add(result)
            inner, found = v, True
        sums[result] = inner, w
    return found
