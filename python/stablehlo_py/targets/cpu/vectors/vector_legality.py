"""What an innermost loop may contain to become vectors: each value is uniform, linear or one a step.

uniform: the same in every step. linear: an index that grows by one each step. Everything else is computed from the
step's own elements, which must stand side by side in memory. What does not fit is no `Innermost`.
"""

from __future__ import annotations

import math
from collections import Counter

from stablehlo_py.core.collect import made_by, maker
from stablehlo_py.mlir import ir
from stablehlo_py.ops.llvm_ops import is_ldexp
from stablehlo_py.records import field, record
from stablehlo_py.transforms.kernels.kernel_parallel import constant
from stablehlo_py.transforms.kernels.kernel_scratch import element_bytes

# Ops of arith and math that have the same meaning lane by lane, and instructions for it.
_SCALAR_ARITH = frozenset({"arith.constant", "arith.addui_extended", "arith.mului_extended", "arith.mulsi_extended"})
_LANE_MATH = frozenset(
    f"math.{name}"
    for name in ("absf", "absi", "ceil", "copysign", "ctpop", "floor", "fma", "roundeven", "sqrt", "trunc", "isnan")
)
# A complex number is in lanes as two vectors, of its parts; arith.select may choose one too.
PARTS = ("complex.re", "complex.im", "complex.create")
_UNIFORM = ("arith.", "math.", "affine.", "memref.load", "complex.constant", *PARTS)
DIVISIONS = frozenset(f"arith.{name}" for name in ("divsi", "divui", "remsi", "remui", "ceildivsi", "floordivsi"))
# Reductions whose order is free: exact ones always, sums and products of floats where they are marked.
EXACT = frozenset(
    f"arith.{name}"
    for name in (["addi", "muli", "andi", "ori", "xori", "maxsi", "maxui", "minsi", "minui", "maximumf", "minimumf"])
)
_REASSOCIABLE = ("arith.addf", "arith.mulf")
VIEWS = frozenset(
    f"memref.{name}"
    for name in ["reinterpret_cast", "collapse_shape", "expand_shape", "subview", "cast", "extract_strided_metadata"]
)
_SCALARS = (ir.IntegerType, ir.FloatType, ir.IndexType)


class _DoesNotFit(Exception):
    """The loop does something that vectors cannot."""


@record(eq=False)
class Reduction:
    """carried = op(carried, element), in either order of the operands."""

    op: ir.Operation
    carried: ir.Value
    element: ir.Value


@record(frozen=False)
class Innermost:
    """A loop without loops inside. uniform, linear: the values of the body that are so; lanes: its ops by the step."""

    op: ir.Operation
    uniform: list[ir.Operation] = field(default_factory=list)
    linear: set[ir.Value] = field(default_factory=set)
    varying: set[ir.Value] = field(default_factory=set)
    body: list[ir.Operation] = field(default_factory=list)  # all but the uniform ops and the yield, in order
    reductions: list[Reduction] = field(default_factory=list)
    sizes: Counter[int] = field(default_factory=Counter)  # bytes of the elements that its ops handle: how many do
    widest_in_memory: int = 0  # bytes
    work: int = 0  # ops by lane in one step
    has_complex: bool = False  # whether it reads or writes complex numbers
    # loads from other rows of what it writes: bytes of a row
    other_rows: dict[ir.Value, int] = field(default_factory=dict)

    @property
    def variable(self) -> ir.Value:
        return self.op.regions[0].blocks[0].arguments[0]

    def is_uniform(self, value: ir.Value) -> bool:
        return value not in self.varying and value not in self.linear


def innermost(op: ir.Operation) -> Innermost | None:
    """The loop as above; None when it does not fit. op: an scf.for without loops inside."""
    if constant(op.operands[2]) != 1:
        return None
    loop = Innermost(op)
    block = op.regions[0].blocks[0]
    loop.linear.add(block.arguments[0])
    loop.varying.update(list(block.arguments)[1:])
    operations = [o.operation for o in block.operations]
    try:
        _find_reductions(loop, operations[-1])
        for inner in operations[:-1]:
            _classify(loop, inner)
        _check_memory(loop)
    except _DoesNotFit:
        return None
    return loop if loop.sizes else None


def trip_count(op: ir.Operation) -> int | None:
    """Steps of an scf.for of step 1, where they are known."""
    low, high, step = (constant(v) for v in list(op.operands)[:3])
    return None if low is None or high is None or step != 1 else high - low


def _find_reductions(loop: Innermost, terminator: ir.Operation) -> None:
    carried = list(loop.op.regions[0].blocks[0].arguments)[1:]
    for argument, result in zip(carried, terminator.operands, strict=True):
        uses = [use.owner.operation for use in argument.uses]
        if len(uses) != 1 or maker(result) != uses[0]:
            raise _DoesNotFit
        op = uses[0]
        if len(list(result.uses)) != 1 or not _order_is_free(op):
            raise _DoesNotFit
        lhs, rhs = op.operands
        loop.reductions.append(Reduction(op, argument, rhs if lhs == argument else lhs))


def _order_is_free(op: ir.Operation) -> bool:
    if op.name in EXACT:
        return True
    return op.name in _REASSOCIABLE and "reassoc" in str(op.attributes["fastmath"])


def _classify(loop: Innermost, op: ir.Operation) -> None:
    name, operands = op.name, list(op.operands)
    if name == "arith.constant":
        loop.uniform.append(op)
        return
    if len(op.regions):
        raise _DoesNotFit
    if name == "memref.store":
        _contiguous(loop, operands[1], operands[2:])
        loop.body.append(op)
        return
    varying, linear = loop.varying, loop.linear
    if all(v not in varying and v not in linear for v in operands):
        if name in DIVISIONS or not name.startswith(_UNIFORM):
            raise _DoesNotFit
        loop.uniform.append(op)
        return
    if name == "memref.load":
        _contiguous(loop, operands[0], operands[1:])
    else:
        if len(op.results) != 1:
            raise _DoesNotFit
        ty = op.results[0].type
        if isinstance(ty, ir.IndexType) and _is_linear(loop, op, name, operands):
            linear.add(op.results[0])
            loop.body.append(op)
            return
        if not _has_lanes(loop, op, name, operands, ty):
            raise _DoesNotFit
    loop.work += 1
    varying.add(op.results[0])
    loop.body.append(op)


def _is_linear(loop: Innermost, op: ir.Operation, name: str, operands: list[ir.Value]) -> bool:
    """A linear index moved by a uniform one."""
    linear = [v for v in operands if v in loop.linear]
    if len(linear) != 1 or any(v in loop.varying for v in operands):
        return False
    if name == "arith.addi":
        return True
    if name == "arith.subi":
        return operands[0] in loop.linear
    if name != "affine.apply":
        return False
    affine_map = ir.AffineMapAttr(op.attributes["map"]).value
    expression = affine_map.results[0]
    place = operands.index(linear[0])
    own = (
        ir.AffineExpr.get_dim(place)
        if place < affine_map.n_dims
        else ir.AffineExpr.get_symbol(place - affine_map.n_dims)
    )
    if expression == own:
        return True
    if not isinstance(expression, ir.AffineAddExpr):
        return False
    sides = [ir.AffineAddExpr(expression).lhs, ir.AffineAddExpr(expression).rhs]
    others = [side for side in sides if side != own]
    plain = (ir.AffineDimExpr, ir.AffineSymbolExpr, ir.AffineConstantExpr)
    return len(others) == 1 and isinstance(others[0], plain)


def _has_lanes(loop: Innermost, op: ir.Operation, name: str, operands: list[ir.Value], ty: ir.Type) -> bool:
    """Whether an op can be done lane by lane; notes the size of what it makes, which is of type `ty`."""
    if name in DIVISIONS and made_by(operands[1], "arith.constant") is None:
        return False
    if (name in PARTS or name == "arith.select") and _note_complex(loop, op):
        return True
    if (not name.startswith("arith.") or name in _SCALAR_ARITH) and not is_ldexp(op) and name not in _LANE_MATH:
        return False
    # what a loop computes on its way here has been looked at
    new = [v for v in operands if v not in loop.varying]
    if not isinstance(ty, _SCALARS) or not all(isinstance(v.type, _SCALARS) for v in new):
        return False
    if not isinstance(ty, ir.IndexType) and not (isinstance(ty, ir.IntegerType) and ty.width == 1):
        loop.sizes[element_bytes(ty)] += 1
    return True


def _note_complex(loop: Innermost, op: ir.Operation) -> bool:
    """Whether an op takes complex numbers apart, puts them together or chooses one; notes the sizes of the parts."""
    ty = op.results[0].type
    if op.name == "arith.select" and not isinstance(ty, ir.ComplexType):
        return False
    loop.sizes[element_bytes(part_of(ty))] += 1 + isinstance(ty, ir.ComplexType)
    return True


def part_of(ty: ir.Type) -> ir.Type:
    """The type of a complex number's parts; any other type itself."""
    return ir.ComplexType(ty).element_type if isinstance(ty, ir.ComplexType) else ty


def _contiguous(loop: Innermost, buffer: ir.Value, indices: list[ir.Value]) -> None:
    """Raise unless a step reads or writes the element behind that of the step before."""
    ty = ir.MemRefType(buffer.type)
    part = part_of(ty.element_type)
    if not isinstance(part, (ir.IntegerType, ir.FloatType)) or not loop.is_uniform(buffer):
        raise _DoesNotFit
    if isinstance(part, ir.IntegerType) and ir.IntegerType(part).width % 8:
        raise _DoesNotFit
    strides, _ = ty.get_strides_and_offset()
    size, is_complex = element_bytes(part), part != ty.element_type
    loop.sizes[size] += 1 + is_complex
    loop.has_complex |= is_complex
    loop.widest_in_memory = max(loop.widest_in_memory, size)
    moving = [(index, stride) for index, stride in zip(indices, strides, strict=True) if not loop.is_uniform(index)]
    if len(moving) != 1 or moving[0][0] not in loop.linear or moving[0][1] != 1:
        raise _DoesNotFit


def is_plain(buffer: ir.Value) -> bool:
    """Row-major from its first element on."""
    ty = ir.MemRefType(buffer.type)
    strides, offset = ty.get_strides_and_offset()
    return offset == 0 and all(stride == math.prod(ty.shape[d + 1 :]) for d, stride in enumerate(strides))


def _check_memory(loop: Innermost) -> None:
    """No step sees what another wrote: what is written is read at the same place, or in another row at the same index."""
    stored: dict[ir.Value, tuple[ir.Value, list[ir.Value]]] = {}
    for op in loop.body:
        if op.name == "memref.store":
            base = base_of(op.operands[1])
            if base in stored:
                raise _DoesNotFit
            stored[base] = (op.operands[1], list(op.operands)[2:])
    for op in (*loop.body, *loop.uniform):
        if op.name == "memref.load":
            place = stored.get(base_of(op.operands[0]))
            if place is not None and not _is_in_step(loop, op, *place):
                raise _DoesNotFit


def _is_in_step(loop: Innermost, load: ir.Operation, buffer: ir.Value, indices: list[ir.Value]) -> bool:
    """Whether what a load reads of `buffer` was written by its own step, if by one of this loop, which write at `indices`.

    for j: y[i, j] = y[i - 1, j] + x[i, j]
    """
    source, *places = load.operands
    if source != buffer:
        return False
    if places == indices:
        return True
    value = load.results[0]
    if value not in loop.varying or not is_plain(buffer):
        return False
    # the elements of two rows are apart, and those of one are told from each other by the index that moves
    others = [a != b for a, b in zip(places, indices, strict=True)]
    if not all(loop.is_uniform(a) and loop.is_uniform(b) for a, b, o in zip(places, indices, others, strict=True) if o):
        return False
    ty = ir.MemRefType(buffer.type)
    loop.other_rows[value] = math.prod(ty.shape[len(others) - others[::-1].index(True) :]) * element_bytes(
        ty.element_type
    )
    return True


def base_of(buffer: ir.Value) -> ir.Value:
    """The buffer that a view is a view of."""
    while (view := made_by(buffer, *VIEWS)) is not None:
        buffer = view.operands[0]
    return buffer
