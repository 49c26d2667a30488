"""The weights of a convolution with their output features side by side, as emitters that have those in the lanes read them."""

from __future__ import annotations

from stablehlo_py.mlir import ir
from stablehlo_py.records import replace
from stablehlo_py.targets.cpu.emit import nest
from stablehlo_py.targets.cpu.emit.nest import Vectors
from stablehlo_py.targets.cpu.emit.register_transpose import turned
from stablehlo_py.targets.cpu.emit.streaming import Address
from stablehlo_py.targets.cpu.windows.convolutions import Geometry

Index = int | ir.Value


def by_features(kernel: ir.Value, of: Geometry, lanes: int) -> tuple[ir.Value, Geometry]:
    """The kernel with its output features innermost, and the convolution that reads it: a copy where they are not.

    What lies between two features moves out, the rest stays where it is.
    """
    between = of.loops["f"].w
    if between == 1:
        return kernel, of
    ty = ir.MemRefType(kernel.type)
    vectors, count = Vectors(ty.element_type, lanes), ty.shape[0]
    features = of.loops["f"].extent
    block = between * features
    copy = nest.scratch([count], vectors.element)

    def part(at: Index) -> None:
        source, target = Address.of(kernel, [at]), Address.of(copy, [at])
        turned(source, between, features, target, features, between, vectors)

    nest.once_or_loop(count, block, part)
    return copy, ordered_by_features(of, features)


def ordered_by_features(of: Geometry, features: int) -> Geometry:
    """The convolution whose kernel has so many output features innermost: all, or some that are put in order together."""
    between = of.loops["f"].w
    if between == 1:
        return of

    def moved(stride: int) -> int:
        return stride * features if abs(stride) < between else stride

    axes = tuple(replace(axis, w=moved(axis.w)) for axis in of.axes)
    loops = {**of.loops, "f": replace(of.loops["f"], w=1), "i": replace(of.loops["i"], w=moved(of.loops["i"].w))}
    return replace(of, loops=loops, axes=axes, first_tap=sum(-(a.taps - 1) * min(a.w, 0) for a in axes))
