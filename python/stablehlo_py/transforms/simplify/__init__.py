"""Exact rewrites of StableHLO: folded, hoisted, put in a cheaper form."""

from stablehlo_py.core.passes import wait_for

wait_for(
    {
        "hlo-fft-convolutions": "stablehlo.convolution",
        "hlo-fold": "stablehlo.constant stablehlo.iota",
        "hlo-fold-transposes": "stablehlo.transpose",
        "hlo-hoist-invariants": "stablehlo.while",
        "hlo-hoist-products": "stablehlo.while",
        "hlo-pack-invariants": "stablehlo.while",
        "hlo-top-k": "stablehlo.sort",
        "hlo-unset-inits": "stablehlo.while",
    }
)
