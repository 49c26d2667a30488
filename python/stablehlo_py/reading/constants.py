"""Constants of other producers as stablehlo.constant with their elements inline.

    %0 = arith.constant dense<1.0> : tensor<4xf32>              -> %0 = stablehlo.constant dense<1.0> : tensor<4xf32>
    %0 = stablehlo.constant dense_resource<w> : tensor<4xf32>   -> %0 = stablehlo.constant dense<"0x..."> : tensor<4xf32>

A resource is a name in the text and a blob in the footer `{-# dialect_resources: ... #-}`; PyTorch's weights come so.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable

import numpy as np

from stablehlo_py.core.types import tensor_type
from stablehlo_py.errors import BadInput
from stablehlo_py.mlir import ir, raw_elements
from stablehlo_py.patterns import pattern
from stablehlo_py.reading.places import place

_FOOTER = "{-#"
ELIDED = "__elided__"
_BLOB = pattern(r'(?:"([^"]+)"|([\w$.-]+))\s*:\s*"0x([0-9A-Fa-f]*)"')
_RESOURCE = pattern(r'^dense_resource<(?:"([^"]+)"|([^>]+))>')

_RESOURCE_IN_TEXT = pattern(r'dense_resource<(?:"([^"]+)"|([\w$.-]+))>')
_serial = itertools.count()

Blobs = Callable[[], dict[str, bytes]]


def split_footer(text: str) -> tuple[str, str]:
    """The module and the footer with its resources, which may be empty."""
    at = text.rfind(_FOOTER)
    if at < 0 or "dialect_resources" not in text[at : at + 200]:
        return text, ""
    return text[:at], text[at:]


def with_own_names(body: str) -> tuple[str, dict[str, str]]:
    """The text with resources under names that no other module of a context has, and the old name of each.

    Names are of the context: the parser would rename what a second module calls the same, and not say how.
    """
    names: dict[str, str] = {}
    if "dense_resource<" not in body:
        return body, names

    def rename(match: re.Match[str]) -> str:
        old = match[1] or match[2]
        if old == ELIDED:
            return match[0]
        if old not in names:
            names[old] = f"resource_{next(_serial)}"
        return f"dense_resource<{names[old]}>"

    return _RESOURCE_IN_TEXT.sub(rename, body), {new: old for old, new in names.items()}


def blobs_of_footer(footer: str, names: dict[str, str] | None = None) -> dict[str, bytes]:
    """The data of each resource, without the four bytes of alignment before it; `names` from the module's to the footer's."""
    found = {match[1] or match[2]: match[3] for match in _BLOB.finditer(footer)}
    pairs = {name: name for name in found} if names is None else names
    return {new: bytes.fromhex(found[old])[4:] for new, old in pairs.items() if old in found}


def blobs_of_module(module: ir.Module) -> dict[str, bytes]:
    """The data of each resource that a module in memory holds; only its printed form shows them."""
    return blobs_of_footer(split_footer(module.operation.get_asm(large_elements_limit=1))[1])


def inline_constants(operations: list[ir.Operation], blobs: Blobs, names: dict[str, str]) -> None:
    """Make every constant tensor a stablehlo.constant that holds its elements; `names` are the resources' own names."""
    known: dict[str, bytes] | None = None
    for op in operations:
        if op.name not in ("arith.constant", "stablehlo.constant"):
            continue
        value = _value(op)
        resource = _RESOURCE.match(str(value)[:400]) if type(value) is ir.Attribute else None
        if resource is not None:
            known = blobs() if known is None else known
            name = resource[1] or resource[2]
            _replace(op, _elements_of_resource(op, names.get(name, name), known.get(name)))
        elif op.name == "arith.constant" and isinstance(op.results[0].type, ir.RankedTensorType):
            _replace(op, _complex_elements(op) if value is None else value)


def _value(op: ir.Operation) -> ir.Attribute | None:
    """The value; None for complex elements, which the Python layer of the bindings cannot show."""
    try:
        return op.attributes["value"]
    except TypeError:
        return None


def _replace(op: ir.Operation, value: ir.Attribute) -> None:
    with op.location, ir.InsertionPoint(op):
        constant = ir.Operation.create("stablehlo.constant", results=[op.results[0].type], attributes={"value": value})
    op.results[0].replace_all_uses_with(constant.results[0])
    op.erase()


def _elements_of_resource(op: ir.Operation, name: str, data: bytes | None) -> ir.Attribute:
    if name.startswith(ELIDED):
        raise BadInput(
            "the elements of a constant are elided: dense_resource<__elided__> stands for data that was not printed",
            where=place(op),
            hint="print the module without an elements limit, or save it as bytecode",
        )
    if data is None:
        raise BadInput(
            f"dense_resource<{name}> has no data in the file",
            where=place(op),
            hint="its `{-# dialect_resources #-}` footer is missing: print the module as a whole",
        )
    ty = tensor_type(op.results[0].type)
    expected = ty.bytes
    if ty.element.is_bool and len(data) == (ty.size + 7) // 8 != ty.size:
        bits = np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")
        data = bits[: ty.size].tobytes()
    if len(data) != expected:
        raise BadInput(
            f"dense_resource<{name}> has {len(data):,} bytes where {ty} needs {expected:,}",
            where=place(op),
            hint="the file is cut short or damaged",
        )
    return elements(np.frombuffer(data, np.uint8), op.results[0].type)


def elements(data: np.ndarray, mlir_type: ir.Type) -> ir.Attribute:
    """A dense elements attribute of the raw bytes of its elements."""
    ty = tensor_type(mlir_type)
    if ty.size == 0:
        return ir.Attribute.parse(f"dense<> : {mlir_type}", mlir_type.context)
    if ty.element.is_complex:
        shown = data.view(ty.element.part.dtype)
    elif ty.element.is_bool:
        shown = data.view(np.bool_)
    else:
        shown = data.view(f"{'u' if ty.element.is_unsigned or ty.element.is_float else 'i'}{ty.element.bytes}")
        if ty.element.is_float and ty.element.name in ("f16", "f32", "f64"):
            shown = data.view(ty.element.dtype)
    shape = (*ty.shape, 2) if ty.element.is_complex else ty.shape
    with mlir_type.context:
        return ir.DenseElementsAttr.get(shown.reshape(shape), type=mlir_type)


def _complex_elements(op: ir.Operation) -> ir.Attribute:
    ty = tensor_type(op.results[0].type)
    raw = raw_elements(op, "value", ty.element.bytes, ty.size)
    if raw is None:
        raise BadInput("a complex constant that is not dense", where=place(op))
    data, splat = raw
    return elements(np.frombuffer(data * (ty.size if splat else 1), np.uint8), op.results[0].type)
