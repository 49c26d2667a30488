"""Slices to sort as words: in each, a key above what is to be moved with it.

    word = key << payload bits | payload        ordered as unsigned integers

The payload is the place of the element in its slice, by which all operands are read in the end; or the bits of the one
operand that is wanted; or nothing, where the key gives the element back. Where both together do not fit into 64 bits,
the payload has an array of its own. Keys of more than 64 bits are sorted in stages, the least significant first.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from stablehlo_py.core.types import ElementType
from stablehlo_py.dialects.stablehlo import Op
from stablehlo_py.mlir import arith, ir
from stablehlo_py.ops import build
from stablehlo_py.ops.expression import Num
from stablehlo_py.ops.sort_order import Key, evaluate_key, stored_of
from stablehlo_py.records import record
from stablehlo_py.targets.cpu.emit import nest

INDEX, NOTHING = -1, -2  # payloads that are no operand


@record
class Layout:
    """A word of `width` bits; payload: INDEX, NOTHING or the number of an operand; split: it has its own array."""

    key_bits: int
    payload: int
    payload_bits: int
    width: int
    split: bool

    @property
    def word(self) -> ir.Type:
        return ir.IntegerType.get_signless(self.width)

    @property
    def payload_width(self) -> int:
        """Bits of an element of the payload's own array."""
        return _rounded_up(self.payload_bits)

    @property
    def shift(self) -> int:
        """The lowest bit of the key in a word."""
        return 0 if self.split else self.payload_bits

    def payload_of(self, words: Sequence[Num]) -> Num:
        return words[1] if self.split else words[0] & ((1 << self.payload_bits) - 1)


def stages_of(keys: Sequence[Key]) -> list[tuple[Key, ...]]:
    """Keys in groups that fit into a word, the least significant group first."""
    stages: list[list[Key]] = []
    for key in reversed(keys):
        if stages and sum(k.bits for k in stages[-1]) + key.bits <= 64:
            stages[-1].insert(0, key)
        else:
            stages.append([key])
    return [tuple(stage) for stage in stages]


def _rounded_up(bits: int) -> int:
    return max(8, 1 << (bits - 1).bit_length())


@record
class Slices:
    """What is sorted: for each operand a buffer [outer, length, inner], slices along the middle; and where to.

    iotas: operands that number the places of a slice. targets: buffers of the results, None where nobody reads one.
    """

    op: Op
    sources: tuple[ir.Value, ...]
    targets: tuple[ir.Value | None, ...]
    elements: tuple[ElementType, ...]
    iotas: frozenset[int]
    outer: int
    length: int
    inner: int

    @property
    def count(self) -> int:
        return self.outer * self.inner

    def place(self, slice_number: ir.Value, j: ir.Value) -> list[ir.Value]:
        """Where element j of a slice is in a buffer."""
        if self.inner == 1:
            return [slice_number, j, build.index(0)]
        size = build.index(self.inner)
        return [arith.divui(slice_number, size), j, arith.remui(slice_number, size)]

    def layout(self, stages: Sequence[Sequence[Key]], *, unique: bool = False) -> Layout:
        """The words of all stages, and what must move with the keys; unique: equal words are equal elements."""
        key_bits = max(sum(key.bits for key in stage) for stage in stages)
        payload, payload_bits = INDEX, max(1, (self.length - 1).bit_length())
        if len(stages) == 1:
            given = {key.operand for key in stages[0] if key.is_invertible}
            wanted = [k for k, target in enumerate(self.targets) if target is not None and k not in given]
            if not wanted:
                payload, payload_bits = NOTHING, 0
            elif unique or len(wanted) > 1 or wanted[0] in self.iotas or self.elements[wanted[0]].is_complex:
                pass
            else:
                payload, payload_bits = wanted[0], max(self.elements[wanted[0]].bits, 8)
        split = key_bits + payload_bits > 64
        width = _rounded_up(key_bits if split else key_bits + payload_bits)
        return Layout(key_bits, payload, payload_bits, width, split)

    def words(
        self, keys: Sequence[Key], layout: Layout, at: Callable[[ir.Value], list[ir.Value]], j: ir.Value
    ) -> list[Num]:
        """The word of element j of a slice, and its payload where that is apart. at(j): where it is in the buffers."""

        @functools.cache
        def element_of(operand: int) -> ir.Value:
            if operand in self.iotas:
                return build.from_index(self.elements[operand], j)
            return build.widen(self.elements[operand], nest.load(self.sources[operand], at(j)))

        with build.one_body():
            word: Num | None = None
            for key in keys:
                part = evaluate_key(key, self.op, element_of).resize(layout.width)
                word = part if word is None else (word << key.bits) | part
        assert word is not None
        if layout.payload == NOTHING:
            return [word]
        width = layout.payload_width if layout.split else layout.width
        if layout.payload == INDEX:
            payload = from_index(j, width)
        else:
            stored = Num(nest.load(self.sources[layout.payload], at(j)))
            payload = (stored if isinstance(stored.type, ir.IntegerType) else _bits(stored)).resize(width)
        return [word, payload] if layout.split else [(word << layout.payload_bits) | payload]

    def deliver(
        self,
        stages: Sequence[Sequence[Key]],
        layout: Layout,
        words: Sequence[Num],
        at: Callable[[ir.Value], list[ir.Value]],
        j: ir.Value,
    ) -> None:
        """Write the results of the word that has come to place j."""
        payload = layout.payload_of(words)
        given = {key.operand: key for key in stages[0] if key.is_invertible} if len(stages) == 1 else {}
        source = to_index(payload) if layout.payload == INDEX else None
        for k, target in enumerate(self.targets):
            if target is None:
                continue
            element = self.elements[k]
            if k in given:
                key = given[k]
                behind = sum(other.bits for other in stages[0][stages[0].index(key) + 1 :])
                ordered = words[0].shift_right_logical(behind + layout.shift)
                stored = stored_of(key, ordered.resize(key.bits))
            elif k == layout.payload:
                stored = _stored(element, payload)
            else:
                assert source is not None
                number = k in self.iotas
                stored = (
                    build.narrow(element, build.from_index(element, source))
                    if number
                    else nest.load(self.sources[k], at(source))
                )
            nest.store(stored, target, at(j))


def from_index(value: ir.Value, width: int) -> Num:
    return Num(arith.index_cast(ir.IntegerType.get_signless(width), value))


def to_index(value: Num) -> ir.Value:
    return arith.index_castui(ir.IndexType.get(), value.value)


def _bits(stored: Num) -> Num:
    width = ir.FloatType(stored.type).width
    return Num(arith.bitcast(ir.IntegerType.get_signless(width), stored.value))


def _stored(element: ElementType, bits: Num) -> ir.Value:
    storage = build.storage_type(element)
    exact = bits.resize(max(element.bits, 8)).value
    return exact if exact.type == storage else arith.bitcast(storage, exact)
