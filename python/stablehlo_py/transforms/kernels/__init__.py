"""From @main to kernels and their Program: which ops go together, each kernel to linalg and buffers, the commands for them."""

from stablehlo_py.core.passes import wait_for

wait_for({"hlo-split-reductions": "stablehlo.reduce"})
