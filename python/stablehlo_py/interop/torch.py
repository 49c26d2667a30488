"""PyTorch modules as StableHLO; torch is imported only when asked for."""

from __future__ import annotations

import importlib
from typing import Any

from stablehlo_py.errors import BadInput
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
    """What torch_mlir takes apart by default, and remainder, which it gives the sign of the dividend."""
    torch = importlib.import_module("torch")
    table = importlib.import_module(f"{PACKAGE}.extras.fx_decomp_util").get_decomposition_table()

    def by_tensor(dividend: Any, divisor: Any) -> Any:
        """fmod, moved by one divisor where the signs of the two differ."""
        rest = torch.fmod(dividend, divisor)
        differs = torch.logical_and(rest != 0, torch.logical_xor(rest < 0, divisor < 0))
        return torch.where(differs, rest + divisor, rest)

    def whole(scalar: Any, other: Any) -> Any:
        return torch.full_like(other, scalar, dtype=torch.result_type(scalar, other))

    def by_scalar(dividend: Any, divisor: Any) -> Any:
        # torch_mlir knows fmod of two tensors only; and that a constant tensor of -2.5 is below 0 it does not know
        divisors = whole(divisor, dividend)
        rest = torch.fmod(dividend.to(divisors.dtype), divisors)
        return torch.where(rest > 0 if divisor < 0 else rest < 0, rest + divisors, rest)

    def of_scalar(dividend: Any, divisor: Any) -> Any:
        return by_tensor(whole(dividend, divisor), divisor)

    remainder = torch.ops.aten.remainder
    return {**table, remainder.Tensor: by_tensor, remainder.Scalar: by_scalar, remainder.Scalar_Tensor: of_scalar}
