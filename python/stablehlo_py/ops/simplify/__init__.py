"""Exact rewrites by family of ops; importing this registers them. Each rule's docstring is its line of mathematics."""

from stablehlo_py.ops.simplify import arithmetic as arithmetic
from stablehlo_py.ops.simplify import choice as choice
from stablehlo_py.ops.simplify import contraction as contraction
from stablehlo_py.ops.simplify import control as control
from stablehlo_py.ops.simplify import conversion as conversion
from stablehlo_py.ops.simplify import indexing as indexing
from stablehlo_py.ops.simplify import layout as layout
from stablehlo_py.ops.simplify import reduction as reduction
from stablehlo_py.ops.simplify import windows as windows
