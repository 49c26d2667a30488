"""The interpreter: what a StableHLO program means, op by op in NumPy."""

from stablehlo_py.reference.interpreter import interpret as interpret

__all__ = ["interpret"]
