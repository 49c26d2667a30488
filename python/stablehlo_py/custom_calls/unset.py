"""Memory whose contents mean nothing: what hlo-unset-inits puts where a loop writes all of it first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from stablehlo_py.custom_calls.call import UNSET
from stablehlo_py.custom_calls.registry import register_custom_call
from stablehlo_py.runtime.program import ArrayType


@register_custom_call(UNSET)
def unset(inputs: list[np.ndarray], attributes: Mapping[str, Any], results: tuple[ArrayType, ...]) -> np.ndarray:
    """Any array of the type; in a Program there is no call, see `build_program`."""
    (wanted,) = results
    return np.zeros(wanted.shape, wanted.numpy)
