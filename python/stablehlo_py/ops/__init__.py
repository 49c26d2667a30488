"""What is true of each op whatever the target, by family; importing this registers all of it.

Arithmetic is imported, which nearly every program has, the other families when a program has one of their ops: a family
takes up to a millisecond to import.
"""

from stablehlo_py.core import registry
from stablehlo_py.ops import elementwise as elementwise

_FUNCTIONS = {
    "chlo_functions": "chlo.acos chlo.acosh chlo.asin chlo.asinh chlo.atan chlo.atanh chlo.bessel_i1e chlo.conj chlo.cosh "
    "chlo.digamma chlo.erf chlo.erf_inv chlo.erfc chlo.is_inf chlo.is_neg_inf chlo.is_pos_inf chlo.lgamma chlo.mulhi "
    "chlo.next_after chlo.polygamma chlo.sinh chlo.square chlo.tan chlo.zeta",
    "compare_select": "stablehlo.clamp stablehlo.compare stablehlo.select",
    "convert": "stablehlo.bitcast_convert stablehlo.convert stablehlo.reduce_precision",
}
# Ops of chlo that have bodies of their own; all others are expanded into StableHLO before lowering.
CHLO_RULES = frozenset(_FUNCTIONS["chlo_functions"].split())

registry.scalar.live_in(__name__, _FUNCTIONS)
registry.lower.live_in(
    __name__,
    {
        **_FUNCTIONS,
        "batch_norm": "stablehlo.batch_norm_grad stablehlo.batch_norm_inference stablehlo.batch_norm_training",
        "collective": "stablehlo.all_gather stablehlo.all_reduce stablehlo.all_to_all stablehlo.collective_broadcast "
        "stablehlo.collective_permute stablehlo.partition_id stablehlo.reduce_scatter stablehlo.replica_id",
        "constant_iota": "stablehlo.constant stablehlo.iota",
        "contraction": "stablehlo.dot stablehlo.dot_general",
        "convolution": "stablehlo.convolution",
        "fft": "stablehlo.fft",
        "indexing": "stablehlo.dynamic_slice stablehlo.dynamic_update_slice stablehlo.gather",
        "linalg_ops": "stablehlo.cholesky stablehlo.triangular_solve",
        "random": "stablehlo.rng stablehlo.rng_bit_generator",
        "reduction": "stablehlo.reduce",
        "scatter": "stablehlo.scatter",
        "shape": "stablehlo.broadcast stablehlo.broadcast_in_dim stablehlo.concatenate stablehlo.get_dimension_size "
        "stablehlo.pad stablehlo.reshape stablehlo.reverse stablehlo.slice stablehlo.transpose",
        "sort": "stablehlo.sort chlo.top_k",
        "window": "stablehlo.reduce_window stablehlo.select_and_scatter",
    },
)
registry.cost.live_in(
    __name__,
    {
        "cost": "stablehlo.constant stablehlo.convolution stablehlo.dot_general stablehlo.dynamic_slice "
        "stablehlo.dynamic_update_slice stablehlo.fft stablehlo.gather stablehlo.optimization_barrier stablehlo.reduce "
        "stablehlo.reduce_window stablehlo.reshape stablehlo.return stablehlo.select_and_scatter stablehlo.slice "
        "stablehlo.sort",
    },
)
