"""Random control flow: case, if, while with a small trip count; regions read values around them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stablehlo_py.testing.graph import Graph, Value, tensor

MOST_DEPTH = 2


def _inner(g: Graph, step: Callable[[Graph], None], wanted: Sequence[Value]) -> list[Value]:
    """A few random ops, then values of the wanted types."""
    for _ in range(g.random.randint(0, 3)):
        step(g)
    return [g.like(v.shape, v.element) for v in wanted]


def branch(g: Graph, step: Callable[[Graph], None]) -> Value | None:
    if g.depth >= MOST_DEPTH:
        return None
    wanted = [g.pick(limit=600) for _ in range(g.random.randint(1, 3))]
    results = [(v.shape, v.element) for v in wanted]
    if g.chance(0.5):
        predicate = g.like((), "i1")
        regions = [g.region([], lambda: _inner(g, step, wanted)) for _ in range(2)]
        return g.emit_several("stablehlo.if", [predicate], results, "", regions)[0]
    index = g.argument((), "i32", "index")
    regions = [g.region([], lambda: _inner(g, step, wanted)) for _ in range(g.random.randint(1, 4))]
    return g.emit_several("stablehlo.case", [index], results, "", regions)[0]


def loop(g: Graph, step: Callable[[Graph], None]) -> Value | None:
    """while (i < trips): i += 1 and up to three values carried."""
    if g.depth >= MOST_DEPTH:
        return None
    inits = [g.pick(limit=600) for _ in range(g.random.randint(1, 3))]
    zero, one, trips = (g.constant((), "i32", str(n)) for n in (0, 1, g.random.randint(0, 4)))
    counter = Value(g.name(), (), "i32")
    carried = [counter, *(Value(g.name(), v.shape, v.element) for v in inits)]
    again = [Value(g.name(), v.shape, v.element) for v in carried]
    i32, i1 = tensor((), "i32"), tensor((), "i1")
    go = g.name()
    condition = (
        f"{{ ^bb0({', '.join(f'{v.name}: {v.type}' for v in carried)}): {go} = "
        f'"stablehlo.compare"({counter.name}, {trips.name}) {{comparison_direction = #stablehlo<comparison_direction LT>}} '
        f': ({i32}, {i32}) -> {i1} "stablehlo.return"({go}) : ({i1}) -> () }}'
    )

    def body() -> list[Value]:
        values = _inner(g, step, inits)
        return [g.emit("stablehlo.add", [again[0], one], ((), "i32")), *values]

    regions = [condition, g.region(again, body)]
    results = [(v.shape, v.element) for v in carried]
    return g.emit_several("stablehlo.while", [zero, *inits], results, "", regions)[-1]
