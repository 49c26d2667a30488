"""Read off a module after the nvvm stage: the launches of each kernel function, and the PTX of each GPU kernel."""

from __future__ import annotations

import math

import numpy as np

from stablehlo_py.errors import UnsupportedOp
from stablehlo_py.machine.gpu import GpuChip
from stablehlo_py.mlir import ir, raw_elements
from stablehlo_py.targets.gpu.launch import BUFFERS, place
from stablehlo_py.targets.gpu.program import Launch, Plan, PlanBuffer
from stablehlo_py.targets.gpu.ptx import module_to_ptx
from stablehlo_py.transforms.kernels.kernel_scratch import element_bytes


def ptx_of(module: ir.Operation, chip: GpuChip) -> dict[str, str]:
    """The PTX of every gpu.module, by the name of its kernel."""
    found = {}
    for view in module.regions[0].blocks[0].operations:
        if view.operation.name == "gpu.module":
            found[ir.StringAttr(view.operation.attributes["sym_name"]).value] = module_to_ptx(view.operation, chip)
    return found


def plans_of(module: ir.Operation) -> dict[str, Plan]:
    """The launches of every function that has a body."""
    functions = [f.operation for f in module.regions[0].blocks[0].operations if f.operation.name == "func.func"]
    return {
        ir.StringAttr(f.attributes["sym_name"]).value: _plan(f, module) for f in functions if len(f.regions[0].blocks)
    }


def _plan(function: ir.Operation, module: ir.Operation) -> Plan:
    block = function.regions[0].blocks[0]
    names: dict[ir.Value, str] = {}
    buffers, launches = [], []

    def add(value: ir.Value, kind: str, data: np.ndarray | None = None) -> None:
        names[value] = f"{kind}{sum(b.kind == kind for b in buffers)}"
        buffers.append(PlanBuffer(names[value], kind, memref_bytes(value.type), data))

    for argument in block.arguments:
        add(argument, "argument")
    for view in block.operations:
        op = view.operation
        if op.name == "memref.get_global":
            add(op.results[0], "constant", _constant(op, module))
        elif op.name in BUFFERS:
            add(op.results[0], "temporary")
        elif op.name == "gpu.launch_func":
            launches.append(_launch(op, names))
    return Plan(tuple(buffers), tuple(launches))


def _launch(op: ir.Operation, names: dict[ir.Value, str]) -> Launch:
    sizes = [ir.IntegerAttr(v.owner.operation.attributes["value"]).value for v in list(op.operands)[:6]]
    kernel = str(op.attributes["kernel"]).rpartition("@")[2]
    args = tuple(names[v] for v in list(op.operands)[6:])
    return Launch(kernel, (sizes[0], sizes[1], sizes[2]), (sizes[3], sizes[4], sizes[5]), args)


def _constant(op: ir.Operation, module: ir.Operation) -> np.ndarray:
    """The bytes of the memref.global that an op names."""
    name = ir.FlatSymbolRefAttr(op.attributes["name"]).value
    ty = ir.MemRefType(op.results[0].type)
    for view in module.regions[0].blocks[0].operations:
        found = view.operation
        if found.name == "memref.global" and ir.StringAttr(found.attributes["sym_name"]).value == name:
            count = math.prod(ty.shape)
            item = element_bytes(ty.element_type)
            raw = raw_elements(found, "initial_value", item, count)
            if raw is not None:
                data, splat = raw
                return np.frombuffer(data * count if splat else data, np.uint8)
    raise UnsupportedOp(op.name, f"the contents of @{name} are not known", target="gpu", where=place(op))


def memref_bytes(ty: ir.Type) -> int:
    memref = ir.MemRefType(ty)
    return math.prod(memref.shape) * element_bytes(memref.element_type)
