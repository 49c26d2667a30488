"""StableHLO to linalg on tensors: every function is rebuilt, op by op, by the `lower` rules.

Rules take tensors and give tensors; this driver holds the map from StableHLO values to them. A new function is built
beside the old one instead of changing it in place: types change with the ops (signless integers, bytes for booleans and
small floats), and a rule that fails leaves the old function whole.
"""

from __future__ import annotations

import itertools
from typing import ClassVar

from stablehlo_py.core import registry
from stablehlo_py.core.diagnostics import describe_location
from stablehlo_py.core.passes import Pass
from stablehlo_py.core.types import element_type, tensor_type
from stablehlo_py.dialects.stablehlo import Constant, Op, view
from stablehlo_py.errors import UnsupportedOp
from stablehlo_py.mlir import arith, func, ir, scf
from stablehlo_py.ops import build, layout
from stablehlo_py.ops.build import Tensor
from stablehlo_py.transforms.kernels.grouping import ELEMENTWISE, LOOP, PRODUCT, ROWS
from stablehlo_py.transforms.kernels.hlo_form_kernels import INPLACE, KERNEL, KERNEL_ROWS
from stablehlo_py.transforms.kernels.lower_groups import lower_group
from stablehlo_py.transforms.kernels.product_groups import DOT, lower_after_product
from stablehlo_py.transforms.simplify.panels import is_unpacking, panels_of

Values = dict[ir.Value, Tensor]
BOOL = element_type("i1")
HOSTS = (registry.ANY, "cpu")  # targets whose programs call functions of the host
_TOKENS = "tokens order infeed, outfeed, send and recv: nobody is there to talk to; take arguments and give results"
CUSTOM_CALL = "custom_call"  # marks the declaration of such a function


class HloToLinalg(Pass):
    """Lower StableHLO to linalg on tensors, by the rules in ops/ and the target's overrides."""

    name: ClassVar[str] = "hlo-to-linalg"
    target: str = "any"

    def run(self, op: ir.Operation) -> None:
        import stablehlo_py.ops  # noqa: F401 - registers every family

        registry.load_target(self.target)
        body = op.regions[0].blocks[0]
        for function in [f.operation for f in body.operations if f.operation.name == "func.func"]:
            if function.regions[0].blocks:
                lower_function(function, self.target)


def lower_function(function: ir.Operation, target: str) -> None:
    """Replace a function on StableHLO types by one on storage types that has no StableHLO op."""
    ty = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    _refuse_what_is_no_tensor(function, ty)
    inputs, results = ([tensor_type(t) for t in types] for types in (ty.inputs, ty.results))
    with ir.InsertionPoint(function), function.location:
        types = ([build.storage_tensor(t) for t in side] for side in (inputs, results))
        new = func.func(ir.StringAttr(function.attributes["sym_name"]).value, ir.FunctionType.get(*types))
        for name in ("sym_visibility", KERNEL, INPLACE):
            if name in function.attributes:
                new.attributes[name] = function.attributes[name]
        old_block = function.regions[0].blocks[0]
        block = new.regions[0].blocks.append(*[build.storage_tensor(t) for t in inputs])
        values = {
            old: Tensor(value, t) for old, value, t in zip(old_block.arguments, block.arguments, inputs, strict=True)
        }
        with ir.InsertionPoint(block), build.surroundings(values):
            kind = ir.StringAttr(function.attributes[KERNEL]).value if KERNEL in function.attributes else ""
            if kind in (ELEMENTWISE, ROWS):
                rows = ir.IntegerAttr(function.attributes[KERNEL_ROWS]).value if kind == ROWS else None
                outputs = lower_group(old_block, values, rows)
            elif kind == PRODUCT:
                product = _Lowering(target, values).product(old_block)
                outputs = lower_after_product(old_block, values, product)
            elif kind == LOOP:
                from stablehlo_py.transforms.kernels.lower_loops import lower_loop  # few programs have one

                outputs = lower_loop(old_block, values)
            else:
                outputs = _Lowering(target, values).block(old_block)
            func.return_([t.value for t in outputs])
    function.erase()


def _refuse_what_is_no_tensor(function: ir.Operation, ty: ir.FunctionType) -> None:
    """Name the op that takes or gives what is no tensor: tokens of infeed and send, scalars of other dialects."""
    if all(isinstance(t, ir.RankedTensorType) for t in (*ty.inputs, *ty.results)):
        return
    for each in function.regions[0].blocks[0].operations:
        op = each.operation
        for value in () if op.name == "func.return" else (*op.operands, *op.results):
            if not isinstance(value.type, ir.RankedTensorType):
                reason = f"it takes or gives {value.type}, and programs are compiled on tensors alone"
                hint = _TOKENS if str(value.type) == "!stablehlo.token" else ""
                raise UnsupportedOp(op.name, reason, where=describe_location(op.location), hint=hint)


class _Lowering:
    """Op after op through the rules; control flow keeps its regions."""

    def __init__(self, target: str, values: Values) -> None:
        self.target, self.values = target, values

    def block(self, block: ir.Block) -> list[Tensor]:
        """Lower all ops of a block; gives what its terminator passes on."""
        operations = list(block.operations)
        for operation in operations[:-1]:
            op = view(operation)
            if is_unpacking(op.operation):
                continue
            with op.location:
                results = (
                    (self.dot(op.operation),)
                    if op.name == DOT
                    else self.op(op, [self.values[v] for v in op.operation.operands])
                )
            for old, new in zip(op.operation.results, results, strict=True):
                self.values[old] = new
        return [self.values[v] for v in operations[-1].operands]

    def product(self, block: ir.Block) -> ir.Operation:
        """Lower the one product of a block, and what it reads that is made here; the rest is left."""
        product = next(o.operation for o in block.operations if o.operation.name == DOT)
        for value in product.operands:
            if value not in self.values and panels_of(value) is None:
                maker = view(value.owner.operation)
                with maker.location:
                    (self.values[value],) = self.op(maker, [])
        with product.location:
            self.values[product.results[0]] = self.dot(product)
        return product

    def dot(self, product: ir.Operation) -> Tensor:
        """A product; one by columns of panels reads the panels themselves."""
        panels = panels_of(product.operands[1])
        if panels is None:
            (result,) = self.op(view(product), [self.values[v] for v in product.operands])
            return result
        from stablehlo_py.transforms.simplify.hlo_pack_invariants import on_panels  # which has made them

        by_panels = on_panels(product, panels)
        (result,) = self.op(view(by_panels), [self.values[v] for v in by_panels.operands])
        return layout.reshape(result, tensor_type(product.results[0].type).shape)

    def op(self, op: Op, operands: list[Tensor]) -> tuple[Tensor, ...]:
        special = _SPECIAL.get(op.name)
        if special is not None:
            return special(self, op, operands)
        rule = registry.lower.find(op.name, self.target)
        results = build.as_tuple(rule(op, *operands)) if rule is not None else ()
        if rule is None or any(r is None for r in results):
            raise UnsupportedOp(
                op.name,
                "no rule lowers it",
                target="" if self.target == registry.ANY else self.target,
                where=describe_location(op.location),
            )
        return results

    def constant(self, op: Op, _: list[Tensor]) -> tuple[Tensor, ...]:
        assert isinstance(op, Constant)
        if op.splat is not None and op.type.size > 1:
            return (build.splat(op.type, op.splat),)
        return (build.constant(op.type, op.value),)

    def barrier(self, _: Op, operands: list[Tensor]) -> tuple[Tensor, ...]:
        return tuple(operands)

    def call(self, op: Op, operands: list[Tensor]) -> tuple[Tensor, ...]:
        types = [build.storage_tensor(t) for t in op.types]
        call = func.call(types, op.symbol("callee"), [t.value for t in operands])
        return tuple(Tensor(v, t) for v, t in zip(call.results, op.types, strict=True))

    def custom_call(self, op: Op, operands: list[Tensor]) -> tuple[Tensor, ...]:
        """A call of a declared function: the program runs it on the host, between kernels."""
        if self.target not in HOSTS:
            raise UnsupportedOp(
                op.name,
                f"@{op.string('call_target_name')} is a function of the host",
                target=self.target,
                where=describe_location(op.location),
                hint="compile for the cpu target",
            )
        types = [build.storage_tensor(t) for t in op.types]
        call = func.call(types, _declared(op), [t.value for t in operands])
        for name in op.operation.attributes:
            call.attributes[name] = op.operation.attributes[name]
        return tuple(Tensor(v, t) for v, t in zip(call.results, op.types, strict=True))

    def while_(self, op: Op, operands: list[Tensor]) -> tuple[Tensor, ...]:
        types = [build.storage_tensor(t) for t in op.types]
        loop = scf.while_(types, [t.value for t in operands])
        for number, region in enumerate(loop.regions):
            block = region.blocks[0]
            for old, value, t in zip(op.block(number).arguments, block.arguments, op.types, strict=True):
                self.values[old] = Tensor(value, t)
            with ir.InsertionPoint(block):
                outputs = self.block(op.block(number))
                if number == 0:
                    scf.condition(build.read(outputs[0], []), block.arguments)
                else:
                    scf.yield_([t.value for t in outputs])
        return tuple(Tensor(v, t) for v, t in zip(loop.results, op.types, strict=True))

    def branches(self, op: Op, operands: list[Tensor]) -> tuple[Tensor, ...]:
        """if and case: an index picks the region; out of range it is the last one."""
        types = [build.storage_tensor(t) for t in op.types]
        count = len(op.operation.regions)
        if op.name == "stablehlo.if":
            # the true branch comes first
            chosen = arith.index_castui(
                ir.IndexType.get(), arith.xori(build.read(operands[0], []), build.scalar(BOOL, 1))
            )
        else:
            chosen = build.to_index(operands[0].element, build.read(operands[0], []))
        switch = scf.index_switch(types, chosen, range(count - 1))
        # the default region comes first in the op and takes the last branch
        for region, number in zip(switch.regions, [count - 1, *range(count - 1)], strict=True):
            with ir.InsertionPoint(region.blocks[0]):
                scf.yield_([t.value for t in self.block(op.block(number))])
        return tuple(Tensor(v, t) for v, t in zip(switch.results, op.types, strict=True))


def _declared(op: Op) -> str:
    """The symbol of a private declaration for a custom call; calls of one name and type share it."""
    ty = ir.FunctionType.get(
        [build.storage_tensor(t) for t in op.operand_types], [build.storage_tensor(t) for t in op.types]
    )
    module = op.operation
    while module.parent is not None:
        module = module.parent.operation
    body = module.regions[0].blocks[0]
    title = f"custom_call.{op.string('call_target_name')}"
    taken: set[str] = set()
    for function in (f.operation for f in body.operations if "sym_name" in f.operation.attributes):
        symbol = ir.StringAttr(function.attributes["sym_name"]).value
        taken.add(symbol)
        if symbol.startswith(title) and ir.TypeAttr(function.attributes["function_type"]).value == ty:
            return symbol
    symbol = next(
        name for name in itertools.chain([title], (f"{title}.{i}" for i in itertools.count(1))) if name not in taken
    )
    with ir.InsertionPoint(body):
        declaration = func.func(symbol, ty, private=True)
        declaration.attributes[CUSTOM_CALL] = ir.UnitAttr.get()
    return symbol


_SPECIAL = {
    "stablehlo.constant": _Lowering.constant,
    "stablehlo.optimization_barrier": _Lowering.barrier,
    "func.call": _Lowering.call,
    "stablehlo.custom_call": _Lowering.custom_call,
    "stablehlo.while": _Lowering.while_,
    "stablehlo.if": _Lowering.branches,
    "stablehlo.case": _Lowering.branches,
}
