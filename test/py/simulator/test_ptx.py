"""The PTX simulator on small programs written by hand: values, divergence, barriers, shuffles, and what it must refuse."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from stablehlo_py.simulator.ptx import Memory, PtxError, run


def kernel(body: str, registers: str = "", variables: str = "") -> str:
    return f"""
.version 7.0
.target sm_80
.address_size 64
{variables}
.visible .entry k(.param .u64 .ptr .align 1 k_param_0, .param .u64 k_param_1)
{{
    .reg .pred %p<5>; .reg .b16 %h<9>; .reg .b32 %r<20>; .reg .b64 %rd<20>; {registers}
    ld.param.u64 %rd1, [k_param_0];
    ld.param.u64 %rd2, [k_param_1];
    cvta.to.global.u64 %rd3, %rd1;
    cvta.to.global.u64 %rd4, %rd2;
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd5, %r1, 4;
    add.s64 %rd6, %rd3, %rd5;
    add.s64 %rd7, %rd4, %rd5;
    ld.global.b32 %r2, [%rd6];
{body}
    st.global.b32 [%rd7], %r3;
    ret;
}}
"""


def execute(
    text: str, x: np.ndarray, *, out: np.dtype | type | None = None, block: Sequence[int] = (0, 1, 1)
) -> np.ndarray:
    memory = Memory()
    source = memory.put(x)
    target = memory.allocate(4 * len(x))
    run(text, "k", (1, 1, 1), (block[0] or len(x), *block[1:]), [source, target], memory)
    return memory.get(target, (len(x),), np.dtype(out or x.dtype))


X = np.arange(-16, 16, dtype=np.int32)
F = np.array([0.5, -2.5, 1e-40, np.nan, np.inf, -0.0, 3.75, 1e30], np.float32)


@pytest.mark.parametrize(
    ("instruction", "expected"),
    [
        ("add.s32 %r3, %r2, 7;", X + 7),
        ("mul.lo.s32 %r3, %r2, -3;", X * -3),
        ("div.s32 %r3, %r2, 3;", np.trunc(X / 3).astype(np.int32)),
        ("rem.s32 %r3, %r2, 5;", np.fmod(X, 5)),
        ("shr.s32 %r3, %r2, 2;", X >> 2),
        ("shl.b32 %r3, %r2, 40;", X * 0),
        ("min.u32 %r3, %r2, 5;", np.minimum(X.view(np.uint32), 5).view(np.int32)),
        ("mad.lo.s32 %r3, %r2, %r2, %r1;", X * X + np.arange(32, dtype=np.int32)),
        ("bfe.s32 %r3, %r2, 1, 3;", (X << 28) >> 29),
        ("prmt.b32 %r3, %r2, 0, 0x0123;", X.byteswap()),
        ("mul.hi.s32 %r3, %r2, 2147483647;", (X.astype(np.int64) * 2147483647 >> 32).astype(np.int32)),
        ("setp.gt.s32 %p1, %r2, 3; selp.b32 %r3, 1, %r2, %p1;", np.where(X > 3, 1, X)),
        ("popc.b32 %r3, %r2;", np.array([int(v).bit_count() for v in X.view(np.uint32)], np.int32)),
        ("cvt.s64.s32 %rd8, %r2; shr.s64 %rd8, %rd8, 4; cvt.u32.u64 %r3, %rd8;", X >> 4),
        ("lop3.b32 %r3, %r2, 255, 15, 0x96;", X ^ 255 ^ 15),
    ],
)
def test_integers(instruction: str, expected: np.ndarray) -> None:
    np.testing.assert_array_equal(execute(kernel(instruction), X), expected)


with np.errstate(all="ignore"):
    FLOAT_CASES = [
        ("add.rn.f32 %r3, %r2, 0f3F800000;", F + np.float32(1)),
        ("mul.rn.ftz.f32 %r3, %r2, 0f3F800000;", np.where(np.abs(F) < 1e-38, F * 0, F)),
        ("fma.rn.f32 %r3, %r2, %r2, 0fBF800000;", (F.astype(np.float64) ** 2 - 1).astype(np.float32)),
        ("max.f32 %r3, %r2, 0f00000000;", np.fmax(F, np.float32(0))),
        ("max.NaN.f32 %r3, %r2, 0f00000000;", np.maximum(F, np.float32(0))),
        ("neg.f32 %r3, %r2;", -F),
        ("cvt.rmi.f32.f32 %r3, %r2;", np.floor(F)),
        ("cvt.rn.f16.f32 %h1, %r2; cvt.f32.f16 %r3, %h1;", F.astype(np.float16).astype(np.float32)),
    ]


@pytest.mark.parametrize(("instruction", "expected"), FLOAT_CASES)
def test_floats(instruction: str, expected: np.ndarray) -> None:
    with np.errstate(all="ignore"):
        found = execute(kernel(instruction), F)
    np.testing.assert_array_equal(found, expected)


def test_float_to_integer_saturates_and_takes_nan_to_zero() -> None:
    found = execute(kernel("cvt.rzi.s32.f32 %r3, %r2;"), F, out=np.int32)
    np.testing.assert_array_equal(found, [0, -2, 0, 0, 2**31 - 1, 0, 3, 2**31 - 1])


def test_threads_that_branch_apart_meet_again() -> None:
    """A loop with another count in each thread, then a shuffle, which needs the whole warp."""
    body = """
    mov.u32 %r3, 0;
    mov.u32 %r4, %r1;
LOOP:
    setp.eq.u32 %p1, %r4, 0;
    @%p1 bra DONE;
    add.u32 %r3, %r3, %r4;
    sub.u32 %r4, %r4, 1;
    bra LOOP;
DONE:
    shfl.sync.bfly.b32 %r3, %r3, 1, 31, -1;
"""
    n = np.arange(32, dtype=np.int32)
    np.testing.assert_array_equal(execute(kernel(body), n), (n * (n + 1) // 2)[n ^ 1])


FUNCTION = """
.func (.param .b32 func_retval0) triangle(.param .b32 triangle_param_0)
{
    .reg .pred %p<2>; .reg .b32 %r<4>;
    ld.param.b32 %r1, [triangle_param_0];
    mov.u32 %r2, 0;
$L__BB1_1:
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra $L__BB1_2;
    add.u32 %r2, %r2, %r1;
    sub.u32 %r1, %r1, 1;
    bra $L__BB1_1;
$L__BB1_2:
    st.param.b32 [func_retval0], %r2;
    ret;
}
"""


def test_a_function_called_twice_has_registers_of_its_own() -> None:
    call = """
    { .param .b32 param0; st.param.b32 [param0], %rIN; .param .b32 retval0;
    call.uni (retval0), triangle, (param0);
    ld.param.b32 %rOUT, [retval0]; }
"""
    body = call.replace("IN", "2").replace("OUT", "5") + call.replace("IN", "5").replace("OUT", "3")
    n = np.arange(6, dtype=np.int32)
    once = n * (n + 1) // 2
    found = execute(kernel(body, variables=FUNCTION), n)
    np.testing.assert_array_equal(found, once * (once + 1) // 2)


def test_shared_memory_passes_values_between_warps() -> None:
    body = """
    mov.u32 %r5, buffer;
    shl.b32 %r6, %r1, 2;
    add.u32 %r7, %r5, %r6;
    st.shared.b32 [%r7], %r2;
    bar.sync 0;
    sub.u32 %r8, 63, %r1;
    shl.b32 %r8, %r8, 2;
    add.u32 %r9, %r5, %r8;
    ld.shared.b32 %r3, [%r9];
"""
    x = np.arange(64, dtype=np.int32)
    text = kernel(body, variables=".shared .align 4 .b8 buffer[256];")
    np.testing.assert_array_equal(execute(text, x), x[::-1])


def test_shared_memory_starts_as_poison() -> None:
    text = kernel("ld.shared.b32 %r3, [buffer];", variables=".shared .align 4 .b8 buffer[256];")
    assert (execute(text, X) == -1).all()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("ld.global.b32 %r3, [%rd6+4096];", "outside every allocation"),
        ("ld.global.b32 %r3, [%rd6+2];", "not aligned"),
        ("ld.shared.b32 %r3, [buffer+256];", "outside the 256 bytes"),
        ("setp.lt.u32 %p1, %r1, 16;\n@%p1 shfl.sync.bfly.b32 %r3, %r2, 1, 31, -1;", "split"),
        ("setp.lt.u32 %p1, %r1, 16;\n@%p1 bra A;\nbar.sync 0;\nA:\n@%p1 bra A;", "steps"),
        ("wmma.load %r3;", "not simulated"),
    ],
)
def test_what_no_program_may_do(body: str, message: str) -> None:
    text = kernel(body, variables=".shared .align 4 .b8 buffer[256];")
    memory = Memory()
    arguments = [memory.put(X), memory.allocate(4 * 32)]
    with pytest.raises(PtxError, match=message):
        run(text, "k", (1, 1, 1), (32, 1, 1), arguments, memory, most_steps=2000)


def test_a_wrong_number_of_arguments() -> None:
    with pytest.raises(PtxError, match="takes 2 arguments, 1 given"):
        run(kernel("mov.u32 %r3, 0;"), "k", (1, 1, 1), (32, 1, 1), [0], Memory())
