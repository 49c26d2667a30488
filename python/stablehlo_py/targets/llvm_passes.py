"""LLVM's passes through llvmlite, without what llvmlite leaves behind."""

from __future__ import annotations

from collections.abc import Sequence

import llvmlite.binding as llvm
from llvmlite.binding.ffi import ObjectRef
from llvmlite.binding.newpassmanagers import NewPassManager


def run_passes(module: llvm.ModuleRef, builder: llvm.PassBuilder, names: Sequence[str] = ()) -> None:
    """Run the passes of these names, such as `sroa`; the builder's whole pipeline when none is given."""
    if names:
        manager = llvm.create_new_module_pass_manager()
        for name in names:
            getattr(manager, f"add_{name}_pass")()
    else:
        manager = builder.getModulePassManager()
    manager.run(module, builder)
    # llvmlite's own hook for freeing a pass manager is hidden by an empty one that comes first: 200 KB would stay.
    if type(manager)._dispose is ObjectRef._dispose:
        NewPassManager._dispose(manager)
        manager.detach()
