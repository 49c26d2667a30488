"""What decides the shapes of a program with symbolic dimensions: the shapes of its arguments, and some of their values.

main(%n : tensor<i64>, %x : tensor<?x4xf32>) { ... dynamic_iota(reshape %n) : tensor<?xf32> ... }: argument 0 by its value
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from stablehlo_py.mlir import ir
from stablehlo_py.reading.annotations import walk

# The operands that say a shape or a position that must be known: of some ops only where the result type does not.
_ONLY_IF_DYNAMIC = {
    "stablehlo.dynamic_broadcast_in_dim": (1,),
    "stablehlo.dynamic_iota": (0,),
    "stablehlo.dynamic_reshape": (1,),
    "stablehlo.set_dimension_size": (1,),
}
_ALWAYS = {
    "stablehlo.dynamic_conv": (2,),
    "stablehlo.dynamic_gather": (2,),
    "stablehlo.dynamic_pad": (2, 3, 4),
    "stablehlo.real_dynamic_slice": (1, 2, 3),
}
_CALLS: dict[str, Callable[[int, int], range]] = {  # (operands, results) -> which of the operands
    "stablehlo.dynamic_approx_top_k": lambda operands, results: range(2 * results, operands),
    "stablehlo.dynamic_reduce_window": lambda operands, results: range(2 * results, operands),
    "stablehlo.dynamic_rng_bit_generator": lambda operands, results: range(1, operands),
    "stablehlo.dynamic_top_k": lambda operands, results: range(1, operands),
}
_NEEDS_NO_VALUE = {"stablehlo.get_dimension_size", "shape.shape_of", "tensor.dim"}
_LOOP, _BRANCHES, _BARRIER = "stablehlo.while", {"stablehlo.if", "stablehlo.case"}, "stablehlo.optimization_barrier"
ASSERTION = "shape_assertion"
# Ops that are made static, whether their result has a shape or not.
DYNAMIC_OPS = {*_ONLY_IF_DYNAMIC, *_ALWAYS, "stablehlo.get_dimension_size"}


def is_dynamic(ty: ir.Type) -> bool:
    if isinstance(ty, ir.RankedTensorType):
        return not ty.has_static_shape
    return isinstance(ty, ir.UnrankedTensorType)


def has_dynamic_shapes(module: ir.Operation) -> bool:
    """Whether anything in the module has a shape that is not in its type, or takes a shape as an operand."""
    found = False

    def visit(op: ir.Operation) -> None:
        nonlocal found
        found = found or op.name in _ALWAYS or any(is_dynamic(value.type) for value in _defined(op))

    walk(module, visit)
    return found


def _defined(op: ir.Operation) -> Iterator[ir.Value]:
    yield from op.results
    for region in op.regions:
        for block in region.blocks:
            yield from block.arguments


def shape_operands(op: ir.Operation) -> list[ir.Value]:
    """The operands of an op that must be constant before the program can be compiled."""
    wanted = _ALWAYS.get(op.name, ())
    if op.name in _ONLY_IF_DYNAMIC and is_dynamic(op.results[0].type):
        wanted = _ONLY_IF_DYNAMIC[op.name]
    if op.name == "stablehlo.custom_call":
        target = ir.StringAttr(op.attributes["call_target_name"]).value
        if target in _CALLS:
            wanted = tuple(_CALLS[target](len(op.operands), len(op.results)))
        elif "indices_of_shape_operands" in op.attributes and any(is_dynamic(r.type) for r in op.results):
            wanted = tuple(int(i) for i in ir.DenseIntElementsAttr(op.attributes["indices_of_shape_operands"]))
        elif target == ASSERTION:
            wanted = tuple(range(len(op.operands)))
    return [op.operands[index] for index in wanted]


def shape_slice(function: ir.Operation) -> tuple[set[ir.Operation], set[int]]:
    """The ops that compute shapes, and the arguments of the function whose values they compute them from."""
    operations: set[ir.Operation] = set()
    arguments: set[int] = set()
    entry = function.regions[0].blocks[0]
    waiting: list[ir.Value] = []
    walk(function, lambda op: waiting.extend(shape_operands(op)))
    seen: set[ir.Value] = set()
    while waiting:
        value = waiting.pop()
        if value in seen:
            continue
        seen.add(value)
        if isinstance(value.owner, ir.Block):
            if value.owner == entry:
                arguments.add(ir.BlockArgument(value).arg_number)
            else:
                waiting += _carried(value.owner.owner.operation, ir.BlockArgument(value).arg_number)
            continue
        op = value.owner.operation
        operations.add(op)
        if op.name in _NEEDS_NO_VALUE:
            continue
        number = ir.OpResult(value).result_number
        if op.name == _LOOP:
            waiting += _carried(op, number)
        elif op.name in _BRANCHES:
            waiting += [op.operands[0], *(end[number] for end in _ends(op))]
        elif op.name == _BARRIER:
            waiting.append(op.operands[number])
        else:
            waiting += list(op.operands)
            for end in _ends(op):
                waiting += end
    return operations, arguments


def _carried(op: ir.Operation, number: int) -> list[ir.Value]:
    """What comes into argument `number` of a region: of a loop what was carried there, else anything."""
    if op.name != _LOOP:
        return list(op.operands)
    return [op.operands[number], _ends(op)[1][number]]


def _ends(op: ir.Operation) -> list[list[ir.Value]]:
    """What each block of an op's regions gives back."""
    return [list(list(block.operations)[-1].operands) for region in op.regions for block in region.blocks]
