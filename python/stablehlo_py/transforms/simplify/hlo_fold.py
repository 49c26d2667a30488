"""Ops of constants are computed now, by the rules that the reference interpreter uses.

%0 = add(constant 2.0 : 4x4, constant 3.0 : 4x4)  ->  %0 = constant 5.0 : 4x4, still one element repeated

Folding never makes a program much larger nor stalls it: a result that is not one repeated element is kept only where
it is small, or where constants of that size go away with it; and the work is bounded.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from stablehlo_py.core.collect import uses
from stablehlo_py.core.passes import Pass
from stablehlo_py.core.registry import Rule, evaluate
from stablehlo_py.core.types import TensorType, tensor_type
from stablehlo_py.dialects import make
from stablehlo_py.dialects.stablehlo import Constant, view
from stablehlo_py.errors import CompileError
from stablehlo_py.mlir import ir
from stablehlo_py.records import field, record

SMALL = 4096  # bytes of a result that may be new in the program
LARGE = 64 << 20  # bytes of the largest result that may take the place of a constant
WORK = 1 << 22  # elements computed for one op, products and comparisons included
IOTA = 512  # elements up to which an iota is known to those who read it

_MOVES = frozenset(
    f"stablehlo.{name}"
    for name in ("broadcast_in_dim", "reshape", "transpose", "slice", "reverse", "dynamic_slice", "gather")
)
_JOINS = frozenset(f"stablehlo.{name}" for name in ("concatenate", "pad", "dynamic_update_slice"))
_OTHERS = frozenset(f"stablehlo.{name}" for name in ("dot_general", "convolution", "get_dimension_size"))
_WITH_BODY = frozenset(f"stablehlo.{name}" for name in ("reduce", "reduce_window", "sort", "scatter", "map"))
_BY_NAME = _MOVES | _JOINS | _OTHERS | _WITH_BODY
_NOT_POINTWISE_IN_SHAPE = frozenset({"stablehlo.bitcast_convert"})
_NEVER = frozenset({"stablehlo.constant", "stablehlo.rng", "stablehlo.custom_call"})


class HloFold(Pass):
    """Compute ops of constants now, where the result is small or one element repeated."""

    name: ClassVar[str] = "hlo-fold"
    only_with: ClassVar[tuple[str, ...]] = ("stablehlo.constant", "stablehlo.iota")

    def run(self, op: ir.Operation) -> bool:
        folder = _Folder()
        folder.region_of(op)
        return folder.changed


@record(frozen=False)
class _Known:
    """A value that is known: its elements, or the one element that it repeats."""

    type: TensorType
    data: np.ndarray
    splat: bool
    bytes: int  # of the constant in the program


@record(frozen=False)
class _Folder:
    """One walk over the program in its order; ops that lose their last reader are erased at the end."""

    known: dict[ir.Value, _Known] = field(default_factory=dict)
    changed: bool = False

    def region_of(self, op: ir.Operation) -> None:
        for region in op.regions:
            for block in region.blocks:
                self.block(block)

    def block(self, block: ir.Block) -> None:
        read: list[ir.Operation] = []
        for inner in list(block.operations):
            op = inner.operation
            name = op.name
            if name == "stablehlo.constant":
                self.learn(op)
                read.append(op)
            elif name == "stablehlo.iota":
                self.learn_iota(op)
            else:
                made = self.fold(op, operands) if (operands := self.known_operands(op)) else None
                if made is not None:
                    read.extend(made)
                    self.changed = True
                elif len(op.regions):
                    self.region_of(op)
        for op in reversed(read):
            if not any(True for _ in op.results[0].uses):
                self.known.pop(op.results[0], None)
                op.erase()
                self.changed = True

    def known_operands(self, op: ir.Operation) -> list[_Known]:
        """What is known of the operands; nothing unless that is all of them, of an op that may be computed."""
        found: list[_Known] = []
        for operand in op.operands:
            known = self.known.get(operand)
            if known is None:
                return []
            found.append(known)
        may_be = bool(found) and len(op.results) > 0 and (op.name in _BY_NAME or _is_pointwise(op.name))
        return found if may_be else []

    def learn(self, op: ir.Operation) -> None:
        constant = view(op)
        assert isinstance(constant, Constant)
        try:
            ty = constant.type
            value = constant.value
        except (ValueError, CompileError):
            return  # a resource, or a type of its own
        splat = ty.size == 1 or (ty.size > 1 and not any(value.strides) and value.ndim > 0)
        data = value.reshape(-1)[:1].reshape(()) if splat else value
        self.known[op.results[0]] = _Known(ty, data, splat, ty.element.bytes if splat else ty.bytes)

    def learn_iota(self, op: ir.Operation) -> None:
        ty = view(op).type
        if ty.is_static and 0 < ty.size <= IOTA:
            self.known[op.results[0]] = _Known(ty, _rule(op.name)(view(op)), False, 0)

    def fold(self, op: ir.Operation, operands: list[_Known]) -> list[ir.Operation] | None:
        """Replace an op by constants; what was made, or None where it stays."""
        try:
            types = [tensor_type(r.type) for r in op.results]
        except CompileError:
            return None
        if not types or not all(ty.is_static and ty.size > 0 for ty in types):
            return None
        splat = self.as_splat(op, operands, types)
        arrays = [splat] if splat is not None else self.in_full(op, operands, types)
        if arrays is None:
            return None
        made: list[ir.Operation] = []
        with ir.InsertionPoint(op), op.location:
            for result, array, ty in zip(list(op.results), arrays, types, strict=True):
                value = make.constant(array, ty)
                result.replace_all_uses_with(value)
                made.append(value.owner.operation)
        op.erase()
        for constant in made:
            self.learn(constant)
        return made

    def as_splat(self, op: ir.Operation, operands: list[_Known], types: list[TensorType]) -> np.ndarray | None:
        """The one element that the result repeats, where that follows from the operands being splats."""
        if len(types) != 1:
            return None
        is_pointwise = op.name not in _BY_NAME and op.name not in _NOT_POINTWISE_IN_SHAPE
        if is_pointwise and all(k.splat for k in operands):
            return self.evaluated(op, [k.data for k in operands])[0].reshape(-1)[:1].reshape(())
        if op.name in _MOVES and operands[0].splat:
            return operands[0].data
        elements = operands[:2] if op.name in ("stablehlo.pad", "stablehlo.dynamic_update_slice") else operands
        if op.name in _JOINS and all(k.splat for k in elements):
            first = elements[0].data
            if all(k.data.tobytes() == first.tobytes() for k in elements):
                return first
        return None

    def in_full(self, op: ir.Operation, operands: list[_Known], types: list[TensorType]) -> list[np.ndarray] | None:
        """All elements of the results, or None where that costs too much."""
        size = sum(ty.bytes for ty in types)
        if size > LARGE or _work(op, operands, types) > WORK * (4 if op.name in _MOVES else 1):
            return None
        if size > SMALL and size > sum(k.bytes for v, k in _own(op, operands) if _is_read_once(v)):
            return None
        arrays = [np.broadcast_to(k.data, k.type.shape) for k in operands]
        if op.name in _WITH_BODY:
            return _interpreted(op, arrays)
        return list(self.evaluated(op, arrays))

    def evaluated(self, op: ir.Operation, arrays: list[np.ndarray]) -> tuple[np.ndarray, ...]:
        with np.errstate(all="ignore"):
            made = _rule(op.name)(view(op), *arrays)
        return tuple(np.asarray(x) for x in (made if isinstance(made, tuple) else (made,)))


def _is_pointwise(name: str) -> bool:
    from stablehlo_py.ops.evaluate.pointwise import POINTWISE  # see _rule

    return name in POINTWISE and name not in _NEVER


def _rule(name: str) -> Rule:
    """How the interpreter computes an op; its rules, ten modules, are imported where constants meet in an op."""
    import stablehlo_py.ops.evaluate  # noqa: F401 - registers the rules

    rule = evaluate.find(name)
    assert rule is not None
    return rule


def _own(op: ir.Operation, operands: list[_Known]) -> list[tuple[ir.Value, _Known]]:
    """The operands, each once."""
    return list({v: (v, k) for v, k in zip(op.operands, operands, strict=True)}.values())


def _is_read_once(value: ir.Value) -> bool:
    return len({use.owner for use in value.uses}) == 1


def _work(op: ir.Operation, operands: list[_Known], types: list[TensorType]) -> int:
    """About how many elements are computed."""
    sizes = [k.type.size for k in operands]
    result = sum(ty.size for ty in types)
    if op.name == "stablehlo.dot_general":
        return result * max(1, sizes[0])
    if op.name == "stablehlo.convolution":
        return result * max(1, sizes[1])
    if op.name == "stablehlo.reduce_window":
        return result * max(1, int(np.prod(view(op).ints("window_dimensions"))))
    if op.name == "stablehlo.scatter":
        return 64 * max(sizes)
    return max([result, *sizes])


def _interpreted(op: ir.Operation, arrays: list[np.ndarray]) -> list[np.ndarray] | None:
    """An op with a body of its own, run by the interpreter in a module of its own."""
    from stablehlo_py.reference.interpreter import interpret

    if len(list(uses(op))) != len(op.operands):
        return None  # the body reads values from around it
    module = ir.Module.create(loc=op.location)
    with ir.InsertionPoint(module.body), op.location:
        ty = ir.FunctionType.get([v.type for v in op.operands], [r.type for r in op.results])
        function = ir.Operation.create(
            "func.func",
            attributes={"sym_name": ir.StringAttr.get("main"), "function_type": ir.TypeAttr.get(ty)},
            regions=1,
        )
        block = function.regions[0].blocks.append(*ty.inputs, arg_locs=[op.location] * len(ty.inputs))
        with ir.InsertionPoint(block):
            clone = op.clone()
            for i, argument in enumerate(block.arguments):
                clone.operands[i] = argument
            ir.Operation.create("func.return", operands=list(clone.results))
    try:
        return list(interpret(module, *arrays))
    except CompileError:
        return None
