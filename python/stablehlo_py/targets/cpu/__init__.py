"""The host CPU: lowering rules of its own, emitters of kernels, code generation."""

from stablehlo_py.targets.cpu import contractions as contractions
from stablehlo_py.targets.cpu import convolutions as convolutions
from stablehlo_py.targets.cpu import lower_fft as lower_fft
from stablehlo_py.targets.cpu import lower_sort as lower_sort
from stablehlo_py.targets.cpu import lower_top_k as lower_top_k
