"""When garbage is not collected: a collection goes through what lives, which beside JAX takes longer than small programs."""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Iterator

MANY = 20  # modules: importing so many makes tens of thousands of objects


@contextlib.contextmanager
def none_collected() -> Iterator[None]:
    """No garbage collection meanwhile: a compilation leaves a few thousand objects that are garbage, most of them none.

    What it makes sets collections off all the same, and one goes through all objects of the process: beside JAX that
    takes 80 ms, as long as three small programs.
    """
    if not gc.isenabled():  # by the user, or by another thread that compiles
        yield
        return
    known = len(sys.modules)
    gc.disable()
    try:
        yield
    finally:
        # The next collection would go through all that is young. Modules live as long as the process: to freeze and thaw
        # puts them with what is old, without a look at any. Not each time, since it sets back the count to a collection
        # of what is old; not where the user keeps something frozen.
        if len(sys.modules) >= known + MANY and gc.get_freeze_count() == 0:
            gc.freeze()
            gc.unfreeze()
        gc.enable()
