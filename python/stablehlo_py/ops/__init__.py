"""What is true of each op whatever the target, by family; importing this registers all of it."""

from stablehlo_py.ops import elementwise as elementwise
from stablehlo_py.ops import constant_iota as constant_iota
from stablehlo_py.ops import shape as shape
