"""Smaller programs near a program: each family yields candidates made by one edit of its module.

Positions are numbers in the order of a walk over @main, so that an edit can be made on a fresh copy of the module.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from stablehlo_py.core.types import TensorType, tensor_type
from stablehlo_py.mlir import ir
from stablehlo_py.records import record
from stablehlo_py.reference.interpreter import Interpreter
from stablehlo_py.reference.plan import Step


@record
class Program:
    """MLIR text and the arrays that @main is called with."""

    text: str
    arrays: tuple[np.ndarray, ...] = ()

    @property
    def size(self) -> tuple[int, int]:
        """Fewer ops first, then fewer characters and elements; what a reduction makes smaller."""
        ops = sum(" = " in line or "return" in line for line in self.text.splitlines())
        return ops, len(self.text) + sum(a.size for a in self.arrays)


def main_of(module: ir.Module) -> ir.Operation:
    """@main, or the only function with a body."""
    functions = [o.operation for o in module.body.operations if o.operation.name == "func.func"]
    named = [f for f in functions if ir.StringAttr(f.attributes["sym_name"]).value == "main"]
    return (named or [f for f in functions if f.regions[0].blocks])[0]


def argument_types(module: ir.Module) -> list[TensorType]:
    return [tensor_type(a.type) for a in main_of(module).regions[0].blocks[0].arguments]


def _walk(block: ir.Block) -> Iterator[ir.Operation]:
    """Every op with results, inner ones after the op that holds them."""
    for view in block.operations:
        op = view.operation
        if op.results:
            yield op
        for region in op.regions:
            for inner in region.blocks:
                yield from _walk(inner)


def _ops(module: ir.Module) -> list[ir.Operation]:
    return list(_walk(main_of(module).regions[0].blocks[0]))


def canonical(program: Program) -> Program:
    """The program in generic form, without what is not used."""
    return _edited(program, lambda module, arrays: True) or program


Edit = Callable[[ir.Module, list[np.ndarray]], bool]


def _edited(program: Program, edit: Edit) -> Program | None:
    """The program after an edit, tidied; None where the edit is not possible."""
    module = ir.Module.parse(program.text)
    arrays = list(program.arrays)
    with module.context, ir.Location.unknown():
        if not edit(module, arrays):
            return None
        _drop_dead(module)
        arrays = _drop_unused_arguments(module, arrays)
        _drop_uncalled(module)
        _set_type(main_of(module))
    try:
        module.operation.verify()
    except ir.MLIRError:
        return None
    text = module.operation.get_asm(print_generic_op_form=True, enable_debug_info=False)
    return Program(text + ("" if text.endswith("\n") else "\n"), tuple(arrays))


def _drop_dead(module: ir.Module) -> None:
    changed = True
    while changed:
        changed = False
        for op in reversed(_ops(module)):
            if all(not list(r.uses) for r in op.results):
                op.erase()
                changed = True
                break


def _drop_unused_arguments(module: ir.Module, arrays: list[np.ndarray]) -> list[np.ndarray]:
    main = main_of(module)
    block = main.regions[0].blocks[0]
    unused = [i for i, a in enumerate(block.arguments) if not list(a.uses)]
    for i in reversed(unused):
        block.erase_argument(i)
    for name in ("arg_attrs", "res_attrs"):
        if name in main.attributes and (unused or name == "res_attrs"):
            del main.attributes[name]
    return [a for i, a in enumerate(arrays) if i not in unused]


def _drop_uncalled(module: ir.Module) -> None:
    main = main_of(module)
    text = str(module)
    for view in list(module.body.operations):
        op = view.operation
        if op == main or "sym_name" not in op.attributes:
            continue
        if text.count("@" + ir.StringAttr(op.attributes["sym_name"]).value) <= 1:
            op.erase()


def _set_type(main: ir.Operation) -> None:
    block = main.regions[0].blocks[0]
    returned = _return(main)
    ty = ir.FunctionType.get([a.type for a in block.arguments], [v.type for v in returned.operands])
    main.attributes["function_type"] = ir.TypeAttr.get(ty)


def _return(main: ir.Operation) -> ir.Operation:
    return list(main.regions[0].blocks[0].operations)[-1].operation


def _return_only(module: ir.Module, values: list[ir.Value]) -> None:
    main = main_of(module)
    old = _return(main)
    with ir.InsertionPoint(old):
        ir.Operation.create("func.return", operands=values)
    old.erase()


# --- families


def results(program: Program) -> Iterator[Program | None]:
    """Half of the results, then all but one, then one."""
    module = ir.Module.parse(program.text)  # held: its ops die with it
    count = len(_return(main_of(module)).operands)
    if count < 2:
        return
    half = count // 2
    for kept in (range(half), range(half, count), *([i] for i in range(count))):
        yield _edited(program, lambda module, arrays, kept=kept: _keep_results(module, list(kept)))


def _keep_results(module: ir.Module, kept: list[int]) -> bool:
    values = list(_return(main_of(module)).operands)
    _return_only(module, [values[i] for i in kept])
    return True


def intermediates(program: Program) -> Iterator[Program | None]:
    """The results of one op of the function's own block instead of what is returned; early ops first."""

    def edit(module: ir.Module, position: int) -> bool:
        block = main_of(module).regions[0].blocks[0]
        ops = [o.operation for o in block.operations][:-1]
        _return_only(module, list(ops[position].results))
        return True

    module = ir.Module.parse(program.text)
    count = len(list(main_of(module).regions[0].blocks[0].operations)) - 1
    for position in range(count - 1):
        yield _edited(program, lambda module, arrays, position=position: edit(module, position))


def inlined(program: Program) -> Iterator[Program | None]:
    """A branch instead of its if or case, one turn instead of a while."""

    def edit(module: ir.Module, position: int, region: int) -> bool:
        op = _ops(module)[position]
        if op.name not in ("stablehlo.if", "stablehlo.case", "stablehlo.while"):
            return False
        block = op.regions[region].blocks[0]
        inner = [o.operation for o in block.operations]
        for argument, value in zip(block.arguments, op.operands, strict=False):
            argument.replace_all_uses_with(value)
        for moved in inner[:-1]:
            moved.move_before(op)
        for result, value in zip(op.results, inner[-1].operands, strict=True):
            result.replace_all_uses_with(value)
        op.erase()
        return True

    module = ir.Module.parse(program.text)
    for position, op in enumerate(_ops(module)):
        if op.name in ("stablehlo.if", "stablehlo.case", "stablehlo.while"):
            regions = (1,) if op.name == "stablehlo.while" else range(len(op.regions))
            for region in regions:
                yield _edited(program, lambda m, a, p=position, r=region: edit(m, p, r))


def bypasses(program: Program) -> Iterator[Program | None]:
    """An operand of the same type instead of an op's result."""

    def edit(module: ir.Module, position: int, result: int, operand: int) -> bool:
        op = _ops(module)[position]
        op.results[result].replace_all_uses_with(op.operands[operand])
        return True

    module = ir.Module.parse(program.text)
    places = [
        (position, r, o)
        for position, op in enumerate(_ops(module))
        for r, result in enumerate(op.results)
        for o, operand in enumerate(op.operands)
        if operand.type == result.type and list(result.uses)
    ]
    for position, r, o in reversed(places):
        yield _edited(program, lambda m, a, p=position, r=r, o=o: edit(m, p, r, o))


def arguments(program: Program) -> Iterator[Program | None]:
    """A new argument of the function instead of an op's result; it holds what the reference computes there."""

    def edit(module: ir.Module, arrays: list[np.ndarray], position: int, values: list[np.ndarray] | None) -> bool:
        op = _ops(module)[position]
        block = main_of(module).regions[0].blocks[0]
        used = [r for r in op.results if list(r.uses)]
        if op.name == "stablehlo.constant" or not used or not all(str(r.type).startswith("tensor<") for r in used):
            return False
        for result in used:
            new = block.add_argument(result.type, ir.Location.unknown())
            if program.arrays or not list(block.arguments)[:-1]:
                ty = tensor_type(result.type)
                known = values[result.result_number] if values is not None else None
                arrays.append(known if known is not None else np.ones(ty.shape).astype(ty.element.dtype))
            result.replace_all_uses_with(new)
        return True

    module = ir.Module.parse(program.text)
    known = _recorded(module, program)
    for position in reversed(range(len(_ops(module)))):
        values = known.get(position)
        yield _edited(program, lambda m, a, p=position, v=values: edit(m, a, p, v))


class _Recorder(Interpreter):
    """Keeps the first results of every op; gives up on a program that runs long."""

    MOST_STEPS = 20_000

    def __init__(self, module: ir.Module) -> None:
        super().__init__(module)
        self.steps = 0
        self.found: dict[ir.Operation, list[np.ndarray]] = {}

    def _step(self, step: Step, env: dict[int, Any], whole: bool) -> tuple[Any, ...]:
        self.steps += 1
        if self.steps > self.MOST_STEPS:
            raise TimeoutError("the program runs too long to be recorded")
        made = super()._step(step, env, whole)
        if not whole:
            self.found.setdefault(step.op.operation, [np.array(v) for v in made])
        return made


def _recorded(module: ir.Module, program: Program) -> dict[int, list[np.ndarray]]:
    recorder = _Recorder(module)
    with contextlib.suppress(Exception):  # whatever the reference cannot do; ones will stand there
        recorder(*program.arrays)
    return {i: recorder.found[op] for i, op in enumerate(_ops(module)) if op in recorder.found}
