"""scipy.special, imported when something of it is first called: 60 ms that few programs need."""

from __future__ import annotations

import importlib
from collections.abc import Callable

import numpy as np


class _Special:
    def __getattr__(self, name: str) -> Callable[..., np.ndarray]:
        def call(*arrays: np.ndarray) -> np.ndarray:
            return getattr(importlib.import_module("scipy.special"), name)(*arrays)

        return call


special = _Special()
