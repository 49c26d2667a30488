"""Ops of the LLVM dialect in kernels that are not lowered to it yet, at the current insertion point.

The bindings' own builders of this dialect take 25 ms to import and three times as long to make an op.
"""

from __future__ import annotations

from collections.abc import Sequence

from stablehlo_py.mlir import ir, kept

LDEXP = "llvm.ldexp"  # the intrinsic
_IS_VALUE = -(1 << 31)  # how the dialect spells that an index is an operand


@kept
def pointer_type() -> ir.Type:
    return ir.Type.parse("!llvm.ptr")


def call_intrinsic(types: Sequence[ir.Type], name: str, operands: Sequence[ir.Value]) -> ir.Operation:
    return _make(
        "call_intrinsic",
        types,
        operands,
        intrin=ir.StringAttr.get(name),
        op_bundle_sizes=ir.DenseI32ArrayAttr.get([]),
        operandSegmentSizes=ir.DenseI32ArrayAttr.get([len(operands), 0]),
    )


def is_ldexp(op: ir.Operation) -> bool:
    """Whether an op is LLVM's ldexp, on a number or on vectors."""
    return op.name == "llvm.call_intrinsic" and ir.StringAttr(op.attributes["intrin"]).value == LDEXP


def extract_value(ty: ir.Type, container: ir.Value, position: Sequence[int]) -> ir.Value:
    """A part of a struct."""
    return _make("extractvalue", [ty], [container], position=ir.DenseI64ArrayAttr.get(position)).results[0]


def insert_element(container: ir.Value, element: ir.Value, place: ir.Value) -> ir.Value:
    """A vector with one element replaced; place: an integer."""
    return _make("insertelement", [container.type], [container, element, place]).results[0]


def element_pointer(pointer: ir.Value, element_bytes: int, index: int | ir.Value) -> ir.Value:
    """So many elements behind a pointer."""
    known, operands = (index, [pointer]) if isinstance(index, int) else (_IS_VALUE, [pointer, index])
    return ir.Operation.create(
        "llvm.getelementptr", results=[pointer_type()], operands=operands, attributes=_step(element_bytes, known)
    ).results[0]


@kept
def _step(element_bytes: int, index: int) -> dict[str, ir.Attribute]:
    """The attributes of a getelementptr."""
    element = ir.TypeAttr.get(ir.IntegerType.get_signless(8 * element_bytes))
    return {"rawConstantIndices": ir.DenseI32ArrayAttr.get([index]), "elem_type": element}


def pointer_as_integer(pointer: ir.Value) -> ir.Value:
    return _make("ptrtoint", [ir.IntegerType.get_signless(64)], [pointer]).results[0]


def load(ty: ir.Type, pointer: ir.Value, alignment: int) -> ir.Value:
    return _make("load", [ty], [pointer], alignment=_integer(64, alignment)).results[0]


def store(value: ir.Value, pointer: ir.Value, alignment: int, *, nontemporal: bool = False) -> None:
    hint = {"nontemporal": ir.UnitAttr.get()} if nontemporal else {}
    _make("store", [], [value, pointer], alignment=_integer(64, alignment), **hint)


def masked_load(ty: ir.Type, pointer: ir.Value, mask: ir.Value, others: ir.Value, alignment: int) -> ir.Value:
    """A vector of which the lanes that the mask leaves out are those of `others`."""
    operands = [pointer, mask, others]
    return _make("intr.masked.load", [ty], operands, alignment=_integer(32, alignment)).results[0]


def masked_store(value: ir.Value, pointer: ir.Value, mask: ir.Value, alignment: int) -> None:
    _make("intr.masked.store", [], [value, pointer, mask], alignment=_integer(32, alignment))


def prefetch(pointer: ir.Value, *, to_write: bool = False) -> None:
    """Ask for a line that will be read, or written, into all caches; it need not exist."""
    _make("intr.prefetch", [], [pointer], rw=_integer(32, int(to_write)), hint=_integer(32, 3), cache=_integer(32, 1))


def arithmetic_fence(value: ir.Value) -> ir.Value:
    """The same value, which LLVM does not look through."""
    return _make("intr.arithmetic.fence", [value.type], [value]).results[0]


@kept
def _integer(bits: int, value: int) -> ir.Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(bits), value)


def _make(
    name: str, types: Sequence[ir.Type], operands: Sequence[ir.Value], **attributes: ir.Attribute
) -> ir.Operation:
    return ir.Operation.create(f"llvm.{name}", results=types, operands=operands, attributes=attributes)
