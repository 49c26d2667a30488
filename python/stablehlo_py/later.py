"""Functions of modules that are imported when one of them is first called: a module takes 0.3 ms, and tables name many."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any


class Later:
    """Stands for a module; what is asked of it is a function that has the module's own called."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Callable[..., Any]:  # Any: whatever the function takes and gives
        def call(*arguments: Any, **named: Any) -> Any:
            found = getattr(importlib.import_module(self._module), name)
            setattr(self, name, found)
            return found(*arguments, **named)

        call.__name__ = name
        return call
