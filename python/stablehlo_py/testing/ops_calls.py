"""Random custom calls: markers of shardings, LAPACK as JAX calls it, chlo ops in the guise of calls, top_k."""

from __future__ import annotations

from stablehlo_py.testing.graph import Graph, Value
from stablehlo_py.testing.ops_elementwise import CHLO, without_nan

_MARKERS = ("Sharding", "Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "annotate_device_placement")
_SHARDINGS = ("{replicated}", "{manual}", "{maximal device=0}", "{devices=[1]<=[1]}")
_DTYPES = {"s": "f32", "d": "f64", "c": "complex<f32>", "z": "complex<f64>"}


def marker(g: Graph) -> Value:
    """What says where a value lives; on one device, the value."""
    x = g.pick()
    name = g.random.choice(_MARKERS)
    text = f'call_target_name = "{name}"'
    if name != "annotate_device_placement":
        text += f', mhlo.sharding = "{g.random.choice(_SHARDINGS)}"'
    return g.emit("stablehlo.custom_call", [x], (x.shape, x.element), text)


def disguised(g: Graph) -> Value:
    """custom_call @mhlo.erf is chlo.erf."""
    x = g.pick(lambda e: e.name in ("f32", "f64"))
    name = g.random.choice(CHLO)
    return g.emit("stablehlo.custom_call", [x], (x.shape, x.element), f'call_target_name = "mhlo.{name}"')


def top_k(g: Graph) -> Value:
    x = g.pick(lambda e: e.is_float or e.is_integer, rank=1, limit=600)
    x = without_nan(g, x)
    k = g.random.randint(0, x.shape[-1])
    shape = (*x.shape[:-1], k)
    results = [(shape, x.element), (shape, "i32")]
    if g.chance(0.3):
        text = f'call_target_name = "mhlo.topk", mhlo.attributes = {{k = {k} : i64, largest = true}}'
        return g.random.choice(g.emit_several("stablehlo.custom_call", [x], results, text))
    return g.random.choice(g.emit_several("chlo.top_k", [x], results, f"k = {k} : i64"))


def lapack(g: Graph) -> Value:
    """A factorisation of each matrix of a stack; all of its results come into scope.

    Both sides call one routine: what is tried is the way to it, with batches, workspaces and column-major layouts.
    """
    letter = g.random.choice(tuple(_DTYPES))
    element, real = _DTYPES[letter], _DTYPES["sd"["sdcz".index(letter) % 2]]
    batch = g.shape(most=2, limit=6)
    n = g.random.choice((1, 2, 3, 5))
    m = n if g.chance(0.5) else g.random.choice((1, 2, 4))
    square, tall = (*batch, n, n), (*batch, m, n)
    low = min(m, n)
    info = (batch, "i32")
    kind = g.random.choice(("potrf", "getrf", "geqrf", "syevd", "trsm", "gesdd"))
    config, operands, results = "", [square], [(square, element), info]
    if kind == "potrf":
        config = f"uplo = {ord(g.random.choice('LU'))} : ui8"
    elif kind == "getrf":
        operands, results = [tall], [(tall, element), ((*batch, low), "i32"), info]
    elif kind == "geqrf":
        operands, results = [tall], [(tall, element), ((*batch, low), element)]
    elif kind == "syevd":
        kind = "syevd" if letter in "sd" else "heevd"
        config = f"mode = {ord('V')} : ui8, uplo = {ord(g.random.choice('LU'))} : ui8"
        results = [(square, element), ((*batch, n), real), info]
    elif kind == "gesdd":
        config = f"mode = {ord('S')} : ui8"
        operands = [tall]
        results = [
            (tall, element),
            ((*batch, low), real),
            ((*batch, m, low), element),
            ((*batch, low, n), element),
            info,
        ]
    else:
        side, k = g.random.choice("LR"), g.random.choice((1, 2, 3))
        right = (*batch, n, k) if side == "L" else (*batch, k, n)
        config = ", ".join(
            f"{name} = {ord(value)} : ui8"
            for name, value in (
                ("side", side),
                ("uplo", g.random.choice("LU")),
                ("trans_x", g.random.choice("NTC")),
                ("diag", "U"),
            )
        )
        operands, results = [square, right], [(right, element)]
    given = [g.argument(shape, element, "mild") for shape in operands]
    layouts = [_column_major(len(v.shape)) for v in given]
    made = [
        _column_major(len(shape)) if len(shape) - len(batch) == 2 else _row_major(len(shape)) for shape, _ in results
    ]
    text = (
        f'call_target_name = "lapack_{letter}{kind}_ffi", api_version = 4 : i32, backend_config = {{{config}}}, '
        f"operand_layouts = [{', '.join(layouts)}], result_layouts = [{', '.join(made)}]"
    )
    return g.random.choice(g.emit_several("stablehlo.custom_call", given, results, text))


def _column_major(rank: int) -> str:
    """The layout in which each matrix is stored by columns."""
    return _layout([rank - 2, rank - 1, *reversed(range(rank - 2))])


def _row_major(rank: int) -> str:
    return _layout(list(reversed(range(rank))))


def _layout(order: list[int]) -> str:
    inside = ", ".join(map(str, order))
    return f"dense<[{inside}]> : tensor<{len(order)}xindex>" if order else "dense<> : tensor<0xindex>"


OPS = ((marker, 1), (disguised, 1), (top_k, 2), (lapack, 2))
