"""What kernels of all kinds are built with: refs, buffers, loops, block maps, and the vector code of a group."""

from __future__ import annotations

from collections.abc import Sequence

from stablehlo_py.core.types import ElementType, TensorType, element_type, tensor_type
from stablehlo_py.dialects import mxu
from stablehlo_py.dialects.stablehlo import view
from stablehlo_py.machine.tpu import Chip
from stablehlo_py.mlir import ir
from stablehlo_py.targets.tpu import emit
from stablehlo_py.targets.tpu.constants import number_of
from stablehlo_py.targets.tpu.planning.group import (
    FULL,
    LANE,
    MOVES,
    PRODUCTS,
    ROW,
    SCALAR,
    Group,
    function_of,
    reducer_of,
)
from stablehlo_py.targets.tpu.planning.layout import natural_layout


class KernelBuilder:
    """One kernel. operands: tensors of rank 3 in their physical shapes; logical: the sizes that are defined."""

    def __init__(self, chip: Chip) -> None:
        self.chip = chip
        self.offset = 0
        self.last_at_top: ir.Operation | None = None

    def create(
        self,
        label: str,
        operands: Sequence[ir.Value],
        spaces: Sequence[str],
        logical: Sequence[Sequence[int]],
        result: TensorType,
    ) -> ir.Operation:
        """The kernel's op at the insertion point, with an empty block."""
        attributes = {
            "label": emit.text(label),
            "chip": emit.text(self.chip.name),
            "logical": ir.ArrayAttr.get([emit.i64s(shape) for shape in logical]),
            "operandSegmentSizes": emit.segments(len(operands), mxu.MAX_INPUTS),
        }
        kernel = ir.Operation.create(
            "mxu.kernel", results=[result.mlir], operands=list(operands), attributes=attributes, regions=1
        )
        refs = [self.ref(tensor_type(v.type), space) for v, space in zip(operands, spaces, strict=True)]
        self.block = ir.Block.create_at_start(kernel.regions[0], [*refs, self.ref(result, "hbm")])
        return kernel

    def ref(self, tensor: TensorType, space: str) -> mxu.RefType:
        layout = natural_layout(tensor.shape, tensor.element, machine=self.chip).tiles
        return emit.ref_type(tensor, space, layout)

    def alloc(self, label: str, shape: tuple[int, int], element: ElementType) -> ir.Value:
        """A buffer in VMEM behind the ones before it; allocations stand at the top of the kernel."""
        tensor = TensorType(shape, element)
        attributes = {"label": emit.text(label), "offset": emit.i64(self.offset), "buffers": emit.i64(1)}
        self.offset += mxu.stored_bytes(tensor)
        return self.at_top("mxu.alloc", self.ref(tensor, "vmem"), attributes)

    def semaphore(self) -> ir.Value:
        return self.at_top("mxu.make_semaphore", mxu.SemaphoreType.get(), {})

    def at_top(self, name: str, result: ir.Type, attributes: dict[str, ir.Attribute]) -> ir.Value:
        """An op behind those that stand at the top of the kernel already."""
        last = self.last_at_top
        point = ir.InsertionPoint.at_block_begin(self.block) if last is None else ir.InsertionPoint.after(last)
        created = ir.Operation.create(name, results=[result], attributes=attributes, ip=point)
        self.last_at_top = created
        return created.results[0]

    def op(self, name: str, operands: Sequence[ir.Value], **attributes: ir.Attribute) -> None:
        ir.Operation.create(name, operands=list(operands), attributes=attributes)

    def loop(self, bounds: Sequence[int]) -> tuple[ir.InsertionPoint, list[ir.Value]]:
        """A loop nest; where its body goes, and its indices."""
        loop = ir.Operation.create("mxu.loop", attributes={"bounds": emit.i64s(bounds)}, regions=1)
        block = ir.Block.create_at_start(loop.regions[0], [ir.IndexType.get()] * len(bounds))
        return ir.InsertionPoint(block), list(block.arguments)

    def cores(self) -> tuple[ir.InsertionPoint, list[ir.Value]]:
        """Where the code of each core goes, and the core's number; no number where there is one core."""
        if self.chip.cores == 1:
            return ir.InsertionPoint(self.block), []
        with ir.InsertionPoint(self.block):
            split = ir.Operation.create("mxu.core_split", attributes={"cores": emit.i64(self.chip.cores)}, regions=1)
            block = ir.Block.create_at_start(split.regions[0], [ir.IndexType.get()])
            ir.Operation.create("mxu.barrier")
        return ir.InsertionPoint(block), [block.arguments[0]]

    def load(self, large: ir.Value, small: ir.Value, semaphore: ir.Value, indices: list[ir.Value], map: str) -> None:
        self.op("mxu.dma_start", [large, small, semaphore, *indices], map=block_map(map))

    def store(self, small: ir.Value, large: ir.Value, semaphore: ir.Value, indices: list[ir.Value], map: str) -> None:
        self.op("mxu.dma_start", [small, large, semaphore, *indices], map=block_map(map))
        self.op("mxu.dma_wait", [semaphore])

    # --- groups

    def input_buffers(self, group: Group, shape: tuple[int, int]) -> dict[ir.Value, ir.Value]:
        """A buffer for one block of each input."""
        sizes = {FULL: shape, LANE: (1, shape[1]), ROW: (shape[0], self.chip.lanes)}
        return {
            value: self.alloc(f"in.{i}", sizes[group.kinds[value]], tensor_type(value.type).element)
            for i, value in enumerate(group.inputs)
        }

    def vector_code(self, group: Group, shape: tuple[int, int], buffers: dict[ir.Value, ir.Value]) -> ir.Value:
        """The ops of a group on blocks of `shape`; `buffers` holds its inputs and its product. The buffer of its result."""
        sizes = {FULL: shape, LANE: (1, shape[1]), ROW: (shape[0], self.chip.lanes)}
        for operation in group.members:
            result = operation.results[0]
            kind = group.kinds[result]
            if operation.name in PRODUCTS or kind == SCALAR:
                continue
            if operation.name in MOVES:
                # Vector ops repeat rows and lanes themselves.
                if group.kinds[operation.operands[0]] != SCALAR:
                    buffers[result] = buffers[operation.operands[0]]
                continue
            name = operation.name.partition(".")[2]
            buffers[result] = target = self.alloc(name, sizes[kind], tensor_type(result.type).element)
            reducer = reducer_of(view(operation))
            if reducer is not None:
                source = self.spread(buffers[operation.operands[0]], shape)
                self.op("mxu.reduce", [source, target], function=emit.text(reducer), limit=emit.i64(group.n))
                continue
            self.vector(operation, target, buffers)
        return buffers[group.root.results[0]]

    def spread(self, source: ir.Value, shape: tuple[int, int]) -> ir.Value:
        """A buffer of whole rows for one of a row's number or of one row for all, which vector ops would repeat."""
        ty = tensor_type(mxu.ref_tensor(source.type))
        if ty.shape == shape:
            return source
        target = self.alloc("spread", shape, ty.element)
        self.emit_vector("copy", target, [source], [emit.i64(0)])
        return target

    def vector(self, operation: ir.Operation, target: ir.Value, buffers: dict[ir.Value, ir.Value]) -> None:
        sources: list[ir.Value] = []
        arguments: list[ir.Attribute] = []
        for value in operation.operands:
            if value not in buffers:
                number = number_of(value)
                assert number is not None  # a value of a group is made in it, or an input, or one number
                arguments.append(ir.FloatAttr.get(ir.F32Type.get(), number))
                continue
            arguments.append(emit.i64(len(sources)))
            sources.append(buffers[value])
        function = function_of(view(operation))
        assert function is not None  # members are moves, reductions or elementwise
        self.emit_vector(function, target, sources, arguments)

    def emit_vector(
        self, function: str, target: ir.Value, sources: list[ir.Value], arguments: list[ir.Attribute]
    ) -> None:
        self.op(
            "mxu.vector",
            [target, *sources],
            function=emit.text(function),
            arguments=ir.ArrayAttr.get(arguments),
            operandSegmentSizes=ir.DenseI32ArrayAttr.get([1, *emit.segments(len(sources), 3)]),
        )


def block_map(text: str) -> ir.Attribute:
    """An affine map from its text."""
    return ir.Attribute.parse(f"affine_map<{text}>")


def as_blocks(value: ir.Value, kind: str, b: int, m: int, n: int, chip: Chip) -> ir.Value:
    """An input of a group, outside of the kernel: [b,m,n], or [1,1,n] for a lane, or [b,m,lanes] for a row; in whole tiles."""
    if kind == LANE:
        return padded(emit.reshape(value, (1, 1, n)), chip)
    if kind == FULL:
        return padded(emit.reshape(value, (b, m, n)), chip)
    flat = emit.reshape(value, (b, m))
    result = tensor_type(flat.type).with_shape((b, m, chip.lanes))
    dimensions = {"broadcast_dimensions": ir.DenseI64ArrayAttr.get([0, 1])}
    return padded(emit.op("stablehlo.broadcast_in_dim", [flat], result, dimensions), chip)


def padded(value: ir.Value, chip: Chip) -> ir.Value:
    """The value in whole tiles."""
    ty = tensor_type(value.type)
    physical = physical_type(ty, chip)
    return value if physical == ty else emit.op("mxu.pad", [value], physical)


def physical_type(ty: TensorType, chip: Chip) -> TensorType:
    """The type with whole tiles in its two minor dimensions."""
    return ty.with_shape(natural_layout(ty.shape, ty.element, machine=chip).padded_shape)


def unpadded(value: ir.Value, logical: TensorType, shape: Sequence[int]) -> ir.Value:
    """What is defined of a kernel's result, in the shape that the program wants."""
    if tensor_type(value.type) != logical:
        value = emit.op("mxu.unpad", [value], logical)
    return emit.reshape(value, shape)


def float_zero() -> ir.Attribute:
    return ir.FloatAttr.get(ir.F32Type.get(), 0.0)


def accumulator_of(element: ElementType) -> ElementType:
    return element_type("f32" if element.is_float else "i32")
