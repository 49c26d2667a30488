"""chlo is loaded into a compilation's context by what needs it: a program that names it, a pass that makes an op of it.

Each program in a process of its own, whose first context has no chlo yet.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

TYPED = "(%x: tensor<8xf32>) -> tensor<8xf32>"
ERF = f"func.func @main{TYPED} {{ %y = chlo.erf %x : tensor<8xf32> -> tensor<8xf32> return %y : tensor<8xf32> }}"
CALL = f"""func.func @main{TYPED} {{
  %y = stablehlo.custom_call @mhlo.erf(%x) {{mhlo.attributes = {{}}, mhlo.version = 1 : i64}} : {TYPED.replace("%x: ", "")}
  return %y : tensor<8xf32> }}"""
SORT = """func.func @main(%x: tensor<8xf32>) -> tensor<2xf32> {
  %s = "stablehlo.sort"(%x) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.compare GT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }) : (tensor<8xf32>) -> tensor<8xf32>
  %y = stablehlo.slice %s [0:2] : (tensor<8xf32>) -> tensor<2xf32>
  return %y : tensor<2xf32> }"""
PLAIN = f"func.func @main{TYPED} {{ %y = stablehlo.add %x, %x : tensor<8xf32> return %y : tensor<8xf32> }}"

CODE = """
import sys
import numpy as np
import stablehlo_py
source = sys.argv[1]
if len(sys.argv) > 2:
    from stablehlo_py.building import bytecode
    from stablehlo_py.mlir import ir, new_context
    source = bytecode(ir.Module.parse(source, new_context()))
run = stablehlo_py.compile(source, cache=False)
from stablehlo_py import mlir
print(np.asarray(run(np.arange(8, dtype=np.float32))).reshape(-1)[-2:].tolist(), mlir._spare[0][0].is_dialect_loaded("chlo"))
"""


@pytest.mark.parametrize("form", [(), ("bytecode",)])
@pytest.mark.parametrize(
    ("program", "said"),
    [(ERF, "[1.0, 1.0] True"), (CALL, "[1.0, 1.0] True"), (SORT, "[7.0, 6.0] True"), (PLAIN, "[12.0, 14.0] False")],
    ids=["chlo", "mhlo", "top_k", "none"],
)
def test_chlo_is_there_where_it_is_needed(program, said, form):
    done = subprocess.run([sys.executable, "-c", CODE, program, *form], capture_output=True, text=True)
    assert done.stdout == said + "\n", done.stderr
