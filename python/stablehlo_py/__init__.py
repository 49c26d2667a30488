"""StableHLO in, Python-defined passes on the upstream MLIR bindings, native code out."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from stablehlo_py.garbage import none_collected

if TYPE_CHECKING:
    from stablehlo_py.compiler import Options as Options
    from stablehlo_py.compiler import compile as compile
    from stablehlo_py.custom_calls import register_custom_call as register_custom_call
    from stablehlo_py.errors import BadInput as BadInput
    from stablehlo_py.errors import BadOption as BadOption
    from stablehlo_py.errors import CompileError as CompileError
    from stablehlo_py.errors import OutOfMemory as OutOfMemory
    from stablehlo_py.errors import UnsupportedOp as UnsupportedOp
    from stablehlo_py.errors import WrongMachine as WrongMachine

__all__ = [
    "BadInput",
    "BadOption",
    "CompileError",
    "Options",
    "OutOfMemory",
    "UnsupportedOp",
    "WrongMachine",
    "compile",
    "register_custom_call",
]
_HOMES = {"Options": "compiler", "compile": "compiler", "register_custom_call": "custom_calls"}


def __getattr__(name: str) -> Any:  # Any: one of __all__
    """What the package offers is imported when it is asked for: the tools need little of it, and `--help` nothing."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = _HOMES.get(name, "errors")
    with none_collected():
        return getattr(importlib.import_module(f"{__name__}.{home}"), name)
