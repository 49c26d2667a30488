"""mxu-layouts: which of its two inner dimensions goes minor, for each array that a product takes or makes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from stablehlo_py.core.collect import made_by
from stablehlo_py.core.passes import Pass
from stablehlo_py.core.types import TensorType, tensor_type
from stablehlo_py.dialects import mxu
from stablehlo_py.dialects.stablehlo import view
from stablehlo_py.errors import CompileError
from stablehlo_py.machine.tpu import Chip, chip
from stablehlo_py.mlir import ir
from stablehlo_py.records import replace
from stablehlo_py.targets.tpu import emit
from stablehlo_py.targets.tpu.passes.mxu_tiles import product_of
from stablehlo_py.targets.tpu.planning.choose import Table, choose
from stablehlo_py.targets.tpu.planning.layout import natural_layout
from stablehlo_py.targets.tpu.planning.plan import Product, plan_product

# A product can be made as it is or turned (the other operand's weights are pushed), and take each operand either way.
# Whether the result is turned, lhs comes from a turned array, rhs from one.
Form = tuple[bool, bool, bool]
FORMS: tuple[Form, ...] = tuple((a, b, c) for a, b, c in itertools.product((False, True), repeat=3))
WORTH = 0.9  # a turned result must take at most so much of the time of the usual one
HIDDEN = 0.25  # share of the time of an operand's transfer before a kernel that counts: most of it is hidden


class MxuLayouts(Pass):
    """Choose the layouts of least time: padding moves with every transfer, and each relayout is a kernel of its own.

    contract(x, transpose(y)) -> contract(x, y) with the other orientation; an argument or result of the program with few
    columns is laid out with its rows along lanes (mxu.laid_out).
    """

    name: ClassVar[str] = "mxu-layouts"
    chip: str = "v5e"
    vmem_limit: int = 0

    def run(self, op: ir.Operation) -> None:
        mxu.load(op.context)
        machine = chip(self.chip)
        contracts = emit.operations_named(op, "mxu.contract")
        problem = _Problem(contracts, machine, self.vmem_limit)
        choice = choose(problem.sizes, problem.tables)
        forms = [FORMS[choice[i]] for i in range(len(contracts))]
        stored = {value: bool(choice[number]) for value, number in problem.sources.items()}
        turned = []
        for contract, form in zip(contracts, forms, strict=True):
            if any(form) or any(stored.get(source_of(v), False) for v in contract.operands):
                value = rewrite(contract, form, stored)
                turned += [value] if form[0] else []
        for value in turned:
            # At the end of the program a turned result is laid out so.
            if _returned_only(value):
                with ir.InsertionPoint(value.owner.operation), value.owner.operation.location:
                    value.replace_all_uses_with(_laid_out(value.owner.operation.operands[0]))
        for dead in reversed(emit.operations_named(op, "stablehlo.reshape", "stablehlo.transpose", "mxu.laid_out")):
            if not list(dead.results[0].uses):
                dead.erase()


def source_of(value: ir.Value) -> ir.Value:
    """The value that an operand is, before reshapes that leave its two inner dimensions alone."""
    while (reshape := made_by(value, "stablehlo.reshape")) is not None:
        before = reshape.operands[0]
        inner = tensor_type(before.type).shape[-2:]
        if len(inner) < 2 or inner != tensor_type(value.type).shape[-2:]:
            break
        value = before
    return value


def is_argument(value: ir.Value) -> bool:
    """An argument of the program: how it is laid out is free."""
    return isinstance(value.owner, ir.Block) and value.owner.owner.operation.name == "func.func"


class _Problem:
    """Variables: the form of each contract, then for each source of an operand whether it is stored turned."""

    def __init__(self, contracts: Sequence[ir.Operation], machine: Chip, vmem_limit: int) -> None:
        self.machine, self.vmem_limit = machine, vmem_limit
        self.results = {contract.results[0]: i for i, contract in enumerate(contracts)}
        self.sources: dict[ir.Value, int] = {}
        self.sizes = dict.fromkeys(range(len(contracts)), len(FORMS))
        self.tables: list[Table] = []
        for number, contract in enumerate(contracts):
            self.contract(number, contract)

    def contract(self, number: int, contract: ir.Operation) -> None:
        product = product_of(contract)
        self.tables.append(Table((number,), np.array([self.form_cycles(product, form) for form in FORMS])))
        for position, operand in enumerate(contract.operands):
            source = source_of(operand)
            relayout = relayout_cycles(tensor_type(source.type), self.machine)
            wanted = np.array([form[1 + position] for form in FORMS])
            if source in self.results:
                # A turned result is a turned array.
                made = np.array([form[0] for form in FORMS])
                self.tables.append(Table((number, self.results[source]), relayout * (wanted[:, None] != made[None, :])))
                continue
            if source not in self.sources:
                self.sources[source] = len(self.sizes)
                self.sizes[self.sources[source]] = 2
                self.tables.append(Table((self.sources[source],), self.stored_cycles(source)))
            turned = np.array([False, True])
            self.tables.append(Table((number, self.sources[source]), relayout * (wanted[:, None] != turned[None, :])))
        if natural_uses(contract.results[0]):
            relayout = relayout_cycles(tensor_type(contract.results[0].type), self.machine)
            self.tables.append(Table((number,), relayout * np.array([float(form[0]) for form in FORMS])))

    def form_cycles(self, product: Product, form: Form) -> float:
        """Of the plan, and a share of what is brought beforehand."""
        turned, lhs, rhs = form
        own = replace(product, lhs_t=product.lhs_t ^ lhs, rhs_t=product.rhs_t ^ rhs)
        if turned and product.shared:
            return np.inf
        if turned:
            own = replace(own, m=own.n, n=own.m, lhs=own.rhs, rhs=own.lhs, lhs_t=not own.rhs_t, rhs_t=not own.lhs_t)
        try:
            plan = plan_product(own, self.machine, self.vmem_limit)
        except CompileError:
            return np.inf
        brought = [b for b, space in zip((own.lhs_bytes, own.rhs_bytes), plan.spaces, strict=True) if space != "hbm"]
        launch = self.machine.calibration.launch_seconds * self.machine.clock_hz
        cycles = launch + plan.estimate + HIDDEN * sum(brought) / self.machine.cores / self.machine.hbm_bytes_per_cycle
        return cycles / WORTH if turned else cycles

    def stored_cycles(self, source: ir.Value) -> np.ndarray:
        """Of having a value as it is, and of having it turned."""
        relayout = relayout_cycles(tensor_type(source.type), self.machine)
        if is_argument(source):
            return np.array([0.0, np.inf if natural_uses(source) else 0.0])
        transpose = transpose_of(source)
        if transpose is None:
            return np.array([0.0, relayout])
        order = view(transpose).ints("permutation")
        lanes = [relayout if last != len(order) - 1 else relayout / 2 for last in (order[-1], order[-2])]
        # Turned back, it may be what was there before.
        swapped = (*order[:-2], order[-1], order[-2])
        before, after = (0.0 if o == tuple(range(len(o))) else c for o, c in zip((order, swapped), lanes, strict=True))
        return np.array([before, after + relayout * natural_uses(source)])


def relayout_cycles(ty: TensorType, machine: Chip) -> float:
    """A kernel that turns an array: launch, and its bytes in both layouts."""
    if ty.rank < 2:
        return np.inf
    rows, columns = ty.shape[-2:]
    outer = ty.size // max(1, rows * columns)
    moved = sum(natural_layout(shape, ty.element).bytes for shape in ((rows, columns), (columns, rows)))
    launch = machine.calibration.launch_seconds * machine.clock_hz
    return launch + outer * moved / machine.cores / machine.hbm_bytes_per_cycle


def transpose_of(value: ir.Value) -> ir.Operation | None:
    """The transpose that makes a value, if it changes its inner dimensions."""
    return made_by(value, "stablehlo.transpose") if tensor_type(value.type).rank >= 2 else None


def rewrite(contract: ir.Operation, form: Form, stored: dict[ir.Value, bool]) -> ir.Value:
    """The contract in its form, on operands as they are stored."""
    turned = form[0]
    attributes = contract.attributes
    with ir.InsertionPoint(contract), contract.location:
        operands = [
            laid_out(value, wanted, stored.get(source_of(value), False))
            for value, wanted in zip(contract.operands, form[1:], strict=True)
        ]
        lhs_t, rhs_t = (
            bool(mxu.integer(attributes[name])) ^ wanted
            for name, wanted in zip(("lhs_t", "rhs_t"), form[1:], strict=True)
        )
        ty = tensor_type(contract.results[0].type)
        passes = mxu.integer(attributes["passes"])
        if not turned:
            value = emit.contract(operands[0], operands[1], ty, lhs_t=lhs_t, rhs_t=rhs_t, passes=passes)
        else:
            b, m, n = ty.shape
            lhs, rhs = operands
            made = emit.contract(rhs, lhs, ty.with_shape((b, n, m)), lhs_t=not rhs_t, rhs_t=not lhs_t, passes=passes)
            value = turn(made)
    emit.replace(contract, value)
    return value


def laid_out(value: ir.Value, wanted: bool, stored: bool) -> ir.Value:
    """An operand turned or not; an argument that is stored turned is seen as it lies."""
    if not (stored and is_argument(source_of(value))):
        return turn(value) if wanted else value
    seen = _laid_out(value)
    return seen if wanted else turn(seen)


def turn(value: ir.Value) -> ir.Value:
    """The value with its inner dimensions in the other order; what a transpose has turned is taken from before it."""
    ty = tensor_type(value.type)
    shape = (*ty.shape[:-2], ty.shape[-1], ty.shape[-2])
    transpose = transpose_of(source_of(value))
    if transpose is None:
        return emit.transpose(value, (*range(ty.rank - 2), ty.rank - 1, ty.rank - 2))
    order = view(transpose).ints("permutation")
    return emit.reshape(emit.transpose(transpose.operands[0], (*order[:-2], order[-1], order[-2])), shape)


def _laid_out(value: ir.Value) -> ir.Value:
    ty = tensor_type(value.type)
    shape = (*ty.shape[:-2], ty.shape[-1], ty.shape[-2])
    return emit.op("mxu.laid_out", [value], ty.with_shape(shape))


def natural_uses(value: ir.Value) -> bool:
    """Whether something else than products and the end of the program takes a value."""
    for use in value.uses:
        user = use.owner.operation
        if user.name == "stablehlo.reshape" and _keeps_inner(user):
            if natural_uses(user.results[0]):
                return True
        elif user.name not in ("mxu.contract", "func.return"):
            return True
    return False


def _returned_only(value: ir.Value) -> bool:
    return all(
        use.owner.operation.name == "func.return"
        or (use.owner.operation.name == "stablehlo.reshape" and _returned_only(use.owner.operation.results[0]))
        for use in value.uses
    )


def _keeps_inner(reshape: ir.Operation) -> bool:
    before, after = (tensor_type(v.type).shape[-2:] for v in (reshape.operands[0], reshape.results[0]))
    return len(before) == 2 and before == after
