"""What ops cost: the `cost` rules, by family. Work is counted as XLA's cost analysis counts it."""

from __future__ import annotations

import math

from stablehlo_py.core import registry
from stablehlo_py.dialects.stablehlo import Convolution, DotGeneral, Op, ReduceWindow
from stablehlo_py.records import record

TRANSCENDENTAL = frozenset(
    "atan2 cbrt cosine exponential exponential_minus_one log log_plus_one logistic power rsqrt sine sqrt tan tanh".split()  # noqa: SIM905
)


@record
class Cost:
    """flops: additions, multiplications and their like. transcendentals: exp and its like, counted apart.

    bytes: operands and results, each once; what one op reads of memory when nothing is fused.
    """

    flops: int = 0
    transcendentals: int = 0
    bytes: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.flops + other.flops, self.transcendentals + other.transcendentals, self.bytes + other.bytes)

    def times(self, count: int) -> Cost:
        return Cost(self.flops * count, self.transcendentals * count, self.bytes * count)


def traffic(op: Op) -> int:
    """Bytes of all operands and results."""
    return sum(ty.bytes for ty in (*op.operand_types, *op.types))


def cost_of(op: Op) -> Cost:
    """The cost of one op: by its own rule, else one flop an element of the result for elementwise ops, else traffic."""
    rule = registry.cost.find(op.name)
    if rule is not None:
        return rule(op)
    if registry.scalar.find(op.name) is None:
        return Cost(bytes=traffic(op))
    size = op.type.size
    if op.name.rpartition(".")[2] in TRANSCENDENTAL or op.name.startswith("chlo."):
        return Cost(transcendentals=size, bytes=traffic(op))
    return Cost(flops=size, bytes=traffic(op))


@registry.cost("stablehlo.dot_general")
def cost_dot_general(op: DotGeneral) -> Cost:
    """2 * result * contracted: one multiplication and one addition each."""
    lhs = op.operand_types[0]
    contracted = math.prod(lhs.shape[d] for d in op.dims.lhs_contracting)
    return Cost(flops=2 * op.type.size * contracted, bytes=traffic(op))


@registry.cost("stablehlo.convolution")
def cost_convolution(op: Convolution) -> Cost:
    """2 * result * window * input features of a group; taps in the padding count too."""
    kernel, dims = op.operand_types[1], op.dims
    window = math.prod(kernel.shape[d] for d in dims.kernel_spatial) * kernel.shape[dims.kernel_input_feature]
    return Cost(flops=2 * op.type.size * window, bytes=traffic(op))


@registry.cost("stablehlo.reduce")
def cost_reduce(op: Op) -> Cost:
    """The body once for each element that is folded in."""
    folded = max(op.operand_types[0].size - op.type.size, 0)
    return Cost(flops=folded * _body_ops(op), bytes=traffic(op))


@registry.cost("stablehlo.reduce_window", "stablehlo.select_and_scatter")
def cost_reduce_window(op: ReduceWindow) -> Cost:
    """The body once for each element of each window."""
    places = op.type if op.name == "stablehlo.reduce_window" else op.operand_types[1]
    return Cost(flops=places.size * math.prod(op.window_dimensions) * _body_ops(op), bytes=traffic(op))


@registry.cost("stablehlo.sort")
def cost_sort(op: Op) -> Cost:
    """n log2 n comparisons in each row."""
    ty = op.operand_types[0]
    n = ty.shape[op.integer("dimension", ty.rank - 1)] if ty.rank else 1
    return Cost(flops=int(ty.size * math.log2(max(n, 2))) * _body_ops(op), bytes=traffic(op))


@registry.cost("stablehlo.fft")
def cost_fft(op: Op) -> Cost:
    """5 n log2 n for each transform of n points, the usual count."""
    n = math.prod(op.ints("fft_length"))
    size = max(op.type.size, op.operand_types[0].size)
    return Cost(flops=int(5 * size * math.log2(max(n, 2))), bytes=traffic(op))


@registry.cost("stablehlo.gather", "stablehlo.dynamic_slice", "stablehlo.slice")
def cost_of_reading_a_part(op: Op) -> Cost:
    """What is read is as large as the result."""
    return Cost(bytes=2 * op.type.bytes + sum(ty.bytes for ty in op.operand_types[1:]))


@registry.cost("stablehlo.dynamic_update_slice")
def cost_dynamic_update_slice(op: Op) -> Cost:
    """In place: the update is read and written."""
    return Cost(bytes=2 * op.operand_types[1].bytes)


@registry.cost("stablehlo.constant", "stablehlo.reshape", "stablehlo.optimization_barrier", "stablehlo.return")
def cost_of_nothing(op: Op) -> Cost:
    return Cost()


def _body_ops(op: Op) -> int:
    return max(sum(1 for o in op.block().operations if o.operation.name != "stablehlo.constant") - 1, 1)
