"""What the parser complains about, as one sentence with the place, the source line and what to try."""

from __future__ import annotations

import difflib
import re
from pathlib import Path

from stablehlo_py.errors import BadInput
from stablehlo_py.mlir import ir
from stablehlo_py.patterns import pattern
from stablehlo_py.reading.places import Source, place, position

# The spec's ops and the few beside them that programs come with: what a misspelt name can have meant.
_SPEC = (
    "abs add after_all all_gather all_reduce all_to_all and atan2 batch_norm_grad batch_norm_inference "
    "batch_norm_training bitcast_convert broadcast_in_dim case cbrt ceil cholesky clamp collective_broadcast "
    "collective_permute compare complex composite concatenate constant convert convolution cosine "
    "count_leading_zeros custom_call divide dot dot_general dynamic_broadcast_in_dim dynamic_conv dynamic_gather "
    "dynamic_iota dynamic_pad dynamic_reshape dynamic_slice dynamic_update_slice exponential "
    "exponential_minus_one fft floor gather get_dimension_size get_tuple_element if imag infeed iota is_finite log "
    "log_plus_one logistic map maximum minimum multiply negate not optimization_barrier or outfeed pad "
    "partition_id popcnt power real real_dynamic_slice recv reduce reduce_precision reduce_scatter reduce_window "
    "remainder replica_id reshape return reverse rng rng_bit_generator round_nearest_afz round_nearest_even rsqrt "
    "scatter select select_and_scatter send shift_left shift_right_arithmetic shift_right_logical sign sine slice "
    "sort sqrt subtract tan tanh transpose triangular_solve tuple uniform_dequantize uniform_quantize while xor"
)
OPS = (
    *(f"stablehlo.{name}" for name in _SPEC.split()),
    "arith.constant",
    "func.call",
    "func.func",
    "func.return",
    "chlo.erf",
    "chlo.erf_inv",
    "chlo.erfc",
    "chlo.lgamma",
    "chlo.digamma",
    "chlo.top_k",
)
DIALECTS = ("stablehlo", "chlo", "func", "arith", "tensor", "shape", "builtin")

_UNKNOWN_OP = pattern(r"custom op '([\w.-]+)' is unknown|unregistered operation '([\w.-]+)'")
_UNKNOWN_DIALECT = pattern(
    r"[Dd]ialect [`']([\w]+)' (?:not found|is unknown|does not)|\"(\w+)\"<.*unregistered dialect"
)
# the verifier says what it wants in five lines, and then what it got
_ELEMENT = pattern(
    r" must be (?:variadic of )?ranked tensor of .*, but got 'tensor<(?:[\d?]+x)*([a-z]\w*|complex<\w+>)>'$"
)
_KNOWN = pattern(r"u?i(?:1|2|4|8|16|32|64)|f(?:16|32|64)|bf16|f[468]E\w+|complex<f(?:32|64)>")
ELEMENTS = (
    "elements are f64 f32 f16 bf16, f8 f6 and f4 of several forms, i1, i2 to i64, ui2 to ui64, complex<f32 or f64>"
)
_UNDECLARED = pattern(r"use of undeclared SSA value name")
_FOREIGN = {
    "mhlo": "MHLO is XLA's internal dialect; export StableHLO instead (in JAX: lower(...).as_text())",
    "vhlo": "VHLO is the inside of a portable artifact; pass the artifact itself",
    "sdy": "install jax, or export the program with jax_use_shardy_partitioner set to False",
    "tosa": "TOSA is another input language; export the model as StableHLO",
    "torch": "use torch_mlir.fx.export_and_import(..., output_type='stablehlo')",
    "tf": "convert the TensorFlow graph to StableHLO first",
    "tfl": "convert the TensorFlow Lite model to StableHLO first",
}


def parse_error(error: ir.MLIRError, source: Source) -> BadInput:
    """The parser's first complaint as the user's own."""
    diagnostics = error.error_diagnostics
    if not diagnostics:
        return BadInput(str(error).strip().splitlines()[-1], where=source.name)
    first = diagnostics[0]
    message = first.message.splitlines()[0]
    at = position(first.location)
    if at is None or at[0] == 0:
        return BadInput(_plain(message), where=source.name, hint=_hint(message, source, ""))
    number, column = at
    line = source.line(number)
    return BadInput(
        _plain(message) + _excerpt(line, column),
        where=f"{source.name}:{number}:{column}",
        hint=_hint(message, source, line),
    )


def unknown_op(op: ir.Operation, source: Source) -> BadInput:
    """An op in generic form whose dialect or name is not known here."""
    return BadInput(
        f"{op.name} is not an op that is known here",
        where=place(op) or source.name,
        hint=_name_hint(op.name) or "programs are written in StableHLO, chlo and func",
    )


def _plain(message: str) -> str:
    """The parser's words without its list of dialects and its command-line flags."""
    if (unknown := _UNKNOWN_DIALECT.search(message)) is not None:
        return f"dialect {unknown[1] or unknown[2]} is not known here"
    if (unknown := _ELEMENT.search(message)) is not None:
        return f"{message[: unknown.start()]} cannot have elements of type {unknown[1]}"
    return message.split(". If this is intended")[0]


def _excerpt(line: str, column: int) -> str:
    """The source line with a mark under the column; long lines are cut around it."""
    if not line.strip():
        return ""
    start = max(0, column - 60)
    shown = line[start : start + 120].replace("\t", " ")
    return f"\n  | {shown}\n  | {' ' * (column - 1 - start)}^"


def _hint(message: str, source: Source, line: str) -> str:
    if "(tried 'builtin." in message:  # a word without a dialect
        return "an op is `dialect.name`; is this MLIR?"
    if (unknown := _UNKNOWN_OP.search(message)) is not None:
        return _name_hint(unknown[1] or unknown[2])
    if (unknown := _UNKNOWN_DIALECT.search(message)) is not None:
        return _dialect_hint(unknown[1] or unknown[2])
    if "expects different type than prior uses" in message:
        return "the value was defined with another type: convert, reshape or broadcast it, or correct the type here"
    if (unknown := _ELEMENT.search(message)) is not None:
        if _KNOWN.fullmatch(unknown[1]):
            return "the op is not defined on these: stablehlo.convert makes others of them"
        return f"StableHLO has no {unknown[1]}: {ELEMENTS}"
    if _UNDECLARED.search(message):
        return _value_hint(source.text, line)
    if "redefinition of SSA value" in message:
        return "each name is defined once in a function: rename one of the two"
    if "reached end of file" in message or "unexpected end" in message.lower() or _ends_early(message, source):
        return "the text ends too early: is the file cut short?"
    if "expected operation name in quotes" in message or "custom op" in message:
        return 'an op is `dialect.name` or, in generic form, `"dialect.name"(...)`'
    return ""


def _ends_early(message: str, source: Source) -> bool:
    return message.startswith("expected") and source.text.count("{") > source.text.count("}")


def _name_hint(name: str) -> str:
    dialect, _, _short = name.partition(".")
    if dialect not in DIALECTS:
        close = difflib.get_close_matches(name, OPS, 1, 0.8)
        return f"did you mean {close[0]}?" if close else _dialect_hint(dialect)
    close = difflib.get_close_matches(name, OPS, 3, 0.6)
    return f"did you mean {' or '.join(close)}?" if close else ""


def _dialect_hint(dialect: str) -> str:
    if dialect in _FOREIGN:
        return _FOREIGN[dialect]
    close = difflib.get_close_matches(dialect, DIALECTS, 1)
    return f"did you mean {close[0]}?" if close else "programs are written in StableHLO, chlo and func"


def _value_hint(text: str, line: str) -> str:
    # A definition: `%0 = `, `%0:2 = `, or `%arg0: type`; before the type of an op stands a space.
    names = set(re.findall(r"(%[\w$.-]+)(?=\s*=|:\d+\s*=|:\s)", text[:1_000_000]))
    used = [name for name in re.findall(r"%[\w$.-]+", line) if name not in names]
    close = difflib.get_close_matches(used[0], sorted(names), 2) if used else []
    return (
        f"did you mean {' or '.join(close)}?" if close else "a value is defined before it is used, in the same region"
    )


def missing_file(path: Path) -> BadInput:
    """A path that is not a file: what stands there, or names near it."""
    if path.is_dir():
        programs = sorted(entry.name for entry in path.iterdir() if entry.suffix in (".mlir", ".mlirbc"))[:3]
        found = f"it holds {', '.join(programs)}" if programs else "it holds no .mlir or .mlirbc file"
        return BadInput("a directory where a program is needed", where=str(path), hint=found)
    folder = path.parent
    if not folder.is_dir():
        return BadInput("the file does not exist", where=str(path), hint=f"there is no folder {folder} either")
    names = [entry.name for entry in folder.iterdir()]
    close = difflib.get_close_matches(path.name, names, 3, 0.6)
    return BadInput(
        "the file does not exist",
        where=str(path),
        hint=f"did you mean {' or '.join(close)}?" if close else f"{folder.resolve()} has {len(names)} other entries",
    )


_MAGIC = (
    (b"\x1f\x8b", "gzip data", "unpack it first: gunzip"),
    (b"PK\x03\x04", "a zip archive", "unpack it first; PyTorch's .pt2 archives hold no StableHLO"),
    (b"\x28\xb5\x2f\xfd", "zstd data", "unpack it first: zstd -d"),
    (b"\x7fELF", "a compiled binary", "pass the program's .mlir or .mlirbc file"),
    (b"BC\xc0\xde", "LLVM bitcode", "pass the StableHLO that it was made from"),
    (b"\x80\x04", "a Python pickle", "save the program with jax.export.Exported.serialize() or as text"),
    (b"\x80\x05", "a Python pickle", "save the program with jax.export.Exported.serialize() or as text"),
    (b"\x93NUMPY", "a numpy array", "pass the program; arrays are its inputs"),
)
_TEXT_KINDS = (
    (r"HloModule\b", "HLO text", "in JAX take lower(...).as_text() without dialect='hlo'; that is StableHLO"),
    (r"(let \w+ = )?\{ *lambda\b", "a jaxpr", "lower it: jax.jit(f).lower(*args)"),
    (r"; ModuleID|define |target triple", "LLVM IR", "pass the StableHLO that it was made from"),
    (r"graph\(", "a TorchScript graph", "use torch_mlir.fx.export_and_import(..., output_type='stablehlo')"),
    (r"<!DOCTYPE|<html", "an HTML page", "download the file itself"),
    (r"version https://git-lfs", "a Git LFS pointer", "fetch the file itself: git lfs pull"),
)


def refuse_other_formats(data: bytes, where: str) -> None:
    """Say what the data is when it is some other well-known thing."""
    if not data or data.isspace():
        raise BadInput("the input is empty", where=where)
    for magic, kind, hint in _MAGIC:
        if data.startswith(magic):
            raise BadInput(f"the input is {kind}, not MLIR", where=where, hint=hint)
    start = data[:4096].decode("utf-8", "replace").lstrip()
    for form, kind, hint in _TEXT_KINDS:
        if re.match(form, start):
            raise BadInput(f"the input is {kind}, not MLIR", where=where, hint=hint)
