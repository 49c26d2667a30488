"""From a module to a Program and the code of its kernels: the part of compiling that needs the bindings of MLIR.

A program that is taken from the cache needs nothing of this, so `compiler` imports it when it has to: it takes a tenth
of a second.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from stablehlo_py.cache import Cache, key_of, pack, unpack
from stablehlo_py.core import pipeline
from stablehlo_py.core.types import TensorType
from stablehlo_py.errors import CompileError
from stablehlo_py.mlir import borrowed_context, forget_context, ir, new_context
from stablehlo_py.reading import parse_bytecode, read_module
from stablehlo_py.records import record
from stablehlo_py.runtime.executable import Signature
from stablehlo_py.runtime.parts import thread_count
from stablehlo_py.runtime.program import ArrayType, Program, constant_bytes
from stablehlo_py.targets.cpu.code import codegen, kernel_text
from stablehlo_py.targets.cpu.code.objects import Objects
from stablehlo_py.targets.cpu.features import FEATURES
from stablehlo_py.targets.machine_code import CodegenOptions
from stablehlo_py.transforms.kernels.build_program import KernelInfo, build_program
from stablehlo_py.transforms.kernels.hlo_form_kernels import KERNEL
from stablehlo_py.transforms.kernels.kernel_parallel import EXTENT, GRAIN, PHASES, WORK
from stablehlo_py.transforms.kernels.kernel_reuse import reuse_pairs
from stablehlo_py.transforms.kernels.kernels_to_memref import SCRATCH, SHARED, inplace_pairs, number_pairs, numbers
from stablehlo_py.transforms.kernels.memory_pieces import Piece, piece_of
from stablehlo_py.transforms.normalize.shape_operands import has_dynamic_shapes

if TYPE_CHECKING:
    from stablehlo_py.runtime.dynamic import Shapes

WHOLE = "kernels"  # the last stage that sees the whole program: behind it, each kernel goes its own way
SMALL = 1 << 20  # bytes of constants up to which a context is used again
LARGE = 16  # constants with more elements than this are not printed in the text of a stage

Parts = tuple[Program, list[bytes]]  # the Program and an object for each of its kernels


@record
class Making:
    """How a program is made. threads: how many may work on it; lap: is told the name of each step at its end."""

    target: str
    codegen: CodegenOptions
    threads: int | None
    store: Cache | None
    lap: Callable[[str], None]


@record
class Open:
    """A program with symbolic dimensions, which is compiled for the shapes of a call. module: its bytecode."""

    signature: Signature
    by_value: tuple[int, ...]
    module: bytes

    def specialized(self, shapes: Shapes) -> bytes:
        """The program for these shapes, as bytecode."""
        from stablehlo_py.transforms.normalize.hlo_static_shapes import HloStaticShapes
        from stablehlo_py.transforms.normalize.specialize import specialize

        with borrowed_context() as context:
            if len(self.module) > SMALL:
                forget_context(context)
            module = parse_bytecode(self.module, context)
            specialize(module.operation, shapes.shapes, shapes.arrays(self.signature))
            HloStaticShapes().run(module.operation)
            return bytecode(module)


def build(source: Any, making: Making) -> Parts | Open:  # Any: see reading.read_module
    """Read a program and make all that running it takes."""
    with borrowed_context() as context:
        module = read_module(source, context, lambda: pipeline.make_ready(pipeline.load(making.target), context))
        making.lap("read")
        return _open(module) or _build(module, making)


def _open(module: ir.Module) -> Open | None:
    """A program with symbolic dimensions; None for others."""
    if not has_dynamic_shapes(module.operation):
        return None
    from stablehlo_py.transforms.normalize.specialize import open_program

    program = open_program(module.operation)
    if program is None:
        return None
    sides = (program.arguments, program.results)
    return Open(
        Signature(*(tuple(_array_type(ty) for ty in side) for side in sides)), program.by_value, bytecode(module)
    )


def _array_type(ty: TensorType) -> ArrayType:
    return ArrayType(ty.shape, ty.element.dtype.name)


def bytecode(module: ir.Module) -> bytes:
    buffer = io.BytesIO()
    module.operation.write_bytecode(buffer)
    return buffer.getvalue()


def _build(module: ir.Module, making: Making) -> Parts:
    """Run the pipeline over a module, and make code of its kernels: of the first ones while the last ones are lowered."""
    context = module.context
    plan = pipeline.load(making.target)
    _say_for_whom(module, making.codegen)
    pipeline.run(plan, module.operation, stop_after=WHOLE, quick=True)
    main, functions = _parts(module)
    rest = plan.after(WHOLE)
    kernels: dict[str, KernelInfo] = {}
    pieces: dict[str, Piece] = {}
    with Objects(making.codegen, len(functions), thread_count(making.threads)) as objects:
        for function in functions:
            name = ir.StringAttr(function.attributes["sym_name"]).value
            if (piece := piece_of(function)) is not None:
                pieces[name] = piece
            kernels[name] = _make(function, rest, objects, making)
        making.lap("passes")
        program = build_program(main, kernels, pieces)
        making.lap("program")
        if sum(constant_bytes(constant).nbytes for constant in program.constants) > SMALL:
            forget_context(context)
        made = dict(zip(kernels, objects.all(), strict=True))  # also of kernels that a view has taken the place of
    making.lap("codegen")
    return program, [made[kernel.name] for kernel in program.kernels]


def _say_for_whom(module: ir.Module, options: CodegenOptions) -> None:
    """Tell the passes which CPU the code is for, where it is not this one."""
    if (options.cpu, options.features) != ("", ""):
        module.operation.attributes[FEATURES] = ir.StringAttr.get(options.resolved().features, module.context)


def _parts(module: ir.Module) -> tuple[ir.Operation, list[ir.Operation]]:
    """@main, from which the Program is built, and the kernels that it calls."""
    functions = [f.operation for f in module.body.operations]
    main = [f for f in functions if KERNEL not in f.attributes]
    if len(main) != 1:
        raise CompileError(f"a program has one function, this one has {len(main)}")
    return main[0], [f for f in functions if KERNEL in f.attributes]


@record
class _Lowered:
    """A kernel in the LLVM dialect, in a module of its own, which has to live as long."""

    name: str
    function: ir.Operation
    module: ir.Module


def _lower(function: ir.Operation, rest: pipeline.Pipeline, options: CodegenOptions) -> _Lowered:
    """Run the rest of the pipeline over a kernel; it moves to a new module."""
    name = ir.StringAttr(function.attributes["sym_name"]).value
    module = ir.Module.create(loc=ir.Location.unknown())
    _say_for_whom(module, options)
    module.body.append(function)
    pipeline.run(rest, module.operation, quick=True)
    lowered = next(f.operation for f in module.body.operations if KERNEL in f.operation.attributes)
    return _Lowered(name, lowered, module)


def _make(function: ir.Operation, rest: pipeline.Pipeline, objects: Objects, making: Making) -> KernelInfo:
    """Have the code of a kernel: from the cache, or lowered, made and kept there."""
    store, key = making.store, ""
    if store is not None:
        key = _kernel_key(function, making)
        found = _stored_kernel(store, key)
        if found is not None:
            objects.add_made(key, found[1])
            return found[0]
    kernel = _lower(function, rest, making.codegen)
    info = _info(kernel.function)
    keep = None if store is None else lambda made: store.put("kernel", key, pack([info.to_bytes(), made]))
    objects.add(kernel_text.llvm_ir_of(kernel.function), keep)
    return info


def _kernel_key(function: ir.Operation, making: Making) -> str:
    """The key of a kernel that is still StableHLO: everything that its code follows from, so not its name."""
    name = function.attributes["sym_name"]
    function.attributes["sym_name"] = ir.StringAttr.get("kernel")
    text = function.get_asm(use_local_scope=True)
    function.attributes["sym_name"] = name
    return key_of("kernel", making.target, repr(making.codegen.resolved()), text)


def _stored_kernel(store: Cache, key: str) -> tuple[KernelInfo, bytes] | None:
    data = store.get("kernel", key)
    if data is None:
        return None
    try:
        info, made = unpack(data)
        return KernelInfo.from_bytes(info), made
    except (ValueError, TypeError):
        return None  # no kernel of this package


def _info(function: ir.Operation) -> KernelInfo:
    scratch = numbers(function, SCRATCH)
    reuse = tuple(reuse_pairs(function)) if kernel_text.may_share_memory(function) else ()
    extent, work, grain = (_number(function, name) for name in (EXTENT, WORK, GRAIN))
    phases, shared = tuple(number_pairs(function, PHASES)), numbers(function, SHARED)
    return KernelInfo(scratch, tuple(inplace_pairs(function)), reuse, extent, work, max(1, grain), shared, phases)


def _number(function: ir.Operation, name: str) -> int:
    return ir.IntegerAttr(function.attributes[name]).value if name in function.attributes else 0


def cost(source: Any, target: str) -> dict[str, int]:  # Any: as in compile
    """What the program has to do, counted after simplification; read again, since nobody asks in most runs."""
    from stablehlo_py.analysis.cost import program_cost

    with borrowed_context() as context:
        module = read_module(source, context)
        pipeline.run(pipeline.load(target), module.operation, stop_after="simplify")
        found = program_cost(next(iter(module.body.operations)).operation)
    total = found.total
    return {
        "flops": total.flops,
        **{f"flops.{element}": flops for element, flops in found.flops_by_element.items() if flops},
        "transcendentals": total.transcendentals,
        "bytes": total.bytes,
        "unknown_loops": found.unknown_loops,
    }


def stage_names(target: str) -> tuple[str, ...]:
    """The stages whose text can be asked for, in order."""
    return ("input", *(stage.name for stage in pipeline.load(target).stages), "llvm-ir", "asm", "program")


def stage_text(
    source: Any, target: str, stage: str, program: Program, options: CodegenOptions
) -> str:  # Any: as in compile
    """The program's text after a stage; the work up to there is done again, since nobody asks in most runs."""
    if stage == "program":
        return program.as_text()
    with new_context() as context, ir.Location.unknown():
        module = read_module(source, context)
        _say_for_whom(module, options)
        after_passes = stage in ("llvm-ir", "asm")
        if stage != "input":
            pipeline.run(pipeline.load(target), module.operation, stop_after=WHOLE if after_passes else stage)
        if not after_passes:
            return module.operation.get_asm(large_elements_limit=LARGE)
        rest = pipeline.load(target).after(WHOLE)
        lowered = {
            kernel.name: kernel for kernel in (_lower(function, rest, options) for function in _parts(module)[1])
        }
        texts = {kernel.name: kernel_text.llvm_ir_of(lowered[kernel.name].function) for kernel in program.kernels}
    if stage == "asm":
        texts = {name: codegen.make_assembly(text, options) for name, text in texts.items()}
    mark = "#" if stage == "asm" else ";"
    return "\n".join(f"{mark} {name}\n{text}" for name, text in texts.items())
