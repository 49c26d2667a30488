"""Passes in Python: a class whose fields are the options and whose docstring is the summary."""

from __future__ import annotations

import functools
import importlib
import inspect
import os
from collections.abc import Mapping
from typing import ClassVar

from stablehlo_py import resources
from stablehlo_py.core import upstream
from stablehlo_py.core.options import format_options, parse_options
from stablehlo_py.mlir import ir
from stablehlo_py.records import Field, dataclass_transform, fields, record

HOMES = ("stablehlo_py.transforms", "stablehlo_py.targets")  # where passes are looked for
ANY = "any"  # the anchor of a pass that runs on whatever op it is nested under

_TRUE, _FALSE = ("", "true", "1"), ("false", "0")

Made = bool | tuple[str, ...] | None  # what a pass says of its work: see Pass

PASSES: dict[str, type[Pass]] = {}
BROKEN: dict[str, str] = {}  # module -> why it could not be imported


@dataclass_transform(frozen_default=True)  # to type checkers, subclasses are what `record` makes of them
@record
class Pass:
    """The base of all Python passes.

    name: as pipelines spell it. anchor: the op that `run` is given (`builtin.module`, `func.func`, ... or `any`).
    only_with: names of ops, marks of kernels and kinds of linalg.generic, as `core.presence` has them; in a module with
    none of them the pass has nothing to do, and a compilation leaves it out. is_trusted: what it makes follows from shapes
    alone, so that the tests meet what is wrong with it: a compilation does not verify it. is_quick: to find nothing takes it
    no longer than it takes to look whether ops that were there are gone.
    Annotations of a subclass are its options: it is a record without saying so. `run` changes the op in place; it raises
    CompileError, or emits errors at ops, when the program cannot be done. It may return False to say that it has made,
    moved and removed no op (attributes may have changed), or the names of all ops that it may have made, as
    `core.presence` has them: a compilation need not look at them again then.
    """

    name: ClassVar[str]
    anchor: ClassVar[str] = "builtin.module"
    only_with: ClassVar[tuple[str, ...]] = ()
    is_trusted: ClassVar[bool] = False
    is_quick: ClassVar[bool] = False

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        record(cls)
        if "name" in cls.__dict__:
            _register(cls)

    def run(self, op: ir.Operation) -> Made:
        raise NotImplementedError(f"{type(self).__name__}.run")

    @classmethod
    def summary(cls) -> str:
        """The first line of the docstring."""
        return inspect.cleandoc(cls.__dict__.get("__doc__") or "").partition("\n")[0]

    @classmethod
    def options(cls) -> tuple[Option, ...]:
        """The options that the pass takes, in order."""
        return tuple(_option(cls, field) for field in fields(cls))

    @classmethod
    def from_options(cls, text: str = "") -> Pass:
        """The pass with options as MLIR writes them: `tile-size=8 strict name="a b"`. ValueError says what is wrong."""
        known = {option.name: option for option in cls.options()}
        values: dict[str, bool | int | float | str] = {}
        for key, value in parse_options(text).items():
            if key not in known:
                raise ValueError(f"{cls.name} has no option {key!r}; it takes {', '.join(known) or 'none'}")
            values[known[key].field] = known[key].parse(value)
        missing = [option.name for option in known.values() if option.required and option.field not in values]
        if missing:
            raise ValueError(f"{cls.name} needs the option {missing[0]!r}")
        return cls(**values)

    def __str__(self) -> str:
        """As MLIR writes it, with the options that differ from their defaults."""
        given = {option.name: getattr(self, option.field) for option in self.options()}
        changed = {o.name: given[o.name] for o in self.options() if o.required or given[o.name] != o.default}
        return self.name + (f"{{{format_options(changed)}}}" if changed else "")


@record
class Option:
    """One option of a pass: its name in pipelines, the field that holds it, its type and default."""

    name: str
    field: str
    type: str
    default: bool | int | float | str | None

    @property
    def required(self) -> bool:
        return self.default is None

    def parse(self, text: str) -> bool | int | float | str:
        try:
            if self.type == "bool" and text.lower() in _TRUE + _FALSE:
                return text.lower() in _TRUE
            if self.type == "int":
                return int(text, 0)
            if self.type == "float":
                return float(text)
        except ValueError:
            pass
        if self.type == "str":
            return text
        raise ValueError(f"option {self.name!r} wants {_WANTED[self.type]}, not {text!r}")

    def __str__(self) -> str:
        return f"{self.name}={'<' + self.type + '>' if self.required else format_options({'': self.default})[1:]}"


_WANTED = {"bool": "true or false", "int": "a whole number", "float": "a number", "str": "text"}


def _option(cls: type[Pass], field: Field) -> Option:
    if field.type not in _WANTED:
        wanted = ", ".join(_WANTED)
        raise TypeError(f"{source_of(cls)}: option {field.name} of pass {cls.name} is {field.type}; use {wanted}")
    return Option(field.name.replace("_", "-"), field.name, field.type, None if field.required else field.default)


def _register(cls: type[Pass]) -> None:
    if not _is_kebab(cls.name):
        raise ValueError(f"{source_of(cls)}: pass name {cls.name!r} is not in kebab-case")
    if cls.name in upstream.passes():
        raise ValueError(f"{source_of(cls)}: {cls.name!r} is the name of a C++ pass")
    old = PASSES.get(cls.name)
    # The same class again is a reload of its module.
    if old is not None and (old.__module__, old.__qualname__) != (cls.__module__, cls.__qualname__):
        raise ValueError(f"pass {cls.name} registered twice: {source_of(old)} and {source_of(cls)}")
    PASSES[cls.name] = cls


def _is_kebab(name: str) -> bool:
    return name.islower() and name.isascii() and name[0].isalpha() and all(part.isalnum() for part in name.split("-"))


def source_of(cls: type) -> str:
    """The file that defines a class, or its module where it has no file."""
    try:
        return inspect.getsourcefile(cls) or cls.__module__
    except (OSError, TypeError):
        return cls.__module__


def find_pass(name: str) -> type[Pass] | None:
    """The Python pass `name`; imports the module of that stem first, and everything only where that is not enough."""
    if name in PASSES:
        return PASSES[name]
    ending = "." + name.replace("-", "_")
    for module in _modules():
        if module.endswith(ending):
            importlib.import_module(module)
    return PASSES.get(name)


_NEEDS: dict[str, tuple[str, ...]] = {}


def wait_for(needs: Mapping[str, str]) -> None:
    """Say what passes are for, as their `only_with` does: a compilation imports them when there is such.

    needs: names of ops and marks by pass, such as {"hlo-top-k": "stablehlo.sort"}.
    """
    _NEEDS.update((name, tuple(found.split())) for name, found in needs.items())


def waits_for(name: str) -> tuple[str, ...]:
    """What a pass is for whose module is not imported; empty where that is not known."""
    return () if name in PASSES else _NEEDS.get(name, ())


def load_all_passes() -> dict[str, type[Pass]]:
    """Import every module that may define a pass; all passes by name. What cannot be imported is in BROKEN."""
    for module in _modules():
        try:
            importlib.import_module(module)
        except Exception as error:  # one broken module must not hide all passes, nor a misspelt name
            BROKEN[module] = f"{type(error).__name__}: {error}"
    return dict(sorted(PASSES.items()))


@functools.cache
def _modules() -> tuple[str, ...]:
    """The modules under HOMES, found by their files: nothing is imported."""
    return tuple(module for home in HOMES for module in modules_under(home))


def modules_under(package: str) -> list[str]:
    """All modules of a package of ours, itself included."""
    found: list[str] = []
    start = resources.PACKAGE.joinpath(*package.split(".")[1:])
    waiting = [(package, str(start))] if start.is_dir() else []
    while waiting:
        place, folder = waiting.pop()
        with os.scandir(folder) as entries:
            for entry in entries:
                stem, dot, suffix = entry.name.rpartition(".")
                if suffix == "py" and dot:
                    if stem != "__main__":
                        found.append(place if stem == "__init__" else f"{place}.{stem}")
                elif entry.name != "__pycache__" and entry.is_dir():
                    waiting.append((f"{place}.{entry.name}", entry.path))
    return sorted(found)
