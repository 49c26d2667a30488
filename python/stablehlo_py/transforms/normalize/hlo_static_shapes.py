"""Shapes that are known after all: shape computations folded, dynamic ops made static.

%s = constant [2, 3];  %1 = dynamic_reshape %0, %s : tensor<?x?xf32>   ->   %1 = reshape %0 : tensor<2x3xf32>
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from stablehlo_py.core.collect import operations_named
from stablehlo_py.core.passes import Pass
from stablehlo_py.errors import BadInput
from stablehlo_py.mlir import PassManager, ir
from stablehlo_py.reading.annotations import walk
from stablehlo_py.reading.places import place
from stablehlo_py.transforms.normalize.hlo_fold_shapes import fold_shapes, known_elements
from stablehlo_py.transforms.normalize.hlo_inline import find_main
from stablehlo_py.transforms.normalize.hlo_known_calls import replace_known_calls
from stablehlo_py.transforms.normalize.shape_operands import ASSERTION, DYNAMIC_OPS, is_dynamic

REFINE = ("stablehlo-refine-shapes", "func.func(stablehlo-canonicalize-dynamism)")


class HloStaticShapes(Pass):
    """Fold shape computations and make dynamic ops static; refuse what stays dynamic."""

    name: ClassVar[str] = "hlo-static-shapes"

    def run(self, op: ir.Operation) -> bool:
        names, dynamic = _survey(op)
        if not dynamic and not names & DYNAMIC_OPS and not ("stablehlo.custom_call" in names and _assertions(op)):
            return False
        _refuse_dynamic_arguments(find_main(op))
        fold_shapes(op)
        check_assertions(op)  # first: they know the names of dimensions
        _run(op, REFINE)
        # what the C++ passes do not fold, such as ceil and divide of floats
        while fold_shapes(op) | replace_known_calls(op) | _set_sizes(op):
            _run(op, REFINE)
        check_assertions(op)
        _take_shape_from_result(op)
        _, dynamic = _survey(op)
        if dynamic:
            raise BadInput(
                f"{dynamic[0].name} has a shape that is known only when the program runs: {_types(dynamic[0])}",
                where=place(dynamic[0]),
                hint="export the program with concrete shapes",
            )
        return True


def _run(module: ir.Operation, passes: Sequence[str]) -> None:
    try:
        with module.context:
            PassManager.parse(f"builtin.module({','.join(passes)})").run(module)
    except ir.MLIRError as error:
        said = [diagnostic.message.splitlines()[0] for diagnostic in error.error_diagnostics]
        raise BadInput(
            f"shapes do not fit together: {said[0] if said else 'which of them is not said'}",
            where=place(find_main(module)),
            hint="check the dimensions of the arguments against what the program was exported for",
        ) from None


def _set_sizes(module: ir.Operation) -> bool:
    """set_dimension_size(%x, 3), dim = 0 : tensor<?xf32>   ->   slice %x [0:3]; whether there was one"""
    changed = False
    for op in operations_named(module, "stablehlo.set_dimension_size"):
        size = known_elements(op.operands[1])
        if size is None or is_dynamic(op.operands[0].type):
            continue
        ty = ir.RankedTensorType(op.operands[0].type)
        shape, dimension = list(ty.shape), ir.IntegerAttr(op.attributes["dimension"]).value
        if not 0 <= size.item() <= shape[dimension]:
            raise BadInput(
                f"dimension {dimension} of {shape[dimension]} elements is set to {size.item()}", where=place(op)
            )
        shape[dimension] = size.item()
        ranges = {"start_indices": [0] * len(shape), "limit_indices": shape, "strides": [1] * len(shape)}
        with ir.InsertionPoint(op), op.location:
            part = ir.Operation.create(
                "stablehlo.slice",
                results=[ir.RankedTensorType.get(shape, ty.element_type)],
                operands=[op.operands[0]],
                attributes={name: ir.DenseI64ArrayAttr.get(value) for name, value in ranges.items()},
            )
        op.results[0].replace_all_uses_with(part.results[0])
        op.erase()
        changed = True
    return changed


# What a dynamic op is called once its result type says the shape that its last operand computes.
_STATIC_FORM = {
    "stablehlo.dynamic_iota": "stablehlo.iota",
    "stablehlo.dynamic_reshape": "stablehlo.reshape",
    "stablehlo.dynamic_broadcast_in_dim": "stablehlo.broadcast_in_dim",
}


def _take_shape_from_result(module: ir.Operation) -> None:
    """dynamic_iota(n) : tensor<3xi32> == iota : tensor<3xi32>, whatever computes n."""
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> None:
        types = [v.type for v in (*op.operands, *op.results)]
        if op.name in _STATIC_FORM and not any(is_dynamic(ty) for ty in types):
            found.append(op)

    walk(module, visit)
    for op in found:
        attributes = {
            name: op.attributes[name] for name in ("iota_dimension", "broadcast_dimensions") if name in op.attributes
        }
        with ir.InsertionPoint(op), op.location:
            static = ir.Operation.create(
                _STATIC_FORM[op.name],
                results=[op.results[0].type],
                operands=list(op.operands)[:-1],
                attributes=attributes,
            )
        op.results[0].replace_all_uses_with(static.results[0])
        op.erase()


def _survey(module: ir.Operation) -> tuple[set[str], list[ir.Operation]]:
    """The names of all ops, and the ops with a result of unknown shape."""
    names: set[str] = set()
    dynamic: list[ir.Operation] = []

    def visit(op: ir.Operation) -> None:
        names.add(op.name)
        if any(is_dynamic(result.type) for result in op.results):
            dynamic.append(op)

    walk(module, visit)
    arguments = find_main(module).regions[0].blocks[0].arguments
    if any(is_dynamic(argument.type) for argument in arguments):
        dynamic.append(find_main(module))
    return names, dynamic


def _assertions(module: ir.Operation) -> list[ir.Operation]:
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> None:
        if op.name == "stablehlo.custom_call" and ir.StringAttr(op.attributes["call_target_name"]).value == ASSERTION:
            found.append(op)

    walk(module, visit)
    return found


def check_assertions(module: ir.Operation) -> None:
    """Check what the program asserts of its shapes; BadInput with the program's own message where it does not hold."""
    for op in _assertions(module):
        values = [known_elements(operand) for operand in op.operands]
        if any(value is None for value in values):
            continue  # what the program computes from its data is asserted when it runs
        holds, *named = (value.item() for value in values if value is not None)
        if not holds:
            message = ir.StringAttr(op.attributes["error_message"]).value if "error_message" in op.attributes else ""
            for number, value in enumerate(named):
                message = message.replace(f"{{{number}}}", str(value))
            raise BadInput(
                message or "an assertion of the program on its shapes does not hold",
                where=place(op),
                hint="the message is of whoever exported the program",
            )
        op.erase()


def _refuse_dynamic_arguments(main: ir.Operation) -> None:
    for index, argument in enumerate(main.regions[0].blocks[0].arguments):
        if is_dynamic(argument.type):
            raise BadInput(
                f"argument {index} of main has a shape that is known only when the program runs: {argument.type}",
                where=place(main),
                hint="export the program with concrete shapes",
            )


def _types(op: ir.Operation) -> str:
    return ", ".join(str(result.type) for result in op.results)
