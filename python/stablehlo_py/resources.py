"""Files that come with the package: pipelines, dialects and the native library, in a wheel or in a checkout."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from stablehlo_py.errors import BadInput

PACKAGE = Path(__file__).resolve().parent
CHECKOUT = PACKAGE.parents[1]


def pipeline_path(name: str) -> Path:
    """The file of a pipeline that comes with the package, by its name (cpu) or its path in pipelines/."""
    return _find("pipelines", name, ".pipeline")


def dialect_path(name: str) -> Path:
    """The file of a dialect that we define, by its name (mxu.irdl) or its path in dialects/."""
    return _find("dialects", name, ".mlir")


def names(folder: str, suffix: str) -> list[str]:
    """The names in pipelines/ or dialects/, without their suffix."""
    return sorted(name.removesuffix(suffix) for name in os.listdir(_folder(folder)) if name.endswith(suffix))


def native_library(name: str) -> Path | None:
    """A library that CMake built into the package; None when there was no compiler."""
    suffix = ".dylib" if sys.platform == "darwin" else ".so"
    # An editable install has two places: the checkout, and site-packages for what was built.
    for root in sys.modules["stablehlo_py"].__path__:
        path = Path(root) / "_native" / f"lib{name}{suffix}"
        if path.is_file():
            return path
    return None


def _folder(folder: str) -> Path:
    packed = PACKAGE / "_data" / folder
    return packed if packed.is_dir() else CHECKOUT / folder


def _find(folder: str, name: str, suffix: str) -> Path:
    root = _folder(folder)
    path = root / (name if name.endswith(suffix) else name + suffix)
    # A name reaches only files inside the folder.
    if path.is_file() and (path.parent == root or path.resolve().is_relative_to(root.resolve())):
        return path
    known = names(folder, suffix)
    raise BadInput(f"there is no {name} in {folder}/", hint=f"known are {', '.join(known)}" if known else "")
