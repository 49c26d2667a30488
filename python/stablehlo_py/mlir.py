"""The seam: with `mlir_builders`, which is a part of it, the only module that names the package of the MLIR bindings.

Everything else imports `ir`, the pass manager and the dialect builders from here, so another package with the upstream
layout and StableHLO registered can stand in. Known traps of the bindings are kept away from the rest of the house here.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import torch_mlir._mlir_libs as _libraries
from torch_mlir import ir as ir
from torch_mlir import rewrite as rewrite
from torch_mlir._mlir_libs import _mlir as _bindings
from torch_mlir._mlir_libs import _stablehlo as stablehlo
from torch_mlir.passmanager import PassManager as PassManager

from stablehlo_py.mlir_builders import BUILDERS, ENUMERATIONS

# Where an op is looked at and no module of its dialect is imported, the bindings look for one: 25 us for each op of a dialect
# that has none, and up to 25 ms for the builders of all ops of one that has. Whoever wants builders imports them.
_bindings.globals.dialect_search_modules = []

if TYPE_CHECKING:
    from torch_mlir.dialects import arith as arith
    from torch_mlir.dialects import bufferization as bufferization
    from torch_mlir.dialects import complex as complex
    from torch_mlir.dialects import ext as ext
    from torch_mlir.dialects import func as func
    from torch_mlir.dialects import gpu as gpu
    from torch_mlir.dialects import linalg as linalg
    from torch_mlir.dialects import llvm as llvm
    from torch_mlir.dialects import math as math
    from torch_mlir.dialects import memref as memref
    from torch_mlir.dialects import nvvm as nvvm
    from torch_mlir.dialects import scf as scf
    from torch_mlir.dialects import tensor as tensor
    from torch_mlir.dialects import vector as vector

PACKAGE = ir.__name__.split(".", maxsplit=1)[0]
DIALECTS = (
    "arith",
    "bufferization",
    "complex",
    "ext",
    "func",
    "gpu",
    "linalg",
    "llvm",
    "math",
    "memref",
    "nvvm",
    "scf",
    "tensor",
    "vector",
)
DYNAMIC = -(2**63)  # how the bindings spell a dimension that is not known

stablehlo.register_stablehlo_passes()


# Where builders are not `dialects.NAME` of the package. That of linalg defines each op once more in a language of its own
# and makes four contexts on the way, which takes longer than all other builders together.
_PARTS = {"linalg": ("dialects._linalg_ops_gen", "dialects._linalg_enum_gen", "_mlir_libs._mlirDialectsLinalg")}

_T = TypeVar("_T")


class _Builders(types.ModuleType):
    """The builders of a dialect: our own, and those of the bindings, which are imported when one of them is first used."""

    def __getattr__(self, name: str) -> Any:  # Any: what a module holds
        if name.startswith("__"):
            raise AttributeError(name)  # asked of every module by who knows whom
        dialect = self.__name__.rpartition(".")[2]
        own = BUILDERS.get(f"{dialect}.{name}") or ENUMERATIONS.get(f"{dialect}.{name}")
        if own is not None:
            vars(self)[name] = own
            return own
        for part in _PARTS.get(dialect, (f"dialects.{dialect}",)):
            held = vars(importlib.import_module(f"{PACKAGE}.{part}"))
            theirs = (key for key in held if not key.startswith("__") and f"{dialect}.{key}" not in BUILDERS)
            vars(self).update((key, held[key]) for key in theirs)
        return super().__getattribute__(name)


def __getattr__(name: str) -> types.ModuleType:
    """The builders of a dialect."""
    if name not in DIALECTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    builders = globals()[name] = _Builders(f"{PACKAGE}.dialects.{name}")
    return builders


def llvm_ir(module: ir.Operation) -> str:
    """The text of LLVM IR of a module in the LLVM dialect, whose builders this does not take."""
    return importlib.import_module(f"{PACKAGE}._mlir_libs._mlirDialectsLLVM").translate_module_to_llvmir(module)


# What a compilation makes ops of. MLIR loads other dialects when it reads one of their ops, or a pass makes one; to load
# every one takes 8 ms.
_OF_COMPILATIONS = (
    *("affine", "arith", "bufferization", "cf", "complex", "func", "index", "linalg", "llvm", "math", "memref"),
    *("quant", "scf", "shape", "tensor", "ub", "vector"),
)


def new_context(dialects: Sequence[str] | None = None) -> ir.Context:
    """A context with StableHLO, chlo and every upstream dialect at hand, or these and what a program brings, but for chlo.

    It stays single-threaded: threads together with Python callbacks in nested passes deadlock on the interpreter's lock.
    """
    context = ir.Context(load_on_create_dialects=dialects)
    stablehlo.register_dialect(context)
    if dialects is None:
        load_chlo(context)
    return context


def load_chlo(context: ir.Context) -> None:
    """Have chlo in a context: two milliseconds in the first one.

    It is linked but not registered: it comes only as a dependency of a pass, so run that pass over nothing.
    """
    if context.is_dialect_loaded("chlo"):
        return
    importlib.import_module(f"{PACKAGE}._mlir_libs._torchMlir").register_dialect(context)
    with context, ir.Location.unknown():
        PassManager.parse("builtin.module(func.func(convert-torch-to-stablehlo))").run(_nothing().operation)
    if not context.is_dialect_loaded("chlo"):
        raise RuntimeError(f"these bindings ({PACKAGE}) have no chlo dialect")


_spare: list[tuple[ir.Context, int]] = []
_belongings: dict[ir.Context, dict[Any, Any]] = {}  # Any: each key is of whoever made it
_MOST_USES = 100  # a context never forgets a type or an attribute, so it is not used for ever


@contextmanager
def borrowed_context() -> Iterator[ir.Context]:
    """A context for one compilation, entered; a used one when there is one, since making one takes 10 ms.

    Call `forget_context` on it when it has seen large constants: their memory goes only with the context.
    """
    try:
        context, uses = _spare.pop()
    except IndexError:  # not asked before: another thread may take the last one in between
        context, uses = new_context(_OF_COMPILATIONS), 0
        _belongings[context] = {}
    kept = False
    try:
        with context, ir.Location.unknown():
            yield context
        # not after an exception: what has failed may have left the context in an unusual state
        kept = uses < _MOST_USES and not _spare and context not in _forgotten
    finally:
        if not kept:
            del _belongings[context]
        _forgotten.discard(context)
    if kept:
        _spare.append((context, uses + 1))


def belongings(context: ir.Context) -> dict[Any, Any]:  # Any: each key is of whoever made it
    """What is kept as long as a borrowed context, such as pass managers; of other contexts nothing is."""
    return _belongings.get(context, {})


def kept(make: Callable[..., _T]) -> Callable[..., _T]:
    """Keep what a function makes of types, attributes and numbers as long as the context, where that is a borrowed one.

    To parse a type takes 3 to 8 us, to find it here less than one.
    """

    @functools.wraps(make)
    def found(*arguments: Any) -> _T:  # Any: whatever `make` takes and a dict can look up
        try:
            return _belongings[ir.Context.current][make][arguments]
        except KeyError:
            made = make(*arguments)
            belongings(ir.Context.current).setdefault(make, {})[arguments] = made
            return made

    return found


@kept
def pass_manager(pipeline: str) -> PassManager:
    """What runs these C++ passes."""
    return PassManager.parse(pipeline)


_forgotten: set[ir.Context] = set()


def forget_context(context: ir.Context) -> None:
    """Do not use a borrowed context again."""
    _forgotten.add(context)


def _nothing() -> ir.Module:
    return ir.Module.parse("func.func private @nothing() { return }")


# --- raw access through the C API, for what the Python layer cannot show ---------------------------------------------


class _StringRef(ctypes.Structure):
    _fields_ = [("data", ctypes.c_char_p), ("size", ctypes.c_size_t)]


@functools.cache
def _c_api() -> ctypes.CDLL:
    folder = Path(_libraries.__file__).parent
    found = sorted(folder.glob("lib*AggregateCAPI*")) + sorted(folder.glob("*CAPI*"))
    library = ctypes.CDLL(str(found[0]))
    library.mlirOperationGetAttributeByName.restype = ctypes.c_void_p
    library.mlirOperationGetAttributeByName.argtypes = [ctypes.c_void_p, _StringRef]
    for name, result in {
        "mlirDenseElementsAttrGetRawData": ctypes.c_void_p,
        "mlirDenseElementsAttrIsSplat": ctypes.c_bool,
        "mlirAttributeIsADenseElements": ctypes.c_bool,
    }.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, [ctypes.c_void_p]
    return library


_capsule_name = ctypes.pythonapi.PyCapsule_GetName
_capsule_name.restype, _capsule_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype, _capsule_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def _pointer(wrapped: Any) -> int:  # Any: every class of the bindings has the capsule
    capsule = wrapped._CAPIPtr
    return _capsule_pointer(capsule, _capsule_name(capsule))


@functools.cache
def _string_ref(text: str) -> _StringRef:
    data = text.encode()
    return _StringRef(data, len(data))


_SHORT = 64  # bytes of elements that are kept


def raw_elements(op: ir.Operation, name: str, element_bytes: int, count: int) -> tuple[bytes, bool] | None:
    """The bytes of a dense elements attribute and whether they are one element repeated; None for other attributes.

    The Python layer refuses complex elements and knows no dtype for small floats; the C API gives the memory as it is.
    """
    library = _c_api()
    attribute = library.mlirOperationGetAttributeByName(_pointer(op), _string_ref(name))
    # An attribute stays where it is as long as its context. Rules ask for the same few numbers again and again.
    known = belongings(op.context).setdefault(raw_elements, {})
    if attribute in known:
        return known[attribute]
    if not attribute or not library.mlirAttributeIsADenseElements(attribute):
        return None
    splat = bool(library.mlirDenseElementsAttrIsSplat(attribute))
    size = element_bytes * (1 if splat else count)
    if size == 0:
        return b"", False
    found = ctypes.string_at(library.mlirDenseElementsAttrGetRawData(attribute), size), splat
    if size <= _SHORT:
        known[attribute] = found
    return found
