"""Text of pass options and pipelines: brackets, quotes, and the position of what is wrong."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from stablehlo_py.patterns import pattern

_CLOSING = {"(": ")", "{": "}", "[": "]", "<": ">"}
_MARKS = frozenset("(){}[]<>\"'")
_PLAIN = pattern(r"[^\s\"'{}()\[\]<>,]+")


class SyntaxProblem(ValueError):
    """Text that cannot be read; `position` is the offset of the character where reading stopped."""

    def __init__(self, message: str, text: str, position: int) -> None:
        self.problem, self.text, self.position = message, text, position
        line = text.count("\n", 0, position)
        start = text.rfind("\n", 0, position) + 1
        shown = text.split("\n")[line]
        super().__init__(f"{message}\n  {shown}\n  {' ' * (position - start)}^")


def skip_value(text: str, position: int, stop: str) -> int:
    """The offset of the first character of `stop` outside brackets and quotes, or the length of the text."""
    if _MARKS.isdisjoint(text):
        return min((end for char in stop if (end := text.find(char, position)) >= 0), default=len(text))
    closing: list[tuple[str, int]] = []
    while position < len(text):
        char = text[position]
        if not closing and char in stop:
            return position
        if char in "\"'":
            end = _end_of_quote(text, position)
            if end < 0:
                raise SyntaxProblem("this quote is not closed", text, position)
            position = end
        elif char in _CLOSING:
            closing.append((_CLOSING[char], position))
        elif char in ")}]>" and text[position - 1 : position + 1] != "->":
            if not closing or closing[-1][0] != char:
                raise SyntaxProblem(f"{char!r} closes nothing", text, position)
            closing.pop()
        position += 1
    if closing:
        raise SyntaxProblem("this bracket is not closed", text, closing[-1][1])
    return position


def _end_of_quote(text: str, position: int) -> int:
    end = position + 1
    while end < len(text) and text[end] != text[position]:
        end += 2 if text[end] == "\\" else 1
    return end if end < len(text) else -1


def split_commas(text: str) -> list[str]:
    """The parts between commas outside brackets and quotes."""
    parts, start = [], 0
    while start <= len(text):
        end = skip_value(text, start, ",")
        parts.append(text[start:end].strip())
        start = end + 1
    return [part for part in parts if part]


def parse_options(text: str) -> dict[str, str]:
    """`a=1 b c="x y" d={p,q}` -> {"a": "1", "b": "", "c": "x y", "d": "p,q"}; a layer of quotes or braces comes off."""
    options: dict[str, str] = {}
    position = 0
    while position < len(text):
        if text[position].isspace() or text[position] == ",":
            position += 1
            continue
        name_end = position
        while name_end < len(text) and (text[name_end].isalnum() or text[name_end] in "-_."):
            name_end += 1
        if name_end == position:
            raise SyntaxProblem("the name of an option is wanted here", text, position)
        name, position = text[position:name_end], name_end
        if name in options:
            raise SyntaxProblem(f"option {name!r} is given twice", text, name_end - len(name))
        if position < len(text) and text[position] == "=":
            end = skip_value(text, position + 1, " \t\n")
            options[name] = _unwrapped(text[position + 1 : end])
            position = end
        else:
            options[name] = ""
    return options


def _unwrapped(value: str) -> str:
    if len(value) >= 2 and value[0] in "\"'" and _end_of_quote(value, 0) == len(value) - 1:
        return re.sub(r"\\(.)", r"\1", value[1:-1])
    if len(value) >= 2 and value[0] == "{" and value[-1] == "}":
        return value[1:-1]
    return value


def format_options(options: Mapping[str, bool | int | float | str | None]) -> str:
    """The text that `parse_options` reads back."""
    return " ".join(f"{name}={_format(value)}" for name, value in options.items())


def _format(value: bool | int | float | str | None) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        return repr(value)
    if _PLAIN.fullmatch(value):
        return value
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that looks most like `name`, if one is near."""
    import difflib  # only on the way to an error

    close = difflib.get_close_matches(name, list(known), 1, 0.7)
    return close[0] if close else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`did you mean 'x'?`, or nothing where no known name is near."""
    close = nearest(name, known)
    return f"did you mean {close!r}?" if close else ""
