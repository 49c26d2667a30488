"""Code that is written for another CPU, run on this machine: for what only wider vectors, or narrower ones, show.

What is written for 512 bits - its plans, loops, masks and edges - is what a machine with AVX-512 would be given; only the
last step differs: LLVM makes code of it for this machine and cuts the vectors, and the instructions that passes name, such
as vpdpbusd, are calls of functions that do the same; so are those on AMX's tiles (other_tiles). On x86-64 with AVX2 at least.

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
from stablehlo_py.testing.other_tiles import without_tiles

SUMS = 16  # in a vector


def _products_of_integers(group: int, widen: str, start: str) -> str:
    """LLVM IR of `start` + the products of `group` neighbours for each sum; widen: how those of the first factor are."""
    count, bits = SUMS * group, 32 // group
    lines = [
        f"%a = bitcast {{first}} %x to <{count} x i{bits}>",
        f"%b = bitcast {{second}} %y to <{count} x i{bits}>",
        f"%a.wide = {widen} <{count} x i{bits}> %a to <{count} x i32>",
        f"%b.wide = sext <{count} x i{bits}> %b to <{count} x i32>",
        f"%of{count} = mul <{count} x i32> %a.wide, %b.wide",
    ]
    while count > SUMS:
        wide, half = f"<{count} x i32>", count // 2
        for name, first in (("even", 0), ("odd", 1)):
            lanes = ", ".join(f"i32 {n}" for n in range(first, count, 2))
            lines.append(f"%{name}{half} = shufflevector {wide} %of{count}, {wide} poison, <{half} x i32> <{lanes}>")
        count = half
        lines.append(f"%of{count} = add <{count} x i32> %even{count}, %odd{count}")
    lines.append(f"%done = add <{SUMS} x i32> {start}, %of{SUMS}")
    return "\n" + "".join(f"  {line}\n" for line in lines)


def _on_floats(kind: str, element: str, bits: int) -> dict[str, str]:
    """What instructions on a register of floats of so many bits do, by names that end in `kind`."""
    lanes = 512 // bits
    floats, name = f"<{lanes} x {element}>", f"v{lanes}f{bits}"
    return {
        f"llvm.x86.avx512.mask.range.{kind}.512": f"""
  %smaller = call {floats} @llvm.minimumnum.{name}({floats} %x, {floats} %y)
  %larger = call {floats} @llvm.maximumnum.{name}({floats} %x, {floats} %y)
  %is.larger = icmp eq i32 %choice, 5
  %done = select i1 %is.larger, {floats} %larger, {floats} %smaller
""",
        f"llvm.x86.avx512.mask.fixupimm.{kind}.512": f"""
  %is.nan = fcmp uno {floats} %y, %y
  %quiet = fadd {floats} %y, %y
  %done = select <{lanes} x i1> %is.nan, {floats} %quiet, {floats} %x
""",
        f"llvm.x86.avx512.mask.scalef.{kind}.512": f"""
  %n = call <{lanes} x i32> @llvm.fptosi.sat.v{lanes}i32.{name}({floats} %y)
  %done = call {floats} @llvm.ldexp.{name}.v{lanes}i32({floats} %x, <{lanes} x i32> %n)
""",
    }


# The parameters of an instruction by what it is called; two factors, and what they are added to, where it is not here.
PARAMETERS = {
    "range": ("x", "y", "choice", "left.out", "mask", "rounding"),
    "fixupimm": ("x", "y", "table", "flags", "mask", "rounding"),
    "scalef": ("x", "y", "left.out", "mask", "rounding"),
}
# What instructions do, by LLVM's names of them. Intel's Software Developer's Manual, volume 2.
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
    "llvm.x86.avx512.vpdpwssd.512": _products_of_integers(2, "sext", "%sum"),
    "llvm.x86.avx512.vpdpbusd.512": _products_of_integers(4, "zext", "%sum"),
    "llvm.x86.avx512.pmaddw.d.512": _products_of_integers(2, "sext", "zeroinitializer"),
    # as they are used here: the larger or smaller number, a NaN instead of x where y is one, x 2^y for whole y
    **_on_floats("ps", "float", 32),
    **_on_floats("pd", "double", 64),
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


DECLARED = re.compile(r"^declare (<[^>]*>) @(llvm\.x86\.avx512[\w.]*)\(([^)]*)\)[^\n]*$", re.MULTILINE)


def _for_this_machine(text: str) -> str:
    """LLVM IR whose AVX-512 instructions are functions that do the same."""

    def defined(found: re.Match[str]) -> str:
        result, name, types = found[1], found[2], re.findall(r"<[^>]*>|\bi\d+\b", found[3])
        own = [names for key, names in PARAMETERS.items() if f".{key}." in name]
        names = own[0] if own else ("sum", "x", "y")[-len(types) :]
        parameters = ", ".join(f"{ty} %{each}" for ty, each in zip(types, names, strict=True))
        body = MEANING[name].format(first=types[-2], second=types[-1])
        return f"define internal {result} @{_plain(name)}({parameters}) alwaysinline {{{body}  ret {result} %done\n}}"

    text = DECLARED.sub(defined, without_tiles(text))
    for name in MEANING:
        text = text.replace(f"@{name}(", f"@{_plain(name)}(")
    return _with_declarations(text) + (ROUNDING if "bfloat" in text else "")


CALLED = re.compile(r"call (<[^>]*>) @(llvm\.[\w.]+)\(([^)]*)\)")


def _with_declarations(text: str) -> str:
    """And what the functions call themselves."""
    missing: dict[str, str] = {}
    for result, name, operands in CALLED.findall("\n".join(MEANING.values())):
        if f"@{name}(" in text and not re.search(rf"^declare [^\n]*@{re.escape(name)}\(", text, re.MULTILINE):
            types = ", ".join(operand.rpartition(" ")[0] for operand in operands.split(", "))
            missing[name] = f"\ndeclare {result} @{name}({types})\n"
    return text + "".join(missing.values())


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
