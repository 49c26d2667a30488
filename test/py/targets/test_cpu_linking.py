"""Kernels are loaded wherever the process has room.

In a child process, since a linker may abort where it cannot; the one used before did so in about every second run.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

CODE = """
import mmap
import numpy as np
import stablehlo_py
from stablehlo_py import compiler

kept, made = [], []
load = compiler.Code
compiler.Code = lambda objects: (made.append(objects), load(objects))[1]
# The sine has constants in sections of their own.
sine = "func.func @main(%x: tensor<640xf32>) -> tensor<640xf32> {"
sine += "%0 = stablehlo.sine %x : tensor<640xf32> return %0 : tensor<640xf32> }"
x = np.linspace(-3, 3, 640, dtype=np.float32)
run = stablehlo_py.compile(sine, cache=False)
kernel = stablehlo_py.runtime.executor.KERNEL
for k in range(200):
    if k % 3 == 0:  # 3 GiB of addresses, no memory
        kept.append(mmap.mmap(-1, 3 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, prot=mmap.PROT_READ))
    kept.append(load(made[0]))
    y = np.zeros(640, np.float32)
    pointers = np.array([x.ctypes.data, y.ctypes.data])
    kernel(kept[-1].addresses[0])(pointers.ctypes.data, 0, 640)
    np.testing.assert_array_equal(y, run(x)[0])
print("all loaded")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="MAP_NORESERVE by its number on Linux")
def test_between_large_mappings():
    ran = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, timeout=300)
    assert ran.stdout == "all loaded\n", ran.stderr[-2000:]
