"""PyTorch modules come in through torch_mlir.fx, weights and all."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

from stablehlo_py.errors import BadInput
from stablehlo_py.interop.torch import export
from stablehlo_py.mlir import new_context
from stablehlo_py.reading import read_module
from stablehlo_py.reading.annotations import walk
from stablehlo_py.transforms.hlo_normalize import normalize


@pytest.mark.skipif(importlib.util.find_spec("torch") is not None, reason="torch is installed")
def test_without_torch_it_says_so():
    with pytest.raises(BadInput, match="needs torch"):
        export(object())


def test_module_and_weights():
    torch = pytest.importorskip("torch")
    linear = torch.nn.Linear(3, 2)
    module = read_module(export(torch.nn.Sequential(linear, torch.nn.GELU()), torch.ones(1, 3)), new_context())
    normalize(module)
    names: set[str] = set()
    constants: list[np.ndarray] = []

    def visit(op):
        names.add(op.name.split(".")[0])
        if op.name == "stablehlo.constant":
            constants.append(np.asarray(op.attributes["value"]))

    walk(module.operation, visit)
    assert names == {"func", "stablehlo"}
    weight = linear.weight.detach().numpy()
    assert any(array.shape == (2, 3) and np.array_equal(array, weight) for array in constants)


def test_a_module_that_was_not_exported():
    torch = pytest.importorskip("torch")
    with pytest.raises(BadInput, match="not StableHLO yet"):
        read_module(torch.nn.Linear(1, 1), new_context())
