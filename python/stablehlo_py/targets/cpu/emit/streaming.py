"""Access to buffers by address: vectors, masked or not, and stores past the caches.

A store past the caches writes a whole line without reading it first and leaves the caches to what is read again. It
pays where a kernel touches more than the last cache holds anyway.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from stablehlo_py.machine.cpu import Cpu
from stablehlo_py.mlir import DYNAMIC, arith, ir, kept, vector
from stablehlo_py.ops import llvm_ops
from stablehlo_py.records import record
from stablehlo_py.targets.cpu.emit import nest
from stablehlo_py.transforms.kernels.kernel_scratch import element_bytes

LINE = 64  # bytes of a cache line
CACHE_BYTES = 32 << 20  # of the last cache; of a kernel's buffers in all, from which it streams its results
LEAST_STREAM = 8 << 20  # bytes of a result


def streams(target: ir.Value, cpu: Cpu) -> bool:
    """Whether a kernel's result that the kernel only writes is to go past the caches (x86 with AVX)."""
    if cpu.vector_bytes < 32 or not isinstance(target.owner, ir.Block) or buffer_bytes(target) < LEAST_STREAM:
        return False
    buffers = [a for a in target.owner.arguments if isinstance(a.type, ir.MemRefType)]
    return sum(buffer_bytes(b) for b in buffers) >= CACHE_BYTES


def stream_end() -> None:
    """Order what was stored past the caches before what follows."""
    llvm_ops.call_intrinsic([], "llvm.x86.sse.sfence", [])


def buffer_bytes(buffer: ir.Value) -> int:
    """Bytes of a buffer; 0 where that is unknown."""
    ty = ir.MemRefType(buffer.type)
    return math.prod(ty.shape) * element_bytes(ty.element_type) if ty.has_static_shape else 0


def strides_of(buffer: ir.Value) -> tuple[tuple[int, ...], int]:
    """Elements from one place of each dimension to the next, and from the start to the first; DYNAMIC where unknown."""
    layout = _layout(buffer.type)
    return layout.strides, layout.offset


@record
class _Layout:
    """Where the elements of a buffer lie, as `strides_of` says it, and the type of what the buffer is made of in LLVM."""

    strides: tuple[int, ...]
    offset: int
    element_bytes: int
    parts: ir.Type


@kept
def _layout(ty: ir.Type) -> _Layout:
    buffer = ir.MemRefType(ty)
    strides, offset = buffer.get_strides_and_offset()
    rank = len(strides)
    arrays = f", array<{rank} x i64>, array<{rank} x i64>" if rank else ""
    parts = ir.Type.parse(f"!llvm.struct<(ptr, ptr, i64{arrays})>")
    return _Layout(tuple(strides), offset, element_bytes(buffer.element_type), parts)


@record
class Address:
    """A place in a buffer whose elements have `size` bytes. Vectors of any element type of that size move there."""

    pointer: ir.Value
    size: int

    @classmethod
    def of(cls, buffer: ir.Value, indices: Sequence[int | ir.Value]) -> Address:
        """The address of an element."""
        layout = _layout(buffer.type)
        # What the buffer is made of in LLVM: the conversion that follows knows it by this cast.
        parts = ir.Operation.create(
            "builtin.unrealized_conversion_cast", results=[layout.parts], operands=[buffer]
        ).results[0]

        def known(value: int, *position: int) -> int | ir.Value:
            if value != DYNAMIC:
                return value
            return arith.index_cast(ir.IndexType.get(), llvm_ops.extract_value(_i64(), parts, position))

        place = known(layout.offset, 2)
        for d, (index, stride) in enumerate(zip(indices, layout.strides, strict=True)):
            place = nest.add(place, nest.multiply(index, known(stride, 4, d)))
        pointer = llvm_ops.extract_value(llvm_ops.pointer_type(), parts, [1])
        return cls(pointer, layout.element_bytes).moved(place)

    def moved(self, by: int | ir.Value) -> Address:
        """So many elements further; `by`: an integer, or an index or i64."""
        if isinstance(by, int) and by.bit_length() > 31:  # more than a constant of the op holds
            by = arith.constant(_i64(), by)
        if isinstance(by, int):
            return self if by == 0 else Address(llvm_ops.element_pointer(self.pointer, self.size, by), self.size)
        return Address(llvm_ops.element_pointer(self.pointer, self.size, as_offset(by)), self.size)

    def is_aligned(self, alignment: int) -> ir.Value:
        rest = arith.andi(llvm_ops.pointer_as_integer(self.pointer), arith.constant(_i64(), alignment - 1))
        return arith.cmpi(arith.CmpIPredicate.eq, rest, arith.constant(_i64(), 0))

    def load(self, ty: ir.VectorType, mask: ir.Value | None = None) -> ir.Value:
        """A vector from here on; zeros in the lanes that a mask leaves out."""
        stored = _stored(ty)
        if mask is not None:
            value = llvm_ops.masked_load(stored, self.pointer, mask, nest.constant_vector(stored, 0), self.size)
        else:
            value = llvm_ops.load(stored, self.pointer, self.size)
        return value if stored == ty else arith.bitcast(ty, value)

    def load_pair(self, ty: ir.VectorType) -> tuple[ir.Value, ir.Value]:
        """Pairs of elements from here on, such as complex numbers: the first ones and the second ones, each of type `ty`."""
        (count,) = ty.shape
        part = Address(self.pointer, self.size // 2)
        halves = [part.load(ty), part.moved(count).load(ty)]
        first, second = (_shuffle(ty, halves, range(k, 2 * count, 2)) for k in range(2))
        return first, second

    def store_pair(self, first: ir.Value, second: ir.Value, *, streaming: bool = False) -> None:
        """The reverse of `load_pair`."""
        ty = ir.VectorType(first.type)
        (count,) = ty.shape
        part = Address(self.pointer, self.size // 2)
        for half in range(2):
            lanes = [lane + k * count for lane in range(half * count // 2, (half + 1) * count // 2) for k in range(2)]
            part.moved(half * count).store(_shuffle(ty, [first, second], lanes), streaming=streaming)

    def spread(self, ty: ir.VectorType) -> ir.Value:
        """The element here in every lane of a vector."""
        one = self.load(ir.VectorType.get([1], ty.element_type))
        return _shuffle(ty, [one, one], [0] * ty.shape[0])

    def store(self, value: ir.Value, mask: ir.Value | None = None, *, streaming: bool = False) -> None:
        """Streaming: the place must be aligned to the vector's own size."""
        ty = ir.VectorType(value.type)
        stored = _stored(ty)
        if stored != ty:
            value = arith.bitcast(stored, value)
        if mask is None:
            alignment = ty.shape[0] * self.size if streaming else self.size
            llvm_ops.store(value, self.pointer, alignment, nontemporal=streaming)
        elif nest.is_first_lane_alone(mask):
            llvm_ops.store(vector.extract(value, [], [0]), self.pointer, self.size)
        else:
            llvm_ops.masked_store(value, self.pointer, mask, self.size)

    def prefetch(self, offset: int, *, to_write: bool = False) -> None:
        """Ask for the line so many bytes behind, which need not exist."""
        byte = Address(self.pointer, 1)
        llvm_ops.prefetch(byte.moved(offset).pointer, to_write=to_write)


def fill_zeros(target: Address, count: int, vectors: nest.Vectors) -> None:
    """Zeros in `count` elements, a vector of them or more."""
    zero = vectors.zero()
    nest.in_vectors(count, vectors.lanes, lambda n: target.moved(n).store(zero))


def _shuffle(ty: ir.VectorType, operands: Sequence[ir.Value], lanes: Iterable[int]) -> ir.Value:
    """The lanes of these numbers of two vectors, one behind the other."""
    mask = {"mask": ir.DenseI64ArrayAttr.get(list(lanes))}
    return ir.Operation.create("vector.shuffle", results=[ty], operands=list(operands), attributes=mask).results[0]


def as_offset(value: int | ir.Value) -> int | ir.Value:
    """What to move addresses by, as an i64; to be made once where several move."""
    return value if isinstance(value, int) or value.type == _i64() else arith.index_cast(_i64(), value)


def _stored(ty: ir.VectorType) -> ir.VectorType:
    """As what vectors of a type stand in memory: LLVM has no floats of 8 bits."""
    element = ty.element_type
    if isinstance(element, ir.FloatType) and ir.FloatType(element).width <= 8:
        return ir.VectorType.get(ty.shape, ir.IntegerType.get_signless(8))
    return ty


def _i64() -> ir.Type:
    return ir.IntegerType.get_signless(64)
