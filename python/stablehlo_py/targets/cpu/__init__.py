"""The host CPU: lowering rules of its own, emitters of kernels, code generation. Importing this registers the rules."""

from stablehlo_py.core import registry

registry.lower.live_in(
    __name__,
    {
        "products.contractions": "stablehlo.dot_general",
        "windows.convolutions": "stablehlo.convolution",
        "fourier.lower_fft": "stablehlo.fft",
        "sorting.lower_sort": "stablehlo.sort",
        "sorting.lower_top_k": "chlo.top_k",
    },
    target="cpu",
)
