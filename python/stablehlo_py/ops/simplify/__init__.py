"""Exact rewrites by family of ops, imported when a program has one of these. Each rule's docstring is its line of mathematics."""

from stablehlo_py.core import registry

registry.simplify.live_in(
    __name__,
    {
        "arithmetic": "stablehlo.abs stablehlo.add stablehlo.and stablehlo.ceil stablehlo.complex stablehlo.divide "
        "stablehlo.floor stablehlo.imag stablehlo.maximum stablehlo.minimum stablehlo.multiply stablehlo.negate "
        "stablehlo.not stablehlo.or stablehlo.power stablehlo.real stablehlo.round_nearest_afz "
        "stablehlo.round_nearest_even stablehlo.shift_left stablehlo.shift_right_arithmetic "
        "stablehlo.shift_right_logical stablehlo.sign stablehlo.subtract stablehlo.xor",
        "choice": "stablehlo.clamp stablehlo.compare stablehlo.select",
        "contraction": "stablehlo.dot_general",
        "control": "stablehlo.case stablehlo.if stablehlo.while",
        "conversion": "stablehlo.bitcast_convert stablehlo.convert",
        "indexing": "stablehlo.dynamic_slice stablehlo.dynamic_update_slice stablehlo.gather stablehlo.scatter "
        "stablehlo.sort",
        "layout": "stablehlo.broadcast_in_dim stablehlo.concatenate stablehlo.pad stablehlo.reshape stablehlo.reverse "
        "stablehlo.slice stablehlo.transpose",
        "reduction": "stablehlo.reduce",
        "windows": "stablehlo.convolution",
    },
)
