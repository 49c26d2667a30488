"""The host CPU: lowering rules of its own, emitters of kernels, code generation. Importing this registers the rules."""

from stablehlo_py.core import registry
from stablehlo_py.core.passes import wait_for

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

_FUNCTIONS = "acos acosh asin asinh atan atan2 atanh cbrt cos cosh erf erfc exp exp2 expm1 log log1p powf rsqrt sin sinh tan tanh"

wait_for(
    {
        "cpu-emit-contractions": "kernel.contraction",
        "cpu-emit-convolutions": "kernel.convolution",
        "cpu-emit-fft": "kernel.fft",
        "cpu-register-tiles": "generic.sum",
        "cpu-transposes": "generic.move",
        "expand-math": " ".join(["func.call arith.select", *(f"math.{name}" for name in _FUNCTIONS.split())]),
    }
)
