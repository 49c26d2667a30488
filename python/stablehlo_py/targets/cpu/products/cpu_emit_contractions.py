"""Marked contractions on buffers become loops over packed tiles: `Product` has them, this pass finds where they belong."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, ClassVar

from stablehlo_py.core.collect import operations_where
from stablehlo_py.core.passes import Pass
from stablehlo_py.later import Later
from stablehlo_py.machine.cpu import Cpu, cpu_of
from stablehlo_py.mlir import arith, ir
from stablehlo_py.targets.cpu.emit import nest
from stablehlo_py.targets.cpu.features import features_of
from stablehlo_py.targets.cpu.products import skinny
from stablehlo_py.targets.cpu.products.contractions import CONTRACTION
from stablehlo_py.targets.cpu.products.product import Product
from stablehlo_py.transforms.kernels.hlo_form_kernels import KERNEL
from stablehlo_py.transforms.kernels.kernel_parallel import PHASES, SETUP, give_range
from stablehlo_py.transforms.kernels.kernel_scratch import BUFFERS_FIRST
from stablehlo_py.transforms.kernels.kernels_to_memref import SHARED

if TYPE_CHECKING:
    from stablehlo_py.targets.cpu.products import epilogue as _epilogue
else:  # of some products
    _epilogue = Later("stablehlo_py.targets.cpu.products.epilogue")


class CpuEmitContractions(Pass):
    """Replace marked contractions on buffers by loops over packed register tiles."""

    name: ClassVar[str] = "cpu-emit-contractions"
    only_with: ClassVar[tuple[str, ...]] = (CONTRACTION,)
    is_trusted: ClassVar[bool] = True
    features: str = ""  # LLVM's feature names; see features_of

    def run(self, op: ir.Operation) -> bool:
        cpu, changed = cpu_of(features_of(op, self.features)), False
        for function in op.regions[0].blocks[0].operations:
            if KERNEL in function.operation.attributes:
                found = operations_where(function.operation, lambda inner: CONTRACTION in inner.attributes)
                for generic in found:
                    emit(generic, cpu, function.operation)
                if found:
                    function.operation.attributes[nest.TILED_CODE] = ir.UnitAttr.get()
                if found and not _has_linalg(function.operation):
                    function.operation.attributes[nest.VECTOR_CODE] = ir.UnitAttr.get()
                changed |= bool(found)
        return changed


def _has_linalg(function: ir.Operation) -> bool:
    return any(o.operation.name.startswith("linalg.") for o in function.regions[0].blocks[0].operations)


def emit(generic: ir.Operation, cpu: Cpu, function: ir.Operation) -> None:
    """Replace one contraction, and the fill with zeros before it; alone in its kernel, it can be cut into parts."""
    a, b, c = generic.operands
    labels = [ir.StringAttr(x).value for x in generic.attributes[CONTRACTION]]
    fill = _zero_fill_of(c, generic)
    is_read = any(use.owner.operation not in (generic, fill) for use in c.uses)
    epilogue = _epilogue.epilogue_of(generic) if is_read else None
    # where what follows the product stands, all that it reads is there already
    place = generic if epilogue is None else epilogue.place
    product = Product(a, b, c, labels, cpu, accumulate=fill is None, epilogue=epilogue, function=function)
    own = [generic, *([fill] if fill is not None else []), *(epilogue.ops if epilogue is not None else [])]
    alone = all(
        o.operation in own or o.operation.name.startswith(SETUP) for o in function.regions[0].blocks[0].operations
    )
    block = function.regions[0].blocks[0]
    with ir.InsertionPoint(place), generic.location, nest.shared_indices(block):
        if skinny.suits(product) and not skinny.is_axpy(product):
            product.each_of_batch(lambda: skinny.emit_dots(product))
        else:
            product.shares_panels = alone and product.may_share_panels
            if product.shares_panels:  # so are sums of the blocks so far, where the result is another one
                for op in block.operations:
                    if op.operation.name == "memref.alloc":
                        op.operation.attributes[SHARED] = ir.UnitAttr.get()
            begin, end = arith.constant(ir.IndexType.get(), 0), arith.constant(ir.IndexType.get(), product.extent)
            product.emit(begin, end)
            if alone and product.extent > 1:
                give_range(function, begin, end, product.extent, product.work, product.grain)
            if product.shares_panels:
                function.attributes[PHASES] = ir.DenseI64ArrayAttr.get([*itertools.chain(*product.phases)])
    if alone:
        function.attributes[BUFFERS_FIRST] = ir.UnitAttr.get()
    if epilogue is not None:
        epilogue.remove()
    for op in (generic, fill):
        if op is not None:
            op.erase()
    if not isinstance(c.owner, ir.Block) and not any(True for _ in c.uses):
        c.owner.operation.erase()


def _zero_fill_of(target: ir.Value, generic: ir.Operation) -> ir.Operation | None:
    """The linalg.fill by zero of the same buffer right before the contraction, if nothing reads it in between."""
    block = generic.block
    operations = [o.operation for o in block.operations]
    for op in reversed(operations[: operations.index(generic)]):
        if op.name == "linalg.fill" and op.operands[1] == target:
            return op
        if target in list(op.operands) and op.name not in ("memref.collapse_shape", "memref.expand_shape"):
            return None
    return None
