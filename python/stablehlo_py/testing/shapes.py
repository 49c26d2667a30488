"""The dimensions in a program's text, and the text with one size replaced everywhere."""

from __future__ import annotations

import re

_TYPE = re.compile(r"tensor<((?:\d+x)+)")
_ARRAY = re.compile(r"array<i64: [-\d, ]+>|dense<[-\d, \[\]]+>")


def sizes_in(text: str) -> list[int]:
    """The sizes above 1 that tensor types have, largest first."""
    found = {int(d) for match in _TYPE.finditer(text) for d in match[1].split("x") if d}
    return sorted((d for d in found if d > 1), reverse=True)


def with_smaller_dims(text: str, size: int, smaller: int, in_attributes: bool) -> str:
    """Every dimension of `size` made `smaller`; in_attributes: and every such number of an array attribute."""

    def in_type(match: re.Match[str]) -> str:
        dims = [str(smaller) if d == str(size) else d for d in match[1].split("x")]
        return f"tensor<{'x'.join(dims)}"

    text = _TYPE.sub(in_type, text)
    if in_attributes:
        text = _ARRAY.sub(lambda m: re.sub(rf"(?<![-\d]){size}(?!\d)", str(smaller), m[0]), text)
    return text
