"""Make one GPU kernel: a gpu.func in a gpu.module of its own, and its launch where the work stood."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from stablehlo_py.core.collect import maker
from stablehlo_py.core.diagnostics import describe_location
from stablehlo_py.errors import UnsupportedOp
from stablehlo_py.mlir import arith, gpu, ir, llvm, memref
from stablehlo_py.records import record

BUFFERS = ("memref.alloc", "memref.alloca", "memref.get_global")  # with function arguments: what a kernel is passed
REPEATED = ("arith.", "math.", "complex.", "affine.", "index.")  # pure: cheaper to repeat in a kernel than to pass
VIEWS = frozenset(
    f"memref.{name}"
    for name in ("subview", "cast", "collapse_shape", "expand_shape", "reinterpret_cast", "transpose", "dim")
)

Dim3 = tuple[int, int, int]


@record(frozen=False)
class Scope:
    """What the body of a kernel works with.

    values: from values around the kernel to their stand-ins in it. shared: its buffers in shared memory.
    thread, block: the index in x.
    """

    values: dict[ir.Value, ir.Value]
    shared: list[ir.Value]
    thread: ir.Value
    block: ir.Value

    def __getitem__(self, value: ir.Value) -> ir.Value:
        return self.values.get(value, value)

    def clone(self, op: ir.Operation) -> ir.Operation:
        """A copy of an op that works on the stand-ins; its results become stand-ins themselves."""
        if op.name == "func.call":
            return self.call_device_library(op)
        copy = op.clone()
        self.redirect(copy)
        for old, new in zip(op.results, copy.results, strict=True):
            self.values[old] = new
        return copy

    def call_device_library(self, op: ir.Operation) -> ir.Operation:
        """A call of the C library's mathematics as one of libdevice, where the functions have the same names."""
        name = ir.FlatSymbolRefAttr(op.attributes["callee"]).value
        types = {str(v.type) for v in [*op.operands, *op.results]}
        if len(op.results) != 1 or not (types == {"f32"} or types == {"f64"}):
            raise UnsupportedOp("func.call", f"@{name} is not on the device", target="gpu", where=place(op))
        arguments = [self[v] for v in op.operands]
        callee = declare(f"__nv_{name}", [v.type for v in arguments], op.results[0].type)
        call = llvm.CallOp(op.results[0].type, arguments, [], ir.DenseI32ArrayAttr.get([]), callee=callee)
        self.values[op.results[0]] = call.result
        return call.operation

    def redirect(self, op: ir.Operation) -> None:
        """Make an op, and everything inside it, work on the stand-ins."""
        for number, operand in enumerate(op.operands):
            found = self.values.get(operand)
            if found is not None:
                op.operands[number] = found
        for inner in _inside(op):
            self.redirect(inner)


class Former:
    """Makes the kernels of one function, in order."""

    def __init__(self, function: ir.Operation, module: ir.Operation) -> None:
        self.function, self.module = function, module
        self.prefix = ir.StringAttr(function.attributes["sym_name"]).value
        self.count = 0
        self.read_only = _read_only(function)
        self.spilled: dict[ir.Value, ir.Value] = {}  # values that a kernel computed -> the buffer that holds them

    def is_repeated(self, op: ir.Operation) -> bool:
        """Whether each kernel that needs the op's result may do it again: views, arithmetic, elements of inputs."""
        if op.name == "memref.load":
            return op.operands[0] in self.read_only
        return op.name in VIEWS or op.name.startswith(REPEATED)

    def launch(
        self,
        work: Sequence[ir.Operation],
        kind: str,
        *,
        grid: Dim3,
        block: Dim3,
        body: Callable[[Scope], None],
        shared: Sequence[ir.Type] = (),
        extra: Sequence[ir.Value] = (),
        without: Sequence[ir.Value] = (),
    ) -> None:
        """Make a kernel that does `work` by `body`, and launch it where the last op of `work` stands.

        extra: what the body uses beyond what `work` names; without: what it gives a stand-in of its own. The caller
        erases `work`.
        """
        outside = _Outside(self, work[0])
        for value in [*captures(work), *extra]:
            if value not in without:
                outside.add(value)
        name = f"{self.prefix}_{kind}_{self.count}"
        self.count += 1
        with ir.InsertionPoint(self.module.regions[0].blocks[0]), work[0].location:
            _kernel(name, outside, block, shared, body)
        with ir.InsertionPoint(work[-1]), work[0].location:
            gpu.launch_func([name, name], grid, block, outside.buffers)

    def spill(self, value: ir.Value) -> ir.Value:
        """The buffer in which a kernel leaves `value` for later ones: a memref a copy of itself, a scalar a 0-d one."""
        ty = value.type
        plain = ir.MemRefType(ty) if isinstance(ty, ir.MemRefType) else ir.MemRefType.get([], ty)
        if not plain.has_static_shape:
            op = value.owner.operation
            raise UnsupportedOp(op.name, f"its result {ty} has no known size", target="gpu", where=place(op))
        plain = ir.MemRefType.get(plain.shape, plain.element_type)
        with ir.InsertionPoint.at_block_begin(self.function.regions[0].blocks[0]), value.owner.location:
            self.spilled[value] = memref.AllocOp(plain, [], []).result
        return self.spilled[value]


def _kernel(
    name: str, outside: _Outside, block: Dim3, shared: Sequence[ir.Type], body: Callable[[Scope], None]
) -> None:
    """gpu.module @name { gpu.func @name(buffers) workgroup(shared) kernel { repeated ops; body } }"""
    inputs = [v.type for v in outside.buffers]
    module = gpu.GPUModuleOp(name)
    unit = ir.UnitAttr.get()
    attributes = {
        "sym_name": ir.StringAttr.get(name),
        "function_type": ir.TypeAttr.get(ir.FunctionType.get(inputs, [])),
        "kernel": unit,
        "known_block_size": ir.DenseI32ArrayAttr.get(list(block)),
        "workgroup_attributions": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), len(shared)),
    }
    region = module.regions[0]
    module_block = region.blocks[0] if len(region.blocks) else region.blocks.append()
    function = ir.Operation.create("gpu.func", attributes=attributes, regions=1, ip=ir.InsertionPoint(module_block))
    here = ir.Location.current
    entry = function.regions[0].blocks.append(*inputs, *shared, arg_locs=[here] * (len(inputs) + len(shared)))
    arguments = list(entry.arguments)
    with ir.InsertionPoint(entry):
        values = dict(zip(outside.buffers, arguments, strict=False))
        x = gpu.Dimension.x
        scope = Scope(values, arguments[len(inputs) :], gpu.thread_id(x), gpu.block_id(x))
        for value, buffer in outside.spilled.items():
            is_memref = isinstance(value.type, ir.MemRefType)
            values[value] = values[buffer] if is_memref else memref.load(values[buffer], [])
        for op in outside.repeated:
            scope.clone(op)
        body(scope)
        gpu.return_([])


def _read_only(function: ir.Operation) -> set[ir.Value]:
    """Arguments that nothing in the function writes: only loads and inputs of linalg.generic use them."""

    def reads(use: ir.OpOperand) -> bool:
        op = use.owner.operation
        if op.name == "memref.load":
            return True
        return op.name == "linalg.generic" and use.operand_number < _segments(op)[0]

    return {argument for argument in function.regions[0].blocks[0].arguments if all(map(reads, argument.uses))}


def _segments(op: ir.Operation) -> list[int]:
    """How many inputs and outputs a structured op has."""
    return list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))


class _Outside:
    """What a kernel takes from around it: buffers to pass, ops to repeat, scalars to load."""

    def __init__(self, former: Former, op: ir.Operation) -> None:
        self.former, self.op = former, op
        self.buffers: list[ir.Value] = []
        self.repeated: list[ir.Operation] = []
        self.spilled: dict[ir.Value, ir.Value] = {}
        self._seen: set[ir.Value] = set()

    def add(self, value: ir.Value) -> None:
        if value in self._seen:
            return
        self._seen.add(value)
        spilled = self.former.spilled.get(value)
        if spilled is not None:
            self.spilled[value] = spilled
            self.add(spilled)
            return
        op = maker(value)
        if op is None or op.name in BUFFERS:
            if not isinstance(value.type, ir.MemRefType):
                raise UnsupportedOp(
                    self.op.name, f"it takes a {value.type} from the host", target="gpu", where=place(self.op)
                )
            self.buffers.append(value)
            return
        if not self.former.is_repeated(op):
            raise UnsupportedOp(op.name, "a kernel needs its result on the device", target="gpu", where=place(op))
        for operand in captures([op]):
            self.add(operand)
        self.repeated.append(op)


def captures(ops: Sequence[ir.Operation]) -> list[ir.Value]:
    """The values from outside that ops in a row and everything inside them use, in order, each once."""
    own: set[ir.Value] = set()
    found: dict[ir.Value, None] = {}

    def visit(inner: ir.Operation) -> None:
        for operand in inner.operands:
            if operand not in own:
                found[operand] = None
        own.update(inner.results)
        for region in inner.regions:
            for block in region.blocks:
                own.update(block.arguments)
                for nested in block.operations:
                    visit(nested.operation)

    for op in ops:
        visit(op)
    return list(found)


def declare(name: str, arguments: Sequence[ir.Type], result: ir.Type) -> str:
    """Declare a function of libdevice in the gpu.module around the insertion point, once."""
    op = ir.InsertionPoint.current.block.owner.operation
    while op.name != "gpu.module":
        op = op.parent.operation
    block = op.regions[0].blocks[0]
    if not any(o.operation.name == "llvm.func" and o.operation.attributes["sym_name"].value == name for o in block):
        ty = ir.Type.parse(f"!llvm.func<{result} ({', '.join(map(str, arguments))})>")
        attributes = {"sym_name": ir.StringAttr.get(name), "function_type": ir.TypeAttr.get(ty)}
        ir.Operation.create("llvm.func", attributes=attributes, regions=1, ip=ir.InsertionPoint.at_block_begin(block))
    return name


def place(op: ir.Operation) -> str:
    return describe_location(op.location)


def constant(value: int) -> ir.Value:
    return arith.constant(ir.IndexType.get(), value)


def _inside(op: ir.Operation) -> Iterator[ir.Operation]:
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield inner.operation
