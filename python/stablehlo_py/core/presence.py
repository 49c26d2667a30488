"""Which ops a module may hold, as far as that is known without looking: to look takes a microsecond an op.

Ops are named in full (`linalg.generic`), or all of a dialect at once (`linalg.`); marks of kernels and kinds of
linalg.generic (`generic.move`) stand beside them.
"""

from __future__ import annotations

from stablehlo_py.core.collect import KIND, MARK, names_under
from stablehlo_py.core.legality import Legality
from stablehlo_py.mlir import ir

Ops = tuple[str, ...]


class Presence:
    """What was there when the module was last looked at, and what may have been added since."""

    def __init__(self, module_op: ir.Operation) -> None:
        self._module = module_op
        self._names: frozenset[str] | None = None
        self._there: set[str] = set()  # ops and their dialects
        self._any_of: set[str] = set()  # dialects of which any op may be there
        self._is_exact = False

    def change(self, added: Ops | None) -> None:
        """Ops may be gone, and some of these may be new; None: any may be."""
        self._is_exact = False
        if added is None:
            self._names = None
            return
        self._there.update(added)
        self._there.update(_dialect(name) for name in added)
        self._any_of.update(name for name in added if name[-1] == ".")

    def may_hold(self, wanted: Ops) -> bool:
        """Whether one of these ops may be there; nothing is looked at."""
        if self._names is None or not self._there.isdisjoint(wanted):
            return True
        if not self._is_exact and "linalg.generic" in self._there and any(name.startswith(KIND) for name in wanted):
            return True  # of another kind by now
        return bool(self._any_of) and any(_dialect(name) in self._any_of for name in wanted)

    def holds(self, wanted: Ops) -> bool:
        """Whether one of these ops is there."""
        if not self._is_exact and self.may_hold(wanted):
            self._look()
        return self.may_hold(wanted)

    def held(self, wanted: Ops) -> bool:
        """Whether one of these ops was there, and to look again would tell no more than that it is gone."""
        return self._names is not None and not self._any_of and not self._names.isdisjoint(wanted)

    def permitted_by(self, legality: Legality) -> bool:
        """Whether all ops are permitted."""
        forbidden = tuple(name if "." in name else f"{name}." for name in legality.forbid)
        if not legality.allow and not self.may_hold(forbidden):
            return True
        if not self._is_exact:
            self._look()
        assert self._names is not None
        return legality.permits_all(self._names)

    def surprises(self) -> set[str]:
        """The ops that are there and should not be, by what was said of the passes so far."""
        if self._names is None:
            return set()
        there = (name for name in names_under(self._module) if not name.startswith((MARK, KIND)))  # which are no ops
        return {name for name in there if name not in self._there and _dialect(name) not in self._any_of}

    def _look(self) -> None:
        self._names = names_under(self._module)
        self._there = {*self._names, *map(_dialect, self._names)}
        self._any_of, self._is_exact = set(), True


def _dialect(name: str) -> str:
    return name[: name.find(".") + 1]
