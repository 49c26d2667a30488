"""One public function, main, with every call inlined."""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

from stablehlo_py.core.collect import operations_under
from stablehlo_py.core.passes import Pass
from stablehlo_py.errors import BadInput, UnsupportedOp
from stablehlo_py.mlir import ir, pass_manager
from stablehlo_py.reading.annotations import walk
from stablehlo_py.reading.places import place

MAX_OPS = 2_000_000  # calls of calls double with each level: thirty small functions can make a billion ops


class HloInline(Pass):
    """Choose main, inline every call into it, and drop the functions that nothing needs any more."""

    name: ClassVar[str] = "hlo-inline"

    def run(self, op: ir.Operation) -> bool:
        _unwrap(op)
        main = find_main(op)
        for function in _functions(op):
            visibility = "public" if _name(function) == _name(main) else "private"
            function.attributes["sym_visibility"] = ir.StringAttr.get(visibility, op.context)
        if _is_alone(op, main):
            main.attributes["sym_name"] = ir.StringAttr.get("main", op.context)
            return False
        _refuse_recursion(op, main)
        with op.context:
            # The default pipeline between two rounds of inlining would canonicalise; here nothing else may change.
            pass_manager("builtin.module(inline{default-pipeline=},symbol-dce)").run(op)
        main = find_main(op)
        walk(main, _refuse_call)
        main.attributes["sym_name"] = ir.StringAttr.get("main", op.context)
        return True


def find_main(module: ir.Operation) -> ir.Operation:
    """The function that runs: `main`, else the only public one, else the first."""
    functions = [function for function in _functions(module) if len(function.regions[0].blocks) > 0]
    if not functions:
        raise BadInput(
            "the program has no function with a body", where=place(module), hint="it needs a func.func @main"
        )
    named = [function for function in functions if _name(function) == "main"]
    public = [function for function in functions if _is_public(function)]
    if named:
        return named[0]
    return public[0] if len(public) == 1 else functions[0]


def _is_alone(module: ir.Operation, main: ir.Operation) -> bool:
    """Whether there is nothing but main, which calls nothing and is not too large."""
    if len(module.regions[0].blocks[0].operations) != 1:
        return False
    inside = operations_under(main)
    return len(inside) <= MAX_OPS and all(op.name != "func.call" for op in inside)


def _functions(module: ir.Operation) -> list[ir.Operation]:
    body = module.regions[0].blocks[0].operations
    return [child.operation for child in body if child.operation.name == "func.func"]


def _name(function: ir.Operation) -> str:
    return ir.StringAttr(function.attributes["sym_name"]).value


def _is_public(function: ir.Operation) -> bool:
    if "sym_visibility" not in function.attributes:
        return True
    return ir.StringAttr(function.attributes["sym_visibility"]).value == "public"


def _unwrap(module: ir.Operation) -> None:
    """module { module { f } }   ->   module { f }"""
    body = module.regions[0].blocks[0]
    nested = [child.operation for child in body.operations if child.operation.name == "builtin.module"]
    if not nested:
        return
    if any(_name(function) == "main" for function in _functions(module)):
        # the text around nested modules is a program itself; what is nested are others that it does not use
        for child in nested:
            child.erase()
        return
    if len(nested) > 1 or _functions(module):
        raise BadInput(
            f"the input holds {len(nested) + bool(_functions(module))} modules",
            where=place(nested[-1]),
            hint="give one program at a time: split the file at its `// -----` lines; `shlo check` judges each",
        )
    for child in list(nested[0].regions[0].blocks[0].operations):
        child.operation.move_before(nested[0])
    nested[0].erase()
    _unwrap(module)


def _refuse_recursion(module: ir.Operation, main: ir.Operation) -> None:
    """Refuse calls that come back to their function, and calls that would unfold to more than anyone can compile."""
    functions = {_name(function): function for function in _functions(module)}
    calls = {name: _callees(function) for name, function in functions.items()}
    sizes: dict[str, int] = {}
    open_calls: list[str] = []
    waiting = [(_name(main), False)]
    while waiting:
        name, is_done = waiting.pop()
        if is_done:
            open_calls.pop()
            own = _size(functions[name])
            sizes[name] = own + sum(count * sizes.get(callee, 0) for callee, count in calls[name].items())
            continue
        if name in open_calls:
            chain = " -> ".join([*open_calls[open_calls.index(name) :], name])
            raise BadInput(
                f"functions call each other in a circle: {chain}",
                where=place(functions[name]),
                hint="StableHLO has no recursion; use stablehlo.while",
            )
        if name in sizes or name not in functions:
            continue
        open_calls.append(name)
        waiting.append((name, True))
        waiting += [(callee, False) for callee in calls[name]]
    if sizes[_name(main)] > MAX_OPS:
        raise BadInput(
            f"with its calls inlined the program has {sizes[_name(main)]:,} ops; {MAX_OPS:,} is the limit",
            where=place(main),
            hint="use stablehlo.while for what repeats",
        )


def _callees(function: ir.Operation) -> Counter[str]:
    found: Counter[str] = Counter()

    def visit(op: ir.Operation) -> None:
        if op.name == "func.call":
            found[ir.FlatSymbolRefAttr(op.attributes["callee"]).value] += 1

    walk(function, visit)
    return found


def _size(function: ir.Operation) -> int:
    count = 0

    def visit(_: ir.Operation) -> None:
        nonlocal count
        count += 1

    walk(function, visit)
    return count


def _refuse_call(op: ir.Operation) -> None:
    if op.name != "func.call":
        return
    callee = ir.FlatSymbolRefAttr(op.attributes["callee"]).value
    raise UnsupportedOp("func.call", f"@{callee} has no body to inline", where=place(op), hint="define the function")
