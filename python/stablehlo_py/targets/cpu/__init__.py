"""The host CPU: lowering rules of its own, emitters of kernels, code generation. Importing this registers the rules."""

from stablehlo_py.core import registry

registry.lower.live_in(
    __name__,
    {
        "contractions": "stablehlo.dot_general",
        "convolutions": "stablehlo.convolution",
        "lower_fft": "stablehlo.fft",
        "lower_sort": "stablehlo.sort",
        "lower_top_k": "chlo.top_k",
    },
    target="cpu",
)
