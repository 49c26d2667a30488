"""What a program says about devices, taken out: shardings, markers, and Shardy's ops, as they mean on one device.

A program in the global view (shardings only) computes the same on one device. One that is written per device, or talks
to other devices, is refused.
"""

from __future__ import annotations

from collections.abc import Callable

from stablehlo_py.errors import BadInput
from stablehlo_py.mlir import ir
from stablehlo_py.reading.places import place

COLLECTIVES = {
    f"stablehlo.{name}"
    for name in (
        "all_gather",
        "all_reduce",
        "all_to_all",
        "collective_broadcast",
        "collective_permute",
        "cross-replica-sum",
        "partition_id",
        "reduce_scatter",
        "replica_id",
    )
}
IDENTITY_CALLS = {
    "annotate_device_placement",
    "InspectSharding",
    "LayoutConstraint",
    "MoveToDevice",
    "MoveToHost",
    "Sharding",
    "SPMDFullToShardShape",
    "SPMDShardToFullShape",
    "xla.megascale.provide_metadata",
    "xla.sdy.FuncResultSharding",
    "xla.sdy.GlobalToLocalShape",
    "xla.sdy.LocalToGlobalShape",
}
_DROPPED = {
    "mhlo.frontend_attributes",
    "mhlo.layout_mode",
    "mhlo.memory_kind",
    "mhlo.parameter_replication",
    "mhlo.sharding",
    "mhlo.spmd_output_sharding",
    "mhlo.spmd_parameters_shardings",
}
_ADVANCE = ir.WalkResult.ADVANCE
_ONE_DEVICE = "export the program for one device: without shard_map, pmap, and meshes larger than one"


def walk(op: ir.Operation, visit: Callable[[ir.Operation], None]) -> None:
    """Visit every op under `op`, outer before inner; a visit must not erase."""
    problem: Exception | None = None  # raised here: on their way through C++ exceptions lose their kind
    is_first = True  # the op itself

    def look(inner: ir.Operation) -> ir.WalkResult:
        nonlocal problem, is_first
        if is_first:
            is_first = False
            return _ADVANCE
        try:
            visit(inner)
        except Exception as error:
            problem = error
            return ir.WalkResult.INTERRUPT
        return _ADVANCE

    op.walk(look, ir.WalkOrder.PRE_ORDER)
    if problem is not None:
        raise problem


def on_one_device(module: ir.Module, operations: list[ir.Operation]) -> bool:
    """Take out all that is said about devices; refuse a program that needs several. Whether ops went with it.

    operations: all ops of the module, outer before inner.
    """
    _refuse_several_devices(module, operations)
    _drop_attributes(module.operation)
    waiting: list[ir.Operation] = []
    for op in operations:
        _drop_attributes(op)
        if op.name.startswith("sdy.") or _is_marker(op):
            waiting.append(op)
    for op in reversed(waiting):  # inner before outer: what is moved out of a body is clean
        _resolve(op)
    return bool(waiting)


def _count(module: ir.Module, name: str) -> int:
    attributes = module.operation.attributes
    return ir.IntegerAttr(attributes[name]).value if name in attributes else 1


def _refuse_several_devices(module: ir.Module, operations: list[ir.Operation]) -> None:
    replicas, partitions = _count(module, "mhlo.num_replicas"), _count(module, "mhlo.num_partitions")
    if replicas > 1:
        raise BadInput(
            f"the program runs on {replicas} replicas, each with its own inputs; only one device is supported",
            where=place(module.operation),
            hint=_ONE_DEVICE,
        )
    for op in operations:
        if op.name not in COLLECTIVES:
            continue
        devices = max(partitions, _group_size(op))
        if devices > 1:
            raise BadInput(
                f"{op.name} joins {devices} devices; only one device is supported", where=place(op), hint=_ONE_DEVICE
            )


def _group_size(op: ir.Operation) -> int:
    """How many devices one group of a collective has."""
    if "replica_groups" in op.attributes:
        shape = ir.RankedTensorType(ir.DenseElementsAttr(op.attributes["replica_groups"]).type).shape
        return shape[-1]
    if "source_target_pairs" in op.attributes:
        pairs = ir.DenseIntElementsAttr(op.attributes["source_target_pairs"])
        return max((int(device) for device in pairs), default=0) + 1
    return 1


def _is_dropped(name: str) -> bool:
    return name.startswith(("sdy.", "xla.sdy.")) or name in _DROPPED


def _drop_attributes(op: ir.Operation) -> None:
    attributes = op.attributes
    for name in list(attributes):
        if _is_dropped(name):
            del attributes[name]
        elif name in ("arg_attrs", "res_attrs"):
            dictionaries = [ir.DictAttr(entry) for entry in ir.ArrayAttr(attributes[name])]
            attributes[name] = ir.ArrayAttr.get([_kept(entry) for entry in dictionaries], op.context)


def _kept(dictionary: ir.DictAttr) -> ir.DictAttr:
    if not any(_is_dropped(entry.name) for entry in dictionary):
        return dictionary
    kept = {entry.name: entry.attr for entry in dictionary if not _is_dropped(entry.name)}
    return ir.DictAttr.get(kept, dictionary.context)


def _is_marker(op: ir.Operation) -> bool:
    if op.name != "stablehlo.custom_call":
        return False
    return ir.StringAttr(op.attributes["call_target_name"]).value in IDENTITY_CALLS


def _resolve(op: ir.Operation) -> None:
    """Replace an annotation by what it means on one device: mostly its operands."""
    name = op.name
    if name in ("sdy.mesh", "sdy.sharding_group"):
        op.erase()
    elif name in ("sdy.manual_computation", "sdy.named_computation"):
        _inline_body(op)
    elif name == "sdy.return":
        pass  # goes with the op around it
    elif name == "sdy.constant":
        with op.location, ir.InsertionPoint(op):
            types = [result.type for result in op.results]
            constant = ir.Operation.create(
                "stablehlo.constant", results=types, attributes={"value": op.attributes["value"]}
            )
        _replace(op, list(constant.results))
    else:
        _replace(op, list(op.operands)[: len(op.results)])


def _inline_body(op: ir.Operation) -> None:
    block = op.regions[0].blocks[0]
    for argument, operand in zip(list(block.arguments), list(op.operands), strict=True):
        _refuse_shards(op, argument.type, operand.type)
        argument.replace_all_uses_with(operand)
    body = [child.operation for child in block.operations]
    for child in body[:-1]:
        child.move_before(op)
    _replace(op, list(body[-1].operands))


def _replace(op: ir.Operation, values: list[ir.Value]) -> None:
    if len(values) != len(op.results):
        raise BadInput(f"{_title(op)} has {len(op.results)} results for {len(values)} values", where=place(op))
    for result, value in zip(list(op.results), values, strict=True):
        _refuse_shards(op, result.type, value.type)
        result.replace_all_uses_with(value)
    op.erase()


def _refuse_shards(op: ir.Operation, inside: ir.Type, outside: ir.Type) -> None:
    if inside == outside:
        return
    raise BadInput(
        f"{_title(op)} works on shards of several devices ({outside} is {inside} on each); only one device is supported",
        where=place(op),
        hint=_ONE_DEVICE,
    )


def _title(op: ir.Operation) -> str:
    if op.name != "stablehlo.custom_call":
        return op.name
    return f"custom_call @{ir.StringAttr(op.attributes['call_target_name']).value}"
