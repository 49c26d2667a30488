"""Help from JAX where it is installed: its jaxlib reads what the bindings cannot."""

from __future__ import annotations


def artifact_as_text(data: bytes) -> str | None:
    """The generic text of a portable artifact or bytecode that jaxlib can read; None without JAX, or when it cannot."""
    try:
        from jax.interpreters.mlir import make_ir_context
        from jaxlib.mlir import ir
        from jaxlib.mlir.dialects import stablehlo
    except ImportError:
        return None
    context = make_ir_context()
    with context:
        try:
            if b"StableHLO_v" in data[:64]:
                module = stablehlo.deserialize_portable_artifact(context, data)
            else:
                module = ir.Module.parse(data)
        except (ir.MLIRError, ValueError, RuntimeError):
            return None
        return module.operation.get_asm(enable_debug_info=True, print_generic_op_form=True)
