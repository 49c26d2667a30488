"""Shardy ops in MLIR's generic form: the bindings have no sdy dialect and cannot read its own assembly.

    %1 = sdy.reshard %0 <@mesh, [{"x"}]> : tensor<8xf32>
 -> %1 = "sdy.reshard"(%0) : (tensor<8xf32>) -> tensor<8xf32>

Shardings are left out; what the ops mean on one device is for annotations.py. Lines stay where they are.
"""

from __future__ import annotations

import re

from stablehlo_py.errors import BadInput

_OP = re.compile(r'"[^"\\\n]*(?:\\.[^"\\\n]*)*"|//[^\n]*|(?<![\w.#!"@])sdy\.(\w+)')
_VALUE = re.compile(r"%[\w$.-]+(?:#\d+)?")
_CLOSERS = {"(": ")", "[": "]", "{": "}", "<": ">"}
_WITH_REGION = ("manual_computation", "named_computation")


def to_generic(text: str, where: str) -> str:
    """`text` with each sdy op in generic form; text without any comes back as it is."""
    if "sdy." not in text:
        return text
    pieces: list[str] = []
    done = 0
    for match in _OP.finditer(text):
        name = match[1]
        if name is None or match.start() < done or not _is_op(text, match.start(), match.end()):
            continue
        try:
            piece, end = _rewrite(text, name, match.end())
        except (ValueError, IndexError, RecursionError) as error:
            raise _not_understood(text, match.start(), name, where) from error
        pieces += [text[done : match.start()], piece]
        done = end
    pieces.append(text[done:])
    return "".join(pieces)


def _is_op(text: str, at: int, end: int) -> bool:
    """Whether an op's name stands here, and no attribute's: first on its line, after `=` of results, or after a brace."""
    follows = _skip_blanks(text, end)
    if text[follows : follows + 1] in ("=", ",", "}"):
        return False
    before = text[max(0, text.rfind("\n", 0, at)) : at].rstrip(" \t")
    return before in ("", "\n") or before.endswith(("{", "}")) or re.search(r"%[\w$.:, %-]+=$", before) is not None


def _rewrite(text: str, name: str, at: int) -> tuple[str, int]:
    """The generic form of the op whose name ends at `at`, and where what it replaces ends."""
    if name == "constant":
        return "stablehlo.constant", at
    if name == "mesh":
        symbol = re.compile(r"\s*(?:private|public|nested)?\s*@(\"[^\"]*\"|[\w$.-]+)\s*=\s*").match(text, at)
        if symbol is None:
            raise ValueError("a mesh without a name")
        end = _skip_attributes(text, _skip_balanced(text, symbol.end()))
        quoted = symbol[1] if symbol[1].startswith('"') else f'"{symbol[1]}"'
        return f'"sdy.mesh"() {{sym_name = {quoted}}} : () -> ()', end
    if name in _WITH_REGION:
        return _rewrite_region_op(text, name, at)
    operands, colon = _operands(text, at)
    if colon is None:  # only a return of nothing has no type
        return f'"sdy.{name}"() : () -> ()', _end_of_line(text, at)
    types, end = _types(text, colon + 1)
    results = "()" if name in ("return", "sharding_group") else types[0]
    return f'"sdy.{name}"({", ".join(operands)}) : ({", ".join(types)}) -> {results}', end


def _rewrite_region_op(text: str, name: str, at: int) -> tuple[str, int]:
    """(%x) in_shardings=[..] (%arg: type) { ... } : (types) -> types, whose body is rewritten too."""
    if text[at] == "<":
        at = _skip_balanced(text, at)
    operands_end = _skip_balanced(text, at)
    operands = text[at:operands_end]
    at = operands_end
    arguments = ""
    while (at := _skip_blanks(text, at)) < len(text):
        character = text[at]
        end = _skip_balanced(text, at) if character in _CLOSERS else at + 1
        if character == "(":
            arguments = text[at:end]
        if character == "{" and text[at - 1] != "=":
            break
        at = end
    body = to_generic(text[at + 1 : _skip_balanced(text, at) - 1], "")
    label = f" ^bb0{arguments}:" if _VALUE.search(arguments) else ""
    return f'"sdy.{name}"{operands} ({{{label}{body}}})', _skip_attributes(text, _skip_balanced(text, at))


def _operands(text: str, at: int) -> tuple[list[str], int | None]:
    """The values that stand outside brackets, and where the `:` before the types stands; stops at the line's end."""
    operands: list[str] = []
    while at < len(text) and text[at] != "\n":
        character = text[at]
        if character == ":":
            return operands, at
        if character in _CLOSERS:
            at = _skip_balanced(text, at)
        elif character == "%" and (value := _VALUE.match(text, at)):
            operands.append(value[0])
            at = value.end()
        else:
            at += 1
    return operands, None


def _types(text: str, at: int) -> tuple[list[str], int]:
    """The types that start at `at`, separated by commas, and where they end."""
    types: list[str] = []
    while True:
        start = at = _skip_blanks(text, at)
        while text[at : at + 1].isalnum() or text[at : at + 1] in ("!", ".", "_"):
            at += 1
        if text[at : at + 1] == "<":
            at = _skip_balanced(text, at)
        if at == start:
            raise ValueError("no type where one must stand")
        types.append(text[start:at])
        if text[at : at + 1] != ",":
            return types, at
        at += 1


def _skip_balanced(text: str, at: int) -> int:
    """Where the bracket that opens at `at` (after blanks) has closed."""
    at = _skip_blanks(text, at)
    if text[at] not in _CLOSERS:
        raise ValueError("no bracket where one must stand")
    waiting: list[str] = []
    for match in re.compile(r'"[^"\\\n]*(?:\\.[^"\\\n]*)*"|//[^\n]*|->|[\[\](){}<>]').finditer(text, at):
        token = match[0]
        if token in _CLOSERS:
            waiting.append(_CLOSERS[token])
        elif waiting and token == waiting[-1]:
            waiting.pop()
            if not waiting:
                return match.end()
        elif token in (")", "]", "}", ">"):
            raise ValueError("brackets do not match")
    raise ValueError("a bracket is not closed")


def _skip_attributes(text: str, at: int) -> int:
    """Past an attribute dictionary behind an op: it says nothing that one device needs."""
    after = _skip_blanks(text, at)
    return _skip_balanced(text, after) if text[after : after + 1] == "{" else at


def _skip_blanks(text: str, at: int) -> int:
    while text[at : at + 1].isspace():
        at += 1
    return at


def _end_of_line(text: str, at: int) -> int:
    end = text.find("\n", at)
    end = len(text) if end < 0 else end
    location = text.find(" loc(", at, end)
    return end if location < 0 else location


def _not_understood(text: str, at: int, name: str, where: str) -> BadInput:
    line = text.count("\n", 0, at) + 1
    column = at - text.rfind("\n", 0, at)
    return BadInput(
        f"sdy.{name} is not written as Shardy prints it",
        where=f"{where}:{line}:{column}",
        hint="print the module in generic form, or export it with jax_use_shardy_partitioner set to False",
    )
