"""Convolutions of many kinds beside XLA's and the machine's limit: `python benchmarks/convolutions.py [PATTERN...]`.

Names are made of the parts of a row, so that `3x3`, `NCHW` or `depthwise` picks all of a kind.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch

from cpu import take_cores

LAST, FIRST = "NHWC", "NCHW"


@dataclass(frozen=True)
class Case:
    """One convolution. image, window: sizes of the spatial dimensions; batch, inputs, outputs: of the others."""

    image: tuple[int, ...]
    inputs: int
    outputs: int
    window: tuple[int, ...]
    batch: int = 1
    order: str = LAST
    element: str = "float32"
    groups: int = 1
    options: dict[str, tuple[int, ...]] = field(default_factory=dict)
    kind: str = ""

    @property
    def name(self) -> str:
        def by(sizes: tuple[int, ...]) -> str:
            return "x".join(map(str, sizes))

        order = "" if self.order in (LAST, FIRST) and self.order == LAST else f"-{self.order}"
        groups = "" if self.groups == 1 else "-depthwise" if self.groups == self.inputs else f"-groups{self.groups}"
        element = "" if self.element == "float32" else f"-{self.element}"
        kind = f"-{self.kind}" if self.kind else ""
        return f"{self.batch}x{by(self.image)}-{self.inputs}to{self.outputs}-{by(self.window)}{order}{groups}{kind}{element}"

    @property
    def shapes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        spatial = iter(self.image)
        x = tuple({"N": self.batch, "C": self.inputs}.get(d) or next(spatial) for d in self.order)
        within = self.inputs // self.groups
        last = self.order[-1] == "C"
        return x, (*self.window, within, self.outputs) if last else (self.outputs, within, *self.window)

    @property
    def dimension_numbers(self) -> tuple[str, str, str]:
        spatial = self.order.replace("N", "").replace("C", "")
        return self.order, f"{spatial}IO" if self.order[-1] == "C" else f"OI{spatial}", self.order


def of_networks() -> Iterator[Case]:
    """Layers of image networks, in both orders."""
    for order in (LAST, FIRST):
        case = Case((56, 56), 64, 64, (3, 3), order=order)
        yield case
        yield replace(
            case, image=(224, 224), inputs=3, window=(7, 7), options={"window_strides": (2, 2)}, kind="stride2"
        )
        yield replace(case, image=(112, 112), inputs=32, outputs=32)
        yield replace(case, image=(112, 112), inputs=3, outputs=16)
        yield replace(case, image=(28, 28), inputs=128, outputs=128, batch=8)
        yield replace(case, image=(28, 28), inputs=512, outputs=512)
        yield replace(case, image=(14, 14), inputs=256, outputs=256)
        yield replace(case, image=(7, 7), inputs=512, outputs=512)
        yield replace(case, image=(7, 7), inputs=512, outputs=512, batch=8)
        yield replace(case, image=(56, 56), inputs=64, outputs=256, window=(1, 1))
        yield replace(case, image=(14, 14), inputs=1024, outputs=256, window=(1, 1))
        yield replace(case, image=(28, 28), inputs=32, outputs=64, window=(5, 5))
        yield replace(case, inputs=128, outputs=128, options={"window_strides": (2, 2)}, kind="stride2")
        yield replace(case, image=(28, 28), options={"rhs_dilation": (2, 2)}, kind="dilated")
        yield replace(case, image=(56, 56), inputs=128, outputs=128, groups=128)
        yield replace(case, image=(14, 14), inputs=512, outputs=512, groups=512, window=(5, 5))
        yield replace(case, image=(28, 28), inputs=256, outputs=256, groups=32)


def of_other_kinds() -> Iterator[Case]:
    """Lines and volumes, transposed ones, and those that a training step makes."""
    yield Case((1000,), 256, 256, (5,), order="NHC")
    yield Case((1000,), 256, 256, (5,), order="NCH")
    yield Case((16000,), 1, 64, (25,), order="NHC")
    yield Case((16, 28, 28), 16, 32, (3, 3, 3), order="NDHWC")
    yield Case((16, 28, 28), 16, 32, (3, 3, 3), order="NCDHW")
    for order in (LAST, FIRST):
        two = {"lhs_dilation": (2, 2)}
        yield Case((28, 28), 128, 64, (4, 4), order=order, options=two, kind="transposed")
        yield Case((56, 56), 64, 32, (3, 3), order=order, options=two, kind="transposed")
        yield Case((28, 28), 64, 128, (3, 3), batch=8, order=order, kind="grad_image")
        yield Case((28, 28), 64, 128, (3, 3), batch=8, order=order, kind="grad_kernel")


def of_other_elements() -> Iterator[Case]:
    for element in ("int8", "uint8", "bfloat16", "float16", "float64"):
        yield Case((56, 56), 64, 64, (3, 3), element=element)
        yield Case((28, 28), 128, 128, (1, 1), element=element)
        yield Case((56, 56), 64, 64, (3, 3), order=FIRST, element=element)
        yield Case((56, 56), 128, 128, (3, 3), groups=128, element=element)


def cases() -> dict[str, Case]:
    return {case.name: case for many in (of_networks(), of_other_kinds(), of_other_elements()) for case in many}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("patterns", nargs="*", metavar="PATTERN", help="rows whose name holds one; all without one")
    parser.add_argument("--list", action="store_true", help="print the names")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="cores of each side")
    parser.add_argument("--seconds", type=float, default=0.5, help="that a row's calls take, both sides together")
    options = parser.parse_args(arguments)
    chosen = [
        case
        for name, case in cases().items()
        if not options.patterns or any(fnmatch(name, f"*{pattern}*") for pattern in options.patterns)
    ]
    if options.list:
        print("\n".join(case.name for case in chosen))
        return 0
    take_cores(options.threads)
    # Only now: each library makes as many threads as it finds cores when it starts.
    from measure import measure, measure_limit, start

    start()
    limit = measure_limit(options.threads)
    print(f"{'':<46}{'run us':>10}{'XLA':>10}{'ratio':>7}{'median':>8}{'limit':>7}")
    ratios = []
    for case in chosen:
        row = measure(case.name, workload(case), limit, options.seconds)
        if row.failure:
            print(f"{case.name:<46} {row.failure}", flush=True)
            continue
        ratios.append(row.fastest_ratio)
        times = f"{row.ours.fastest * 1e6:10.1f}{row.xla.fastest * 1e6:10.1f}"
        print(
            f"{case.name:<46}{times}{row.fastest_ratio:7.2f}{row.median_ratio:8.2f}{row.limit / row.ours.fastest:7.0%}",
            flush=True,
        )
    if ratios:
        print(f"{len(ratios)} rows, geometric mean XLA / ours {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}")
    return 0


def workload(case: Case):
    import jax
    import jax.numpy as jnp
    import ml_dtypes
    import numpy as np
    from jax import lax
    from workloads import Workload

    dtype = np.dtype(getattr(ml_dtypes, case.element, None) or case.element)
    if dtype == np.float64:
        jax.config.update("jax_enable_x64", True)
    integers = dtype.kind in "iu"

    def make(shape: tuple[int, ...]):
        if integers:
            info = np.iinfo(dtype)
            return lambda random: random.integers(info.min, info.max, shape, dtype, endpoint=True)
        return lambda random: random.standard_normal(shape, np.float32).astype(dtype)

    def apply(x: jax.Array, w: jax.Array) -> jax.Array:
        spatial = len(case.image)
        return lax.conv_general_dilated(
            x,
            w,
            case.options.get("window_strides", (1,) * spatial),
            "SAME" if "lhs_dilation" not in case.options else [(k - 1, k - 1) for k in case.window],
            lhs_dilation=case.options.get("lhs_dilation"),
            rhs_dilation=case.options.get("rhs_dilation"),
            dimension_numbers=case.dimension_numbers,
            feature_group_count=case.groups,
            preferred_element_type=jnp.int32 if integers else None,
        )

    function, (x, w) = apply, case.shapes
    result = jax.eval_shape(apply, jax.ShapeDtypeStruct(x, dtype), jax.ShapeDtypeStruct(w, dtype))
    arguments = (make(x), make(w))
    if case.kind == "grad_image":
        arguments = (make(result.shape), make(w))
        function = lambda g, w: jax.vjp(lambda x: apply(x, w), jnp.zeros(x, dtype))[1](g)[0]  # noqa: E731
    elif case.kind == "grad_kernel":
        arguments = (make(x), make(result.shape))
        function = lambda a, g: jax.vjp(lambda w: apply(a, w), jnp.zeros(w, dtype))[1](g)[0]  # noqa: E731
    products = result.size * math.prod(w) // (w[-1] if case.order[-1] == "C" else w[0])
    stuffed = math.prod(case.options.get("lhs_dilation", (1,)))
    tolerance = 0.0 if integers else 2e-2 if dtype.itemsize == 2 else 1e-4
    return Workload(function, arguments, flops=2.0 * products / stuffed, tolerance=tolerance)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
