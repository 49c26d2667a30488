"""Ops of dialects that the bindings do not have, found in a program's text and written otherwise, without a parser."""

from __future__ import annotations

import re
from collections.abc import Callable

from stablehlo_py.errors import BadInput
from stablehlo_py.patterns import pattern

VALUE = pattern(r"%[\w$.-]+(?:#\d+)?")
BRACKETS = {"(": ")", "[": "]", "{": "}", "<": ">"}
_QUOTED_OR_COMMENT = r'"[^"\\\n]*(?:\\.[^"\\\n]*)*"|//[^\n]*'
_TOKEN = pattern(_QUOTED_OR_COMMENT + r"|->|[\[\](){}<>]")

# (text, name of the op, where the name ends) -> what to write, and where what it replaces ends
Rewrite = Callable[[str, str, int], tuple[str, int]]


def replace_ops(
    text: str,
    dialect: str,
    rewrite: Rewrite,
    where: str,
    not_understood: Callable[[str, str], BadInput],
    *,
    in_generic_form: bool = False,
) -> str:
    """`text` with each op of a dialect rewritten; `not_understood` makes the error of one, from its name and its place.

    where: the name of the text, for places.
    in_generic_form: those whose name is quoted too.
    """
    quoted = rf'"{dialect}\.(?P<quoted>\w+)"(?=\s*\()|' if in_generic_form else "(?P<quoted>(?!))|"
    op = re.compile(rf'{quoted}{_QUOTED_OR_COMMENT}|(?<![\w.#!"@]){dialect}\.(?P<plain>\w+)')
    pieces: list[str] = []
    done = 0
    for match in op.finditer(text):
        name = match["quoted"] or match["plain"]
        if name is None or match.start() < done or not _is_op(text, match.start(), match.end()):
            continue
        try:
            piece, end = rewrite(text, name, match.end())
        except (ValueError, IndexError, RecursionError) as error:
            line, column = text.count("\n", 0, match.start()) + 1, match.start() - text.rfind("\n", 0, match.start())
            raise not_understood(name, f"{where}:{line}:{column}") from error
        pieces += [text[done : match.start()], piece]
        done = end
    pieces.append(text[done:])
    return "".join(pieces)


def _is_op(text: str, at: int, end: int) -> bool:
    """Whether an op's name stands here, and no attribute's: first on its line, after `=` of results, or after a brace."""
    follows = skip_blanks(text, end)
    if text[follows : follows + 1] in ("=", ",", "}"):
        return False
    before = text[max(0, text.rfind("\n", 0, at)) : at].rstrip(" \t")
    return before in ("", "\n") or before.endswith(("{", "}")) or re.search(r"%[\w$.:, %-]+=$", before) is not None


def types_at(text: str, at: int) -> tuple[list[str], int]:
    """The types that start at `at`, separated by commas, and where they end."""
    ty, at = type_at(text, at)
    types = [ty]
    while text[at : at + 1] == ",":
        ty, at = type_at(text, at + 1)
        types.append(ty)
    return types, at


def type_at(text: str, at: int) -> tuple[str, int]:
    """The type that starts at `at`, after blanks, and where it ends."""
    start = at = skip_blanks(text, at)
    while text[at : at + 1].isalnum() or text[at : at + 1] in ("!", ".", "_"):
        at += 1
    if text[at : at + 1] == "<":
        at = skip_balanced(text, at)
    if at == start:
        raise ValueError("no type where one must stand")
    return text[start:at], at


def skip_balanced(text: str, at: int) -> int:
    """Where the bracket that opens at `at` (after blanks) has closed."""
    at = skip_blanks(text, at)
    if text[at] not in BRACKETS:
        raise ValueError("no bracket where one must stand")
    waiting: list[str] = []
    for match in _TOKEN.finditer(text, at):
        token = match[0]
        if token in BRACKETS:
            waiting.append(BRACKETS[token])
        elif waiting and token == waiting[-1]:
            waiting.pop()
            if not waiting:
                return match.end()
        elif token in (")", "]", "}", ">"):
            raise ValueError("brackets do not match")
    raise ValueError("a bracket is not closed")


def skip_attributes(text: str, at: int) -> int:
    """Past an attribute dictionary behind an op, if there is one."""
    after = skip_blanks(text, at)
    return skip_balanced(text, after) if text[after : after + 1] == "{" else at


def skip_blanks(text: str, at: int) -> int:
    while text[at : at + 1].isspace():
        at += 1
    return at


def end_of_line(text: str, at: int) -> int:
    end = text.find("\n", at)
    end = len(text) if end < 0 else end
    location = text.find(" loc(", at, end)
    return end if location < 0 else location
