"""cholesky and triangular_solve: column after column, row after row; sums in f64."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stablehlo_py.core.registry import lower
from stablehlo_py.core.types import ElementType, element_type
from stablehlo_py.dialects.stablehlo import Op
from stablehlo_py.mlir import arith, complex, ir
from stablehlo_py.ops import build
from stablehlo_py.ops import complex_functions as cx
from stablehlo_py.ops.build import Tensor
from stablehlo_py.ops.convert import convert
from stablehlo_py.ops.expression import Num
from stablehlo_py.records import record

Read = Callable[[ir.Value, ir.Value], ir.Value]  # (row, column) -> a scalar of the wide type


@record
class Field:
    """Arithmetic in the type that sums are kept in: f64 or complex<f64>."""

    narrow: ElementType

    @property
    def wide(self) -> ElementType:
        return element_type("complex<f64>" if self.narrow.is_complex else "f64")

    def up(self, x: ir.Value) -> ir.Value:
        return convert(self.narrow, self.wide, x)

    def down(self, x: ir.Value) -> ir.Value:
        return convert(self.wide, self.narrow, x)

    def conj(self, x: ir.Value) -> ir.Value:
        return cx.conjugate(x) if self.narrow.is_complex else x

    def minus_product(self, total: ir.Value, x: ir.Value, y: ir.Value) -> ir.Value:
        """total - x y."""
        if self.narrow.is_complex:
            return cx.subtract(total, cx.multiply(x, y))
        return (Num(total) - Num(x) * Num(y)).value

    def divide(self, x: ir.Value, y: ir.Value) -> ir.Value:
        return cx.divide(x, y) if self.narrow.is_complex else (Num(x) / Num(y)).value

    def root_of_real(self, x: ir.Value) -> ir.Value:
        """The square root of the real part, which is all there is of x."""
        if not self.narrow.is_complex:
            return Num(x).sqrt().value
        root = Num(complex.re(x)).sqrt()
        return cx.create(root.value, root.lift(0.0).value)


def _element(field: Field, source: Tensor, batch: Sequence[ir.Value], *, transposed: bool, conjugated: bool) -> Read:
    """How to read a matrix of a batch, transposed or conjugated on the way."""

    def read(row: ir.Value, column: ir.Value) -> ir.Value:
        place = (column, row) if transposed else (row, column)
        value = field.up(build.read(source, [*batch, *place]))
        return field.conj(value) if conjugated else value

    return read


@lower("stablehlo.cholesky")
def lower_cholesky(op: Op, a: Tensor) -> Tensor:
    """a = L L^H, from the triangle that `lower` names; the other triangle of the result is zero.

    for j: L[j,j] = sqrt(a[j,j] - sum |L[j,k]|^2);  for i > j: L[i,j] = (a[i,j] - sum L[i,k] conj L[j,k]) / L[j,j]
    """
    lower_triangle = op.flag("lower")
    field, size = Field(a.element), a.shape[-1]

    def column(indices: list[ir.Value], carried: list) -> list:
        *batch, j = indices
        (result,) = carried

        def rest(i: ir.Value, target: Tensor) -> ir.Value:
            of_a = _element(field, a, batch, transposed=not lower_triangle, conjugated=not lower_triangle)
            done = _element(field, target, batch, transposed=not lower_triangle, conjugated=not lower_triangle)

            def step(at: list[ir.Value], total: list) -> list:
                return [field.minus_product(total[0], done(i, at[0]), field.conj(done(j, at[0])))]

            return build.loops([j], [of_a(i, j)], step)[0]

        def put(i: ir.Value, value: ir.Value, target: Tensor) -> Tensor:
            stored = field.down(value if lower_triangle else field.conj(value))
            return build.write(target, stored, [*batch, *((i, j) if lower_triangle else (j, i))])

        diagonal = field.root_of_real(rest(j, result))
        result = put(j, diagonal, result)

        def below(at: list[ir.Value], inner: list) -> list:
            i = arith.addi(arith.addi(j, at[0]), build.index(1))
            return [put(i, field.divide(rest(i, inner[0]), diagonal), inner[0])]

        count = arith.subi(build.index(size - 1), j)
        return build.loops([count], [result], below)

    return build.loops([*a.shape[:-2], size], [build.splat(a.type, 0)], column)[0]


@lower("stablehlo.triangular_solve")
def lower_triangular_solve(op: Op, a: Tensor, b: Tensor) -> Tensor:
    """op(a) x = b, or x op(a) = b when the right side is asked for, by substitution.

    With t = op(a), its transpose for the right side, and rows of x taken in the order that t's triangle allows:
    x[i] = (b[i] - sum over the rows k done before of t[i,k] x[k]) / t[i,i].
    """
    left, unit = op.flag("left_side", True), op.flag("unit_diagonal")
    transpose = op.enum("transpose_a", "NO_TRANSPOSE")
    transposed, conjugated = transpose in ("TRANSPOSE", "ADJOINT"), transpose == "ADJOINT"
    if not left:
        transposed = not transposed
    forward = op.flag("lower") != transposed
    field, size = Field(a.element), a.shape[-1]
    columns = b.shape[-1 if left else -2]

    def row_of(step: ir.Value) -> ir.Value:
        return step if forward else arith.subi(build.index(size - 1), step)

    def unknown(indices: list[ir.Value], carried: list) -> list:
        *batch, column, step = indices
        (x,) = carried
        i = row_of(step)
        t = _element(field, a, batch, transposed=transposed, conjugated=conjugated)
        done = _element(field, x, batch, transposed=not left, conjugated=False)
        given = _element(field, b, batch, transposed=not left, conjugated=False)

        def subtract(at: list[ir.Value], total: list) -> list:
            k = row_of(at[0])
            return [field.minus_product(total[0], t(i, k), done(k, column))]

        value = build.loops([step], [given(i, column)], subtract)[0]
        if not unit:
            value = field.divide(value, t(i, i))
        return [build.write(x, field.down(value), [*batch, *((i, column) if left else (column, i))])]

    return build.loops([*b.shape[:-2], columns, size], [build.splat(b.type, 0)], unknown)[0]
