"""PyTorch modules come in through torch_mlir.fx, weights and all."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

import stablehlo_py
from stablehlo_py.errors import BadInput, UnsupportedOp
from stablehlo_py.interop.torch import export
from stablehlo_py.mlir import new_context
from stablehlo_py.reading import read_module
from stablehlo_py.reading.annotations import walk
from stablehlo_py.transforms.normalize.hlo_normalize import normalize


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


# --- values: 1e-5 of the largest element


def agrees_with_torch(module, *tensors) -> None:
    """The module compiled for the CPU gives what PyTorch gives."""
    torch = pytest.importorskip("torch")
    module = module.eval()
    with torch.no_grad():
        wanted = module(*tensors)
    wanted = [w.numpy() for w in (wanted if isinstance(wanted, tuple) else (wanted,)) if w is not None]
    results = stablehlo_py.compile(export(module, *tensors))(*(t.numpy() for t in tensors))
    assert len(results) == len(wanted)
    for result, want in zip(results, wanted, strict=True):
        assert (result.shape, result.dtype) == (want.shape, want.dtype)
        np.testing.assert_allclose(result, want, rtol=1e-5, atol=1e-5 * np.nanmax(np.abs(want)))


def seeded():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    return torch


@pytest.mark.parametrize("activation", ["ReLU", "GELU", "Tanh", "SiLU", "Softmax"])
def test_mlp(activation):
    torch = seeded()
    nn = torch.nn
    options = {"dim": -1} if activation == "Softmax" else {}
    module = nn.Sequential(nn.Linear(9, 17), getattr(nn, activation)(**options), nn.Linear(17, 4), nn.LayerNorm(4))
    agrees_with_torch(module, torch.randn(5, 9))


def test_conv_net():
    torch = seeded()
    nn = torch.nn
    module = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 12, 3, stride=2, groups=4),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(12, 5),
    )
    module[1].running_mean = torch.randn(8) * 0.1
    module[1].running_var = torch.rand(8) + 0.5
    agrees_with_torch(module, torch.randn(2, 3, 14, 14))


def test_multihead_attention():
    torch = seeded()
    attention = torch.nn.MultiheadAttention(16, 4, batch_first=True)

    class SelfAttention(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = attention

        def forward(self, x):
            return self.attention(x, x, x)

    agrees_with_torch(SelfAttention(), torch.randn(2, 7, 16))


@pytest.mark.parametrize("norm_first", [False, True])
def test_transformer_encoder_layer(norm_first):
    torch = seeded()
    layer = torch.nn.TransformerEncoderLayer(16, 4, dim_feedforward=32, batch_first=True, norm_first=norm_first)
    agrees_with_torch(layer, torch.randn(2, 7, 16))


def test_embedding():
    torch = seeded()
    agrees_with_torch(torch.nn.Embedding(11, 6), torch.tensor([[1, 3], [10, 0]]))


def test_remainder_has_the_sign_of_the_divisor():
    """torch_mlir makes it stablehlo.remainder, which has that of the dividend."""
    torch = pytest.importorskip("torch")

    class Remainders(torch.nn.Module):
        def forward(self, x, y, i, j):
            return (
                x % y,
                x % 2.5,
                x % -2.5,
                i % j,
                i % 3,
                i % -3,
                7 % j,
                torch.fmod(x, y),
                torch.fmod(x, 2.5),
                torch.fmod(i, -3),
            )

    x = torch.tensor([5.0, -5.0, 5.5, -5.5, 0.0, -6.0])
    y = torch.tensor([3.0, 3.0, -3.0, -3.0, 2.0, 3.0])
    arguments = (x, y, x.int(), y.int())
    executable = stablehlo_py.compile(export(Remainders(), *arguments), cache=False)
    found = executable(*(argument.numpy() for argument in arguments))
    for one, other in zip(found, Remainders()(*arguments), strict=True):
        np.testing.assert_array_equal(one, other.numpy())


# --- what is taken apart here, since torch_mlir gives no StableHLO for it, or another


@pytest.mark.parametrize(
    ("name", "arguments", "options", "shape"),
    [
        ("MaxPool1d", (2, 2), {}, (2, 7, 15)),
        ("MaxPool2d", (2, 2), {"return_indices": True}, (2, 3, 11, 8)),
        ("MaxPool2d", ((3, 2), (2, 3), (1, 0)), {"dilation": 2}, (2, 3, 11, 8)),
        ("MaxPool3d", (2, 2), {}, (1, 2, 5, 6, 7)),
        ("AvgPool1d", (2, 2), {}, (2, 7, 15)),
        ("AvgPool2d", (3, 2, 1), {}, (2, 3, 11, 8)),
        ("AvgPool2d", (3, 2, 1), {"count_include_pad": False}, (2, 3, 11, 8)),
        ("AvgPool2d", (3, (2, 4), 1), {"divisor_override": 5}, (2, 3, 11, 8)),
        ("AvgPool3d", (2, 2), {}, (1, 2, 5, 6, 7)),
    ],
)
def test_pools_whose_last_window_ends_outside(name, arguments, options, shape):
    torch = seeded()
    agrees_with_torch(getattr(torch.nn, name)(*arguments, ceil_mode=True, **options), torch.randn(shape))


def test_indices_from_the_end():
    torch = seeded()

    class Places(torch.nn.Module):
        def forward(self, x, i, j, v):
            return x[i], x[:, j], x[i, j], *(torch.index_put(x, (i,), v, accumulate=a) for a in (False, True))

    i, j = torch.tensor([-1, 2, 0]), torch.tensor([5, -6, 1])
    agrees_with_torch(Places(), torch.randn(4, 6), i, j, torch.randn(3, 6))


def test_order_and_products_along_a_dimension():
    torch = seeded()

    class Along(torch.nn.Module):
        def forward(self, x):
            fourth = torch.kthvalue(x, 4, 1)
            return x.cumprod(1), x.cumprod(0), *fourth, *torch.median(x, 1), *torch.median(x, 0, keepdim=True)

    x = torch.randn(5, 13)
    x[3, 4] = float("nan")
    agrees_with_torch(Along(), x)


@pytest.mark.parametrize("name", ["CircularPad2d", "Upsample"])
def test_repeated_edges_and_pixels(name):
    torch = seeded()
    module = torch.nn.CircularPad2d((1, 2, 0, 3)) if name == "CircularPad2d" else torch.nn.Upsample(scale_factor=2)
    agrees_with_torch(module, torch.randn(2, 3, 5, 4))


@pytest.mark.parametrize(("name", "arguments"), [("erfinv", ()), ("cummax", (0,))])
def test_what_torch_mlir_cannot_lower_is_named_with_its_place(name, arguments, capfd):
    torch = pytest.importorskip("torch")

    class Module(torch.nn.Module):
        def forward(self, x):
            return getattr(torch, name)(x, *arguments)

    with pytest.raises(UnsupportedOp, match=rf"test_torch\.py:\d+:\d+: aten\.{name} is not supported: torch_mlir"):
        export(Module(), torch.ones(3, 3))
    assert "error:" not in capfd.readouterr().err
