"""The kernel of a while with small steps, and what calls it in its place; see `hlo_loop_kernels`. Other loops turned round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from stablehlo_py.analysis.loops import counter_of
from stablehlo_py.core.collect import made_by, uses
from stablehlo_py.core.rewire import remap
from stablehlo_py.core.types import TensorType, element_type
from stablehlo_py.dialects import make
from stablehlo_py.mlir import ir
from stablehlo_py.transforms.kernels.grouping import LOOP
from stablehlo_py.transforms.kernels.hlo_form_kernels import INPLACE, KERNEL
from stablehlo_py.transforms.kernels.small_loops import is_small, step_work

AT_ONCE = 1 << 24  # instructions that may run before anybody asks whether to stop: some milliseconds
_BOOL, _COUNT = TensorType((), element_type("i1")), TensorType((), element_type("i32"))


def outline(module: ir.Block) -> None:
    """Let the small loops of a module's functions be kernels."""
    former = _Former(module)
    for function in [f.operation for f in module.operations]:
        if KERNEL not in function.attributes:
            former.visit(function)


class _Former:
    def __init__(self, body: ir.Block) -> None:
        self.body = body
        self.names: dict[str, str] = {}  # kernel text -> symbol

    def visit(self, op: ir.Operation) -> None:
        """Outline the small loops inside an op, the outermost ones."""
        for region in op.regions:
            for block in region.blocks:
                for inner in [o.operation for o in block.operations]:
                    work = step_work(inner) if inner.name == "stablehlo.while" else None
                    if work is not None:
                        self.outline(inner, work)
                        continue
                    self.visit(inner)
                    if inner.name == "stablehlo.while":
                        _rotate(inner)

    def outline(self, loop: ir.Operation, work: int) -> None:
        """Replace a loop by a call of its kernel, or by a loop around it that goes on as long as that says so."""
        counter, most = counter_of(loop), AT_ONCE // (work + 4)
        is_cut = counter is None or counter.trips > most
        used = dict.fromkeys(list(uses(loop))[len(loop.operands) :])  # in its regions
        known = [v for v in used if _is_small_constant(v)]
        captured = [v for v in used if v not in known]
        types = [v.type for v in loop.operands]
        with ir.InsertionPoint(loop), loop.location:
            symbol = self.kernel(loop, captured, known, most if is_cut else None)
            callee = {"callee": ir.FlatSymbolRefAttr.get(symbol)}
            if not is_cut:
                operands = [*(loop.operands[i] for i in _given(loop, None)), *captured]
                done = ir.Operation.create("func.call", results=types, operands=operands, attributes=callee)
            else:
                going = make.constant(np.asarray(True), _BOOL)
                inits = [*loop.operands, going]
                done = ir.Operation.create(
                    "stablehlo.while", results=[v.type for v in inits], operands=inits, regions=2
                )
                condition, body = (
                    region.blocks.append(*[v.type for v in inits], arg_locs=[loop.location] * len(inits))
                    for region in done.regions
                )
                with ir.InsertionPoint(condition):
                    ir.Operation.create("stablehlo.return", operands=[condition.arguments[len(types)]])
                with ir.InsertionPoint(body):
                    operands = [*list(body.arguments)[: len(types)], *captured]
                    results = [*types, _BOOL.mlir]
                    call = ir.Operation.create("func.call", results=results, operands=operands, attributes=callee)
                    ir.Operation.create("stablehlo.return", operands=list(call.results))
        for old, new in zip(loop.results, done.results, strict=False):
            old.replace_all_uses_with(new)
        loop.erase()

    def kernel(
        self, loop: ir.Operation, captured: Sequence[ir.Value], known: Sequence[ir.Value], most: int | None
    ) -> str:
        """The symbol of a function of what the loop carries and captures; known: constants that are made again inside.

        most: how many steps one call takes; then its last result is whether the condition holds after them.
        """
        given = _given(loop, most)
        inputs = [v.type for v in (*(loop.operands[i] for i in given), *captured)]
        results = [v.type for v in loop.results] + ([] if most is None else [_BOOL.mlir])
        with ir.InsertionPoint(self.body):
            function = ir.Operation.create(
                "func.func",
                attributes={
                    "sym_name": ir.StringAttr.get("kernel"),
                    "sym_visibility": ir.StringAttr.get("private"),
                    "function_type": ir.TypeAttr.get(ir.FunctionType.get(inputs, results)),
                    KERNEL: ir.StringAttr.get(LOOP),
                },
                regions=1,
            )
        block = function.regions[0].blocks.append(*inputs, arg_locs=[loop.location] * len(inputs))
        with ir.InsertionPoint(block):
            values: dict[ir.Value, ir.Value] = dict(zip(captured, list(block.arguments)[len(given) :], strict=True))
            for constant in known:
                values[constant] = constant.owner.operation.clone().results[0]
            arguments = dict(zip(given, block.arguments, strict=False))
            carried = [
                arguments[i] if i in arguments else value.owner.operation.clone().results[0]
                for i, value in enumerate(loop.operands)
            ]
            outputs = _loop(loop, carried, values) if most is None else _steps(loop, carried, values, most)
            ir.Operation.create("func.return", operands=outputs)
        text = function.get_asm(use_local_scope=True)
        symbol = self.names.get(text)
        if symbol is not None:
            function.erase()
            return symbol
        symbol = self.names[text] = f"{LOOP}_{len(self.names)}"
        function.attributes["sym_name"] = ir.StringAttr.get(symbol)
        updated = [n for place, i in enumerate(given) if not is_small(carried[i]) for n in (place, i)]
        if updated:
            function.attributes[INPLACE] = ir.DenseI64ArrayAttr.get(updated)
        return symbol


def _rotate(loop: ir.Operation) -> None:
    """Let a step of a loop say at its end whether another follows: what counts is one kernel with what looks at the count.

    while (x) { cond(x) } do { body(x) }   ->   while (x, p = cond(x)) { p } do { y = body(x); y, cond(y) }
    """
    blocks = [region.blocks[0] for region in loop.regions]
    condition, body = blocks
    *_, end = [o.operation for o in body.operations]
    if len(condition.operations) == 1:
        return  # the condition is carried already
    counter = counter_of(loop)
    with ir.InsertionPoint(loop), loop.location:
        if counter is not None and counter.trips > 0:
            first_test = [make.constant(np.asarray(True), _BOOL)]
        else:
            first_test = _inlined(condition, list(loop.operands), {})
        inits = [*loop.operands, *first_test]
        types = [v.type for v in inits]
        new = ir.Operation.create("stablehlo.while", results=types, operands=inits, regions=2)
        test = new.regions[0].blocks.append(*types, arg_locs=[loop.location] * len(types))
        body.add_argument(types[-1], loop.location)
        with ir.InsertionPoint(test):
            ir.Operation.create("stablehlo.return", operands=[test.arguments[len(types) - 1]])
        with ir.InsertionPoint(end):
            following = list(end.operands)
            ir.Operation.create("stablehlo.return", operands=[*following, *_inlined(condition, following, {})])
    end.erase()
    body.append_to(new.regions[1])
    for old, value in zip(loop.results, new.results, strict=False):
        old.replace_all_uses_with(value)
    loop.erase()


def _given(loop: ir.Operation, most: int | None) -> list[int]:
    """Which carried values a kernel is given to start from: not constants, but where it is called again and again."""
    return [i for i, value in enumerate(loop.operands) if most is not None or not _is_small_constant(value)]


def _loop(loop: ir.Operation, carried: Sequence[ir.Value], values: Mapping[ir.Value, ir.Value]) -> list[ir.Value]:
    """The results of the loop itself, from other values; values: what to read in place of those around it."""
    clone = loop.clone()
    for region in clone.regions:
        for block in region.blocks:
            for inner in block.operations:
                remap(inner.operation, values)
    for i, value in enumerate(carried):
        clone.operands[i] = value
    return list(clone.results)


def _steps(
    loop: ir.Operation, carried: Sequence[ir.Value], values: Mapping[ir.Value, ir.Value], most: int
) -> list[ir.Value]:
    """The results of up to `most` steps of the loop, and whether its condition holds then.

    while (x, n = 0) { cond(x) and n < most } do { body(x), n + 1 }; cond(x)
    """
    inits = [*carried, make.constant(np.asarray(0), _COUNT)]
    types = [v.type for v in inits]
    cut = ir.Operation.create("stablehlo.while", results=types, operands=inits, regions=2)
    blocks = [region.blocks.append(*types, arg_locs=[loop.location] * len(types)) for region in cut.regions]
    for number, (old, new) in enumerate(zip(loop.regions, blocks, strict=True)):
        *arguments, count = new.arguments
        with ir.InsertionPoint(new):
            outputs = _inlined(old.blocks[0], arguments, values)
            if number == 0:
                limit = make.constant(np.asarray(most), _COUNT)
                below = make.op(
                    "compare",
                    [count, limit],
                    _BOOL,
                    comparison_direction=ir.Attribute.parse("#stablehlo<comparison_direction LT>"),
                ).results[0]
                outputs = [make.elementwise("and", outputs[0], below)]
            else:
                outputs.append(make.elementwise("add", count, make.constant(np.asarray(1), _COUNT)))
            ir.Operation.create("stablehlo.return", operands=outputs)
    results = list(cut.results)[:-1]
    return [*results, *_inlined(loop.regions[0].blocks[0], results, values)]


def _inlined(block: ir.Block, arguments: Sequence[ir.Value], values: Mapping[ir.Value, ir.Value]) -> list[ir.Value]:
    """The ops of a block once more, here, on these arguments; what its terminator passes on."""
    new = {**values, **dict(zip(block.arguments, arguments, strict=True))}
    *operations, end = [o.operation for o in block.operations]
    for op in operations:
        clone = op.clone()
        remap(clone, new)
        new.update(zip(op.results, clone.results, strict=True))
    return [new.get(v, v) for v in end.operands]


def _is_small_constant(value: ir.Value) -> bool:
    return is_small(value) and made_by(value, "stablehlo.constant") is not None
