"""What is true of each op whatever the target, by family; importing this registers all of it."""

from stablehlo_py.ops import batch_norm as batch_norm
from stablehlo_py.ops import chlo_functions as chlo_functions
from stablehlo_py.ops import collective as collective
from stablehlo_py.ops import compare_select as compare_select
from stablehlo_py.ops import constant_iota as constant_iota
from stablehlo_py.ops import contraction as contraction
from stablehlo_py.ops import convert as convert
from stablehlo_py.ops import convolution as convolution
from stablehlo_py.ops import cost as cost
from stablehlo_py.ops import elementwise as elementwise
from stablehlo_py.ops import fft as fft
from stablehlo_py.ops import indexing as indexing
from stablehlo_py.ops import linalg_ops as linalg_ops
from stablehlo_py.ops import random as random
from stablehlo_py.ops import reduction as reduction
from stablehlo_py.ops import scatter as scatter
from stablehlo_py.ops import shape as shape
from stablehlo_py.ops import sort as sort
from stablehlo_py.ops import window as window
