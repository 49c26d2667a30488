"""Typed views over StableHLO and chlo ops: what a rule sees of an op.

`view(operation)` gives an `Op`, or the subclass that knows the op's own attributes. Attribute and dimension names are
those of the StableHLO specification. A view holds no copy: it reads the operation each time it is asked.
"""

from __future__ import annotations

import functools
from typing import ClassVar

import numpy as np

from stablehlo_py.core.types import TensorType, tensor_type
from stablehlo_py.mlir import ir, raw_elements, stablehlo
from stablehlo_py.patterns import pattern
from stablehlo_py.records import record

_VIEWS: dict[str, type[Op]] = {}
_ENUM = pattern(r"<([\w ]+)>|^(\w+)$")


class Op:
    """One operation as rules see it."""

    op_name: ClassVar[str] = ""
    __slots__ = ("operation",)

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if cls.op_name:
            _VIEWS[cls.op_name] = cls

    def __init__(self, operation: ir.Operation) -> None:
        self.operation = operation

    @property
    def name(self) -> str:
        return self.operation.name

    @property
    def operand_types(self) -> tuple[TensorType, ...]:
        return tuple(tensor_type(v.type) for v in self.operation.operands)

    @property
    def types(self) -> tuple[TensorType, ...]:
        """The types of all results."""
        return tuple(tensor_type(v.type) for v in self.operation.results)

    @property
    def type(self) -> TensorType:
        """The type of the first result."""
        return tensor_type(self.operation.results[0].type)

    @property
    def location(self) -> ir.Location:
        return self.operation.location

    def block(self, index: int = 0) -> ir.Block:
        """The single block of a region."""
        return self.operation.regions[index].blocks[0]

    # --- attributes by name; the default stands for an attribute that is absent

    def has(self, name: str) -> bool:
        return name in self.operation.attributes

    def ints(self, name: str, default: tuple[int, ...] = ()) -> tuple[int, ...]:
        """An integer array or dense integer elements, flattened."""
        attribute = self.operation.attributes.get(name)
        if attribute is None:
            return default
        if isinstance(attribute, ir.DenseI64ArrayAttr):
            return tuple(attribute)
        if isinstance(attribute, ir.DenseIntElementsAttr):
            return tuple(int(x) for x in np.asarray(attribute).ravel())
        return tuple(int(x) for x in attribute)

    def matrix(self, name: str, default: np.ndarray) -> np.ndarray:
        """Dense integer elements with their shape (paddings, replica groups)."""
        if not self.has(name):
            return default
        return np.array(self.operation.attributes[name])

    def integer(self, name: str, default: int = 0) -> int:
        return int(ir.IntegerAttr(self.operation.attributes[name]).value) if self.has(name) else default

    def number(self, name: str, default: float = 0.0) -> float:
        return float(ir.FloatAttr(self.operation.attributes[name]).value) if self.has(name) else default

    def flag(self, name: str, default: bool = False) -> bool:
        return bool(ir.BoolAttr(self.operation.attributes[name]).value) if self.has(name) else default

    def flags(self, name: str, default: tuple[bool, ...] = ()) -> tuple[bool, ...]:
        """A dense boolean array."""
        return tuple(bool(x) for x in self.operation.attributes[name]) if self.has(name) else default

    def string(self, name: str, default: str = "") -> str:
        return ir.StringAttr(self.operation.attributes[name]).value if self.has(name) else default

    def symbol(self, name: str, default: str = "") -> str:
        return ir.FlatSymbolRefAttr(self.operation.attributes[name]).value if self.has(name) else default

    def enum(self, name: str, default: str = "") -> str:
        """The bare word of an enumeration, such as `LT` or `RFFT`."""
        if not self.has(name):
            return default
        found = _ENUM.search(str(self.operation.attributes[name]))
        return (found[1] or found[2]).split()[-1] if found else default

    def elements(self, name: str = "value") -> np.ndarray:
        """Dense elements as an array of the numpy dtype of the first result (read-only where it is a splat)."""
        ty = self.type
        raw = raw_elements(self.operation, name, ty.element.bytes, ty.size)
        if raw is None:
            raise ValueError(f"{self.name}: attribute {name} holds no dense elements")
        data, splat = raw
        if splat:  # as numpy.broadcast_to would repeat it, in a tenth of the time
            return np.ndarray(ty.shape, ty.element.dtype, data, strides=(0,) * ty.rank)
        return np.frombuffer(data, dtype=ty.element.dtype).reshape(ty.shape)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"


def view(operation: ir.Operation | ir.OpView) -> Op:
    """The typed view of an operation."""
    operation = operation.operation
    return _VIEWS.get(operation.name, Op)(operation)


class Constant(Op):
    op_name = "stablehlo.constant"
    __slots__ = ()

    @property
    def value(self) -> np.ndarray:
        return self.elements("value")

    @property
    def splat(self) -> np.generic | None:
        """The one element that the constant repeats, or None."""
        ty = self.type
        dtype = ty.element.dtype
        raw = raw_elements(self.operation, "value", dtype.itemsize, ty.size)
        if raw is None or not raw[1]:
            return None
        return np.frombuffer(raw[0], dtype)[0]


@record
class DotDims:
    """dot_dimension_numbers; the result's dimensions are batch, lhs free, rhs free."""

    lhs_batching: tuple[int, ...]
    rhs_batching: tuple[int, ...]
    lhs_contracting: tuple[int, ...]
    rhs_contracting: tuple[int, ...]

    def lhs_free(self, rank: int) -> tuple[int, ...]:
        return tuple(d for d in range(rank) if d not in self.lhs_batching + self.lhs_contracting)

    def rhs_free(self, rank: int) -> tuple[int, ...]:
        return tuple(d for d in range(rank) if d not in self.rhs_batching + self.rhs_contracting)


class DotGeneral(Op):
    op_name = "stablehlo.dot_general"
    __slots__ = ()

    @property
    def dims(self) -> DotDims:
        n = stablehlo.DotDimensionNumbers(self.operation.attributes["dot_dimension_numbers"])
        return DotDims(
            tuple(n.lhs_batching_dimensions),
            tuple(n.rhs_batching_dimensions),
            tuple(n.lhs_contracting_dimensions),
            tuple(n.rhs_contracting_dimensions),
        )


@record
class ConvDims:
    """dimension_numbers of a convolution."""

    input_batch: int
    input_feature: int
    input_spatial: tuple[int, ...]
    kernel_input_feature: int
    kernel_output_feature: int
    kernel_spatial: tuple[int, ...]
    output_batch: int
    output_feature: int
    output_spatial: tuple[int, ...]


class Convolution(Op):
    op_name = "stablehlo.convolution"
    __slots__ = ()

    @property
    def dims(self) -> ConvDims:
        n = stablehlo.ConvDimensionNumbers(self.operation.attributes["dimension_numbers"])
        return ConvDims(
            n.input_batch_dimension,
            n.input_feature_dimension,
            tuple(n.input_spatial_dimensions),
            n.kernel_input_feature_dimension,
            n.kernel_output_feature_dimension,
            tuple(n.kernel_spatial_dimensions),
            n.output_batch_dimension,
            n.output_feature_dimension,
            tuple(n.output_spatial_dimensions),
        )

    @property
    def spatial_rank(self) -> int:
        return self.type.rank - 2

    @property
    def window_strides(self) -> tuple[int, ...]:
        return self.ints("window_strides", (1,) * self.spatial_rank)

    @property
    def padding(self) -> tuple[tuple[int, int], ...]:
        table = self.matrix("padding", np.zeros((self.spatial_rank, 2), np.int64)).reshape(self.spatial_rank, 2)
        return tuple((int(low), int(high)) for low, high in table)

    @property
    def lhs_dilation(self) -> tuple[int, ...]:
        return self.ints("lhs_dilation", (1,) * self.spatial_rank)

    @property
    def rhs_dilation(self) -> tuple[int, ...]:
        return self.ints("rhs_dilation", (1,) * self.spatial_rank)

    @property
    def window_reversal(self) -> tuple[bool, ...]:
        return self.flags("window_reversal", (False,) * self.spatial_rank)

    @property
    def feature_group_count(self) -> int:
        return self.integer("feature_group_count", 1)

    @property
    def batch_group_count(self) -> int:
        return self.integer("batch_group_count", 1)

    @property
    def wants_precision(self) -> bool:
        """Whether either operand asks for precision HIGHEST: sums of products as they are written."""
        if not self.has("precision_config"):
            return False
        return any("HIGHEST" in str(side) for side in ir.ArrayAttr(self.operation.attributes["precision_config"]))


@record
class GatherDims:
    """dimension_numbers of a gather."""

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    operand_batching_dims: tuple[int, ...]
    start_indices_batching_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    index_vector_dim: int


class Gather(Op):
    op_name = "stablehlo.gather"
    __slots__ = ()

    @property
    def dims(self) -> GatherDims:
        n = stablehlo.GatherDimensionNumbers(self.operation.attributes["dimension_numbers"])
        return GatherDims(
            tuple(n.offset_dims),
            tuple(n.collapsed_slice_dims),
            tuple(n.operand_batching_dims),
            tuple(n.start_indices_batching_dims),
            tuple(n.start_index_map),
            n.index_vector_dim,
        )

    @property
    def slice_sizes(self) -> tuple[int, ...]:
        return self.ints("slice_sizes")


@record
class ScatterDims:
    """scatter_dimension_numbers."""

    update_window_dims: tuple[int, ...]
    inserted_window_dims: tuple[int, ...]
    input_batching_dims: tuple[int, ...]
    scatter_indices_batching_dims: tuple[int, ...]
    scatter_dims_to_operand_dims: tuple[int, ...]
    index_vector_dim: int


class Scatter(Op):
    """operands: n inputs, scatter_indices, n updates; region: (n current, n update) -> n values."""

    op_name = "stablehlo.scatter"
    __slots__ = ()

    @property
    def dims(self) -> ScatterDims:
        n = stablehlo.ScatterDimensionNumbers(self.operation.attributes["scatter_dimension_numbers"])
        return ScatterDims(
            tuple(n.update_window_dims),
            tuple(n.inserted_window_dims),
            tuple(n.input_batching_dims),
            tuple(n.scatter_indices_batching_dims),
            tuple(n.scattered_dims_to_operand_dims),
            n.index_vector_dim,
        )


class ReduceWindow(Op):
    """operands: n inputs, n init values; region: (n acc, n element) -> n acc."""

    op_name = "stablehlo.reduce_window"
    __slots__ = ()

    @property
    def rank(self) -> int:
        return self.operand_types[0].rank

    @property
    def window_dimensions(self) -> tuple[int, ...]:
        return self.ints("window_dimensions")

    @property
    def window_strides(self) -> tuple[int, ...]:
        return self.ints("window_strides", (1,) * self.rank)

    @property
    def base_dilations(self) -> tuple[int, ...]:
        return self.ints("base_dilations", (1,) * self.rank)

    @property
    def window_dilations(self) -> tuple[int, ...]:
        return self.ints("window_dilations", (1,) * self.rank)

    @property
    def padding(self) -> tuple[tuple[int, int], ...]:
        table = self.matrix("padding", np.zeros((self.rank, 2), np.int64)).reshape(self.rank, 2)
        return tuple((int(low), int(high)) for low, high in table)


class SelectAndScatter(ReduceWindow):
    """operands: operand, source, init value; regions: select, scatter."""

    op_name = "stablehlo.select_and_scatter"
    __slots__ = ()


@functools.cache
def known_views() -> tuple[str, ...]:
    """The ops that have a view of their own."""
    return tuple(sorted(_VIEWS))
