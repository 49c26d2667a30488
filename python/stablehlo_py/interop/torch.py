"""PyTorch modules as StableHLO; torch is imported only when asked for."""

from __future__ import annotations

import importlib
import re
from typing import Any

from stablehlo_py.core.diagnostics import Diagnostic, collect, is_error
from stablehlo_py.errors import BadInput, UnsupportedOp
from stablehlo_py.interop.torch_decompositions import decompositions
from stablehlo_py.mlir import PACKAGE, ir


def export(
    module: Any, *arguments: Any
) -> ir.Module:  # Any: torch.nn.Module and its tensors; torch is not imported here
    """Export a torch.nn.Module, traced on example arguments, as a StableHLO module that `read_module` takes."""
    try:
        fx = importlib.import_module(f"{PACKAGE}.fx")
    except ImportError as error:
        raise BadInput(
            "exporting from PyTorch needs torch", hint="pip install torch==2.13.0, or pass StableHLO exported elsewhere"
        ) from error
    context = ir.Context()
    importlib.import_module(f"{PACKAGE}.dialects.torch").register_dialect(context)
    importer = importlib.import_module(f"{PACKAGE}.extras.fx_importer").FxImporter(context=context)
    failure = importlib.import_module(f"{PACKAGE}.compiler_utils").TorchMlirCompilerError
    with collect(context, is_error, errors=False) as said:
        try:
            return fx.export_and_import(
                module.eval(),
                *arguments,
                output_type="stablehlo",
                decomposition_table=_decompositions(),
                fx_importer=importer,
            )
        except failure as error:
            if not said:
                raise
            raise _refused(said[0]) from error


def _refused(said: Diagnostic) -> UnsupportedOp:
    """What torch_mlir's lowering could not do; PyTorch's own name of the op is in the op that it printed, or is the op's."""
    found = re.search(r'"torch\.operator".*?name = "torch\.([\w.]+)"', said.message) or re.search(
        r"operation 'torch\.([\w.]+)'", said.message
    )
    return UnsupportedOp(
        found[1] if found else "the module",
        "torch_mlir has no lowering of it to StableHLO" if found else said.message,
        where=said.where,
        hint="write it in other functions of PyTorch, or export the module with torch_xla and pass its StableHLO",
    )


def _decompositions() -> dict[Any, Any]:  # Any: torch's overloads and functions on its tensors
    """What torch_mlir takes apart by default, and what it would get wrong."""
    table = importlib.import_module(f"{PACKAGE}.extras.fx_decomp_util").get_decomposition_table()
    return {**table, **decompositions(importlib.import_module("torch"))}
