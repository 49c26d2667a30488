"""What is true of each op whatever the target, by family; importing this registers all of it.

Families that nearly every program needs are imported, the others when a program has one of their ops: a family takes a
millisecond to import.
"""

from stablehlo_py.core import registry
from stablehlo_py.ops import chlo_functions as chlo_functions
from stablehlo_py.ops import compare_select as compare_select
from stablehlo_py.ops import constant_iota as constant_iota
from stablehlo_py.ops import convert as convert
from stablehlo_py.ops import cost as cost
from stablehlo_py.ops import elementwise as elementwise
from stablehlo_py.ops import shape as shape

registry.lower.live_in(
    __name__,
    {
        "batch_norm": "stablehlo.batch_norm_grad stablehlo.batch_norm_inference stablehlo.batch_norm_training",
        "collective": "stablehlo.all_gather stablehlo.all_reduce stablehlo.all_to_all stablehlo.collective_broadcast "
        "stablehlo.collective_permute stablehlo.partition_id stablehlo.reduce_scatter stablehlo.replica_id",
        "contraction": "stablehlo.dot stablehlo.dot_general",
        "convolution": "stablehlo.convolution",
        "fft": "stablehlo.fft",
        "indexing": "stablehlo.dynamic_slice stablehlo.dynamic_update_slice stablehlo.gather",
        "linalg_ops": "stablehlo.cholesky stablehlo.triangular_solve",
        "random": "stablehlo.rng stablehlo.rng_bit_generator",
        "reduction": "stablehlo.reduce",
        "scatter": "stablehlo.scatter",
        "sort": "stablehlo.sort chlo.top_k",
        "window": "stablehlo.reduce_window stablehlo.select_and_scatter",
    },
)
