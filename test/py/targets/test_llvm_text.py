"""LLVM 24 text to LLVM 22: literals keep their bits, and what would crash the translation is refused."""

from __future__ import annotations

import re
import time

import numpy as np
import pytest
from llvmlite import binding

from stablehlo_py import mlir
from stablehlo_py.errors import UnsupportedOp
from stablehlo_py.mlir import ir, llvm
from stablehlo_py.targets.llvm_literals import fix_literals
from stablehlo_py.targets.llvm_text import check_translatable, to_llvm_ir

WIDTHS = {"half": ("f16", 16), "bfloat": ("bf16", 16), "float": ("f32", 32), "double": ("f64", 64)}
RNG = np.random.default_rng(7)


def patterns(width: int) -> np.ndarray:
    """Bits of random values, NaNs with random payloads, infinities, zeros, subnormals and the largest values."""
    exponent, mantissa = {16: (5, 10), 32: (8, 23), 64: (11, 52)}[width]
    random = RNG.integers(0, 2**63, 400, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    bits = [int(x) >> (64 - width) for x in random]
    infinity = ((1 << exponent) - 1) << mantissa
    bits += [infinity | (x & ((1 << mantissa) - 1)) for x in bits[:100]]
    bits += [x & ((1 << mantissa) - 1) for x in bits[:100]]
    bits += [0, infinity, infinity - 1, infinity | 1, infinity | 1 << (mantissa - 1), 1]
    return np.array([x | sign << (width - 1) for x in bits for sign in (0, 1)], dtype=np.uint64)


def data_of(text: str, width: int) -> list[int]:
    """The values of the global @g as LLVM 22 lays them out, read from the assembly it emits."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    parsed = binding.parse_assembly(text)
    parsed.verify()
    machine = binding.Target.from_default_triple().create_target_machine()
    directive = {16: "short|2byte|value|hword", 32: "long|4byte|word", 64: "quad|8byte|xword"}[width]
    values = re.findall(rf"\.(?:{directive})\s+(-?\w+)", machine.emit_assembly(parsed))
    return [int(value, 0) & ((1 << width) - 1) for value in values]


@pytest.mark.parametrize("llvm_type", WIDTHS)
def test_random_bits_survive(llvm_type: str) -> None:
    name, width = WIDTHS[llvm_type]
    bits = np.arange(2**16, dtype=np.uint64)[::5] if width == 16 else patterns(width)
    spelled = ", ".join(f"0x{int(x):0{width // 4}X}" for x in bits)
    source = f"llvm.mlir.global constant @g(dense<[{spelled}]> : tensor<{len(bits)}x{name}>) : !llvm.array<{len(bits)} x {name}>"
    with mlir.new_context(), ir.Location.unknown():
        text = fix_literals(to_llvm_ir(ir.Module.parse(source).operation))
    assert data_of(text, width) == [int(x) for x in bits]


FUNCTION = """
llvm.func @f(%a: f32, %c: i1, %v: vector<4xf32>, %d: f64) -> f32 {
  %tenth = llvm.mlir.constant(0.1 : f32) : f32
  %inf = llvm.mlir.constant(0xFF800000 : f32) : f32
  %nan = llvm.mlir.constant(0x7F800001 : f32) : f32
  %split = llvm.mlir.constant(dense<0.3> : vector<4xf32>) : vector<4xf32>
  %mixed = llvm.mlir.constant(dense<[0.1, 0.2, 0x7F800000, 1.0]> : vector<4xf32>) : vector<4xf32>
  %wide = llvm.mlir.constant(0.7 : f64) : f64
  %sum = llvm.fadd %a, %tenth : f32
  %less = llvm.fcmp "olt" %sum, %inf : f32
  %w = llvm.fmul %v, %split : vector<4xf32>
  %x = llvm.fmul %w, %mixed : vector<4xf32>
  %e = llvm.fadd %d, %wide : f64
  llvm.cond_br %c, ^end(%tenth : f32), ^end(%nan : f32)
^end(%p: f32):
  %r = llvm.select %less, %tenth, %p : i1, f32
  llvm.return %r : f32
}
"""


def test_every_place_of_an_operand_is_read_again() -> None:
    """Typed operands, bare second operands, phi inputs, vectors and splats."""
    with mlir.new_context(), ir.Location.unknown():
        module = ir.Module.parse(FUNCTION)
        raw = llvm.translate_module_to_llvmir(module.operation)
        text = fix_literals(to_llvm_ir(module.operation))
    with pytest.raises(RuntimeError):
        binding.parse_assembly(raw)
    binding.parse_assembly(text).verify()
    assert "0x3FB99999A0000000" in text
    assert "0x3FE6666666666666" in text  # the double keeps its own type
    assert "splat (float 0x3FD3333340000000)" in text


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("  %3 = phi double [ 1.000000e-01, %1 ]", "  %3 = phi double [ 0x3FB999999999999A, %1 ]"),
        ("  %y = fadd half %float, 1.0e+00", "  %y = fadd half %float, 0xH3C00"),
        ("  %y = fcmp olt float %x, f0x7F7FFFFF", "  %y = fcmp olt float %x, 0x47EFFFFFE0000000"),
        ("  ret bfloat +qnan", "  ret bfloat 0xR7FC0"),
        ("  ret float -nan(0x1)", "  ret float 0xFFF8000020000000"),
        ("  ret float +snan(0x1)", "  ret float 0x7FF0000020000000"),
        ('@"float 0.1" = constant i32 1', '@"float 0.1" = constant i32 1'),
        ("  call void @my-1.5(float 0.5)", "  call void @my-1.5(float 0x3FE0000000000000)"),
        ('target triple = "x-1.0"', 'target triple = "x-1.0"'),
        ('  call float asm "mul 0.1, float 0.2;", "=r"()', '  call float asm "mul 0.1, float 0.2;", "=r"()'),
    ],
)
def test_one_line(line: str, expected: str) -> None:
    assert fix_literals(line) == expected


def test_a_hundred_thousand_literals_take_seconds_not_minutes() -> None:
    values = ", ".join(f"float {x:.6e}" for x in RNG.standard_normal(100_000))
    start = time.process_time()
    fixed = fix_literals(f"@g = constant [100000 x float] [{values}]")
    assert fixed.count("float 0x") == 100_000
    assert time.process_time() - start < 5  # measured 0.25 s


@pytest.mark.parametrize(
    ("body", "op_name"),
    [
        ("llvm.func @f(%x: i64) { %y = builtin.unrealized_conversion_cast %x : i64 to index llvm.return }", "builtin"),
        ("llvm.func @f(%x: f32) { %y = arith.addf %x, %x : f32 llvm.return }", "arith.addf"),
        ("func.func @f() { return }", "func.func"),
        ("llvm.func @f() { %y = llvm.mlir.undef : vector<4xindex> llvm.return }", "llvm.mlir.undef"),
        ("llvm.func @f() { %y = llvm.mlir.zero : vector<3xf8E4M3FN> llvm.return }", "llvm.mlir.zero"),
    ],
)
def test_what_has_no_translation_is_refused(body: str, op_name: str) -> None:
    with mlir.new_context(), ir.Location.unknown():
        module = ir.Module.parse(body)
        with pytest.raises(UnsupportedOp, match=op_name):
            check_translatable(module.operation)


def test_the_refusal_names_the_place() -> None:
    source = 'llvm.func @f(%x: f32) { %y = arith.addf %x, %x : f32 loc("model.py":3:7) llvm.return }'
    with mlir.new_context(), pytest.raises(UnsupportedOp, match=r"model\.py:3:7"):
        check_translatable(ir.Module.parse(source).operation)
