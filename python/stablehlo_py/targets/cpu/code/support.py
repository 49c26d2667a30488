"""Functions that LLVM's code calls by name and no library of the process is sure to have: they go with the kernel.

LLVM turns f64 -> f32 -> f16 into one conversion where it proves that nothing changes by it, and calls __truncdfhf2 for it,
which compiler-rt and newer releases of libgcc define. What is weak stays where nothing calls it yet. Being named in llvm.used
would do that too, but a target machine takes what stands in memory there later for named as well, and gives it a section.
"""

from __future__ import annotations

# f64 to f32 with the lowest bit set where anything was cut off (round to odd), and that to f16: rounded once in effect,
# since f32 has two bits more than twice those of f16.
_TRUNCATE_TO_HALF = """
define weak_odr hidden half @__truncdfhf2(double %x) {
  %near = fptrunc double %x to float
  %back = fpext float %near to double
  %size = call double @llvm.fabs.f64(double %x)
  %back_size = call double @llvm.fabs.f64(double %back)
  %away = fcmp ogt double %back_size, %size
  %inexact = fcmp one double %back_size, %size
  %bits = bitcast float %near to i32
  %less = sext i1 %away to i32
  %down = add i32 %bits, %less
  %odd = zext i1 %inexact to i32
  %all = or i32 %down, %odd
  %float = bitcast i32 %all to float
  %half = fptrunc float %float to half
  ret half %half
}
"""
_FABS = "declare double @llvm.fabs.f64(double)\n"


def support_for(text: str) -> str:
    """LLVM IR to append to a kernel's text: definitions of what its code may call."""
    if " half" not in text or " double" not in text:
        return ""
    return (_FABS if "@llvm.fabs.f64(" not in text else "") + _TRUNCATE_TO_HALF
