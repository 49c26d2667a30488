"""What must hold in a whole mxu kernel: the rules that no single op can see.

check_kernel walks the body in the order of the program, loops twice so that what one trip leaves is seen by the next, and
gives the first op that breaks a rule, with the rule in words.
"""

from __future__ import annotations

from stablehlo_py.core.types import TensorType, tensor_type
from stablehlo_py.dialects import mxu
from stablehlo_py.dialects.mxu_verify_moves import Broken, MoveRules, State, linear_forms
from stablehlo_py.machine.tpu import CHIPS, Chip
from stablehlo_py.mlir import ir

Problem = tuple[ir.Operation, str]


def check_kernel(kernel: ir.Operation) -> Problem | None:
    """The first problem of a kernel: (op, what is wrong with it), or None."""
    name = ir.StringAttr(kernel.attributes["chip"]).value
    if name not in CHIPS:
        return kernel, f"is for chip {name!r}; known are {', '.join(CHIPS)}"
    try:
        _check_arguments(kernel)
        _check_memory(kernel, CHIPS[name])
        _Walk(kernel, CHIPS[name]).body(kernel.regions[0].blocks[0])
    except Broken as broken:
        return broken.operation, broken.message
    return None


def _check_arguments(kernel: ir.Operation) -> None:
    """One ref for each input and output, of its type; a logical shape for each, not above the physical one."""
    outside = [tensor_type(v.type) for v in (*kernel.operands, *kernel.results)]
    arguments = list(kernel.regions[0].blocks[0].arguments)
    logical = kernel.attributes["logical"]
    if not len(outside) == len(arguments) == len(logical):
        raise Broken(kernel, f"has {len(outside)} inputs and outputs, {len(arguments)} refs, {len(logical)} shapes")
    for ty, argument, shape in zip(outside, arguments, logical, strict=True):
        sizes = tuple(mxu.integer(d) for d in shape)
        if _tensor(argument) != ty:
            raise Broken(kernel, f"takes {ty} and has a ref of {_tensor(argument)} for it")
        if len(sizes) != ty.rank or any(a > b for a, b in zip(sizes, ty.shape, strict=True)):
            raise Broken(kernel, f"has {sizes} defined elements in a ref of {ty}")


def _check_memory(kernel: ir.Operation, chip: Chip) -> None:
    """Buffers lie inside their memory and do not overlap; arguments that live in VMEM count."""
    capacity = {
        "vmem": chip.vmem_bytes,
        "cmem": chip.cmem_bytes * chip.cores,  # all cores of a chip have it together
        "smem": chip.smem_bytes,
        "hbm": chip.hbm_bytes * chip.cores,
    }
    resident = dict.fromkeys(capacity, 0)
    for argument in kernel.regions[0].blocks[0].arguments:
        size, space = mxu.stored_bytes(_tensor(argument)), mxu.ref_space(argument.type)
        resident[space] += chip.held_bytes(size, is_shared(argument)) if space == "vmem" else size
    spans: dict[str, list[tuple[int, int, ir.Operation]]] = {space: [] for space in capacity}
    for allocation in _named(kernel, "mxu.alloc"):
        ty, space = _tensor(allocation.results[0]), mxu.ref_space(allocation.results[0].type)
        offset, copies = (mxu.integer(allocation.attributes[name]) for name in ("offset", "buffers"))
        if copies < 1 or offset < 0:
            raise Broken(allocation, f"has {copies} copies at offset {offset}")
        spans[space].append((offset, offset + copies * mxu.stored_bytes(ty), allocation))
    for space, intervals in spans.items():
        end = 0
        for start, stop, allocation in sorted(intervals, key=lambda interval: interval[0]):
            if start < end:
                raise Broken(allocation, f"overlaps the buffer before it: bytes {start} to {end} of {space}")
            end = stop
            if end + resident[space] > capacity[space]:
                needed = end + resident[space]
                raise Broken(allocation, f"ends at {needed} bytes of {space}; {chip.name} has {capacity[space]}")


class _Walk(MoveRules):
    def __init__(self, kernel: ir.Operation, chip: Chip) -> None:
        self.kernel, self.chip = kernel, chip
        self.states: dict[ir.Value, State] = {}
        self.tensors: dict[ir.Value, TensorType] = {}
        self.started: set[ir.Value] = set()
        self.last_index: dict[ir.Value, int] = {}
        arguments = kernel.regions[0].blocks[0].arguments
        shapes = kernel.attributes["logical"]
        self.logical = {
            argument: tuple(mxu.integer(d) for d in shape) for argument, shape in zip(arguments, shapes, strict=True)
        }

    def tensor(self, value: ir.Value) -> TensorType:
        if value not in self.tensors:
            self.tensors[value] = _tensor(value)
        return self.tensors[value]

    def state(self, value: ir.Value) -> State:
        return self.states.setdefault(value, State())

    def body(self, block: ir.Block) -> None:
        for view in block.operations:
            op = view.operation
            method = getattr(self, op.name.removeprefix("mxu."), None)
            if method is None or not op.name.startswith("mxu."):
                raise Broken(op, "has no place in an mxu.kernel")
            method(op)

    def loop(self, op: ir.Operation) -> None:
        block = op.regions[0].blocks[0]
        if len(block.arguments) != len(op.attributes["bounds"]):
            raise Broken(op, f"has {len(op.attributes['bounds'])} bounds and {len(block.arguments)} indices")
        for index, bound in zip(block.arguments, op.attributes["bounds"], strict=True):
            self.last_index[index] = mxu.integer(bound) - 1
        self.body(block)
        self.body(block)  # again: what one trip leaves behind, the next one meets

    def core_split(self, op: ir.Operation) -> None:
        cores = mxu.integer(op.attributes["cores"])
        if cores != self.chip.cores:
            raise Broken(op, f"splits over {cores} cores; {self.chip.name} has {self.chip.cores}")
        self.last_index[op.regions[0].blocks[0].arguments[0]] = cores - 1
        self.body(op.regions[0].blocks[0])

    def barrier(self, op: ir.Operation) -> None:
        pass

    def alloc(self, op: ir.Operation) -> None:
        ty = self.tensor(op.results[0])
        if ty.rank < 2:
            raise Broken(op, f"is a block of {ty}; a block has two dimensions")
        rows, lanes = ty.shape[-2:]
        if lanes % self.chip.lanes or (rows % self.chip.sublanes and rows != 1):
            raise Broken(op, f"of {ty} is not whole tiles of {self.chip.sublanes}x{self.chip.lanes}")

    def make_semaphore(self, op: ir.Operation) -> None:
        pass

    def view(self, op: ir.Operation) -> None:
        source, *indices = op.operands
        if mxu.ref_space(source.type) != "vmem":
            raise Broken(op, f"is a view of a ref in {mxu.ref_space(source.type)}; only VMEM can be read in place")
        self.check_map(op, len(indices), self.tensor(source).rank)
        self.check_order(op, indices)
        self.bring(op.results[0], source)

    def dma_start(self, op: ir.Operation) -> None:
        source, target, semaphore, *indices = op.operands
        if (source in self.logical) == (target in self.logical):
            raise Broken(op, "must move a block between an argument of the kernel and a buffer")
        inward = source in self.logical
        large, small = (source, target) if inward else (target, source)
        if self.tensor(large).element != self.tensor(small).element:
            raise Broken(op, f"moves {self.tensor(source).element} to {self.tensor(target).element}")
        self.check_map(op, len(indices), self.tensor(large).rank)
        self.check_order(op, indices)
        self.started.add(semaphore)
        if inward:
            self.write(op, small)
            self.bring(small, large)
            self.state(small).arriving = semaphore
        else:
            self.read(op, small)
            self.state(small).leaving = semaphore

    def bring(self, small: ir.Value, large: ir.Value) -> None:
        """A block of `large` is in `small`: padding is undefined where blocks do not end with the defined elements."""
        state = self.state(small)
        state.written = True
        sizes, logical = self.tensor(small).shape, self.logical[large][-self.tensor(small).rank :]
        state.undefined = {d: limit for d, (size, limit) in enumerate(zip(sizes, logical, strict=True)) if limit % size}

    def check_map(self, op: ir.Operation, indices: int, rank: int) -> None:
        map = ir.AffineMapAttr(op.attributes["map"]).value
        if map.n_dims != indices or len(map.results) != rank:
            raise Broken(op, f"has a map of {map.n_dims} indices to {len(map.results)}, not of {indices} to {rank}")

    def check_order(self, op: ir.Operation, indices: list[ir.Value]) -> None:
        """Blocks come in rising order along each index, so the order of sums is the order of the contracted dimension."""
        text = str(ir.AffineMapAttr(op.attributes["map"]).value)
        if "mod" in text or "-" in text.replace("->", ""):
            raise Broken(op, f"takes blocks by {text}; block numbers must not fall, or sums change their order")

    def dma_wait(self, op: ir.Operation) -> None:
        semaphore = op.operands[0]
        if semaphore not in self.started:
            raise Broken(op, "waits for a semaphore on which nothing was started")
        for state in self.states.values():
            if state.arriving is not None and state.arriving == semaphore:
                state.arriving = None
            if state.leaving is not None and state.leaving == semaphore:
                state.leaving = None

    def read(self, op: ir.Operation, value: ir.Value) -> None:
        state = self.state(value)
        if state.arriving is not None:
            raise Broken(op, "reads a buffer before the wait for the transfer into it")
        if not state.written:
            raise Broken(op, "reads a buffer that nothing was written to")

    def write(self, op: ir.Operation, value: ir.Value) -> None:
        state = self.state(value)
        if value in self.logical:
            raise Broken(op, "writes to an argument of the kernel without a transfer")
        if state.arriving is not None:
            raise Broken(op, "writes to a buffer before the wait for the transfer into it")
        if state.leaving is not None:
            raise Broken(op, "writes to a buffer before the wait for the transfer out of it")
        state.written = True
        state.undefined = {}

    def fill(self, op: ir.Operation) -> None:
        self.write(op, op.operands[0])
        self.state(op.operands[0]).filled = True

    def mask(self, op: ir.Operation) -> None:
        target = op.operands[0]
        self.read(op, target)
        dim, limit = (mxu.integer(op.attributes[name]) for name in ("dim", "limit"))
        state = self.state(target)
        if dim in state.undefined and limit <= state.undefined[dim]:
            state.undefined = {d: size for d, size in state.undefined.items() if d != dim}

    def push(self, op: ir.Operation) -> None:
        source = op.operands[0]
        transposed = bool(mxu.integer(op.attributes["transposed"]))
        self.read(op, source)
        self.check_contracted(op, source, 1 if transposed else 0)
        tile = ir.RankedTensorType(ir.TypeAttr(mxu.WeightsType(op.results[0].type).tensor).value).shape
        if list(tile) != [self.chip.weight_tile] * 2:
            raise Broken(op, f"pushes a tile of {list(tile)}; {self.chip.name} takes {self.chip.weight_tile} square")
        if any(size % t for size, t in zip(self.tensor(source).shape, tile, strict=True)):
            raise Broken(op, f"cuts a block of {self.tensor(source)} into tiles of {list(tile)}")

    def matmul(self, op: ir.Operation) -> None:
        lhs, _weights, acc = list(op.operands)[:3]
        self.read(op, lhs)
        self.check_contracted(op, lhs, 1)
        if not self.state(acc).filled:
            raise Broken(op, "adds to an accumulator that was not filled")
        if self.tensor(acc).element.name not in ("f32", "i32"):
            raise Broken(op, f"accumulates in {self.tensor(acc).element}; accumulators are f32 or i32")
        if self.tensor(lhs).shape[0] != self.tensor(acc).shape[0]:
            raise Broken(
                op, f"streams {self.tensor(lhs).shape[0]} rows into an accumulator of {self.tensor(acc).shape[0]}"
            )

    def check_contracted(self, op: ir.Operation, value: ir.Value, dim: int) -> None:
        limit = self.state(value).undefined.get(dim)
        if limit is not None:
            raise Broken(op, f"contracts over padding that may be undefined: dimension {dim} ends at {limit}; mask it")

    def pop(self, op: ir.Operation) -> None:
        acc, target = op.operands
        if not self.state(acc).filled:
            raise Broken(op, "pops an accumulator that was not filled")
        if self.tensor(acc).shape != self.tensor(target).shape:
            raise Broken(op, f"pops {self.tensor(acc)} into {self.tensor(target)}")
        self.write(op, target)
        self.state(acc).filled = False

    def transpose(self, op: ir.Operation) -> None:
        source, target = op.operands
        self.read(op, source)
        undefined = self.state(source).undefined
        self.write(op, target)
        self.state(target).undefined = {1 - d: size for d, size in undefined.items()}

    def relayout(self, op: ir.Operation) -> None:
        source, target = op.operands
        self.elementwise(op, target, [source])

    def vector(self, op: ir.Operation) -> None:
        target, *sources = op.operands
        rows, lanes = self.tensor(target).shape
        for source in sources:
            shape = self.tensor(source).shape
            if shape[0] not in (1, rows) or shape[1] not in (self.chip.lanes, lanes):
                raise Broken(op, f"takes a block of {self.tensor(source)} for one of {self.tensor(target)}")
        numbers = [mxu.integer(a) for a in op.attributes["arguments"] if isinstance(a, ir.IntegerAttr)]
        if any(not 0 <= number < len(sources) for number in numbers):
            raise Broken(op, f"has {len(sources)} sources, and arguments {numbers}")
        self.elementwise(op, target, sources)

    def elementwise(self, op: ir.Operation, target: ir.Value, sources: list[ir.Value]) -> None:
        undefined: dict[int, int] = {}
        for source in sources:
            self.read(op, source)
            shape = self.tensor(source).shape
            undefined |= {
                d: size for d, size in self.state(source).undefined.items() if shape[d] == self.tensor(target).shape[d]
            }
        self.write(op, target)
        self.state(target).undefined = undefined

    def reduce(self, op: ir.Operation) -> None:
        source, target = op.operands
        self.read(op, source)
        limit, undefined = mxu.integer(op.attributes["limit"]), self.state(source).undefined
        size = self.tensor(source).shape[1]
        # Where a row has several blocks, the last one is the least defined.
        defined = undefined[1] % size if 1 in undefined else size
        if limit > defined:
            raise Broken(op, f"reduces {limit} elements of a row, of which {defined} are defined")
        if self.tensor(target).shape != (self.tensor(source).shape[0], self.chip.lanes):
            raise Broken(op, f"reduces {self.tensor(source)} to {self.tensor(target)}, not to one register's lanes")
        rows = {d: size for d, size in undefined.items() if d == 0}
        self.write(op, target)
        self.state(target).undefined = rows


def is_shared(argument: ir.Value) -> bool:
    """Whether each core takes its own share of an argument of a kernel: all its blocks depend on the core's number."""
    for use in argument.uses:
        op = use.owner.operation
        if "map" not in op.attributes:
            return False
        operands = list(op.operands)
        forms = linear_forms(ir.AffineMapAttr(op.attributes["map"]).value)
        indices = operands[len(operands) - ir.AffineMapAttr(op.attributes["map"]).value.n_dims :]
        cores = [i for i, index in enumerate(indices) if _is_of_core(index)]
        if forms is None or not any(form.factors[i] for form in forms for i in cores):
            return False
    return True


def _is_of_core(index: ir.Value) -> bool:
    """Whether an index is the number of the core; others are those of loops, or read from memory."""
    block = index.owner
    return isinstance(block, ir.Block) and block.owner.operation.name == "mxu.core_split"


def _tensor(value: ir.Value) -> TensorType:
    return tensor_type(mxu.ref_tensor(value.type))


def _named(kernel: ir.Operation, name: str) -> list[ir.Operation]:
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == name:
            found.append(op.operation)
        return ir.WalkResult.ADVANCE

    kernel.walk(visit)
    return found
