"""A program with symbolic dimensions, made one for the shapes of a call.

main(%n: tensor<i64>, %x: tensor<?x4xf32>) on 3 and f32[3,4]   ->   main(%n: tensor<i64>, %x: tensor<3x4xf32>) where
what computes shapes from %n computes them from the constant 3. hlo-static-shapes then makes everything else static.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from stablehlo_py.core.quantization import quantization_of, stored_type
from stablehlo_py.core.types import TensorType, tensor_type
from stablehlo_py.errors import BadInput
from stablehlo_py.mlir import ir
from stablehlo_py.reading.places import place
from stablehlo_py.records import record
from stablehlo_py.transforms.normalize.hlo_custom_calls import keep_effects
from stablehlo_py.transforms.normalize.hlo_expand_chlo import HloExpandChlo
from stablehlo_py.transforms.normalize.hlo_fold_shapes import constant_before
from stablehlo_py.transforms.normalize.hlo_inline import HloInline, find_main
from stablehlo_py.transforms.normalize.hlo_scalar_ops import HloScalarOps
from stablehlo_py.transforms.normalize.hlo_tuples import HloTuples
from stablehlo_py.transforms.normalize.shape_operands import is_dynamic, shape_slice

MAX_VALUES = 64  # elements of an argument that decides shapes
_TO_SPECIALIZE = (HloExpandChlo(chlo=False), HloInline(), HloTuples(), HloScalarOps())


@record
class OpenProgram:
    """What the shapes of a program depend on.

    arguments, results: their types, with -1 for dimensions that a call decides. by_value: the arguments whose elements
    decide shapes too.
    """

    arguments: tuple[TensorType, ...]
    results: tuple[TensorType, ...]
    by_value: tuple[int, ...]


def open_program(module: ir.Operation) -> OpenProgram | None:
    """What the shapes of a program that has dynamic ones depend on; None where they stand fixed. It is inlined by this."""
    keep_effects(module)
    for step in _TO_SPECIALIZE:
        step.run(module)
    main = find_main(module)
    ty = ir.FunctionType(ir.TypeAttr(main.attributes["function_type"]).value)
    by_value = tuple(sorted(shape_slice(main)[1]))
    if not by_value and not any(is_dynamic(t) for t in ty.inputs):
        return None
    for index, t in enumerate(ty.inputs):
        if isinstance(t, ir.UnrankedTensorType):
            raise BadInput(f"argument {index} of main has no rank: {t}", where=place(main), hint="give it one")
    arguments = tuple(stored_type(t) for t in ty.inputs)
    for index in by_value:
        if not arguments[index].is_static or arguments[index].size > MAX_VALUES:
            raise BadInput(
                f"shapes depend on the elements of argument {index}, {arguments[index]}, which only a run knows",
                where=place(main),
                hint=f"at most {MAX_VALUES} elements can decide shapes: bound the shapes, or export with concrete ones",
            )
    results = tuple(_result_type(t) for t in ty.results)
    return OpenProgram(arguments, results, by_value)


def _result_type(ty: ir.Type) -> TensorType:
    return stored_type(ty) if quantization_of(ty) else tensor_type(ty)


def specialize(module: ir.Operation, shapes: tuple[tuple[int, ...], ...], values: Mapping[int, np.ndarray]) -> None:
    """Give main's arguments these shapes, and put the values of those that decide shapes into the program."""
    main = find_main(module)
    block = main.regions[0].blocks[0]
    for argument, shape in zip(block.arguments, shapes, strict=True):
        if is_dynamic(argument.type):
            element = ir.RankedTensorType(argument.type).element_type
            argument.set_type(ir.RankedTensorType.get(list(shape), element, loc=ir.Location.unknown()))
    results = [value.type for value in list(block.operations)[-1].operands]
    main.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get([a.type for a in block.arguments], results))
    first = block.operations[0].operation
    for index, value in values.items():
        argument = block.arguments[index]
        argument.replace_all_uses_with(constant_before(first, np.asarray(value), tensor_type(argument.type)))
