"""Inputs that no compiler wrote: mutated texts, damaged artifacts, and sizes beyond all reason."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from random import Random

from stablehlo_py.errors import CompileError
from stablehlo_py.mlir import ir, new_context
from stablehlo_py.mlir import stablehlo as artifacts
from stablehlo_py.testing.generate import module_of, random_part

_TOKEN = re.compile(r"%?[\w.#@]+|\"[^\"]*\"|->|\s+|.", re.DOTALL)
_NUMBERS = (
    "0",
    "-1",
    "1",
    "2",
    "7",
    "64",
    "1000000",
    "4294967296",
    "9223372036854775807",
    "-9223372036854775808",
    "99999999999999999999",
)
_WORDS = (
    *("f32", "i1", "i64", "f8E4M3FN", "complex<f32>", "index", "none", "tuple<>", "!stablehlo.token", "tensor<*xf32>"),
    *(
        "tensor<?xf32>",
        "tensor<f32>",
        "tensor<0xi32>",
        "tensor<4xf32>",
        "vector<4xf32>",
        "dense<>",
        "dense<1>",
        "[]",
        "{}",
    ),
    *(
        "array<i64>",
        "array<i64: -1>",
        '"stablehlo.add"',
        '"stablehlo.while"',
        '"stablehlo.return"',
        '"stablehlo.gather"',
    ),
    *(
        '"func.return"',
        '"stablehlo.custom_call"',
        '"stablehlo.all_to_all"',
        '"chlo.top_k"',
        "func.func",
        "%0",
        "%undefined",
    ),
    *(
        "loc(unknown)",
        "true",
        "unit",
        "@main",
        "^bb0",
        "affine_map<(d0) -> (d0)>",
        "#stablehlo.bounds<?>",
        "!quant.any<i8>",
    ),
)


def mutated_text(seed: int) -> str:
    """A random program with a few tokens or bytes changed."""
    random = Random(seed)
    text = module_of([random_part(random.randrange(1 << 30)) for _ in range(random.choice((1, 1, 2)))]).text
    for _ in range(random.choice((1, 1, 2, 3, 6))):
        text = _mutate_bytes(text, random) if random.random() < 0.25 else _mutate_tokens(text, random)
    return text


def _mutate_tokens(text: str, random: Random) -> str:
    tokens = _TOKEN.findall(text)
    solid = [i for i, t in enumerate(tokens) if not t.isspace()]
    if not solid:
        return text
    at, other = random.choice(solid), random.choice(solid)
    numbers = [i for i in solid if re.fullmatch(r"-?\d+", tokens[i])]
    action = random.choice(("drop", "repeat", "swap", "word", "number", "copy", "cut", "dim"))
    if action == "drop":
        tokens[at] = ""
    elif action == "repeat":
        tokens[at] *= random.choice((2, 3))
    elif action == "swap":
        tokens[at], tokens[other] = tokens[other], tokens[at]
    elif action == "word":
        tokens[at] = random.choice(_WORDS)
    elif action == "number" and numbers:
        tokens[random.choice(numbers)] = random.choice(_NUMBERS)
    elif action == "copy":
        tokens[at] = tokens[other]
    elif action == "cut":
        low, high = sorted((at, min(other, at + 12)))
        del tokens[low:high]
    else:
        text = "".join(tokens)
        places = [m.span() for m in re.finditer(r"(?<=[<x])\d+(?=x)", text)]
        if not places:
            return text
        low, high = random.choice(places)
        return text[:low] + random.choice((*_NUMBERS, "?", "3")) + text[high:]
    return "".join(tokens)


def _mutate_bytes(text: str, random: Random) -> str:
    at = random.randrange(len(text))
    action = random.choice(("flip", "drop", "insert", "truncate"))
    if action == "flip":
        return text[:at] + chr(random.choice((0, 10, 34, 37, 60, 62, 92, 123, 127, 233, 0x1F600))) + text[at + 1 :]
    if action == "drop":
        return text[:at] + text[at + random.randrange(1, 9) :]
    if action == "insert":
        return text[:at] + random.choice('<>{}()[]"%,:x-#!^@\\/\n') * random.choice((1, 2, 40)) + text[at:]
    return text[:at]


def artifact(seed: int) -> bytes | None:
    """A random program as a portable artifact or as plain bytecode; None where it cannot be written so."""
    random = Random(seed)
    text = module_of([random_part(random.randrange(1 << 30))]).text
    with new_context() as context, ir.Location.unknown():
        context.attach_diagnostic_handler(lambda diagnostic: True)  # nothing on the terminal
        module = ir.Module.parse(text)
        if random.random() < 0.5:
            buffer = io.BytesIO()
            module.operation.write_bytecode(buffer)
            return buffer.getvalue()
        try:
            return artifacts.serialize_portable_artifact(module, artifacts.get_current_version())
        except (RuntimeError, ValueError, ir.MLIRError, CompileError):
            return None  # chlo has no portable form


def damaged_artifact(seed: int) -> bytes:
    """An artifact with bits flipped, bytes changed, dropped or doubled, or cut short."""
    random = Random(seed)
    data = None
    while data is None:
        data = artifact(random.randrange(1 << 30))
    for _ in range(random.choice((1, 1, 2, 4, 16))):
        if not data:
            break
        at = random.randrange(len(data))
        action = random.choice(("bit", "byte", "byte", "drop", "double", "cut", "zeros"))
        if action == "bit":
            data = data[:at] + bytes([data[at] ^ (1 << random.randrange(8))]) + data[at + 1 :]
        elif action == "byte":
            data = (
                data[:at] + bytes([random.choice((0, 1, 127, 128, 254, 255, random.randrange(256)))]) + data[at + 1 :]
            )
        elif action == "drop":
            data = data[:at] + data[at + random.randrange(1, 5) :]
        elif action == "double":
            data = data[:at] + data[at : at + 8] + data[at:]
        elif action == "cut":
            data = data[: max(at, 1)]
        else:
            data = data[:at] + bytes(min(8, len(data) - at)) + data[at + 8 :]
    return data


def absurd_programs() -> Iterator[tuple[str, str]]:
    """(name, text) of programs whose sizes are out of reach: each must be refused, or done, in bounded time."""
    huge = "1099511627776"  # 2^40
    yield "sum_of_2^40", _unary("stablehlo.negate", f"{huge}xf32")
    yield "add_2^62", _unary("stablehlo.negate", "4611686018427387904xi8")
    yield "overflowing_count", _unary("stablehlo.negate", "4294967296x4294967296x4xf32")
    yield (
        "iota_2^40",
        _nullary(f'"stablehlo.iota"() {{iota_dimension = 0 : i64}} : () -> tensor<{huge}xi32>', f"{huge}xi32"),
    )
    yield "splat_2^40", _nullary(f"stablehlo.constant dense<1.0> : tensor<{huge}xf32>", f"{huge}xf32")
    yield (
        "broadcast_2^40",
        (
            f"func.func @main(%x: tensor<f32>) -> tensor<{huge}xf32> {{\n  %0 = stablehlo.broadcast_in_dim %x, dims = [] : "
            f"(tensor<f32>) -> tensor<{huge}xf32>\n  return %0 : tensor<{huge}xf32>\n}}\n"
        ),
    )
    yield (
        "reduced_iota_2^40",
        (
            f"func.func @main() -> tensor<i32> {{\n  %0 = stablehlo.iota dim = 0 : tensor<{huge}xi32>\n"
            "  %z = stablehlo.constant dense<0> : tensor<i32>\n  %1 = stablehlo.reduce(%0 init: %z) applies stablehlo.add "
            f"across dimensions = [0] : (tensor<{huge}xi32>, tensor<i32>) -> tensor<i32>\n  return %1 : tensor<i32>\n}}\n"
        ),
    )
    for rank in (33, 64, 200):
        yield f"rank_{rank}", _unary("stablehlo.exponential", "1x" * rank + "f32")
        dims = ", ".join(str(i) for i in reversed(range(rank)))
        yield (
            f"transpose_rank_{rank}",
            (
                f"func.func @main(%x: tensor<{'1x' * rank}f32>) -> tensor<{'1x' * rank}f32> {{\n  %0 = stablehlo.transpose %x, "
                f"dims = [{dims}] : (tensor<{'1x' * rank}f32>) -> tensor<{'1x' * rank}f32>\n"
                f"  return %0 : tensor<{'1x' * rank}f32>\n}}\n"
            ),
        )
    for depth in (100, 900, 10_000):
        yield f"nested_{depth}", _nested(depth)
    yield "chain_20000", _chain(20_000)
    yield "arguments_3000", _many_arguments(3000)
    yield "brackets_100000", "[" * 100_000
    yield "types_100000", f"func.func @main(%x: {'tuple<' * 100_000}f32{'>' * 100_000}) {{ return }}"
    yield "long_name", f"func.func @main(%x: tensor<f32>) -> tensor<f32> {{ return %{'x' * 1_000_000} : tensor<f32> }}"
    yield (
        "window_2^40",
        (
            "func.func @main(%x: tensor<8xf32>, %i: tensor<f32>) -> tensor<1xf32> {\n"
            '  %0 = "stablehlo.reduce_window"(%x, %i) ({ ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n'
            "    %c = stablehlo.add %a, %b : tensor<f32>\n    stablehlo.return %c : tensor<f32> }) "
            f"{{window_dimensions = array<i64: {huge}>, padding = dense<[[{huge}, 0]]> : tensor<1x2xi64>, "
            "window_strides = array<i64: 1>} : (tensor<8xf32>, tensor<f32>) -> tensor<9xf32>\n"
            "  return %0 : tensor<9xf32>\n}\n"
        ),
    )
    yield (
        "pad_2^60",
        (
            "func.func @main(%x: tensor<2xf32>, %i: tensor<f32>) -> tensor<1152921504606846978xf32> {\n"
            "  %0 = stablehlo.pad %x, %i, low = [1152921504606846976], high = [0], interior = [0] : "
            "(tensor<2xf32>, tensor<f32>) -> tensor<1152921504606846978xf32>\n"
            "  return %0 : tensor<1152921504606846978xf32>\n}\n"
        ),
    )
    yield (
        "recursion",
        (
            "func.func @main(%x: tensor<f32>) -> tensor<f32> {\n  %0 = func.call @main(%x) : (tensor<f32>) -> tensor<f32>\n"
            "  return %0 : tensor<f32>\n}\n"
        ),
    )
    yield "bomb_of_calls", _call_bomb(40)


def _unary(op: str, ty: str) -> str:
    return (
        f"func.func @main(%x: tensor<{ty}>) -> tensor<{ty}> {{\n"
        f'  %0 = "{op}"(%x) : (tensor<{ty}>) -> tensor<{ty}>\n  return %0 : tensor<{ty}>\n}}\n'
    )


def _nullary(op: str, ty: str) -> str:
    return f"func.func @main() -> tensor<{ty}> {{\n  %0 = {op}\n  return %0 : tensor<{ty}>\n}}\n"


def _nested(depth: int) -> str:
    opening = "".join(f'%r{i} = "stablehlo.if"(%p) ({{\n' for i in range(depth))
    values = ["%x", *(f"%r{i}" for i in reversed(range(1, depth)))]
    closing = "".join(
        f'"stablehlo.return"({value}) : (tensor<f32>) -> () }}, {{ "stablehlo.return"(%x) : (tensor<f32>) -> () }}) '
        ": (tensor<i1>) -> tensor<f32>\n"
        for value in values
    )
    return (
        f"func.func @main(%p: tensor<i1>, %x: tensor<f32>) -> tensor<f32> {{\n{opening}{closing}"
        "return %r0 : tensor<f32>\n}\n"
    )


def _chain(length: int) -> str:
    lines = "".join(f"  %v{i + 1} = stablehlo.add %v{i}, %v{i} : tensor<4xf32>\n" for i in range(length))
    head = "func.func @main(%v0: tensor<4xf32>) -> tensor<4xf32> {"
    return f"{head}\n{lines}  return %v{length} : tensor<4xf32>\n}}\n"


def _many_arguments(count: int) -> str:
    head = ", ".join(f"%a{i}: tensor<f32>" for i in range(count))
    lines = "".join(f"  %s{i + 1} = stablehlo.add %s{i}, %a{i} : tensor<f32>\n" for i in range(count))
    return f"func.func @main({head}, %s0: tensor<f32>) -> tensor<f32> {{\n{lines}  return %s{count} : tensor<f32>\n}}\n"


def _call_bomb(depth: int) -> str:
    """Each function calls the next one twice: 2^depth ops when inlined."""
    text = ""
    for i in range(depth):
        name = "main" if i == 0 else f"f{i}"
        visibility = "" if i == 0 else "private "
        text += (
            f"func.func {visibility}@{name}(%x: tensor<f32>) -> tensor<f32> {{\n"
            f"  %0 = func.call @f{i + 1}(%x) : (tensor<f32>) -> tensor<f32>\n"
            f"  %1 = func.call @f{i + 1}(%0) : (tensor<f32>) -> tensor<f32>\n  return %1 : tensor<f32>\n}}\n"
        )
    return text + f"func.func private @f{depth}(%x: tensor<f32>) -> tensor<f32> {{\n  return %x : tensor<f32>\n}}\n"
