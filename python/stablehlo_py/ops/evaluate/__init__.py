"""The oracle: what each op means, in NumPy, independent of how it is lowered. Importing this registers every rule.

As in `ops`, families that few programs need are imported when a program has one of their ops.
"""

from stablehlo_py.core import registry
from stablehlo_py.ops.evaluate import chlo, complex, convert, elementwise, shape

__all__ = ["chlo", "complex", "convert", "elementwise", "shape"]

registry.evaluate.live_in(
    __name__,
    {
        "collective": "stablehlo.all_gather stablehlo.all_reduce stablehlo.all_to_all stablehlo.collective_broadcast "
        "stablehlo.collective_permute stablehlo.partition_id stablehlo.reduce_scatter stablehlo.replica_id",
        "contraction": "stablehlo.dot stablehlo.dot_general stablehlo.einsum stablehlo.unary_einsum",
        "control": "stablehlo.after_all stablehlo.case stablehlo.create_token stablehlo.get_tuple_element stablehlo.if "
        "stablehlo.optimization_barrier stablehlo.tuple stablehlo.while",
        "convolution": "stablehlo.convolution stablehlo.dynamic_conv",
        "custom_call": "stablehlo.custom_call",
        "fft": "stablehlo.fft",
        "indexing": "stablehlo.dynamic_gather stablehlo.dynamic_slice stablehlo.dynamic_update_slice stablehlo.gather "
        "stablehlo.scatter stablehlo.torch_index_select",
        "linalg": "stablehlo.batch_norm_grad stablehlo.batch_norm_inference stablehlo.batch_norm_training "
        "stablehlo.cholesky stablehlo.triangular_solve",
        "quantized": "stablehlo.uniform_dequantize stablehlo.uniform_quantize",
        "random": "stablehlo.rng stablehlo.rng_bit_generator",
        "reduction": "stablehlo.map stablehlo.reduce",
        "sort": "stablehlo.sort",
        "window": "stablehlo.reduce_window stablehlo.select_and_scatter",
    },
)
