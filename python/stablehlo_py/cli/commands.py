"""What the commands of `shlo` do."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stablehlo_py.cli.inputs import read_inputs, source_of
from stablehlo_py.core.types import tensor_type
from stablehlo_py.errors import CompileError
from stablehlo_py.runtime.program import ArrayType

if TYPE_CHECKING:
    from stablehlo_py.mlir import ir

SHOWN = 6  # values of a result that are printed


def run(arguments: argparse.Namespace) -> int:
    """Compile, run once, print results and times."""
    started = time.perf_counter()
    call, types = _callable(source_of(arguments), arguments.target)
    compiled = time.perf_counter()
    inputs = read_inputs(arguments.input, types, arguments.seed)
    before = time.perf_counter()
    results = call(*inputs)
    seconds = {"compile_s": compiled - started, "run_s": time.perf_counter() - before}
    if arguments.output:
        stored: dict[str, Any] = {f"out{i}": _storable(r) for i, r in enumerate(results)}
        np.savez(arguments.output, **stored)
    if arguments.json:
        rows = [{"shape": list(r.shape), "dtype": r.dtype.name, "values": _values(r)} for r in results]
        print(json.dumps({**seconds, "target": arguments.target, "results": rows}))
        return 0
    for i, result in enumerate(results):
        print(f"result {i}: {describe(result)}")
    if arguments.profile and arguments.target == "cpu":
        from stablehlo_py.cli.bench import profiled

        print(profiled(call, inputs, arguments.trace))
    print(f"compiled in {seconds['compile_s']:.3f} s, ran in {seconds['run_s'] * 1e3:.3f} ms on {arguments.target}")
    return 0


def _callable(source: Any, target: str) -> tuple[Any, tuple[ArrayType, ...]]:  # Any: sources and callables
    if target == "tpu":
        from stablehlo_py.mlir import ir, new_context
        from stablehlo_py.reading import read_module
        from stablehlo_py.targets.tpu.compile import compile_tpu
        from stablehlo_py.transforms.normalize.hlo_normalize import normalize

        with new_context() as context, ir.Location.unknown():
            module = read_module(source, context)
            normalize(module)
            return compile_tpu(module), _argument_types(module)
    from stablehlo_py import compile

    executable = compile(source, target=target)
    return executable, executable.signature.arguments


def _argument_types(module: ir.Module) -> tuple[ArrayType, ...]:
    """The types of a normalised program's arguments."""
    (main,) = module.body.operations
    types = [tensor_type(argument.type) for argument in main.regions[0].blocks[0].arguments]
    return tuple(ArrayType(ty.shape, ty.element.dtype.name) for ty in types)


def compile(arguments: argparse.Namespace) -> int:
    """Print a stage of the compilation, or what comes out of it."""
    text = _emitted(source_of(arguments), arguments)
    if arguments.output == "-":
        print(text, end="" if text.endswith("\n") else "\n")
    else:
        Path(arguments.output).write_text(text)
    return 0


def _emitted(source: Any, arguments: argparse.Namespace) -> str:  # Any: as compile takes it
    from stablehlo_py.core import pipeline
    from stablehlo_py.mlir import ir, new_context
    from stablehlo_py.reading import read_module

    emit = arguments.emit or {"cpu": "program", "gpu": "ptx", "tpu": "mxu"}[arguments.target]
    if arguments.target == "cpu" and emit in ("program", "llvm-ir", "asm"):
        import stablehlo_py

        executable = stablehlo_py.compile(source)
        return executable.as_text(emit)
    with new_context() as context, ir.Location.unknown():
        module = read_module(source, context)
        if arguments.target == "gpu" and emit == "ptx":
            from stablehlo_py.targets.gpu import compile_ptx

            options = {"chip": arguments.chip} if arguments.chip else {}
            return compile_ptx(module, **options).as_text()
        if arguments.target == "tpu" and emit == "mxu":
            from stablehlo_py.targets.tpu.compile import TpuOptions, compile_tpu

            return compile_tpu(module, TpuOptions(**({"chip": arguments.chip} if arguments.chip else {}))).as_text()
        plan = pipeline.load(arguments.target)
        names = [stage.name for stage in plan.stages]
        if emit not in names:
            more = {"cpu": ["llvm-ir", "asm", "program"], "gpu": ["ptx"], "tpu": []}[arguments.target]
            known = ", ".join(names + more)
            raise CompileError(f"target {arguments.target} emits no {emit!r}", hint=f"it emits {known}")
        pipeline.run(plan, module.operation, stop_after=emit)
        return str(module)


def explain(arguments: argparse.Namespace) -> int:
    """Print where the rules of an op stand."""
    from stablehlo_py.cli.explain import explain as text_of

    print(text_of(arguments.op))
    return 0


def cache(arguments: argparse.Namespace) -> int:
    """List, count, check or remove what the cache holds; 1 when verify finds damage."""
    from stablehlo_py.cache import KINDS, Cache

    store = Cache(Path(arguments.folder) if arguments.folder else None)
    if arguments.action == "clear":
        print(f"removed {store.clear()} entries from {store.folder}")
        return 0
    if arguments.action == "verify":
        damaged = store.verify()
        for entry in damaged:
            print(f"removed {entry.kind} {entry.key}: damaged")
        print(f"{len(damaged)} damaged entries in {store.folder}")
        return 1 if damaged else 0
    entries = sorted(store.entries(), key=lambda e: -e.used)
    if arguments.action == "ls":
        if not entries:
            print(f"no entries in {store.folder}")
        for entry in entries:
            used = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(entry.used))
            print(f"{used}  {entry.kind:8} {entry.bytes:10}  {entry.key[:16]}")
        return 0
    for kind in KINDS:
        mine = [e for e in entries if e.kind == kind]
        print(f"{kind + 's':9} {len(mine):6}  {sum(e.bytes for e in mine) / 1e6:9.2f} MB")
    print(f"bound     {store.largest / 1e6:16.0f} MB in {store.folder}")
    return 0


def describe(array: np.ndarray) -> str:
    """Type and the first values of an array."""
    values = ", ".join(str(v) for v in array.ravel()[:SHOWN])
    more = ", ..." if array.size > SHOWN else ""
    return f"{array.dtype.name}{list(array.shape)} [{values}{more}]"


def _values(array: np.ndarray) -> list[Any]:  # Any: what JSON can hold
    if array.dtype.kind == "c":
        return [[float(v.real), float(v.imag)] for v in array.ravel()[:SHOWN]]
    kind = int if array.dtype.kind in "iu" or "int" in array.dtype.name else bool if array.dtype.kind == "b" else float
    return [kind(v) for v in array.ravel()[:SHOWN]]


def _storable(array: np.ndarray) -> np.ndarray:
    """Types that .npy files do not know, as unsigned integers of the same width."""
    return (
        array if array.dtype.kind in "biufc" and array.dtype.isbuiltin == 1 else array.view(f"u{array.dtype.itemsize}")
    )
