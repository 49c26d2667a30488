"""Instructions of AVX-512 on a register of floats that LLVM makes of no op of its own, by its names of them."""

from __future__ import annotations

from stablehlo_py.machine.cpu import Cpu
from stablehlo_py.mlir import arith, ir
from stablehlo_py.ops.llvm_ops import call_intrinsic
from stablehlo_py.targets.cpu.emit.nest import constant_vector

_REGISTER = 64  # bytes
# Intel's Software Developer's Manual, volume 2: VRANGEPS's smaller and larger operand, with the sign that it has
_SMALLER, _LARGER = 4, 5
# VFIXUPIMMPS's table: what is a NaN, of the two kinds that come first, becomes a NaN (2); of all else nothing does (0)
_NAN_ALONE = 0x22
_ROUND_AS_SET = 4


def has_instructions(ty: ir.VectorType, cpu: Cpu) -> bool:
    """Whether they are there for vectors of a type."""
    element = ty.element_type
    return (
        cpu.float_steps
        and isinstance(element, ir.F32Type | ir.F64Type)
        and ty.shape[0] * ir.FloatType(element).width == 8 * _REGISTER
    )


def extreme(a: ir.Value, b: ir.Value, *, largest: bool) -> ir.Value:
    """The larger or the smaller number, lane by lane, -0 below 0; of a number and a NaN the number."""
    return _masked("range", [a, b, _integer(32, _LARGER if largest else _SMALLER), a])


def nan_or(a: ir.Value, b: ir.Value) -> ir.Value:
    """A NaN where b is one, else a."""
    ty = ir.VectorType(a.type)
    bits = ir.IntegerType.get_signless(ir.FloatType(ty.element_type).width)
    table = constant_vector(ir.VectorType.get(ty.shape, bits), _NAN_ALONE)
    return _masked("fixupimm", [a, b, table, _integer(32, 0)])


def scaled(x: ir.Value, n: ir.Value) -> ir.Value:
    """x 2^n for whole numbers n, rounded once."""
    return _masked("scalef", [x, n, x])


def _masked(name: str, operands: list[ir.Value]) -> ir.Value:
    """An instruction on all lanes."""
    ty = ir.VectorType(operands[0].type)
    kind = "ps" if isinstance(ty.element_type, ir.F32Type) else "pd"
    all_lanes, rounding = _integer(ty.shape[0], -1), _integer(32, _ROUND_AS_SET)
    name = f"llvm.x86.avx512.mask.{name}.{kind}.512"
    return call_intrinsic([ty], name, [*operands, all_lanes, rounding]).results[0]


def _integer(bits: int, value: int) -> ir.Value:
    return arith.constant(ir.IntegerType.get_signless(bits), value)
