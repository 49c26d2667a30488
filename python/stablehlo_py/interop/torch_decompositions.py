"""What torch_mlir cannot turn into StableHLO, or turns into something else, made of ops that it can.

remainder                  it gives the sign of the dividend; fmod by a number it has none
max_pool, ceil_mode        it pads on both sides what PyTorch pads on the right
avg_pool, ceil_mode        it has none
upsample_nearest2d         it leaves out the sizes given as factors
cumprod, kthvalue, median  it has none
index, index_put           it takes a negative index for 0 or for none, not for one from the end

A rule is called with the op's arguments while the program is traced; NotImplemented leaves the op as it is.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Sequence
from typing import Any

Rule = Callable[..., Any]  # Any: tensors of torch, which is not imported here, as below


def decompositions(torch: Any) -> dict[Any, Rule]:
    """The rules by overload; torch: the module."""
    aten = torch.ops.aten
    return {
        **_remainders(torch),
        aten.max_pool2d_with_indices.default: _max_pool(torch, aten.max_pool2d_with_indices, 2),
        aten.max_pool3d_with_indices.default: _max_pool(torch, aten.max_pool3d_with_indices, 3),
        aten.avg_pool1d.default: _avg_pool1d(torch),
        aten.avg_pool2d.default: _avg_pool(torch, aten.avg_pool2d, 2),
        aten.avg_pool3d.default: _avg_pool(torch, aten.avg_pool3d, 3),
        aten.upsample_nearest2d.vec: importlib.import_module("torch._decomp").decomposition_table[
            aten.upsample_nearest2d.vec
        ],
        aten.cumprod.default: _cumprod(torch),
        aten.kthvalue.default: _kthvalue(torch),
        aten.median.dim: _median(torch),
        aten.index.Tensor: _from_the_front(torch, aten.index.Tensor),
        aten.index_put.default: _from_the_front(torch, aten.index_put.default),
    }


def _remainders(torch: Any) -> dict[Any, Rule]:
    def by_tensor(dividend: Any, divisor: Any) -> Any:
        """fmod, moved by one divisor where the signs of the two differ."""
        rest = torch.fmod(dividend, divisor)
        differs = torch.logical_and(rest != 0, torch.logical_xor(rest < 0, divisor < 0))
        return torch.where(differs, rest + divisor, rest)

    def whole(scalar: Any, other: Any) -> Any:
        return torch.full_like(other, scalar, dtype=torch.result_type(scalar, other))

    def fmod(dividend: Any, divisor: Any) -> Any:
        """By a number; torch_mlir knows that of two tensors."""
        divisors = whole(divisor, dividend)
        return torch.fmod(dividend.to(divisors.dtype), divisors)

    def by_scalar(dividend: Any, divisor: Any) -> Any:
        # that a constant tensor of -2.5 is below 0 torch_mlir does not know
        rest = fmod(dividend, divisor)
        divisors = whole(divisor, rest)
        return torch.where(rest > 0 if divisor < 0 else rest < 0, rest + divisors, rest)

    def of_scalar(dividend: Any, divisor: Any) -> Any:
        return by_tensor(whole(dividend, divisor), divisor)

    remainder = torch.ops.aten.remainder
    return {
        remainder.Tensor: by_tensor,
        remainder.Scalar: by_scalar,
        remainder.Scalar_Tensor: of_scalar,
        torch.ops.aten.fmod.Scalar: fmod,
    }


# --- pools -------------------------------------------------------------------------------------------------------------


def _each(given: Sequence[int], rank: int, otherwise: Sequence[int] = ()) -> list[int]:
    """A number for each dimension: one stands for all, none for `otherwise`."""
    given = given or otherwise
    return list(given) if len(given) == rank else [given[0]] * rank


def _windows(
    rank: int, kernel_size: Sequence[int], stride: Sequence[int], padding: Sequence[int]
) -> tuple[list[int], list[int], list[int]]:
    """(window, stride, padding) of a pool in each dimension; where no stride is given, it is the window."""
    window = _each(kernel_size, rank)
    return window, _each(stride, rank, window), _each(padding, rank)


def _places(size: int, window: int, stride: int, padding: int) -> int:
    """Of a pool with ceil_mode: the last window may end behind the padding, and must not begin there."""
    places = -(-(size + 2 * padding - window) // stride) + 1
    return places - 1 if (places - 1) * stride >= size + padding else places


def _missing(size: int, window: int, stride: int, padding: int) -> int:
    """How many elements more on the right the windows of a pool with ceil_mode reach."""
    return max((_places(size, window, stride, padding) - 1) * stride + window - size - 2 * padding, 0)


def _padded(torch: Any, x: Any, missing: Sequence[int], value: float) -> Any:
    return torch.constant_pad_nd(x, [n for m in reversed(missing) for n in (0, m)], value)


def _max_pool(torch: Any, op: Any, rank: int) -> Rule:
    def pool(
        x: Any,
        kernel_size: Sequence[int],
        stride: Sequence[int] = (),
        padding: Sequence[int] = (0,),
        dilation: Sequence[int] = (1,),
        ceil_mode: bool = False,
    ) -> Any:
        if not ceil_mode:
            return NotImplemented
        taps, steps, around = _windows(rank, kernel_size, stride, padding)
        sizes, apart = x.shape[-rank:], _each(dilation, rank)
        windows = [(n - 1) * d + 1 for n, d in zip(taps, apart, strict=True)]
        missing = list(map(_missing, sizes, windows, steps, around))
        least = -math.inf if x.is_floating_point() else torch.iinfo(x.dtype).min
        values, numbers = op.default(_padded(torch, x, missing, least), taps, steps, around, apart, False)
        # a number counts the elements of the padded rows
        places, factor = torch.zeros_like(numbers), 1
        for size, more in zip(reversed(sizes), reversed(missing), strict=True):
            places = places + torch.fmod(numbers, torch.full_like(numbers, size + more)) * factor
            numbers = torch.div(numbers, size + more, rounding_mode="trunc")
            factor *= size
        return values, places

    return pool


def _avg_pool(torch: Any, op: Any, rank: int) -> Rule:
    def pool(
        x: Any,
        kernel_size: Sequence[int],
        stride: Sequence[int] = (),
        padding: Sequence[int] = (0,),
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Any:
        if not ceil_mode:
            return NotImplemented
        windows, steps, around = _windows(rank, kernel_size, stride, padding)
        sizes = x.shape[-rank:]
        missing = list(map(_missing, sizes, windows, steps, around))
        # torch_mlir divides by what the windows hold, and by nothing else
        sums = op.default(_padded(torch, x, missing, 0.0), windows, steps, around, False, True) * math.prod(windows)
        if divisor_override is not None:
            return sums / divisor_override
        for d, (size, window, step, pad) in enumerate(zip(sizes, windows, steps, around, strict=True)):
            edge = pad if count_include_pad else 0  # windows count what they hold up to there
            firsts = torch.arange(_places(size, window, step, pad), device=x.device) * step - pad
            counts = torch.clamp(firsts + window, max=size + edge) - torch.clamp(firsts, min=-edge)
            shape = [1] * rank
            shape[d] = -1
            sums = sums / counts.reshape(shape).to(x.dtype)
        return sums

    return pool


def _avg_pool1d(torch: Any) -> Rule:
    def pool(
        x: Any,
        kernel_size: Sequence[int],
        stride: Sequence[int] = (),
        padding: Sequence[int] = (0,),
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> Any:
        step = (stride or kernel_size)[0]
        wide = torch.ops.aten.avg_pool2d.default(
            x.unsqueeze(-2), [1, kernel_size[0]], [1, step], [0, padding[0]], ceil_mode, count_include_pad
        )
        return wide.squeeze(-2)

    return pool


# --- indices -----------------------------------------------------------------------------------------------------------


def _from_the_front(torch: Any, op: Any) -> Rule:
    """The op on indices of the leading dimensions of which those from the end are counted from the front."""
    is_inside = False

    def counted(index: Any, size: int) -> Any:
        if index is None or index.dtype == torch.bool:  # all of a dimension, or those that a mask has
            return index
        return torch.where(index < 0, index + size, index)

    def rule(x: Any, indices: Sequence[Any], *others: Any) -> Any:
        nonlocal is_inside
        if is_inside:  # the same op, of the indices below
            return NotImplemented
        found = [counted(index, size) for index, size in zip(indices, x.shape, strict=False)]
        is_inside = True
        try:
            return op(x, found, *others)
        finally:
            is_inside = False

    return rule


# --- along one dimension -----------------------------------------------------------------------------------------------


def _cumprod(torch: Any) -> Rule:
    def cumprod(x: Any, dim: int, *, dtype: Any = None) -> Any:
        """x[i] x[i - 1], then x[i] .. x[i - 3], ...: twice as many factors in each step."""
        x = x.to(dtype or (x.dtype if x.is_floating_point() or x.is_complex() else torch.int64))
        if not x.ndim:
            return x
        x, reach = x.transpose(dim, -1), 1
        while reach < x.shape[-1]:
            x = x * torch.constant_pad_nd(x[..., :-reach], [reach, 0], 1)
            reach *= 2
        return x.transpose(dim, -1)

    return cumprod


def _kthvalue(torch: Any) -> Rule:
    def kthvalue(x: Any, k: int, dim: int = -1, keepdim: bool = False) -> Any:
        values, places = torch.sort(x, dim=dim)
        values, places = values.narrow(dim, k - 1, 1), places.narrow(dim, k - 1, 1)
        return (values, places) if keepdim else (values.squeeze(dim), places.squeeze(dim))

    return kthvalue


def _median(torch: Any) -> Rule:
    def median(x: Any, dim: int, keepdim: bool = False) -> Any:
        """The lower of two in the middle; a NaN where there is one: the last in order."""
        ordered, size = torch.sort(x, dim=dim), x.shape[dim]
        middle, last = ([t.narrow(dim, n, 1) for t in ordered] for n in ((size - 1) // 2, size - 1))
        has_nan = last[0].isnan()
        found = [torch.where(has_nan, b, a) for a, b in zip(middle, last, strict=True)]
        return tuple(found) if keepdim else tuple(t.squeeze(dim) for t in found)

    return median
