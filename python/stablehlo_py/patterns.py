"""Regular expressions that are compiled when they are first used: 0.2 ms each, and most processes use few."""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast


def pattern(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """What `re.compile` gives, later."""
    return cast(re.Pattern[AnyStr], _Later(text, flags))


class _Later:
    """Becomes the pattern's methods, one by one, as they are asked for."""

    def __init__(self, text: str | bytes, flags: int) -> None:
        self._text, self._flags = text, flags

    def __getattr__(self, name: str) -> Any:  # Any: of a pattern
        found = getattr(re.compile(self._text, self._flags), name)  # re keeps what it has compiled
        setattr(self, name, found)
        return found
