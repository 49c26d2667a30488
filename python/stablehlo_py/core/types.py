"""Types as rules see them: a shape and an element type with its StableHLO name, its numpy dtype and its kind."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import ml_dtypes
import numpy as np

from stablehlo_py.errors import BadInput
from stablehlo_py.mlir import DYNAMIC, belongings, ir
from stablehlo_py.records import record

MOST_BYTES = 1 << 47  # what a process can address


@record
class ElementType:
    """An element type by its StableHLO spelling.

    kind: bool, int, uint, float, complex, or quantized. bits: the width of one element's value (of one part for
    complex); numpy keeps widths below 8 in one byte each.
    """

    name: str
    kind: str
    bits: int
    dtype: np.dtype

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_complex(self) -> bool:
        return self.kind == "complex"

    @property
    def is_integer(self) -> bool:
        """Signed or unsigned; i1 is not among them."""
        return self.kind in ("int", "uint")

    @property
    def is_unsigned(self) -> bool:
        return self.kind == "uint"

    @property
    def is_bool(self) -> bool:
        return self.kind == "bool"

    @property
    def bytes(self) -> int:
        """Bytes of one element in memory."""
        return self.dtype.itemsize

    @property
    def part(self) -> ElementType:
        """The float type of a complex type's parts; any other type itself."""
        return element_type(self.name[8:-1]) if self.is_complex else self

    def __str__(self) -> str:
        return self.name


def _rows() -> dict[str, ElementType]:
    rows = [("i1", "bool", 1, np.bool_)]
    rows += [(f"i{n}", "int", n, getattr(np, f"int{n}")) for n in (8, 16, 32, 64)]
    rows += [(f"ui{n}", "uint", n, getattr(np, f"uint{n}")) for n in (8, 16, 32, 64)]
    rows += [(f"i{n}", "int", n, getattr(ml_dtypes, f"int{n}")) for n in (2, 4)]
    rows += [(f"ui{n}", "uint", n, getattr(ml_dtypes, f"uint{n}")) for n in (2, 4)]
    rows += [("f16", "float", 16, np.float16), ("f32", "float", 32, np.float32), ("f64", "float", 64, np.float64)]
    rows += [("bf16", "float", 16, ml_dtypes.bfloat16)]
    for name in ("f8E3M4", "f8E4M3", "f8E4M3B11FNUZ", "f8E4M3FN", "f8E4M3FNUZ", "f8E5M2", "f8E5M2FNUZ", "f8E8M0FNU"):
        rows.append((name, "float", 8, getattr(ml_dtypes, "float8_" + name[2:].lower())))
    rows += [(name, "float", 6, getattr(ml_dtypes, "float6_" + name[2:].lower())) for name in ("f6E2M3FN", "f6E3M2FN")]
    rows += [("f4E2M1FN", "float", 4, ml_dtypes.float4_e2m1fn)]
    rows += [("complex<f32>", "complex", 32, np.complex64), ("complex<f64>", "complex", 64, np.complex128)]
    rows += [("index", "int", 64, np.int64)]
    return {name: ElementType(name, kind, bits, np.dtype(dtype)) for name, kind, bits, dtype in rows}


ELEMENT_TYPES = _rows()
_BY_DTYPE = {row.dtype: row for row in reversed(ELEMENT_TYPES.values()) if row.name != "index"}


def element_type(name: str) -> ElementType:
    """The element type that StableHLO spells `name`."""
    row = ELEMENT_TYPES.get(name)
    if row is None:
        raise BadInput(f"element type {name} is not known", hint=f"known are {', '.join(ELEMENT_TYPES)}")
    return row


def element_type_of(dtype: np.dtype) -> ElementType:
    """The element type that numpy calls `dtype`."""
    row = _BY_DTYPE.get(np.dtype(dtype))
    if row is None:
        raise BadInput(f"numpy dtype {dtype} has no StableHLO element type")
    return row


@record
class TensorType:
    """A ranked tensor type; -1 stands for a dimension that is not known."""

    shape: tuple[int, ...]
    element: ElementType

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many elements."""
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        return self.size * self.element.bytes

    @property
    def is_static(self) -> bool:
        return -1 not in self.shape

    def with_element(self, element: ElementType | str) -> TensorType:
        return TensorType(self.shape, element_type(element) if isinstance(element, str) else element)

    def with_shape(self, shape: tuple[int, ...]) -> TensorType:
        return TensorType(tuple(shape), self.element)

    @property
    def mlir(self) -> ir.RankedTensorType:
        """The StableHLO type in the current context."""
        shape = [DYNAMIC if d == -1 else d for d in self.shape]
        return ir.RankedTensorType.get(shape, _parsed(self.element.name), loc=ir.Location.unknown())

    def __str__(self) -> str:
        dims = "".join(("?" if d == -1 else str(d)) + "x" for d in self.shape)
        return f"tensor<{dims}{self.element.name}>"


def _parsed(name: str) -> ir.Type:
    return ir.Type.parse(name)


@functools.lru_cache(maxsize=4096)
def _tensor_type_from_text(text: str) -> TensorType:
    inside = text[len("tensor<") : -1]
    if inside.startswith("*"):
        raise BadInput("unranked tensors are not supported", hint="give the tensor a rank")
    shape = []
    while inside and (inside[0].isdigit() or inside[0] == "?"):
        dim, _, inside = inside.partition("x")
        shape.append(-1 if dim == "?" else int(dim))
    name, _, _encoding = inside.partition(", ")  # bounds (#stablehlo.bounds) do not change what a value is
    ty = TensorType(tuple(shape), element_type(name))
    if ty.is_static and ty.bytes > MOST_BYTES:
        raise BadInput(f"{text} is larger than any memory", hint=f"a tensor has at most {MOST_BYTES:,} bytes")
    return ty


def tensor_type(ty: ir.Type) -> TensorType:
    """The tensor type of a value's MLIR type."""
    try:
        return belongings(ty.context)[tensor_type][ty]  # printing a type takes ten times as long as finding it
    except KeyError:
        text = str(ty)
    if not text.startswith("tensor<"):
        raise BadInput(
            f"a value of type {text} where a tensor is needed", hint="a program takes, gives and works on tensors"
        )
    found = belongings(ty.context).setdefault(tensor_type, {})[ty] = _tensor_type_from_text(text)
    return found


def row_major(sizes: Sequence[int], element: int = 1) -> list[int]:
    """From one place of each dimension to the next, where elements take `element` units: of bytes, say, or of numbers."""
    return [math.prod(sizes[d + 1 :]) * element for d in range(len(sizes))]
