"""Code that is written for another CPU, run on this machine: for what only wider vectors, or narrower ones, show.

What is written for 512 bits - its plans, loops, masks and edges - is what a machine with AVX-512 would be given; only the
last step differs: LLVM makes code of it for this machine and cuts the vectors, and the instructions that passes name, such
as vpdpbusd, are calls of functions that do the same. On x86-64 with AVX2 at least.

    python -m stablehlo_py.testing.other_cpu znver4 program.py argument ...
"""

from __future__ import annotations

import contextlib
import os
import re
import runpy
import sys
from collections.abc import Iterator

from stablehlo_py.machine.cpu import cpu_of
from stablehlo_py.targets import cpus
from stablehlo_py.targets.cpu.code import codegen
from stablehlo_py.targets.machine_code import CodegenOptions

# What instructions do, by LLVM's names of them, for vectors of LANES sums. Intel's Software Developer's Manual, volume 2.
MEANING = {
    # the second pair of each lane first, each sum rounded once; numbers below the normal ones are not taken for zeros here
    "llvm.x86.avx512bf16.dpbf16ps.512": """
  %a = bitcast {first} %x to <16 x i32>
  %b = bitcast {second} %y to <16 x i32>
  %a1.bits = and <16 x i32> %a, splat (i32 -65536)
  %b1.bits = and <16 x i32> %b, splat (i32 -65536)
  %a0.bits = shl <16 x i32> %a, splat (i32 16)
  %b0.bits = shl <16 x i32> %b, splat (i32 16)
  %a1 = bitcast <16 x i32> %a1.bits to <16 x float>
  %b1 = bitcast <16 x i32> %b1.bits to <16 x float>
  %a0 = bitcast <16 x i32> %a0.bits to <16 x float>
  %b0 = bitcast <16 x i32> %b0.bits to <16 x float>
  %upper = call <16 x float> @llvm.fma.v16f32(<16 x float> %a1, <16 x float> %b1, <16 x float> %sum)
  %done = call <16 x float> @llvm.fma.v16f32(<16 x float> %a0, <16 x float> %b0, <16 x float> %upper)
""",
    "llvm.x86.avx512.vpdpwssd.512": """
  %a = bitcast {first} %x to <32 x i16>
  %b = bitcast {second} %y to <32 x i16>
  %a.wide = sext <32 x i16> %a to <32 x i32>
  %b.wide = sext <32 x i16> %b to <32 x i32>
  %products = mul <32 x i32> %a.wide, %b.wide
  %even = shufflevector <32 x i32> %products, <32 x i32> poison, <16 x i32> <{even}>
  %odd = shufflevector <32 x i32> %products, <32 x i32> poison, <16 x i32> <{odd}>
  %pairs = add <16 x i32> %even, %odd
  %done = add <16 x i32> %sum, %pairs
""",
    "llvm.x86.avx512.vpdpbusd.512": """
  %a = bitcast {first} %x to <64 x i8>
  %b = bitcast {second} %y to <64 x i8>
  %a.wide = zext <64 x i8> %a to <64 x i32>
  %b.wide = sext <64 x i8> %b to <64 x i32>
  %products = mul <64 x i32> %a.wide, %b.wide
  %even = shufflevector <64 x i32> %products, <64 x i32> poison, <32 x i32> <{even2}>
  %odd = shufflevector <64 x i32> %products, <64 x i32> poison, <32 x i32> <{odd2}>
  %pairs = add <32 x i32> %even, %odd
  %left = shufflevector <32 x i32> %pairs, <32 x i32> poison, <16 x i32> <{even}>
  %right = shufflevector <32 x i32> %pairs, <32 x i32> poison, <16 x i32> <{odd}>
  %fours = add <16 x i32> %left, %right
  %done = add <16 x i32> %sum, %fours
""",
    "llvm.x86.avx512.pmaddw.d.512": """
  %a = sext {first} %x to <32 x i32>
  %b = sext {second} %y to <32 x i32>
  %products = mul <32 x i32> %a, %b
  %even = shufflevector <32 x i32> %products, <32 x i32> poison, <16 x i32> <{even}>
  %odd = shufflevector <32 x i32> %products, <32 x i32> poison, <16 x i32> <{odd}>
  %done = add <16 x i32> %even, %odd
""",
}
# What LLVM calls where there is no instruction for it: the nearest bf16, the even one of two, and NaN for NaN.
ROUNDING = """
define bfloat @__truncsfbf2(float %x) {
  %bits = bitcast float %x to i32
  %upper = lshr i32 %bits, 16
  %last = and i32 %upper, 1
  %half = add i32 %last, 32767
  %moved = add i32 %bits, %half
  %rounded = lshr i32 %moved, 16
  %quiet = or i32 %upper, 64
  %is_nan = fcmp uno float %x, %x
  %chosen = select i1 %is_nan, i32 %quiet, i32 %rounded
  %short = trunc i32 %chosen to i16
  %done = bitcast i16 %short to bfloat
  ret bfloat %done
}
"""


def _numbers(start: int, count: int) -> str:
    return ", ".join(f"i32 {n}" for n in range(start, 2 * count, 2))


LANES = {"even": _numbers(0, 16), "odd": _numbers(1, 16), "even2": _numbers(0, 32), "odd2": _numbers(1, 32)}
DECLARED = re.compile(r"^declare (<[^>]*>) @(llvm\.x86\.avx512[\w.]*)\(([^)]*)\)[^\n]*$", re.MULTILINE)


def _for_this_machine(text: str) -> str:
    """LLVM IR whose AVX-512 instructions are functions that do the same."""

    def defined(found: re.Match[str]) -> str:
        result, name, types = found[1], found[2], re.findall(r"<[^>]*>", found[3])
        first, second = types[-2:]
        parameters = f"{first} %x, {second} %y"
        if len(types) == 3:
            parameters = f"{types[0]} %sum, {parameters}"
        body = MEANING[name].format(first=first, second=second, **LANES)
        return f"define internal {result} @{_plain(name)}({parameters}) alwaysinline {{{body}  ret {result} %done\n}}"

    text = DECLARED.sub(defined, text)
    for name in MEANING:
        text = text.replace(f"@{name}(", f"@{_plain(name)}(")
    if "define internal <16 x float> @emulated" in text and "declare <16 x float> @llvm.fma.v16f32" not in text:
        text += "\ndeclare <16 x float> @llvm.fma.v16f32(<16 x float>, <16 x float>, <16 x float>)\n"
    return text + (ROUNDING if "bfloat" in text else "")


def _plain(name: str) -> str:
    return name.replace("llvm.x86.", "emulated.")


STOOD_IN = ", stood in for"
HERE = cpus.host()  # this machine, whatever it is taken for


@contextlib.contextmanager
def as_cpu(name: str) -> Iterator[None]:
    """Compile as on a machine whose CPU LLVM calls `name`: x86-64-v3, znver4, ...; what comes out runs here.

    What of it is kept in a cache is under a name of its own.
    """
    with contextlib.ExitStack() as until_done:
        features = _features(name)
        if not any(f"-{feature}" in HERE[1].split(",") for feature in cpus.known(name)):
            until_done.enter_context(cpus.taken_for(name, features))
        else:
            until_done.enter_context(cpus.taken_for(name + STOOD_IN, features))
            until_done.enter_context(codegen.standing_in(_here))
        yield


def is_here(name: str) -> bool:
    """Whether code for that CPU is shaped as code for this one."""
    return cpu_of(_features(name)) == cpu_of(HERE[1])


def _features(name: str) -> str:
    """Of this machine, but for those that the CPU is known to have or to lack."""
    kept = [feature for feature in HERE[1].split(",") if feature[1:] not in cpus.all_known()]
    more = cpus.known(name)
    return ",".join([*kept, *(f"{'+' if each in more else '-'}{each}" for each in sorted(cpus.all_known()))])


def _here(text: str, options: CodegenOptions) -> tuple[str, CodegenOptions]:
    """What LLVM makes code of for this machine; what is asked for a CPU by its own name stays as it is."""
    if not options.cpu.endswith(STOOD_IN):
        return text, options
    return _for_this_machine(text), CodegenOptions(*HERE, options.speed)


if __name__ == "__main__":
    cpu, sys.argv = sys.argv[1], sys.argv[2:]
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    with as_cpu(cpu):
        runpy.run_path(sys.argv[0], run_name="__main__")
