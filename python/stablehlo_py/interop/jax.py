"""Help from JAX where it is installed: its jaxlib reads what the bindings cannot."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

from stablehlo_py.errors import BadInput

SECONDS = 60


def artifact_as_text(data: bytes) -> str | None:
    """The generic text of a portable artifact or bytecode that jaxlib can read; None without jaxlib, or when it cannot.

    BadInput when it takes too long.

    A process of its own does it: damaged bytecode can crash jaxlib.
    """
    if importlib.util.find_spec("jaxlib") is None:
        return None
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-c", "from stablehlo_py.interop import jax; jax.print_standard_input()"]
    try:
        child = subprocess.run(command, check=True, input=data, env=environment, capture_output=True, timeout=SECONDS)
    except subprocess.CalledProcessError:
        return None
    except subprocess.TimeoutExpired:
        raise BadInput(
            f"jaxlib has not read the artifact's annotations of Shardy within {SECONDS} s",
            hint="try again when the machine has less to do, or export with "
            "jax.config.update('jax_use_shardy_partitioner', False)",
        ) from None
    return child.stdout.decode()


def print_standard_input() -> None:
    """The child's work: bytecode on standard input becomes generic text on standard output."""
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import chlo, sdy, stablehlo

    data = sys.stdin.buffer.read()
    with ir.Context() as context:
        stablehlo.register_dialect(context)
        chlo.register_dialect(context)
        sdy.register_dialect(context)
        context.load_all_available_dialects()
        is_artifact = b"StableHLO_v" in data[:64]
        module = stablehlo.deserialize_portable_artifact(context, data) if is_artifact else ir.Module.parse(data)
        text = module.operation.get_asm(enable_debug_info=True, print_generic_op_form=True)
    sys.stdout.buffer.write(str(text).encode())
