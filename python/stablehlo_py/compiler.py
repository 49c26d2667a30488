"""compile(source, target) -> Executable: the whole way through the house, in the order in which it happens.

read the program -> run the target's pipeline, stage by stage -> build the Program of @main -> make code of the kernels
-> load it. The file to read first; `building` is the part up to the code, which a program from the cache does not need.
"""

from __future__ import annotations

import importlib
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stablehlo_py.cache import Cache, key_of, pack, unpack
from stablehlo_py.errors import BadOption, CompileError
from stablehlo_py.garbage import none_collected
from stablehlo_py.records import field, record
from stablehlo_py.targets import code_generator
from stablehlo_py.targets.cpus import host, missing, processor, tell_host
from stablehlo_py.targets.machine_code import Code, CodegenOptions

if TYPE_CHECKING:
    from stablehlo_py.building import Open, Parts
    from stablehlo_py.runtime.dynamic import DynamicExecutable, Shapes
    from stablehlo_py.runtime.executable import Executable
    from stablehlo_py.runtime.program import Program

EXECUTORS = ("native", "python")
TARGETS = ("cpu",)


@record
class Options:
    """How to compile; what is not given is the host's own.

    executor: "native", or "python" for the slow one that shows each command. threads: how many run one program; None is
    as STABLEHLO_PY_THREADS says, else one for each core that the process may use. donate: numbers of the arguments that
    a call may overwrite to leave a result there; True for those that the program marks (JAX's `donate_argnums`).
    """

    codegen: CodegenOptions = field(default_factory=CodegenOptions)
    executor: str = "native"
    threads: int | None = None
    donate: bool | tuple[int, ...] = False

    def __post_init__(self) -> None:
        """Refuse what means nothing now: it would be ignored, or fail later in other words."""
        if not isinstance(self.codegen, CodegenOptions):
            raise BadOption(f"codegen is {self.codegen!r}", hint="give CodegenOptions(cpu=..., features=...)")
        if self.executor not in EXECUTORS:
            raise BadOption(f"there is no executor {self.executor!r}", hint=f"choose among {', '.join(EXECUTORS)}")
        if self.threads is not None and (isinstance(self.threads, bool) or not isinstance(self.threads, int)):
            raise BadOption(f"threads is {self.threads!r}", hint="give a whole number, or None for one a core")
        numbers = self.donate if isinstance(self.donate, tuple) else ()
        if not isinstance(self.donate, bool | tuple) or any(not hasattr(number, "__index__") for number in numbers):
            raise BadOption(
                f"donate is {self.donate!r}", hint="give numbers of arguments, such as (0, 2), or True or False"
            )


# Any: a path, text, bytes, a jax.export.Exported, a Lowered, an ir.Module: see reading.read_module
def compile(
    source: Any, target: str = "cpu", *, cache: bool | Cache = True, options: Options | None = None
) -> Executable | DynamicExecutable:
    """Compile a StableHLO program; one with symbolic dimensions is compiled when it is called, for the call's shapes.

    source: a path, MLIR text, MLIR bytecode or a StableHLO artifact as bytes, a `jax.export.Exported`, the result of
    `jax.jit(f).lower(...)`, or a module of the bindings. cache: whether what was compiled before, by this or another
    process, is taken from disk; a `Cache` to say where. Raises BadInput for what is not a program, UnsupportedOp for
    an op the target cannot do, BadOption for an option without a meaning. A program for another CPU (`options.codegen`)
    can be looked at; calling it is a WrongMachine where this machine lacks instructions of that CPU.
    """
    if target not in TARGETS:
        raise CompileError(
            f"there is no target {target!r} to run programs on", hint=f"choose among {', '.join(TARGETS)}"
        )
    options = Options() if options is None else options
    if not isinstance(options, Options):
        raise BadOption(f"options is {options!r}", hint="give stablehlo_py.Options(threads=..., ...)")
    if not isinstance(cache, bool | Cache):
        raise BadOption(f"cache is {cache!r}", hint="give True, False, or stablehlo_py.cache.Cache(folder)")
    store = None if not cache else cache if isinstance(cache, Cache) else Cache()
    clock = _Clock()
    if store:
        _know_host(store)
    key = _program_key(source, target, options) if store else ""
    with none_collected():
        parts = _stored(store, key) if store and key else None
        if parts is not None:
            clock.lap("cache")
            return _load(source, target, options, parts, store, clock)
        if not (isinstance(source, str) and "\n" in source):  # text is read without a trial
            from stablehlo_py.probe import PROBER

            PROBER.begin()
        code_generator.begin_loading()
        for name in ("executable", "executor"):  # what `_load` needs, meanwhile
            importlib.import_module(f"stablehlo_py.runtime.{name}")
        from stablehlo_py.building import Making, Open, build

        parts = build(source, Making(target, options.codegen, options.threads, store, clock.lap))
        if isinstance(parts, Open):
            return _open(parts, target, options, store)
        if store and key:
            store.put("program", key, pack([parts[0].to_bytes(), *parts[1]]))
        return _load(source, target, options, parts, store, clock)


def _load(
    source: Any, target: str, options: Options, parts: Parts, store: Cache | None, clock: _Clock
) -> Executable:  # Any: as in compile
    from stablehlo_py.runtime.executable import Executable, Stages
    from stablehlo_py.runtime.executor import make_executor

    program, objects = parts
    code = Code(objects)
    lacks = missing(options.codegen.cpu, options.codegen.features)
    if code.is_refused and not lacks:  # `host` knows now
        again = compile(source, target, cache=store or False, options=options)
        assert isinstance(again, Executable)
        return again
    calls = []
    if program.host_calls:
        from stablehlo_py.custom_calls.host import host_functions

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
    stages = Stages(lambda: _stage_names(target), lambda stage: _stage_text(source, target, stage, program, options))
    donate = options.donate if isinstance(options.donate, tuple) else program.donors if options.donate else ()
    return Executable(
        program,
        executor,
        target=target,
        stages=stages,
        timing=clock.seconds,
        cost=lambda: _cost(source, target),
        donate=donate,
        lacks=lacks,
    )


def _open(program: Open, target: str, options: Options, store: Cache | None) -> DynamicExecutable:
    """What compiles a program with symbolic dimensions for the shapes of each call."""
    from stablehlo_py.runtime.dynamic import DynamicExecutable  # few programs are such; its Future comes with logging

    def compile_for(shapes: Shapes) -> Executable:
        from stablehlo_py.runtime.executable import Executable

        executable = compile(program.specialized(shapes), target, cache=store or False, options=options)
        assert isinstance(executable, Executable)  # nothing of a specialized program is open
        return executable

    return DynamicExecutable(program.signature, program.by_value, compile_for, target=target)


def _cost(source: Any, target: str) -> dict[str, int]:  # Any: as in compile
    from stablehlo_py.building import cost

    return cost(source, target)


def _stage_names(target: str) -> tuple[str, ...]:
    from stablehlo_py.building import stage_names

    return stage_names(target)


def _stage_text(source: Any, target: str, stage: str, program: Program, options: Options) -> str:  # Any: as in compile
    if stage == "program":
        return program.as_text()
    from stablehlo_py.building import stage_text

    return stage_text(source, target, stage, program, options.codegen)


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


def _know_host(store: Cache) -> None:
    """Let LLVM's names of this machine be those that the cache has for its processor, or keep them there."""
    if host.cache_info().currsize or not (said := processor()):
        return
    key = key_of("machine", said)
    names = (store.get("machine", key) or b"").decode().split("\n")
    if len(names) == 2:
        tell_host(*names)
    else:
        store.put("machine", key, "\n".join(host()).encode())


def _stored(store: Cache, key: str) -> tuple[Program, list[bytes]] | None:
    data = store.get("program", key)
    if data is None:
        return None
    from stablehlo_py.runtime.program import Program

    try:
        program, *objects = unpack(data)
        return Program.from_bytes(program), objects
    except (ValueError, CompileError):
        return None  # of another version of this package


class _Clock:
    """Seconds between laps."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.seconds[name] = now - self._last
        self._last = now
