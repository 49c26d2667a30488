"""Custom calls: functions that a program calls by name. The registry is open; what JAX emits on the CPU is in it."""

from __future__ import annotations

from stablehlo_py.custom_calls.call import CustomCall
from stablehlo_py.custom_calls.registry import (
    Registered,
    find,
    find_for,
    register_custom_call,
    registered_names,
    unregister_custom_call,
)

__all__ = [
    "CustomCall",
    "Registered",
    "find",
    "find_for",
    "register_custom_call",
    "registered_names",
    "unregister_custom_call",
]
