"""PyTorch modules as StableHLO; torch is imported only when asked for."""

from __future__ import annotations

import importlib
from typing import Any

from stablehlo_py.errors import BadInput
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
    return fx.export_and_import(
        module.eval(), *arguments, output_type="stablehlo", decomposition_table=_decompositions()
    )


def _decompositions() -> dict[Any, Any]:  # Any: torch's overloads and functions on its tensors
    """What torch_mlir takes apart by default, and what it would get wrong."""
    table = importlib.import_module(f"{PACKAGE}.extras.fx_decomp_util").get_decomposition_table()
    return {**table, **decompositions(importlib.import_module("torch"))}
