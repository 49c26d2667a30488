"""StableHLO in, Python-defined passes on the upstream MLIR bindings, native code out."""

from stablehlo_py.compiler import Options as Options
from stablehlo_py.compiler import compile as compile
from stablehlo_py.errors import BadInput as BadInput
from stablehlo_py.errors import CompileError as CompileError
from stablehlo_py.errors import UnsupportedOp as UnsupportedOp

__all__ = ["BadInput", "CompileError", "Options", "UnsupportedOp", "compile"]
