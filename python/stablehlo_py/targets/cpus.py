"""CPUs by LLVM's names: this machine's, and what is known of others. Without the MLIR bindings."""

from __future__ import annotations

import functools

import llvmlite.binding as llvm

# What the passes here ask about, by the levels that the x86-64 psABI defines and by LLVM's names of processors; one that
# is not listed counts as a plain x86-64, which is slower, never wrong.
_V2 = ("sse4.2", "popcnt")
_V3 = (*_V2, "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe")
_V4 = (*_V3, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
_VNNI = (*_V4, "avx512vnni")
_BF16 = (*_VNNI, "avx512bf16")
_LEVELS = {
    _V2: ("x86-64-v2", "nehalem", "westmere"),
    _V3: ("x86-64-v3", "haswell", "broadwell", "skylake", "alderlake", "znver1", "znver2", "znver3"),
    _V4: ("x86-64-v4", "skylake-avx512"),
    _VNNI: ("cascadelake", "icelake-client", "icelake-server", "rocketlake", "tigerlake"),
    _BF16: ("cooperlake", "sapphirerapids", "emeraldrapids", "graniterapids", "znver4", "znver5"),
}


@functools.cache
def host() -> tuple[str, str]:
    """(cpu, features) of this machine in LLVM's spelling."""
    llvm.initialize_native_target()
    return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


def resolved(cpu: str, features: str) -> tuple[str, str]:
    """(cpu, features) as asked for: the host's where both are empty, and what a CPU of a name is known to have."""
    if not cpu and not features:
        return host()
    if cpu and not features:
        if cpu in ("native", host()[0]):
            return host()
        features = ",".join(f"+{name}" for level, names in _LEVELS.items() if cpu in names for name in level)
    return cpu or host()[0], features
