"""Facets of an op, keyed by its name: how it is lowered, evaluated, costed. One decorator a facet.

    @lower("stablehlo.dot_general")
    def lower_dot_general(op, lhs, rhs): ...

A target overrides a rule with `@lower(name, target="tpu")` in its own folder. Registering twice is an error.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

Rule = Callable[..., Any]  # each facet has its own signature, given where the facet is made

ANY = "any"


class Facet:
    """One kind of fact about ops; `doc` says what its rules take and give."""

    def __init__(self, name: str, doc: str) -> None:
        self.name, self.doc = name, doc
        self._rules: dict[tuple[str, str], Rule] = {}
        self._homes: dict[tuple[str, str], str] = {}  # modules that are not imported yet, by what they register

    def __call__(self, *op_names: str, target: str = ANY) -> Callable[[Rule], Rule]:
        def register(rule: Rule) -> Rule:
            for op_name in op_names:
                self.add(op_name, rule, target)
            return rule

        return register

    def add(self, op_name: str, rule: Rule, target: str = ANY) -> None:
        """Register `rule` for an op; the way for rows of a table."""
        old = self._rules.get((op_name, target))
        if old is not None:
            raise ValueError(
                f"{op_name} already has a {self.name} rule for target {target}: {source_of(old)}; second: {source_of(rule)}"
            )
        self._rules[op_name, target] = rule

    def live_in(self, package: str, homes: Mapping[str, str], target: str = ANY) -> None:
        """Say which modules of a package have the rules of which ops: they are imported when a rule is looked for.

        homes: op names by module, such as {"sort": "stablehlo.sort chlo.top_k"}; the module registers all of them.
        """
        for module, op_names in homes.items():
            for op_name in op_names.split():
                if (op_name, target) not in self._rules:
                    self._homes[op_name, target] = f"{package}.{module}"

    def find(self, op_name: str, target: str = ANY) -> Rule | None:
        """The rule for `op_name`: the target's own, else the one for any target, else None."""
        for key in ((op_name, target), (op_name, ANY)):
            if key in self._homes:
                self._import(self._homes[key])
        return self._rules.get((op_name, target)) or self._rules.get((op_name, ANY))

    def _import(self, module: str) -> None:
        importlib.import_module(module)
        self._homes = {key: home for key, home in self._homes.items() if home != module}

    def _import_all(self) -> None:
        for module in dict.fromkeys(self._homes.values()):
            self._import(module)

    def ops(self, target: str = ANY) -> list[str]:
        """The ops that have a rule for `target`."""
        self._import_all()
        return sorted({op_name for op_name, of in self._rules if of in (target, ANY)})

    def rows(self) -> Iterator[tuple[str, str, Rule]]:
        """(op, target, rule) of all rules."""
        self._import_all()
        for (op_name, target), rule in sorted(self._rules.items()):
            yield op_name, target, rule


class RulesFacet(Facet):
    """A facet of which an op may have many rules, tried in the order in which they were registered."""

    def __init__(self, name: str, doc: str) -> None:
        super().__init__(name, doc)
        self._lists: dict[str, list[Rule]] = {}

    def add(self, op_name: str, rule: Rule, target: str = ANY) -> None:
        if target != ANY:
            raise ValueError(f"{self.name} rules hold for every target; {source_of(rule)} is for {target}")
        self._lists.setdefault(op_name, []).append(rule)

    def find(self, op_name: str, target: str = ANY) -> Rule | None:
        """The first rule; `all` gives every one."""
        return next(iter(self.all(op_name)), None)

    def all(self, op_name: str) -> list[Rule]:
        if (op_name, ANY) in self._homes:
            self._import(self._homes[op_name, ANY])
        return self._lists.get(op_name, [])

    def ops(self, target: str = ANY) -> list[str]:
        self._import_all()
        return sorted(self._lists)

    def rows(self) -> Iterator[tuple[str, str, Rule]]:
        self._import_all()
        for op_name, rules in sorted(self._lists.items()):
            for rule in rules:
                yield op_name, ANY, rule


def load_target(target: str) -> None:
    """Import the folder of a target, which registers its overrides; `any` has none."""
    if target != ANY:
        importlib.import_module(f"stablehlo_py.targets.{target}")


def source_of(rule: Rule) -> str:
    """`file:line` of a rule, or its module where it has no source of its own."""
    try:
        function = inspect.unwrap(rule)
        return f"{inspect.getsourcefile(function)}:{inspect.getsourcelines(function)[1]}"
    except (OSError, TypeError):
        return getattr(rule, "__module__", repr(rule))


_IN_PLACE: dict[str, Callable[[int, int], list[tuple[int, int]]]] = {}


def updates_in_place(op_name: str, pairs: Callable[[int, int], list[tuple[int, int]]]) -> None:
    """Declare that results of an op are operands with some elements replaced.

    pairs(number of operands, number of results) -> (result, operand) numbers. The op's kernel then works in the buffer
    of the operand, or of a copy of it, instead of copying by itself.
    """
    _IN_PLACE[op_name] = pairs


def in_place(op_name: str, *, operands: int, results: int) -> list[tuple[int, int]]:
    """(result, operand) of the results that update an operand in place."""
    pairs = _IN_PLACE.get(op_name)
    return pairs(operands, results) if pairs else []


updates_in_place("stablehlo.dynamic_update_slice", lambda operands, results: [(0, 0)])
updates_in_place("stablehlo.scatter", lambda operands, results: [(i, i) for i in range(results)])

lower = Facet("lower", "(op, *tensors) -> tensor or tensors: linalg, tensor, scf and arith on tensors")
scalar = Facet("scalar", "(op, *scalars) -> scalar: the body of an elementwise op, in arith, math and complex")
evaluate = Facet("evaluate", "(op, *arrays) -> array or arrays: NumPy, the oracle; ops with regions also get run=")
cost = Facet("cost", "(op) -> Cost: flops and bytes")
simplify = RulesFacet("simplify", "(op) -> value, values or None: an exact rewrite on StableHLO")

FACETS: tuple[Facet, ...] = (lower, scalar, evaluate, cost, simplify)
