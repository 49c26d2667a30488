"""Reading programs: whatever holds StableHLO becomes a module in our context, or a BadInput that says why not."""

from __future__ import annotations

import importlib
import io
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stablehlo_py.core.collect import operations_under
from stablehlo_py.errors import BadInput
from stablehlo_py.later import Later
from stablehlo_py.mlir import PassManager, ir, load_chlo, stablehlo
from stablehlo_py.patterns import pattern
from stablehlo_py.reading import constants, guard
from stablehlo_py.reading.annotations import on_one_device
from stablehlo_py.reading.places import NO_FILE, Source
from stablehlo_py.reading.repairs import trim_strides

if TYPE_CHECKING:
    from stablehlo_py.reading import checks as _checks
    from stablehlo_py.reading import diagnose as _diagnose
    from stablehlo_py.reading import platform as _platform
    from stablehlo_py.reading import shardy as _shardy
else:  # of text, of objects of JAX, of mistakes
    _checks, _diagnose = Later("stablehlo_py.reading.checks"), Later("stablehlo_py.reading.diagnose")
    _platform, _shardy = Later("stablehlo_py.reading.platform"), Later("stablehlo_py.reading.shardy")

BYTECODE = b"ML\xefR"
_ARTIFACT = pattern(rb"StableHLO_v(\d+\.\d+\.\d+)")
_LOOKS_LIKE_TEXT = pattern(r"\n|\bfunc\.func\b|\bmodule\b.*\{|%\w+ *=|\"builtin\.module\"|^\s*HloModule\b")
_TOLERATED = ("check",)  # those that are no comparisons stay, and whoever compiles one decides


def read_module(
    source: Any, context: ir.Context, meanwhile: Callable[[], object] = lambda: None
) -> ir.Module:  # Any: the kinds below, some of packages not imported
    """A new module in `context` that holds the program of `source`.

    source: a path; MLIR text; bytes (text, bytecode, a portable artifact, what jax.export serialises); an object of JAX
    (Exported, Lowered, Traced); a module of these bindings or of jaxlib. meanwhile: what there is to do while another
    process tries to read bytes.
    """
    if isinstance(source, Path):
        return _read_file(source, context)
    if isinstance(source, str):
        if not source or source.isspace():
            raise BadInput("the input is empty", where="<text>")
        if _LOOKS_LIKE_TEXT.search(source[:100_000]):
            return _read_text(source, "<text>", context)
        return _read_file(Path(source), context)
    if isinstance(source, bytes | bytearray | memoryview):
        return read_bytes(bytes(source), "<bytes>", context, meanwhile=meanwhile)
    if isinstance(source, ir.Module):
        return _read_module_of_ours(source, context)
    return _read_object(source, context)


def _read_file(path: Path, context: ir.Context) -> ir.Module:
    try:
        is_file = path.is_file()
    except (OSError, ValueError):
        raise BadInput("neither a path nor MLIR text", where=f"{str(path)[:60]!r}") from None
    if not is_file:
        raise _diagnose.missing_file(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BadInput(f"the file cannot be read: {error.strerror}", where=str(path)) from error
    return read_bytes(data, str(path), context, path)


def read_bytes(
    data: bytes,
    name: str,
    context: ir.Context,
    path: Path | None = None,
    meanwhile: Callable[[], object] = lambda: None,
) -> ir.Module:
    """The program in `data`, whichever form it has; `name` stands for it in messages, `path` is where it came from."""
    if data.startswith(BYTECODE):
        guard.refuse_crashing_bytecode(data, name, partial(parse_bytecode, data, context), meanwhile)
        return _read_bytecode(data, name, context)
    _diagnose.refuse_other_formats(data, name)
    if (inner := _exported_artifact(data)) is not None:
        guard.refuse_crashing_bytecode(inner, name, partial(parse_bytecode, inner, context), meanwhile)
        return _read_bytecode(inner, name, context)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise BadInput(
            f"the input is not MLIR: neither bytecode nor UTF-8 text (byte {error.start})",
            where=name,
            hint="pass a .mlir or .mlirbc file, or what jax.export serialises",
        ) from None
    return _read_text(text, name, context, path)


def _exported_artifact(data: bytes) -> bytes | None:
    """The portable artifact inside what jax.export serialises: a flatbuffer keeps it in one piece, its length before it."""
    at = data.find(BYTECODE)
    if at < 4:
        return None
    length = int.from_bytes(data[at - 4 : at], "little")
    if length > len(data) - at:
        return None
    return data[at : at + length]


# --- bytecode ----------------------------------------------------------------------------------------------------------


def parse_bytecode(data: bytes, context: ir.Context) -> ir.Module:
    """The module in bytecode or in an artifact, as it is; damage may take the process down."""
    if b"chlo" in data:
        load_chlo(context)
    if b"vhlo" in data and not context.is_dialect_loaded("vhlo"):
        with context:  # a dialect that no one can ask for: it comes with its passes
            PassManager.parse("builtin.module(stablehlo-legalize-to-vhlo)").run(ir.Module.parse("module {}").operation)
    if _ARTIFACT.search(data[:64]):
        return stablehlo.deserialize_portable_artifact(context, data)
    return ir.Module.parse(data, context)


def _read_bytecode(data: bytes, name: str, context: ir.Context) -> ir.Module:
    messages: list[str] = []
    try:
        with context.attach_diagnostic_handler(partial(_keep, messages)):
            module = parse_bytecode(data, context)
    except (ir.MLIRError, RuntimeError, ValueError, MemoryError) as error:  # a damaged length asks for any memory
        if b"sdy" in data and (text := _through_jaxlib(data)) is not None:
            return _read_text(text, name, context)
        said = messages or [d.message for d in getattr(error, "error_diagnostics", [])]
        raise _bad_bytecode(data, name, said) from None
    return _finished(module, Source(name), partial(constants.blobs_of_module, module))


def _keep(messages: list[str], diagnostic: Any) -> bool:
    try:
        messages.append(diagnostic.message)
    except RuntimeError:  # damaged bytecode makes messages that are no UTF-8
        messages.append("a message that cannot be shown")
    return True


def _through_jaxlib(data: bytes) -> str | None:
    """jaxlib knows Shardy; it prints what the bindings cannot read. The function is looked up: interop stands above."""
    return importlib.import_module("stablehlo_py.interop.jax").artifact_as_text(data)


def _bad_bytecode(data: bytes, name: str, messages: list[str]) -> BadInput:
    ours = stablehlo.get_current_version()
    artifact = _ARTIFACT.search(data[:64])
    version = artifact[1].decode() if artifact else ""
    if version and _numbers(version) > _numbers(ours):
        return BadInput(
            f"the artifact is of StableHLO {version}, newer than {ours} which is read here",
            where=name,
            hint=f"serialise it for an older version, such as {ours} or what is current a month earlier",
        )
    said = next((m for m in messages if m.strip()), "").splitlines()
    if b"sdy" in data and any("sdy" in line for line in messages):
        return BadInput(
            "the artifact carries Shardy's annotations, which the bindings cannot read",
            where=name,
            hint="install jax (its jaxlib can), or export with jax.config.update('jax_use_shardy_partitioner', False)",
        )
    return BadInput(
        f"the bytecode is damaged{': ' + said[0] if said else ''}",
        where=name,
        hint=f"it is {len(data):,} bytes long; was it cut short, or opened as text on the way?",
    )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


# --- text --------------------------------------------------------------------------------------------------------------


def _parse_text(data: bytes, context: ir.Context, path: Path | None) -> ir.Module:
    """Parse from the file where its text was not rewritten: so locations carry the file's name."""
    if b"chlo" in data:
        load_chlo(context)
    with _Lenient(context):
        return ir.Module.parse(data, context) if path is None else ir.Module.parseFile(str(path), context)


def _read_text(text: str, name: str, context: ir.Context, path: Path | None = None) -> ir.Module:
    _diagnose.refuse_other_formats(text[:4096].encode("utf-8", "replace"), name)
    body, footer = constants.split_footer(text)
    body, resource_names = constants.with_own_names(body)
    guard.refuse_deep_nesting(body.encode("utf-8", "replace"), name)
    body = _checks.to_custom_calls(_shardy.to_generic(body, name), name)
    data = body.encode("utf-8", "replace")
    guard.refuse_trapping(data, name, partial(_parse_text, data, context, None))
    source = Source(name, body)
    try:
        module = _parse_text(data, context, path if body == text else None)
    except ir.MLIRError as error:
        raise _diagnose.parse_error(error, source) from None
    return _finished(module, source, partial(constants.blobs_of_footer, footer, resource_names), resource_names)


# --- objects -----------------------------------------------------------------------------------------------------------


def _read_module_of_ours(module: ir.Module, context: ir.Context) -> ir.Module:
    buffer = io.BytesIO()
    module.operation.write_bytecode(buffer)
    return _read_bytecode(buffer.getvalue(), "<module>", context)


def _read_object(source: Any, context: ir.Context) -> ir.Module:
    """Objects of JAX by what they can do, so that nothing of JAX is imported here."""
    if hasattr(source, "mlir_module_serialized"):  # jax.export.Exported
        module = _read_bytecode(bytes(source.mlir_module_serialized), "<Exported>", context)
        with context, ir.Location.unknown():
            _platform.bind_platform(module, source.platforms)
        return module
    if hasattr(source, "compiler_ir") and hasattr(source, "compile"):  # jax.stages.Lowered
        return _read_object(source.compiler_ir(dialect="stablehlo"), context)
    if hasattr(source, "jaxpr") and hasattr(source, "lower"):  # jax.stages.Traced
        return _read_object(source.lower(), context)
    operation = getattr(source, "operation", None)
    if operation is not None and hasattr(operation, "get_asm"):  # a module of other bindings, such as jaxlib's
        text = operation.get_asm(enable_debug_info=True, print_generic_op_form=True)
        return _read_text(text, "<module>", context)
    raise _not_a_program(source)


def _not_a_program(source: Any) -> BadInput:
    title = f"{type(source).__module__}.{type(source).__qualname__}"
    if hasattr(source, "lower") and callable(source):
        return BadInput(
            "a jitted function is no program yet", where=title, hint="lower it: f.lower(*example_arguments)"
        )
    if hasattr(source, "runtime_executable") or title.endswith("stages.Compiled"):
        return BadInput(
            "a program that JAX has compiled already", where=title, hint="pass the Lowered before .compile()"
        )
    if hasattr(source, "graph_module") or hasattr(source, "state_dict"):
        return BadInput(
            "a PyTorch program, not StableHLO yet",
            where=title,
            hint="use stablehlo_py.interop.torch.export(module, *example_arguments)",
        )
    if callable(source):
        return BadInput(
            "a Python function is no program yet", where=title, hint="lower it: jax.jit(f).lower(*arguments)"
        )
    return BadInput(
        "not a program",
        where=title,
        hint="pass a path, MLIR text, bytes, a jax.export.Exported, a jax Lowered, or an ir.Module",
    )


# --- after parsing -----------------------------------------------------------------------------------------------------


class _Lenient:
    """Unregistered dialects are let in while parsing: annotations carry their attributes."""

    def __init__(self, context: ir.Context) -> None:
        self._context = context

    def __enter__(self) -> None:
        self._before = self._context.allow_unregistered_dialects
        self._context.allow_unregistered_dialects = True

    def __exit__(self, *_: object) -> None:
        self._context.allow_unregistered_dialects = self._before


def _finished(
    module: ir.Module, source: Source, blobs: constants.Blobs, names: dict[str, str] | None = None
) -> ir.Module:
    try:
        _to_plain_stablehlo(module, source, blobs, names or {})
    except (RuntimeError, UnicodeDecodeError):
        raise BadInput("names in the program are not UTF-8: it is damaged", where=source.name) from None
    except BadInput as error:
        if not error.where.startswith(NO_FILE):
            raise
        where = error.where.replace(NO_FILE, source.name, 1)
        raise BadInput(error.message, where=where, hint=error.hint) from None
    return module


def _to_plain_stablehlo(module: ir.Module, source: Source, blobs: constants.Blobs, names: dict[str, str]) -> None:
    """Leave only what every later pass knows: no annotations of devices, no unknown ops, constants with their elements."""
    try:
        _from_versioned(module)
    except ir.MLIRError as error:
        raise _diagnose.parse_error(error, source) from None
    for op in module.body.operations:
        if "sym_name" in op.operation.attributes:
            _ = ir.StringAttr(op.operation.attributes["sym_name"]).value  # raises where it is not UTF-8
    operations = operations_under(module.operation)
    trim_strides(operations)
    if on_one_device(module, operations):
        operations = operations_under(module.operation)
    if _refuse_unknown_ops(module.context, operations, source):
        module.context.allow_unregistered_dialects = True  # or every later verification would fail
    constants.inline_constants(operations, blobs, names)
    try:
        module.operation.verify()
    except ir.MLIRError as error:
        raise _diagnose.parse_error(error, source) from None


def _from_versioned(module: ir.Module) -> None:
    """Bytecode of 2023 holds versioned ops (vhlo) without an artifact's header."""
    if not any(op.operation.name.startswith("vhlo.") for op in module.body.operations):
        return
    target = stablehlo.get_current_version()
    passes = f"builtin.module(vhlo-to-version{{target={target}}},vhlo-legalize-to-stablehlo)"
    with module.context:
        PassManager.parse(passes).run(module.operation)


def _refuse_unknown_ops(context: ir.Context, operations: list[ir.Operation], source: Source) -> bool:
    """Refuse ops that nothing here knows; True where tolerated ones stay."""
    known: set[str] = set()
    for op in operations:
        name = op.name
        if name not in known:
            if not context.is_registered_operation(name) and name.split(".")[0] not in _TOLERATED:
                raise _diagnose.unknown_op(op, source)
            known.add(name)
    return any(name.split(".")[0] in _TOLERATED for name in known)
