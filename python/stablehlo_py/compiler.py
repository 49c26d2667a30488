"""compile(source, target) -> Executable: the whole way through the house, in the order in which it happens.

read the program -> run the target's pipeline, stage by stage -> build the Program of @main -> make code of the kernels
-> load it. The file to read first.
"""

from __future__ import annotations

import io
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stablehlo_py.analysis.cost import program_cost
from stablehlo_py.cache import Cache, key_of, pack, unpack
from stablehlo_py.core import pipeline
from stablehlo_py.core.types import TensorType
from stablehlo_py.custom_calls.host import host_functions
from stablehlo_py.errors import CompileError
from stablehlo_py.mlir import borrowed_context, forget_context, ir, new_context
from stablehlo_py.reading import read_module
from stablehlo_py.runtime.dynamic import DynamicExecutable, Shapes
from stablehlo_py.runtime.executable import Executable, Signature, Stages
from stablehlo_py.runtime.executor import make_executor
from stablehlo_py.runtime.program import ArrayType, Program, constant_bytes
from stablehlo_py.targets.cpu import codegen
from stablehlo_py.targets.cpu.features import FEATURES
from stablehlo_py.transforms.build_program import KernelInfo, build_program
from stablehlo_py.transforms.hlo_form_kernels import KERNEL
from stablehlo_py.transforms.hlo_static_shapes import HloStaticShapes
from stablehlo_py.transforms.kernel_parallel import EXTENT, WORK
from stablehlo_py.transforms.kernels_to_memref import SCRATCH, inplace_pairs
from stablehlo_py.transforms.specialize import OpenProgram, open_program, specialize

TARGETS = ("cpu",)
SMALL = 1 << 20  # bytes of constants up to which a context is used again
LARGE = 16  # constants with more elements than this are not printed in the text of a stage


@dataclass(frozen=True)
class Options:
    """How to compile; what is not given is the host's own.

    executor: "native", or "python" for the slow one that shows each command. threads: how many run one program; None is
    as STABLEHLO_PY_THREADS says, else one for each core that the process may use. donate: numbers of the arguments that
    a call may overwrite to leave a result there; True for those that the program marks (JAX's `donate_argnums`).
    """

    codegen: codegen.CodegenOptions = field(default_factory=codegen.CodegenOptions)
    executor: str = "native"
    threads: int | None = None
    donate: bool | tuple[int, ...] = False


# Any: a path, text, bytes, a jax.export.Exported, a Lowered, an ir.Module: see reading.read_module
def compile(
    source: Any, target: str = "cpu", *, cache: bool | Cache = True, options: Options | None = None
) -> Executable | DynamicExecutable:
    """Compile a StableHLO program; one with symbolic dimensions is compiled when it is called, for the call's shapes.

    source: a path, MLIR text, MLIR bytecode or a StableHLO artifact as bytes, a `jax.export.Exported`, the result of
    `jax.jit(f).lower(...)`, or a module of the bindings. cache: whether what was compiled before, by this or another
    process, is taken from disk; a `Cache` to say where. Raises BadInput for what is not a program, UnsupportedOp for
    an op the target cannot do.
    """
    if target not in TARGETS:
        raise CompileError(
            f"there is no target {target!r} to run programs on", hint=f"choose among {', '.join(TARGETS)}"
        )
    options = options or Options()
    store = None if not cache else cache if isinstance(cache, Cache) else Cache()
    clock = _Clock()
    key = _program_key(source, target, options) if store else ""
    parts = _stored(store, key) if store and key else None
    if parts is not None:
        clock.lap("cache")
        return _load(source, target, options, parts, clock)
    with borrowed_context() as context:
        module = read_module(source, context)
        clock.lap("read")
        if (program := open_program(module.operation)) is not None:
            return _open(program, bytecode(module), target, options, store)
        parts = _build(module, target, options, store, clock)
    if store and key:
        store.put("program", key, pack([parts[0].to_bytes(), *parts[1]]))
    return _load(source, target, options, parts, clock)


Parts = tuple[Program, list[bytes]]  # the Program and an object for each of its kernels


def _load(source: Any, target: str, options: Options, parts: Parts, clock: _Clock) -> Executable:  # Any: as in compile
    program, objects = parts
    code = codegen.Code(objects)
    calls = host_functions(program.host_calls)
    executor = make_executor(
        program,
        code.addresses,
        calls,
        prefer=options.executor,  # type: ignore[arg-type]
        threads=options.threads,
        owner=code,
    )
    clock.lap("load")
    names = ("input", *(stage.name for stage in pipeline.load(target).stages), "llvm-ir", "asm", "program")
    stages = Stages(names, lambda stage: _stage_text(source, target, stage, program, options))
    donate = options.donate if isinstance(options.donate, tuple) else program.donors if options.donate else ()
    return Executable(
        program,
        executor,
        target=target,
        stages=stages,
        timing=clock.seconds,
        cost=lambda: _cost(source, target),
        donate=donate,
    )


def _cost(source: Any, target: str) -> dict[str, int]:  # Any: as in compile
    """What the program has to do, counted after simplification; read again, since nobody asks in most runs."""
    with borrowed_context() as context:
        module = read_module(source, context)
        pipeline.run(pipeline.load(target), module.operation, stop_after="simplify")
        found = program_cost(next(iter(module.body.operations)).operation)
    total = found.total
    return {
        "flops": total.flops,
        "transcendentals": total.transcendentals,
        "bytes": total.bytes,
        "unknown_loops": found.unknown_loops,
    }


def _open(program: OpenProgram, module: bytes, target: str, options: Options, store: Cache | None) -> DynamicExecutable:
    """What compiles a program with symbolic dimensions for the shapes of each call; `module` is its bytecode."""
    signature = Signature(*(tuple(_array_type(ty) for ty in side) for side in (program.arguments, program.results)))

    def compile_for(shapes: Shapes) -> Executable:
        with borrowed_context() as context:
            if len(module) > SMALL:
                forget_context(context)
            specialized = ir.Module.parse(module, context)
            specialize(specialized.operation, shapes.shapes, shapes.arrays(signature))
            HloStaticShapes().run(specialized.operation)
            static = bytecode(specialized)
        executable = compile(static, target, cache=store or False, options=options)
        assert isinstance(executable, Executable)  # nothing of a specialized program is open
        return executable

    return DynamicExecutable(signature, program.by_value, compile_for, target=target)


def _array_type(ty: TensorType) -> ArrayType:
    return ArrayType(ty.shape, ty.element.dtype.name)


def bytecode(module: ir.Module) -> bytes:
    buffer = io.BytesIO()
    module.operation.write_bytecode(buffer)
    return buffer.getvalue()


def _build(module: ir.Module, target: str, options: Options, store: Cache | None, clock: _Clock) -> Parts:
    """Run the pipeline over a module, and make code of its kernels."""
    context = module.context
    plan = pipeline.load(target)
    _say_for_whom(module, options)
    main = _Saved()
    pipeline.run(plan, module.operation, on_stage=main.after_stage)
    clock.lap("passes")
    symbols = {ir.StringAttr(f.operation.attributes["sym_name"]).value: f.operation for f in module.body.operations}
    kernels = {name: f for name, f in symbols.items() if KERNEL in f.attributes}
    program = build_program(main.function, {name: _info(f) for name, f in kernels.items()})
    clock.lap("program")
    if sum(constant_bytes(constant).nbytes for constant in program.constants) > SMALL:
        forget_context(context)
    texts = [codegen.llvm_ir_of(kernels[kernel.name], symbols) for kernel in program.kernels]
    objects = [_object(text, options, store) for text in texts]
    clock.lap("codegen")
    return program, objects


def _say_for_whom(module: ir.Module, options: Options) -> None:
    """Tell the passes which CPU the code is for, where it is not this one."""
    if (options.codegen.cpu, options.codegen.features) != ("", ""):
        module.operation.attributes[FEATURES] = ir.StringAttr.get(options.codegen.resolved().features, module.context)


def _object(text: str, options: Options, store: Cache | None) -> bytes:
    """The code of a kernel: from the cache, or made and kept there."""
    if store is None:
        return codegen.make_object(text, options.codegen)
    key = key_of("kernel", repr(options.codegen.resolved()), text)
    data = store.get("kernel", key)
    if data is None:
        data = codegen.make_object(text, options.codegen)
        store.put("kernel", key, data)
    return data


def _program_key(source: Any, target: str, options: Options) -> str:  # Any: as in compile
    """The key of a program whose source is at hand as bytes; empty for other sources, whose kernels alone are kept."""
    data: bytes | None = None
    if isinstance(source, bytes | bytearray):
        data = bytes(source)
    elif isinstance(source, str | Path) and "\n" not in str(source):
        try:
            data = Path(source).read_bytes()
        except (OSError, ValueError):
            return ""  # reading it will say what is wrong
    elif isinstance(source, str):
        data = source.encode()
    elif isinstance(artifact := getattr(source, "mlir_module_serialized", None), bytes):
        data = artifact + repr(getattr(source, "platforms", ())).encode()  # a jax.export.Exported, for one of these
    return key_of("program", target, repr(options.codegen.resolved()), data) if data is not None else ""


def _stored(store: Cache, key: str) -> tuple[Program, list[bytes]] | None:
    data = store.get("program", key)
    if data is None:
        return None
    try:
        program, *objects = unpack(data)
        return Program.from_bytes(program), objects
    except (ValueError, CompileError):
        return None  # of another version of this package


class _Saved:
    """@main as it is after the kernels are formed: the Program is built from it."""

    def after_stage(self, stage: str, module: ir.Operation) -> None:
        if stage != "kernels":
            return
        body = module.regions[0].blocks[0]
        found = [f.operation for f in body.operations if KERNEL not in f.operation.attributes]
        if len(found) != 1:
            raise CompileError(f"a program has one function, this one has {len(found)}")
        self.keep = ir.Module.create(loc=ir.Location.unknown())
        self.function = found[0].clone()
        self.keep.body.append(self.function)


def _info(function: ir.Operation) -> KernelInfo:
    scratch = tuple(ir.DenseI64ArrayAttr(function.attributes[SCRATCH]))
    return KernelInfo(scratch, tuple(inplace_pairs(function)), _number(function, EXTENT), _number(function, WORK))


def _number(function: ir.Operation, name: str) -> int:
    return ir.IntegerAttr(function.attributes[name]).value if name in function.attributes else 0


def _stage_text(source: Any, target: str, stage: str, program: Program, options: Options) -> str:  # Any: as in compile
    """The program's text after a stage; the work up to there is done again, since nobody asks in most runs."""
    if stage == "program":
        return program.as_text()
    with new_context() as context, ir.Location.unknown():
        module = read_module(source, context)
        _say_for_whom(module, options)
        after_passes = stage in ("llvm-ir", "asm")
        if stage != "input":
            pipeline.run(pipeline.load(target), module.operation, stop_after=None if after_passes else stage)
        if not after_passes:
            return module.operation.get_asm(large_elements_limit=LARGE)
        symbols = {ir.StringAttr(f.operation.attributes["sym_name"]).value: f.operation for f in module.body.operations}
        texts = {kernel.name: codegen.llvm_ir_of(symbols[kernel.name], symbols) for kernel in program.kernels}
    if stage == "asm":
        texts = {name: codegen.make_assembly(text, options.codegen) for name, text in texts.items()}
    mark = "#" if stage == "asm" else ";"
    return "\n".join(f"{mark} {name}\n{text}" for name, text in texts.items())


class _Clock:
    """Seconds between laps."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.seconds[name] = now - self._last
        self._last = now
