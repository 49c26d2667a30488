"""Files of several programs, with a line `// -----` between them."""

from __future__ import annotations

import re
from collections.abc import Iterator

SPLIT = re.compile(r"^// -----[ \t]*$", re.M)


def split_input(text: str) -> Iterator[str]:
    """The parts that are not blank, each behind as many empty lines as stand before it: so its line numbers are the file's."""
    begin = 0
    for mark in [*SPLIT.finditer(text), None]:
        end = mark.start() if mark else len(text)
        piece = text[begin:end]
        if piece.strip():
            yield "\n" * text.count("\n", 0, begin) + piece
        begin = mark.end() if mark else end
