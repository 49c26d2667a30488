"""Access to large buffers: by address, and past the caches.

A store past the caches writes a whole line without reading it first and leaves the caches to what is read again. It
pays where a kernel touches more than the last cache holds anyway.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from stablehlo_py.machine.cpu import Cpu
from stablehlo_py.mlir import arith, ir, llvm, memref
from stablehlo_py.targets.cpu import nest
from stablehlo_py.transforms.kernel_scratch import element_bytes

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
    llvm.call_intrinsic(None, "llvm.x86.sse.sfence", [], [], [])


def buffer_bytes(buffer: ir.Value) -> int:
    """Bytes of a buffer; 0 where that is unknown."""
    ty = ir.MemRefType(buffer.type)
    return math.prod(ty.shape) * element_bytes(ty.element_type) if ty.has_static_shape else 0


@dataclass(frozen=True)
class Address:
    """A row-major buffer by the address of its first byte: elements of any type move as integers of their size."""

    start: ir.Value  # i64
    shape: tuple[int, ...]
    size: int  # bytes of an element

    @classmethod
    def of(cls, buffer: ir.Value) -> Address:
        ty = ir.MemRefType(buffer.type)
        start = arith.index_cast(_i64(), memref.extract_aligned_pointer_as_index(buffer))
        return cls(start, tuple(ty.shape), element_bytes(ty.element_type))

    def is_aligned(self, alignment: int) -> ir.Value:
        rest = arith.andi(self.start, arith.constant(_i64(), alignment - 1))
        return arith.cmpi(arith.CmpIPredicate.eq, rest, arith.constant(_i64(), 0))

    def at(self, indices: Sequence[int | ir.Value]) -> Address:
        """The address of an element."""
        place: int | ir.Value = 0
        for extent, index in zip(self.shape, indices, strict=True):
            place = nest.add(nest.multiply(place, extent), index)
        offset = arith.index_cast(_i64(), nest.index(nest.multiply(place, self.size)))
        return replace(self, start=arith.addi(self.start, offset))

    def stride(self, dim: int) -> int:
        """Bytes from one place of a dimension to the next."""
        return math.prod(self.shape[dim + 1 :]) * self.size

    def load(self, ty: ir.Type, offset: int = 0) -> ir.Value:
        """A vector from so many bytes behind."""
        return llvm.load(ty, self._pointer(offset), alignment=self.size)

    def store(self, value: ir.Value, offset: int = 0, *, streaming: bool = False) -> None:
        """Streaming: the place must be aligned to the vector's own size."""
        whole = ir.VectorType(value.type).shape[0] * self.size
        # without the attribute where it is not meant: false would set it too
        past = {"nontemporal": True} if streaming else {}
        llvm.store(value, self._pointer(offset), alignment=whole if streaming else self.size, **past)

    def prefetch(self, offset: int) -> None:
        """Ask for the line so many bytes behind, which need not exist."""
        llvm.intr_prefetch(self._pointer(offset), 0, 3, 1)

    def _pointer(self, offset: int) -> ir.Value:
        place = arith.addi(self.start, arith.constant(_i64(), offset)) if offset else self.start
        return llvm.inttoptr(ir.Type.parse("!llvm.ptr"), place)


def _i64() -> ir.Type:
    return ir.IntegerType.get_signless(64)
