"""The seam's own builders make what the bindings' make."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from stablehlo_py import mlir
from stablehlo_py.mlir import ir, new_context
from stablehlo_py.mlir_builders import BUILDERS, ENUMERATIONS

I32, F32, INDEX = "i32", "f32", "index"
VECTOR, TENSOR, MEMREF = "vector<4xf32>", "tensor<4x6xf32>", "memref<4x6xf32>"

# Operands and the names that take such.
OF_OPERANDS = {
    (F32, F32): "arith: addf subf mulf divf remf maximumf minimumf; math: atan2 copysign powf",
    (F32,): (
        "arith: negf; math: absf acos acosh asin asinh atan atanh cbrt ceil cos cosh erf erfc exp exp2 expm1 floor log "
        "log1p log2 round roundeven rsqrt sin sinh sqrt tan tanh"
    ),
    (I32, I32): (
        "arith: addi subi muli andi ori xori shli shrsi shrui divsi divui remsi remui ceildivsi ceildivui floordivsi "
        "maxsi maxui minsi minui"
    ),
    (I32,): "math: ctlz ctpop",
    (F32, F32, F32): "math: fma",
    ("i1", F32, F32): "arith: select",
    (VECTOR, VECTOR, VECTOR): "vector: fma",
    ("complex<f32>", "complex<f32>"): "complex: add mul",
    ("complex<f32>",): "complex: re im",
}
TO_TYPE = {
    (I32, F32): "bitcast sitofp uitofp",
    (F32, I32): "fptosi fptoui",
    (I32, INDEX): "index_cast index_castui",
    ("f16", F32): "extf",
    (F32, "f16"): "truncf",
    ("i8", I32): "extsi extui",
    (I32, "i8"): "trunci",
}
COMPARISONS = [(I32, "eq"), (I32, "ult"), (VECTOR.replace(F32, I32), "sge")]


def ty(text: str) -> ir.Type:
    return ir.Type.parse(text)


Case = Callable[[Any, Callable[..., list[ir.Value]]], object]  # Any: the builders of a dialect


def of_operands(name: str, operands: tuple[str, ...]) -> Case:
    return lambda builders, values: getattr(builders, name)(*values(*operands))


def cases() -> Iterator[tuple[str, Case]]:
    """Builders by dialect and name, with a call of each that the bindings take as well."""
    for operands, text in OF_OPERANDS.items():
        for part in text.split(";"):
            dialect, _, names = part.strip().partition(":")
            for name in names.split():
                yield f"{dialect}.{name}", of_operands(name, operands)
    for (source, result), names in TO_TYPE.items():
        for name in names.split():
            yield f"arith.{name}", lambda b, v, n=name, s=source, r=result: getattr(b, n)(ty(r), *v(s))
    for source, predicate in COMPARISONS:
        yield (
            "arith.cmpi",
            lambda b, v, s=source, p=predicate: b.cmpi(getattr(b.CmpIPredicate, p), *v(s, s)),
        )
    yield "arith.cmpf", lambda b, v: b.cmpf(b.CmpFPredicate.UNE, *v(VECTOR, VECTOR))
    yield "arith.constant", lambda b, _: b.constant(ty(F32), 1.5)
    yield "arith.constant", lambda b, _: b.constant(ty("i8"), -3)
    yield "arith.constant", lambda b, _: b.constant(ty(VECTOR), ir.Attribute.parse(f"dense<2.0> : {VECTOR}"))
    yield "vector.broadcast", lambda b, v: b.broadcast(ty(VECTOR), *v(F32))
    yield "vector.bitcast", lambda b, v: b.bitcast(ty(VECTOR.replace(F32, I32)), *v(VECTOR))
    yield "complex.create_", lambda b, v: b.create_(ty("complex<f32>"), *v(F32, F32))
    yield "tensor.empty", lambda b, _: b.empty([4, 6], ty(F32))
    yield "tensor.extract", lambda b, v: b.extract(*v(TENSOR), v(INDEX, INDEX))
    yield "tensor.insert", lambda b, v: b.insert(*v(F32, TENSOR), v(INDEX, INDEX))
    mark = ir.ShapedType.get_dynamic_size()
    yield (
        "tensor.insert_slice",
        lambda b, v: b.insert_slice(*v("tensor<2x3xf32>", TENSOR), v(INDEX), [], [], [1, mark], [2, 3], [1, 1]),
    )
    yield (
        "tensor.extract_slice",
        lambda b, v: b.extract_slice(ty("tensor<2x3xf32>"), *v(TENSOR), v(INDEX), [], [], [mark, 0], [2, 3], [1, 2]),
    )
    yield "tensor.collapse_shape", lambda b, v: b.collapse_shape(ty("tensor<24xf32>"), *v(TENSOR), [[0, 1]])
    yield "memref.collapse_shape", lambda b, v: b.collapse_shape(ty("memref<24xf32>"), *v(MEMREF), [[0, 1]])
    yield "tensor.expand_shape", lambda b, v: b.expand_shape(ty(TENSOR), *v("tensor<24xf32>"), [[0, 1]], [], [4, 6])
    yield "memref.load", lambda b, v: b.load(*v(MEMREF), v(INDEX, INDEX))
    yield "memref.store", lambda b, v: b.store(*v(F32, MEMREF), v(INDEX, INDEX))
    yield "memref.alloc", lambda b, _: b.alloc(ty(MEMREF), [], [], alignment=64)
    yield "memref.alloca", lambda b, v: b.alloca(ty("memref<?xf32>"), v(INDEX), [], alignment=32)
    yield (
        "memref.prefetch",
        lambda b, v: b.prefetch(*v(MEMREF), v(INDEX, INDEX), is_write=False, locality_hint=2, is_data_cache=True),
    )
    yield "vector.load", lambda b, v: b.load(ty(VECTOR), *v(MEMREF), v(INDEX, INDEX))
    yield "vector.store", lambda b, v: b.store(*v(VECTOR, MEMREF), v(INDEX, INDEX))
    masked = ("vector<4xi1>", VECTOR)
    yield "vector.maskedload", lambda b, v: b.maskedload(ty(VECTOR), *v(MEMREF), v(INDEX, INDEX), *v(*masked))
    yield "vector.maskedstore", lambda b, v: b.maskedstore(*v(MEMREF), v(INDEX, INDEX), *v(*masked))
    yield "vector.extract", lambda b, v: b.extract(*v(VECTOR), [], [2])
    yield "vector.extract", lambda b, v: b.extract(*v("vector<2x4xf32>"), [], [1])
    yield "vector.shuffle", lambda b, v: b.shuffle(*v(VECTOR, VECTOR), [0, 7, 1])
    yield "bufferization.alloc_tensor", lambda b, _: b.alloc_tensor(ty(TENSOR), [])
    yield (
        "bufferization.to_tensor",
        lambda b, v: b.to_tensor(ty(TENSOR), *v(MEMREF), restrict=True, writable=False),
    )
    yield "bufferization.to_buffer", lambda b, v: b.to_buffer(ty(MEMREF), *v(TENSOR), read_only=True)
    yield (
        "bufferization.materialize_in_destination",
        lambda b, v: b.materialize_in_destination(None, *v(TENSOR, MEMREF), restrict=True, writable=True),
    )


# What the bindings build by other calls, and the text of it. {0} and so on are operands.
CHAINED: dict[str, tuple[Case, str]] = {
    "vector.reduction": (
        lambda b, v: b.reduction(ty(F32), "add", *v(VECTOR)),
        f"vector.reduction <add>, {{0}} : {VECTOR} into f32",
    ),
    "linalg.fill": (
        lambda b, v: b.fill([ty(TENSOR)], v(F32), v(TENSOR)),
        f"linalg.fill ins({{0}} : f32) outs({{1}} : {TENSOR}) -> {TENSOR}",
    ),
    "linalg.copy": (
        lambda b, v: b.copy([], v(MEMREF), v(MEMREF)),
        f"linalg.copy ins({{0}} : {MEMREF}) outs({{1}} : {MEMREF})",
    ),
}
REGIONS = """
func.func private @f(f32) -> f32
func.func @test(%low: index, %high: index, %step: index, %x: f32, %is: i1, %t: tensor<4xf32>) -> tensor<4xf32> {
  %0 = scf.for %i = %low to %high step %step iter_args(%a = %x) -> (f32) {
    scf.yield %a : f32
  }
  %1 = scf.if %is -> (f32) {
    scf.yield %x : f32
  } else {
    scf.yield %0 : f32
  }
  %2 = scf.while (%a = %1) : (f32) -> f32 {
    scf.condition(%is) %a : f32
  } do {
  ^bb0(%a: f32):
    scf.yield %a : f32
  }
  %3 = func.call @f(%2) : (f32) -> f32
  scf.index_switch %low
  case 0 {
    scf.yield
  }
  default {
    scf.yield
  }
  %4 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%t : tensor<4xf32>) {
  ^bb0(%a: f32):
    %5 = linalg.index 0 : index
    linalg.yield %3 : f32
  } -> tensor<4xf32>
  return %4 : tensor<4xf32>
}
"""
IN_REGIONS = {
    *(
        "func.func",
        "func.call",
        "func.return_",
        "scf.for_",
        "scf.if_",
        "scf.while_",
        "scf.index_switch",
        "scf.yield_",
        "scf.condition",
    ),
    *("linalg.generic", "linalg.index", "linalg.yield_"),
}


def made(case: Case, builders: Any) -> str:  # Any: as in Case
    """The text of a function with what a call builds, whose operands are the function's arguments."""
    with new_context(), ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            function = mlir.func.func("test", ir.FunctionType.get([], []))
        block = function.regions[0].blocks.append()
        with ir.InsertionPoint(block):
            case(builders, lambda *types: [block.add_argument(ty(t), ir.Location.unknown()) for t in types])
            mlir.func.return_([])
        inputs = [argument.type for argument in block.arguments]
        function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, []))
        return str(module)


def test_every_builder_is_tested():
    assert {name for name, _ in cases()} | set(CHAINED) | IN_REGIONS == set(BUILDERS)


@pytest.mark.parametrize(("name", "case"), [pytest.param(*c, id=f"{n}-{c[0]}") for n, c in enumerate(cases())])
def test_ops_are_those_of_the_bindings(name: str, case: Case):
    dialect = name.partition(".")[0]
    ours = made(case, getattr(mlir, dialect))
    assert ours == made(case, importlib.import_module(f"{mlir.PACKAGE}.dialects.{dialect}"))
    assert f"{name.rstrip('_')}" in ours


@pytest.mark.parametrize("name", CHAINED)
def test_ops_are_those_of_their_text(name: str):
    case, text = CHAINED[name]
    ours = made(case, getattr(mlir, name.partition(".")[0]))
    head = ours.splitlines()[1]
    arguments = [f"%arg{n}" for n in range(head.count("%arg"))]
    with new_context(), ir.Location.unknown():
        assert ours == str(ir.Module.parse(f"{head}\n{text.format(*arguments)}\nreturn }}"))


def test_ops_with_regions_are_those_of_their_text():
    func, linalg, scf = mlir.func, mlir.linalg, mlir.scf
    with new_context(), ir.Location.unknown():
        expected = ir.Module.parse(REGIONS)
        types = [ty(t) for t in (INDEX, INDEX, INDEX, F32, "i1", "tensor<4xf32>")]
        f32, tensor = types[3], types[5]
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            func.func("f", ir.FunctionType.get([f32], [f32]), private=True)
            function = func.func("test", ir.FunctionType.get(types, [tensor]))
        block = function.regions[0].blocks.append(*types)
        low, high, step, x, is_so, t = block.arguments
        with ir.InsertionPoint(block):
            loop = scf.for_(low, high, step, [x])
            with ir.InsertionPoint(loop.regions[0].blocks[0]):
                scf.yield_([loop.regions[0].blocks[0].arguments[1]])
            choice = scf.if_(is_so, [f32])
            for region, value in zip(choice.regions, (x, loop.results[0]), strict=True):
                with ir.InsertionPoint(region.blocks[0]):
                    scf.yield_([value])
            repeated = scf.while_([f32], [choice.results[0]])
            before, after = (region.blocks[0] for region in repeated.regions)
            with ir.InsertionPoint(before):
                scf.condition(is_so, before.arguments)
            with ir.InsertionPoint(after):
                scf.yield_(after.arguments)
            called = func.call([f32], "f", [repeated.results[0]])
            for region in scf.index_switch([], low, range(1)).regions:
                with ir.InsertionPoint(region.blocks[0]):
                    scf.yield_([])
            attributes = ("[affine_map<(d0) -> (d0)>]", "[#linalg.iterator_type<parallel>]")
            generic = linalg.generic([tensor], [], [t], *(ir.Attribute.parse(text) for text in attributes))
            with ir.InsertionPoint(generic.regions[0].blocks.append(f32)):
                linalg.index(0)
                linalg.yield_([called.results[0]])
            func.return_([generic.results[0]])
        assert module.operation.verify()
        assert str(module) == str(expected)


@pytest.mark.parametrize("name", ENUMERATIONS)
def test_numbers_are_those_of_the_bindings(name: str):
    dialect, _, enumeration = name.partition(".")
    theirs = getattr(importlib.import_module(f"{mlir.PACKAGE}.dialects.{dialect}"), enumeration)
    assert ENUMERATIONS[name] == SimpleNamespace(**{member.name: member.value for member in theirs})
