"""Branches whose choice is known, and loops: those that do not run, and values that they carry for nobody."""

from __future__ import annotations

import numpy as np

from stablehlo_py.core.registry import evaluate, simplify
from stablehlo_py.core.rewire import remap
from stablehlo_py.dialects.stablehlo import Op, view
from stablehlo_py.mlir import ir
from stablehlo_py.ops.simplify.match import array, operand, operands, splat

_PURE = frozenset({"stablehlo", "chlo"})
_EFFECTS = frozenset(f"stablehlo.{name}" for name in ("custom_call", "infeed", "outfeed", "send", "recv", "rng"))


@simplify("stablehlo.if", "stablehlo.case")
def branch_known(op: Op) -> tuple[ir.Value, ...] | None:
    """if(true, a, b) == a, if(false, a, b) == b; case(i, ..) == its branch i, the last where there is none."""
    index = splat(operand(op))
    if index is None:
        return None
    count = len(op.operation.regions)
    number = int(index) if op.name == "stablehlo.case" else 1 - int(index)
    number = number if 0 <= number < count else count - 1
    inner = [o.operation for o in op.block(number).operations]
    values = tuple(inner[-1].operands)
    for operation in inner[:-1]:
        operation.move_before(op.operation)
    return values


@simplify("stablehlo.while")
def while_never(op: Op) -> tuple[ir.Value, ...] | None:
    """while(x, cond, body) == x, where cond(x) is false."""
    going = _condition(op, [array(v) if _is_scalar(v) else None for v in operands(op)])
    return tuple(operands(op)) if going is False else None


@simplify("stablehlo.while")
def while_few(op: Op) -> tuple[ir.Value, ...] | None:
    """while(x, cond, body) == body(.. body(x)), where cond is known to hold n times: any body once, a small one more."""
    carried = [array(v) if _is_scalar(v) else None for v in operands(op)]
    most = max(1, MOST_UNROLLED // max(1, _weight(op.block(1))))
    for steps in range(min(most, MOST_STEPS) + 1):
        going = _condition(op, carried)
        if going is None:
            return None
        if not going:
            return _unrolled(op, steps)
        carried = _after_body(op, carried)
    return None


# Ops that unrolling may leave in place of a loop: then what the steps do fuses, and carried counters are constants.
MOST_UNROLLED, MOST_STEPS = 320, 16
# What an op weighs that is a kernel of its own: it gains nothing, and each copy at a place of its own is compiled.
_KERNEL_WEIGHT = 16
_LIGHT = frozenset(
    f"stablehlo.{name}"
    for name in ("broadcast_in_dim", "reshape", "slice", "dynamic_slice", "iota", "concatenate", "optimization_barrier")
)


def _weight(block: ir.Block) -> int:
    """How much a copy of a block adds to a program; more than may be unrolled where it must not be repeated."""
    from stablehlo_py.ops.evaluate.pointwise import POINTWISE

    total = 0
    for op in block.operations:
        name = op.operation.name
        if name in ("stablehlo.while", "stablehlo.if", "stablehlo.case") or _has_effects(op.operation):
            return MOST_UNROLLED + 1
        if name not in ("stablehlo.constant", "stablehlo.return"):
            total += 1 if name in POINTWISE or name in _LIGHT else _KERNEL_WEIGHT
    return total


def _unrolled(op: Op, steps: int) -> tuple[ir.Value, ...]:
    """What a loop carries after so many steps, written one after another."""
    block = op.block(1)
    inner = [o.operation for o in block.operations]
    values = operands(op)
    for _ in range(steps):
        known = dict(zip(block.arguments, values, strict=True))
        for operation in inner[:-1]:
            clone = operation.clone()
            remap(clone, known)
            known.update(zip(operation.results, clone.results, strict=True))
        values = [known.get(v, v) for v in inner[-1].operands]
    return tuple(values)


@simplify("stablehlo.while")
def while_carries_less(op: Op) -> tuple[ir.Value, ...] | None:
    """while(x, y) == while(x), where neither the condition, nor x, nor a reader of the result needs y."""
    loop = op.operation
    needed = _needed(loop)
    if len(needed) == len(loop.operands) or not needed:
        return None
    end = _end(loop.regions[1].blocks[0])
    with ir.InsertionPoint(end), end.location:
        ir.Operation.create("stablehlo.return", operands=[end.operands[i] for i in needed])
    end.erase()
    gone = [i for i in range(len(loop.operands)) if i not in needed]
    for region in loop.regions:
        block = region.blocks[0]
        for i in reversed(gone):
            _erase_readers(block.arguments[i], loop)
            block.erase_argument(i)
    new = ir.Operation.create(
        "stablehlo.while",
        results=[loop.results[i].type for i in needed],
        operands=[loop.operands[i] for i in needed],
        attributes={name: loop.attributes[name] for name in loop.attributes},
        regions=2,
    )
    for old, region in zip(loop.regions, new.regions, strict=True):
        old.blocks[0].append_to(region)
    place = {i: number for number, i in enumerate(needed)}
    # a result that nobody reads may be anything of its type
    return tuple(new.results[place[i]] if i in place else loop.operands[i] for i in range(len(loop.operands)))


def _needed(loop: ir.Operation) -> list[int]:
    """The carried values that something needs: the condition, an effect, a read result, or a value that is needed."""
    condition, body = (region.blocks[0] for region in loop.regions)
    end = _end(body)
    needed: set[int] = {i for i, result in enumerate(loop.results) if next(iter(result.uses), None) is not None}
    needed |= {i for i, argument in enumerate(condition.arguments) if next(iter(argument.uses), None) is not None}
    number = {argument: i for i, argument in enumerate(body.arguments)}
    makers = {r: o.operation for o in body.operations for r in o.operation.results}
    seen: set[ir.Operation] = set()
    waiting = [end.operands[i] for i in needed]
    for effect in (o.operation for o in body.operations):
        if _has_effects(effect):
            waiting.extend(_read(effect))
    while waiting:
        value = waiting.pop()
        index = number.get(value)
        if index is not None and index not in needed:
            needed.add(index)
            waiting.append(end.operands[index])
        maker = makers.get(value)
        if maker is not None and maker not in seen:
            seen.add(maker)
            waiting.extend(_read(maker))
    return sorted(needed)


def _read(op: ir.Operation) -> list[ir.Value]:
    """The values that an op and the ops in its regions read."""
    found = list(op.operands)
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                found.extend(_read(inner.operation))
    return found


def _has_effects(op: ir.Operation) -> bool:
    if op.name in _EFFECTS or op.name.partition(".")[0] not in _PURE:
        return True
    return any(_has_effects(o.operation) for r in op.regions for b in r.blocks for o in b.operations)


def _erase_readers(value: ir.Value, loop: ir.Operation) -> None:
    """Erase the ops of a loop's body that read a value that nobody needs, and those that read theirs."""
    while (use := next(iter(value.uses), None)) is not None:
        reader = use.owner.operation
        while reader.parent.operation != loop:  # a branch that nobody needs goes as a whole
            reader = reader.parent.operation
        for result in reader.results:
            _erase_readers(result, loop)
        reader.erase()


def _end(block: ir.Block) -> ir.Operation:
    return block.operations[len(block.operations) - 1].operation


def _is_scalar(value: ir.Value) -> bool:
    return not ir.RankedTensorType(value.type).shape


def _condition(op: Op, carried: list[np.ndarray | None]) -> bool | None:
    """What the condition gives for these carried values, where it can be known."""
    found = _evaluated(op.block(0), carried)[0]
    return None if found is None else bool(found)


def _after_body(op: Op, carried: list[np.ndarray | None]) -> list[np.ndarray | None]:
    return _evaluated(op.block(1), carried)


def _evaluated(block: ir.Block, arguments: list[np.ndarray | None]) -> list[np.ndarray | None]:
    """What a block gives, followed through its elementwise ops of scalars only."""
    from stablehlo_py.ops.evaluate.pointwise import POINTWISE

    makers = {r: o.operation for o in block.operations for r in o.operation.results}
    known: dict[ir.Value, np.ndarray | None] = dict(zip(block.arguments, arguments, strict=True))

    def value_of(value: ir.Value, depth: int = 0) -> np.ndarray | None:
        if value in known:
            return known[value]
        known[value] = found = None
        maker = makers.get(value)
        if maker is None:
            found = array(value) if _is_tensor_scalar(value) else None
        elif maker.name in POINTWISE and depth < 32 and all(_is_tensor_scalar(v) for v in (*maker.operands, value)):
            inputs = [value_of(v, depth + 1) for v in maker.operands]
            rule = evaluate.find(maker.name)
            if rule is not None and all(x is not None for x in inputs):
                with np.errstate(all="ignore"):
                    found = np.asarray(rule(view(maker), *inputs))
        known[value] = found
        return found

    return [value_of(v) for v in _end(block).operands]


def _is_tensor_scalar(value: ir.Value) -> bool:
    return isinstance(value.type, ir.RankedTensorType) and not value.type.shape
