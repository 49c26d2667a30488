"""ldexp(x, bits(s) - bits(c)) -> ldexp(x, s - c), where the loop computes s - c too: vscalefps takes whole floats.

Of an expansion of exp, s - c is the whole number that is left out of the exponent's polynomial and s ends in its bits. LLVM's
ldexp wants an integer, which costs a subtraction and a conversion back. Such an op with two floats is not LLVM's: it is for
`vector_body`, which makes the instruction of it.
"""

from __future__ import annotations

import struct

from stablehlo_py.core.collect import made_by
from stablehlo_py.core.rewire import erase_unused
from stablehlo_py.machine.cpu import Cpu
from stablehlo_py.mlir import ir
from stablehlo_py.ops.llvm_ops import LDEXP, call_intrinsic, is_ldexp
from stablehlo_py.targets.cpu.emit.avx512_floats import has_instructions
from stablehlo_py.targets.cpu.vectors.vector_legality import Innermost
from stablehlo_py.transforms.kernels.kernel_parallel import constant


def take_float_exponents(loop: Innermost, lanes: int, cpu: Cpu) -> bool:
    """Rewrite a loop's body; whether there was anything. What is known of the loop does not hold any longer then."""
    found = False
    for op in loop.body:
        if not is_ldexp(op) or loop.has_complex:  # what is left of a loop over complex numbers stays scalar
            continue
        x, exponent = op.operands
        if not has_instructions(ir.VectorType.get([lanes], x.type), cpu):
            continue
        whole = _as_float(exponent)
        if whole is None or whole not in loop.varying:
            continue
        with ir.InsertionPoint(op), op.location:
            op.results[0].replace_all_uses_with(call_intrinsic([x.type], LDEXP, [x, whole]).results[0])
        op.erase()
        erase_unused(exponent, "arith.subi", "arith.bitcast")
        found = True
    return found


def _as_float(exponent: ir.Value) -> ir.Value | None:
    """The float that is the same number, where there is one."""
    difference = made_by(exponent, "arith.subi")
    bits = None if difference is None else made_by(difference.operands[0], "arith.bitcast")
    less = None if difference is None else constant(difference.operands[1])
    if bits is None or less is None:
        return None
    for use in bits.operands[0].uses:
        other = use.owner.operation
        if other.name == "arith.subf" and other.operands[0] == bits.operands[0] and _bits_of(other.operands[1]) == less:
            return other.results[0]
    return None


def _bits_of(value: ir.Value) -> int | None:
    """The bits of a constant float."""
    op = made_by(value, "arith.constant")
    if op is None:
        return None
    number = ir.FloatAttr(op.attributes["value"]).value
    kinds = ("<f", "<i") if isinstance(value.type, ir.F32Type) else ("<d", "<q")
    return int(struct.unpack(kinds[1], struct.pack(kinds[0], number))[0])
