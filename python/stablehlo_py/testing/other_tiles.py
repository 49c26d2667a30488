"""What stands in for AMX's tiles where a machine has none: memory of the function that names them, and loops.

Intel's Software Developer's Manual, volume 2. All tiles have 16 rows of 64 bytes, as all code here asks for.
"""

from __future__ import annotations

import re

CALL = re.compile(r"(?<=\n)(\s*)call void @llvm\.x86\.(tile(?:loadd64|stored64|zero)|tdp\w+)\(([^\n]*)\)")
NOT_NEEDED = re.compile(r"\n\s*call void @llvm\.x86\.(?:ldtilecfg|tilerelease)\([^\n]*")
DECLARED = re.compile(r"^declare void @llvm\.x86\.(?:ldtilecfg|tile\w+|tdp\w+)\([^\n]*\n", re.MULTILINE)
FUNCTION = re.compile(r"^define [^\n]*\{\n(?:[\w.]+:[^\n]*\n)?", re.MULTILINE)

# Moves of rows: from where, and to where.
_MOVE = """
define internal void @emulated.{name}(ptr %tiles, i8 %tile, ptr %memory, i64 %distance) noinline {{
start:
  %number = zext i8 %tile to i64
  %first = getelementptr [1024 x i8], ptr %tiles, i64 %number
  br label %loop
loop:
  %r = phi i64 [0, %start], [%next, %loop]
  %offset = mul i64 %r, %distance
  %outside = getelementptr i8, ptr %memory, i64 %offset
  %inside = getelementptr [64 x i8], ptr %first, i64 %r
  %row = load <16 x i32>, ptr {source}, align 1
  store <16 x i32> %row, ptr {target}, align 1
  %next = add i64 %r, 1
  %more = icmp ult i64 %next, 16
  br i1 %more, label %loop, label %done
done:
  ret void
}}
"""
_ZERO = """
define internal void @emulated.tilezero(ptr %tiles, i8 %tile) noinline {
  %number = zext i8 %tile to i64
  %first = getelementptr [1024 x i8], ptr %tiles, i64 %number
  store <256 x i32> zeroinitializer, ptr %first, align 1
  ret void
}
"""
# For each row of lhs: two sums, `step` for each of its elements and the row of rhs that belongs to it, and both to the total.
_PRODUCT = """
define internal void @emulated.{name}(ptr %tiles, i8 %total, i8 %lhs, i8 %rhs) noinline {{
start:
  %number0 = zext i8 %total to i64
  %number1 = zext i8 %lhs to i64
  %number2 = zext i8 %rhs to i64
  %tile0 = getelementptr [1024 x i8], ptr %tiles, i64 %number0
  %tile1 = getelementptr [1024 x i8], ptr %tiles, i64 %number1
  %tile2 = getelementptr [1024 x i8], ptr %tiles, i64 %number2
  br label %rows
rows:
  %m = phi i64 [0, %start], [%next.m, %end]
  %place = getelementptr [64 x i8], ptr %tile0, i64 %m
  %earlier = load {sums}, ptr %place, align 1
  br label %steps
steps:
  %k = phi i64 [0, %rows], [%next.k, %steps]
  %first = phi {sums} [zeroinitializer, %rows], [%next.first, %steps]
  %second = phi {sums} [zeroinitializer, %rows], [%next.second, %steps]
  %offset = mul i64 %m, 16
  %element = add i64 %offset, %k
  %left = getelementptr i32, ptr %tile1, i64 %element
  %right = getelementptr [64 x i8], ptr %tile2, i64 %k
  %one = load i32, ptr %left, align 1
  %alone = insertelement <16 x i32> poison, i32 %one, i32 0
  %x = shufflevector <16 x i32> %alone, <16 x i32> poison, <16 x i32> zeroinitializer
  %y = load <16 x i32>, ptr %right, align 1
{step}
  %next.k = add i64 %k, 1
  %more.k = icmp ult i64 %next.k, 16
  br i1 %more.k, label %steps, label %end
end:
  %sum = {add} {sums} %next.first, %next.second
  %done = {add} {sums} %earlier, %sum
  store {sums} %done, ptr %place, align 1
  %next.m = add i64 %m, 1
  %more.m = icmp ult i64 %next.m, 16
  br i1 %more.m, label %rows, label %all
all:
  ret void
}}
"""
# the even ones and the odd ones apart; numbers below the normal ones are not taken for zeros here
_OF_BF16 = """
  %x.even.bits = shl <16 x i32> %x, splat (i32 16)
  %y.even.bits = shl <16 x i32> %y, splat (i32 16)
  %x.odd.bits = and <16 x i32> %x, splat (i32 -65536)
  %y.odd.bits = and <16 x i32> %y, splat (i32 -65536)
  %x.even = bitcast <16 x i32> %x.even.bits to <16 x float>
  %y.even = bitcast <16 x i32> %y.even.bits to <16 x float>
  %x.odd = bitcast <16 x i32> %x.odd.bits to <16 x float>
  %y.odd = bitcast <16 x i32> %y.odd.bits to <16 x float>
  %next.first = call <16 x float> @llvm.fma.v16f32(<16 x float> %x.even, <16 x float> %y.even, <16 x float> %first)
  %next.second = call <16 x float> @llvm.fma.v16f32(<16 x float> %x.odd, <16 x float> %y.odd, <16 x float> %second)
"""


def _of_bytes(left: str, right: str) -> str:
    """Two products of bytes for each sum; left, right: the shift that widens those of each side."""
    lines = []
    for byte in range(4):
        for value, shift in (("x", left), ("y", right)):
            lines += [
                f"%{value}{byte}.upper = shl <16 x i32> %{value}, splat (i32 {24 - 8 * byte})",
                f"%{value}{byte} = {shift} <16 x i32> %{value}{byte}.upper, splat (i32 24)",
            ]
        lines.append(f"%product{byte} = mul <16 x i32> %x{byte}, %y{byte}")
    for total, one, two in (("first", 0, 1), ("second", 2, 3)):
        lines += [
            f"%half.{total} = add <16 x i32> %{total}, %product{one}",
            f"%next.{total} = add <16 x i32> %half.{total}, %product{two}",
        ]
    return "".join(f"  {line}\n" for line in lines)


def _product(name: str, step: str) -> str:
    sums, add = ("<16 x float>", "fadd") if name == "tdpbf16ps" else ("<16 x i32>", "add")
    return _PRODUCT.format(name=name, sums=sums, step=step, add=add)


MEANING = {
    "tileloadd64": _MOVE.format(name="tileloadd64", source="%outside", target="%inside"),
    "tilestored64": _MOVE.format(name="tilestored64", source="%inside", target="%outside"),
    "tilezero": _ZERO,
    "tdpbssd": _product("tdpbssd", _of_bytes("ashr", "ashr")),
    "tdpbsud": _product("tdpbsud", _of_bytes("ashr", "lshr")),
    "tdpbusd": _product("tdpbusd", _of_bytes("lshr", "ashr")),
    "tdpbuud": _product("tdpbuud", _of_bytes("lshr", "lshr")),
    "tdpbf16ps": _product("tdpbf16ps", _OF_BF16),
}


def without_tiles(text: str) -> str:
    """LLVM IR whose tiles are memory, and whose instructions on them are functions that do the same."""
    names = dict.fromkeys(found[2] for found in CALL.finditer(text))
    if not names:
        return text

    def with_memory(found: re.Match[str]) -> str:
        return f"{found[0]}  %tiles = alloca [8192 x i8], align 64\n"

    text = FUNCTION.sub(with_memory, NOT_NEEDED.sub("", DECLARED.sub("", text)))
    text = CALL.sub(r"\1call void @emulated.\2(ptr %tiles, \3)", text)
    return text + "".join(MEANING[name] for name in names)
