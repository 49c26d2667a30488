"""The C++ passes that the bindings bring: which there are, which ops they may run on, what they do."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from stablehlo_py.mlir import PassManager, new_context
from stablehlo_py.patterns import pattern
from stablehlo_py.records import record

TABLE = Path(__file__).with_name("upstream_passes.txt")

# Passes that have nothing to do in a module without certain ops, as `core.presence` names ops, ...
ONLY_WITH: dict[str, tuple[str, ...]] = {
    "convert-linalg-to-loops": ("linalg.",),
    # what convert-math-to-llvm, which comes before it, has no intrinsic for
    "convert-math-to-libm": tuple(
        f"math.{name}"
        for name in (
            *(
                "acos",
                "acosh",
                "asin",
                "asinh",
                "atan",
                "atan2",
                "atanh",
                "cbrt",
                "clampf",
                "cosh",
                "erf",
                "erfc",
                "ipowi",
            ),
            *("isfinite", "isinf", "isnan", "isnormal", "sincos", "sinh", "tan", "tanh"),
        )
    ),
    "convert-math-to-llvm": ("math.",),
    "expand-strided-metadata": (
        "memref.collapse_shape",
        "memref.expand_shape",
        "memref.extract_aligned_pointer_as_index",
        "memref.extract_strided_metadata",
        "memref.subview",
    ),
    "lower-affine": ("affine.",),
}
# ... and those of which it is known what they may add, beside more of the ops that are there.
ADDS: dict[str, tuple[str, ...]] = {
    "canonicalize": ("affine.", "arith.", "cf.", "llvm.", "memref.", "scf.", "tensor.", "ub.", "vector."),
    "convert-linalg-to-loops": ("affine.", "arith.", "memref.", "scf."),
    "convert-math-to-llvm": ("arith.", "builtin.unrealized_conversion_cast", "llvm.", "vector."),
    "convert-scf-to-cf": ("arith.", "cf."),
    "cse": (),
    "expand-strided-metadata": ("affine.", "arith.", "memref."),
    "lower-affine": ("arith.", "memref.", "scf.", "vector."),
    "trivial-dce": (),
}

_NOBODY = "the-pass-that-nobody-registers"
_OPTION = pattern(r"\{(.*)\}", re.S)


@record
class Upstream:
    """A C++ pass. anchors: the ops that it may run on; empty where it takes any."""

    name: str
    anchors: tuple[str, ...]
    summary: str = ""

    def __str__(self) -> str:
        return f"{self.name} | {' '.join(self.anchors) or 'any'} | {self.summary}".rstrip()


class _Table(Mapping[str, Upstream]):
    """The table's rows, read when they are asked for: a compilation asks for twenty of several hundred."""

    def __init__(self, text: str) -> None:
        self._rows = {line[: line.index(" ")]: line for line in text.splitlines()}

    def __getitem__(self, name: str) -> Upstream:
        _, anchors, summary = (part.strip() for part in self._rows[name].split("|", 2))
        return Upstream(name, () if anchors == "any" else tuple(anchors.split()), summary)

    def __contains__(self, name: object) -> bool:
        return name in self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


@functools.cache
def passes() -> Mapping[str, Upstream]:
    """The known C++ passes by name, from the table that `tools/probe_upstream_passes.py` writes."""
    return _Table(TABLE.read_text() if TABLE.exists() else "")


def registered(name: str) -> bool:
    """Whether the bindings know a pass of this name; needs a current context. Nothing is built.

    The pipeline asked for names a pass that cannot exist; which name the parser complains about is the answer.
    """
    try:
        PassManager.parse(f"builtin.module(no.op({name},{_NOBODY}))")
    except ValueError as error:
        return f"'{_NOBODY}'" in str(error)
    return False


def exists(name: str) -> bool:
    """Whether there is a C++ pass `name`: by the table, else by asking the bindings."""
    if name in passes():
        return True
    if not re.fullmatch(r"[A-Za-z0-9_-]+", name):
        return False
    with new_context():
        return registered(name)


def options_of(name: str) -> str:
    """The options of a C++ pass with their defaults, as MLIR prints them."""
    known = passes()[name]
    with new_context():
        text = str(PassManager.parse(f"builtin.module({name})" if not known.anchors else f"{known.anchors[0]}({name})"))
    inside = text.partition("(")[2].rpartition(")")[0]
    found = _OPTION.search(inside)
    # A name may stand for a whole pipeline, whose options are not those of its parts.
    if not found or not inside.startswith(name + "{"):
        return ""
    return " ".join(found[1].split())
