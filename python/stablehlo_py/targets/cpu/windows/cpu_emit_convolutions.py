"""Kernels that are one convolution: as register tiles of plain sums, by Winograd's filters or on matrix tiles.

convolution_emitter.py, winograd_emitter.py and matrix_emitter.py write the loops; convolution_plan.py, winograd_plan.py and
matrix_plan.py count the cycles, of which the fewest decide.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

from stablehlo_py.core.passes import Pass
from stablehlo_py.later import Later
from stablehlo_py.machine.cpu import Cpu, cpu_of
from stablehlo_py.mlir import func, ir
from stablehlo_py.records import record, replace
from stablehlo_py.targets.cpu.emit import nest
from stablehlo_py.targets.cpu.features import features_of
from stablehlo_py.targets.cpu.products.product_forms import SMALL_INT_BLOCK_K, Form, form_of
from stablehlo_py.targets.cpu.windows import winograd_plan
from stablehlo_py.targets.cpu.windows.convolution_plan import CONVERTED, Plan, plan_of
from stablehlo_py.targets.cpu.windows.convolutions import CONVOLUTION, Geometry
from stablehlo_py.targets.cpu.windows.winograd_plan import Winograd
from stablehlo_py.transforms.kernels.kernel_scratch import BUFFERS_FIRST

if TYPE_CHECKING:
    from stablehlo_py.targets.cpu.windows import convolution_emitter as _emitter
    from stablehlo_py.targets.cpu.windows import matrix_emitter as _matrix_emitter
    from stablehlo_py.targets.cpu.windows import matrix_plan as _matrix_plan
    from stablehlo_py.targets.cpu.windows import winograd_emitter as _winograd_emitter
else:  # each of some convolutions
    _emitter = Later("stablehlo_py.targets.cpu.windows.convolution_emitter")
    _matrix_emitter = Later("stablehlo_py.targets.cpu.windows.matrix_emitter")
    _matrix_plan = Later("stablehlo_py.targets.cpu.windows.matrix_plan")
    _winograd_emitter = Later("stablehlo_py.targets.cpu.windows.winograd_emitter")


class CpuEmitConvolutions(Pass):
    """Replace the body of kernels that are one convolution of floats or bytes by register tiles, Winograd's filters or AMX."""

    name: ClassVar[str] = "cpu-emit-convolutions"
    only_with: ClassVar[tuple[str, ...]] = (CONVOLUTION,)
    is_trusted: ClassVar[bool] = True
    features: str = ""  # LLVM's feature names; see features_of

    def run(self, op: ir.Operation) -> bool:
        cpu = cpu_of(features_of(op, self.features))
        module = op.regions[0].blocks[0]
        found = [f.operation for f in module.operations if CONVOLUTION in f.operation.attributes]
        for function in found:
            emit(function, cpu)
        return bool(found)


def emit(function: ir.Operation, cpu: Cpu) -> None:
    """Give a kernel its loops; leave it as it is where they would be no better."""
    geometry = Geometry.from_attribute(function.attributes[CONVOLUTION])
    by_vectors = _by_vectors(geometry, cpu)
    tiles = None
    if cpu.int8_tiles or cpu.bf16_tiles:
        tiles = _matrix_plan.plan_of(geometry, cpu, by_vectors.cycles if by_vectors else math.inf)
    if by_vectors is None and tiles is None:
        return
    block = function.regions[0].blocks[0]
    for operation in reversed(list(block.operations)):
        operation.operation.erase()
    with ir.InsertionPoint(block), function.location, nest.shared_indices(block):
        nest.flatten_arguments(function)
        arguments = list(block.arguments)
        x, w, out = (arguments[n] for n in (geometry.image, geometry.kernel, -1))
        if tiles is not None:
            _matrix_emitter.emit(tiles, geometry, (x, w, out), function)
        elif by_vectors is not None:
            by_vectors.emit((x, w, out), function, cpu)
        func.return_([])
    for mark in (nest.VECTOR_CODE, nest.TILED_CODE, BUFFERS_FIRST):
        function.attributes[mark] = ir.UnitAttr.get()


@record
class _ByVectors:
    """A plan of plain sums, or one of Winograd's filters if those take less."""

    geometry: Geometry
    form: Form
    padded: bool
    plain: Plan | None
    filtered: Winograd | None

    @property
    def cycles(self) -> float:
        return min(plan.cycles for plan in (self.plain, self.filtered) if plan is not None)

    def emit(self, buffers: tuple[ir.Value, ir.Value, ir.Value], function: ir.Operation, cpu: Cpu) -> None:
        if self.filtered is not None:
            _winograd_emitter.emit(self.filtered, self.form, buffers, function)
        elif self.plain is not None:
            _emitter.emit(self.geometry, self.form, self.plain, buffers, padded=self.padded, cpu=cpu)


def _by_vectors(geometry: Geometry, cpu: Cpu) -> _ByVectors | None:
    """The best without matrix tiles; None where that is the loops that are there."""
    form = _form_of(geometry, cpu)
    grouped = geometry.in_groups(form.group) if form else None
    if form is None or grouped is None:
        return None
    # what bytes are moved by is taken off for the whole depth of a panel, which differs between phases
    axes = grouped.axes if form.offsets else tuple(axis.in_phases() for axis in grouped.axes)
    geometry = replace(grouped, axes=axes)
    converted = form.element in CONVERTED
    padded = converted or not all(axis.is_plain for axis in geometry.axes)
    plan = plan_of(
        geometry, cpu, form.bytes, padded=padded, converted=converted, lanes_of="f" if form.group > 1 else ""
    )
    filtered = winograd_plan.plan_of(geometry, form, cpu, plan.cycles if plan is not None else math.inf)
    if plan is None and filtered is None:
        return None
    return _ByVectors(geometry, form, padded, plan, filtered)


def _form_of(geometry: Geometry, cpu: Cpu) -> Form | None:
    """How the operands are multiplied; None for elements that are left to other emitters."""
    names = geometry.elements.split(",")
    if names in (["f32"] * 3, ["f64"] * 3):
        return form_of(names[0], cpu, accumulates=False)
    # in groups, lanes may run over the groups, and their kernels are not packed right
    if names in (["bf16", "bf16", "f32"], ["f16", "f16", "f32"]) and geometry.loops["g"].extent == 1:
        return Form(names[0], 1, cpu.lanes(4))
    if names[0] == names[1] and names[0] in SMALL_INT_BLOCK_K and names[2] in ("i32", "ui32"):
        form = form_of(names[0], cpu, accumulates=False)
        return form if form.group > 1 else None
    return None
