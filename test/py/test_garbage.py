"""When garbage is not collected."""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest

from stablehlo_py.garbage import MANY, none_collected

# Collections are counted in a process of its own: which objects are young depends on all that was imported before.
IMPORTS = f"""
import gc, sys, types
from stablehlo_py.garbage import none_collected
if sys.argv[1] == "frozen":
    gc.freeze()
frozen = gc.get_freeze_count()
gc.collect()
with none_collected():
    sys.modules.update((f"new_{{i}}", types.ModuleType(f"new_{{i}}")) for i in range({MANY} if sys.argv[1] != "few" else 1))
    held = [[i] for i in range(100_000)]
print(len(gc.get_objects(generation=2)) > 100_000, gc.get_freeze_count() == frozen)
"""


def is_old_afterwards(case: str) -> list[str]:
    """Whether what was made is with old objects, and as many are frozen as before."""
    done = subprocess.run([sys.executable, "-c", IMPORTS, case], capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.parametrize(("case", "old"), [("many", "True"), ("few", "False"), ("frozen", "False")])
def test_objects_of_modules_are_old_at_once(case: str, old: str):
    assert is_old_afterwards(case) == [old, "True"]


def test_garbage_is_collected_again_after_an_error():
    with pytest.raises(KeyError), none_collected():
        assert not gc.isenabled()
        raise KeyError
    assert gc.isenabled()


def test_a_user_who_collects_no_garbage_is_left_alone():
    gc.disable()
    try:
        with none_collected():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
