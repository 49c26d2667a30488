"""Shardy ops in MLIR's generic form: the bindings have no sdy dialect and cannot read its own assembly.

    %1 = sdy.reshard %0 <@mesh, [{"x"}]> : tensor<8xf32>
 -> %1 = "sdy.reshard"(%0) : (tensor<8xf32>) -> tensor<8xf32>

Shardings are left out; what the ops mean on one device is for annotations.py. Lines stay where they are.
"""

from __future__ import annotations

import re

from stablehlo_py.errors import BadInput
from stablehlo_py.reading.assembly import (
    BRACKETS,
    VALUE,
    end_of_line,
    replace_ops,
    skip_attributes,
    skip_balanced,
    skip_blanks,
    types_at,
)

_WITH_REGION = ("manual_computation", "named_computation")


def to_generic(text: str, where: str) -> str:
    """`text` with each sdy op in generic form; text without any comes back as it is."""
    if "sdy." not in text:
        return text
    return replace_ops(text, "sdy", _rewrite, where, _not_understood)


def _rewrite(text: str, name: str, at: int) -> tuple[str, int]:
    """The generic form of the op whose name ends at `at`, and where what it replaces ends."""
    if name == "constant":
        return "stablehlo.constant", at
    if name == "mesh":
        symbol = re.compile(r"\s*(?:private|public|nested)?\s*@(\"[^\"]*\"|[\w$.-]+)\s*=\s*").match(text, at)
        if symbol is None:
            raise ValueError("a mesh without a name")
        end = skip_attributes(text, skip_balanced(text, symbol.end()))
        quoted = symbol[1] if symbol[1].startswith('"') else f'"{symbol[1]}"'
        return f'"sdy.mesh"() {{sym_name = {quoted}}} : () -> ()', end
    if name in _WITH_REGION:
        return _rewrite_region_op(text, name, at)
    operands, colon = _operands(text, at)
    if colon is None:  # only a return of nothing has no type
        return f'"sdy.{name}"() : () -> ()', end_of_line(text, at)
    types, end = types_at(text, colon + 1)
    results = "()" if name in ("return", "sharding_group") else types[0]
    return f'"sdy.{name}"({", ".join(operands)}) : ({", ".join(types)}) -> {results}', end


def _rewrite_region_op(text: str, name: str, at: int) -> tuple[str, int]:
    """(%x) in_shardings=[..] (%arg: type) { ... } : (types) -> types, whose body is rewritten too."""
    if text[at] == "<":
        at = skip_balanced(text, at)
    operands_end = skip_balanced(text, at)
    operands = text[at:operands_end]
    at = operands_end
    arguments = ""
    while (at := skip_blanks(text, at)) < len(text):
        character = text[at]
        end = skip_balanced(text, at) if character in BRACKETS else at + 1
        if character == "(":
            arguments = text[at:end]
        if character == "{" and text[at - 1] != "=":
            break
        at = end
    body = to_generic(text[at + 1 : skip_balanced(text, at) - 1], "")
    label = f" ^bb0{arguments}:" if VALUE.search(arguments) else ""
    return f'"sdy.{name}"{operands} ({{{label}{body}}})', skip_attributes(text, skip_balanced(text, at))


def _operands(text: str, at: int) -> tuple[list[str], int | None]:
    """The values that stand outside brackets, and where the `:` before the types stands; stops at the line's end."""
    operands: list[str] = []
    while at < len(text) and text[at] != "\n":
        character = text[at]
        if character == ":":
            return operands, at
        if character in BRACKETS:
            at = skip_balanced(text, at)
        elif character == "%" and (value := VALUE.match(text, at)):
            operands.append(value[0])
            at = value.end()
        else:
            at += 1
    return operands, None


def _not_understood(name: str, place: str) -> BadInput:
    return BadInput(
        f"sdy.{name} is not written as Shardy prints it",
        where=place,
        hint="print the module in generic form, or export it with jax_use_shardy_partitioner set to False",
    )
