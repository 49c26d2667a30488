"""Tiny kernels in LLVM IR for the tests of the runtime, compiled once."""

from __future__ import annotations

import functools

import llvmlite.binding as llvm

from stablehlo_py.runtime.program import Kernel

# buffers -> what each does, with the number of inputs and outputs
KERNELS = {
    "add_i32": Kernel("add_i32", 2, 1),  # out[i] = a[i] + b[i] over begin..end
    "add_by_scratch": Kernel("add_by_scratch", 2, 1, 1),  # the same, each sum through the first bytes of scratch
    "third_f32": Kernel("third_f32", 1, 1),  # out[i] = a[i] / 3 over begin..end
    "held_up": Kernel("held_up", 1, 1),  # out[i] = 1 over begin..end, step 0 once steps 4..7 are done, or never are
    "tick": Kernel("tick", 1, 2),  # in place: predicate = counter != 0, counter -= 1 (counter, counter, predicate)
    "pick": Kernel("pick", 1, 1),  # out i32 = (first byte of a & 3) - 1, so sometimes out of range
    "mix": Kernel(
        "mix", 2, 1
    ),  # out's `end` bytes depend on all bytes of a and b; begin = bytes of a << 20 | bytes of b
}

IR = """
define void @add_i32(ptr %buffers, i64 %begin, i64 %end) {
entry:
  %pb = getelementptr ptr, ptr %buffers, i64 1
  %po = getelementptr ptr, ptr %buffers, i64 2
  %a = load ptr, ptr %buffers
  %b = load ptr, ptr %pb
  %o = load ptr, ptr %po
  br label %head
head:
  %i = phi i64 [ %begin, %entry ], [ %next, %body ]
  %more = icmp slt i64 %i, %end
  br i1 %more, label %body, label %exit
body:
  %ai = getelementptr i32, ptr %a, i64 %i
  %bi = getelementptr i32, ptr %b, i64 %i
  %oi = getelementptr i32, ptr %o, i64 %i
  %x = load i32, ptr %ai
  %y = load i32, ptr %bi
  %z = add i32 %x, %y
  store i32 %z, ptr %oi
  %next = add i64 %i, 1
  br label %head
exit:
  ret void
}

define void @add_by_scratch(ptr %buffers, i64 %begin, i64 %end) {
entry:
  %pb = getelementptr ptr, ptr %buffers, i64 1
  %po = getelementptr ptr, ptr %buffers, i64 2
  %ps = getelementptr ptr, ptr %buffers, i64 3
  %a = load ptr, ptr %buffers
  %b = load ptr, ptr %pb
  %o = load ptr, ptr %po
  %s = load ptr, ptr %ps
  br label %head
head:
  %i = phi i64 [ %begin, %entry ], [ %next, %body ]
  %more = icmp slt i64 %i, %end
  br i1 %more, label %body, label %exit
body:
  %ai = getelementptr i32, ptr %a, i64 %i
  %bi = getelementptr i32, ptr %b, i64 %i
  %oi = getelementptr i32, ptr %o, i64 %i
  %x = load i32, ptr %ai
  %y = load i32, ptr %bi
  %z = add i32 %x, %y
  store volatile i32 %z, ptr %s
  %back = load volatile i32, ptr %s
  store i32 %back, ptr %oi
  %next = add i64 %i, 1
  br label %head
exit:
  ret void
}

define void @third_f32(ptr %buffers, i64 %begin, i64 %end) {
entry:
  %po = getelementptr ptr, ptr %buffers, i64 1
  %a = load ptr, ptr %buffers
  %o = load ptr, ptr %po
  br label %head
head:
  %i = phi i64 [ %begin, %entry ], [ %next, %body ]
  %more = icmp slt i64 %i, %end
  br i1 %more, label %body, label %exit
body:
  %ai = getelementptr float, ptr %a, i64 %i
  %oi = getelementptr float, ptr %o, i64 %i
  %x = load float, ptr %ai
  %third = fdiv float %x, 3.0
  store float %third, ptr %oi
  %next = add i64 %i, 1
  br label %head
exit:
  ret void
}

define void @held_up(ptr %buffers, i64 %begin, i64 %end) {
entry:
  %po = getelementptr ptr, ptr %buffers, i64 1
  %o = load ptr, ptr %po
  br label %head
head:
  %i = phi i64 [ %begin, %entry ], [ %next, %body ]
  %more = icmp slt i64 %i, %end
  br i1 %more, label %step, label %exit
step:
  %first = icmp eq i64 %i, 0
  br i1 %first, label %wait, label %body
wait:
  %n = phi i64 [ 0, %step ], [ %m, %again ]
  %others = getelementptr i32, ptr %o, i64 4
  %all = load volatile <4 x i32>, ptr %others, align 4
  %done = call i32 @llvm.vector.reduce.and.v4i32(<4 x i32> %all)
  %go = icmp eq i32 %done, 1
  br i1 %go, label %body, label %again
again:
  %m = add i64 %n, 1
  %patient = icmp ult i64 %m, 4000000000
  br i1 %patient, label %wait, label %exit
body:
  %oi = getelementptr i32, ptr %o, i64 %i
  store volatile i32 1, ptr %oi
  %next = add i64 %i, 1
  br label %head
exit:
  ret void
}

declare i32 @llvm.vector.reduce.and.v4i32(<4 x i32>)

define void @tick(ptr %buffers, i64 %begin, i64 %end) {
  %pp = getelementptr ptr, ptr %buffers, i64 2
  %counter = load ptr, ptr %buffers
  %predicate = load ptr, ptr %pp
  %n = load i8, ptr %counter
  %go = icmp ne i8 %n, 0
  %flag = zext i1 %go to i8
  store i8 %flag, ptr %predicate
  %less = sub i8 %n, 1
  store i8 %less, ptr %counter
  ret void
}

define void @pick(ptr %buffers, i64 %begin, i64 %end) {
  %po = getelementptr ptr, ptr %buffers, i64 1
  %a = load ptr, ptr %buffers
  %o = load ptr, ptr %po
  %byte = load i8, ptr %a
  %two = and i8 %byte, 3
  %wide = zext i8 %two to i32
  %index = sub i32 %wide, 1
  store i32 %index, ptr %o
  ret void
}

define i32 @fold(ptr %a, i64 %count, i32 %seed) {
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %h = phi i32 [ %seed, %entry ], [ %mixed, %body ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %body, label %exit
body:
  %ai = getelementptr i8, ptr %a, i64 %i
  %byte = load i8, ptr %ai
  %wide = zext i8 %byte to i32
  %xored = xor i32 %h, %wide
  %mixed = mul i32 %xored, 16777619
  %next = add i64 %i, 1
  br label %head
exit:
  ret i32 %h
}

define void @mix(ptr %buffers, i64 %begin, i64 %end) {
entry:
  %pb = getelementptr ptr, ptr %buffers, i64 1
  %po = getelementptr ptr, ptr %buffers, i64 2
  %a = load ptr, ptr %buffers
  %b = load ptr, ptr %pb
  %o = load ptr, ptr %po
  %bytes_a = lshr i64 %begin, 20
  %bytes_b = and i64 %begin, 1048575
  %ha = call i32 @fold(ptr %a, i64 %bytes_a, i32 -2128831035)
  %h = call i32 @fold(ptr %b, i64 %bytes_b, i32 %ha)
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %more = icmp slt i64 %i, %end
  br i1 %more, label %body, label %exit
body:
  %oi = getelementptr i8, ptr %o, i64 %i
  %narrow = trunc i64 %i to i32
  %scaled = mul i32 %narrow, 40503
  %sum = add i32 %h, %scaled
  %high = lshr i32 %sum, 13
  %byte = trunc i32 %high to i8
  store i8 %byte, ptr %oi
  %next = add i64 %i, 1
  br label %head
exit:
  ret void
}
"""


@functools.cache
def _engine() -> llvm.ExecutionEngine:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(IR), machine)
    engine.finalize_object()
    return engine


def addresses(*names: str) -> list[int]:
    """The entry points of kernels; the engine lives as long as the process."""
    return [_engine().get_function_address(name) for name in names]
