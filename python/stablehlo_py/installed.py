"""What is installed of other packages, without importing them."""

from __future__ import annotations

import functools
import importlib.util
import os


@functools.cache
def installed(package: str) -> str:
    """A package with its version, by the folder that its installer left beside it: `numpy-2.4.6.dist-info`."""
    spec = importlib.util.find_spec(package)
    places = list(spec.submodule_search_locations or ()) if spec else []
    folders = [os.path.dirname(place) for place in places]
    beside = [name for folder in folders if os.path.isdir(folder) for name in os.listdir(folder)]
    found = [name for name in beside if name.startswith(f"{package}-") and name.endswith(".dist-info")]
    if len(found) == 1:
        return found[0]
    from importlib.metadata import version  # 20 ms where nobody else has imported it

    return f"{package}-{version(package.replace('_', '-'))}.dist-info"


@functools.cache
def bindings_library() -> str:
    """The library of the MLIR bindings, which the bindings themselves take as long again to import as to load; or ""."""
    spec = importlib.util.find_spec("torch_mlir")
    for folder in (spec and spec.submodule_search_locations) or ():
        path = os.path.join(folder, "_mlir_libs", "libTorchMLIRAggregateCAPI.so")
        if os.path.isfile(path):
            return path
    return ""
