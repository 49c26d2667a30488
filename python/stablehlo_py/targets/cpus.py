"""CPUs by LLVM's names: this machine's, and what is known of others. Without the MLIR bindings."""

from __future__ import annotations

import contextlib
import functools
import re
import sys
from collections.abc import Iterator

from stablehlo_py.core.options import did_you_mean
from stablehlo_py.errors import BadOption
from stablehlo_py.patterns import pattern
from stablehlo_py.targets import amx, code_generator

# What processors have beside x86-64's base, as LLVM's X86.td has it: as far as passes here ask about it, or LLVM chooses
# it by itself. By the levels of the x86-64 psABI and LLVM's names; one that is not listed is taken for a plain x86-64.
_V2 = ("sse4.2", "popcnt")
_V3 = (*_V2, "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe")
_V4 = (*_V3, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
_VNNI = (*_V4, "avx512vnni")
_ICELAKE = (*_VNNI, "avx512ifma", "avx512vbmi", "avx512vbmi2", "avx512bitalg", "avx512vpopcntdq", "gfni")
_AMX = ("amx-tile", "amx-int8", "amx-bf16")
_LEVELS = {
    (): ("generic", "x86-64", "k8", "nocona", "core2"),
    _V2: ("x86-64-v2", "nehalem", "westmere"),
    _V3: ("x86-64-v3", "haswell", "broadwell", "skylake"),
    (*_V3, "sse4a"): ("znver1", "znver2", "znver3"),
    (*_V3, "avxvnni", "gfni"): ("alderlake", "raptorlake"),
    _V4: ("x86-64-v4", "skylake-avx512"),
    _VNNI: ("cascadelake",),
    (*_VNNI, "avx512bf16"): ("cooperlake",),
    _ICELAKE: ("icelake-client", "icelake-server", "rocketlake", "tigerlake"),
    (*_ICELAKE, "avx512bf16", "avx512fp16", "avxvnni", *_AMX): ("sapphirerapids", "emeraldrapids", "graniterapids"),
    (*_ICELAKE, "avx512bf16", "sse4a"): ("znver4",),
    (*_ICELAKE, "avx512bf16", "sse4a", "avxvnni"): ("znver5",),
}
_KNOWN = {name: level for level, names in _LEVELS.items() for name in names}


@functools.cache
def host() -> tuple[str, str]:
    """(cpu, features) of this machine in LLVM's spelling; of tiles only what the operating system lets be used."""
    if _taken:
        return _taken[0]
    cpu, features = _known[0] if _known else _found()
    return cpu, amx.usable(features)


def _found() -> tuple[str, str]:
    if code_generator.is_here():
        return code_generator.host()
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


def may_use_tiles() -> bool:
    """Ask the operating system for AMX's tiles, once; where it refuses, `host` has none from then on."""
    if amx.ask():
        return True
    host.cache_clear()
    return False


_known: list[tuple[str, str]] = []  # what `host` has been told
_taken: list[tuple[str, str]] = []  # and for what it is taken


def tell_host(cpu: str, features: str) -> None:
    """Let `host` be what another process has found on this processor; LLVM, which knows, takes 20 ms to load."""
    _known.append((cpu, features))


@contextlib.contextmanager
def taken_for(cpu: str, features: str) -> Iterator[None]:
    """Let this machine be another one, for code that is tested where it is not meant to run."""
    _taken.insert(0, (cpu, features))
    host.cache_clear()
    host()  # so that nobody asks LLVM
    try:
        yield
    finally:
        _taken.remove((cpu, features))
        host.cache_clear()
        host()


def known(cpu: str) -> frozenset[str]:
    """The features of a CPU of that name that are asked about here; none of one that is not listed."""
    return frozenset(_KNOWN.get(cpu, ()))


@functools.cache
def all_known() -> frozenset[str]:
    """All features that are asked about here."""
    return frozenset(feature for level in _LEVELS for feature in level)


# What the kernel says of a processor that LLVM's names follow from, on x86 and on Arm.
_TRAITS = pattern(r"^(vendor_id|cpu family|model|model name|stepping|flags|CPU [a-z]+|Features)\s*:.*$", re.MULTILINE)


def processor() -> str:
    """What the kernel says of the first processor; empty where it says nothing."""
    try:
        with open("/proc/cpuinfo") as file:
            first = file.read(1 << 14).partition("\n\n")[0]
    except OSError:
        return ""
    return "\n".join(match[0] for match in _TRAITS.finditer(first))


def resolved(cpu: str, features: str) -> tuple[str, str]:
    """(cpu, features) as asked for: the host's where both are empty, and what a CPU of a name is known to have.

    BadOption for a name or a feature that LLVM does not know, which it would only warn of.
    """
    if not cpu and not features:
        return host()
    if cpu in ("native", host()[0]) and not features:
        return host()
    _refuse_unknown(cpu, features)
    if not features:
        features = ",".join(f"+{name}" for name in _KNOWN.get(cpu, ()))
    return cpu if cpu not in ("", "native") else host()[0], features


def missing(cpu: str, features: str) -> str:
    """What this machine lacks of what code for another may use, in words; nothing where the code can run here."""
    if not cpu and not features:
        return ""
    mine = host()[1].split(",")
    is_here = cpu in ("", "native", host()[0])
    if not is_here and cpu not in _KNOWN:
        return f"instructions of {cpu} that are not known here"
    signed = [name for name in features.split(",") if name]
    wanted = dict.fromkeys(() if is_here else _KNOWN[cpu])
    wanted |= dict.fromkeys(name[1:] for name in signed if name.startswith("+"))
    # what no processor reports, such as prefer-256-bit, is a matter of taste
    return ", ".join(name for name in wanted if f"-{name}" in mine and f"-{name}" not in signed)


@functools.cache
def _refuse_unknown(cpu: str, features: str) -> None:
    signed = [name for name in features.split(",") if name]
    for name in signed:
        if name[0] not in "+-":
            raise BadOption(f"feature {name!r} has no sign", hint=f"write +{name} to have it, -{name} to do without it")
    known = {name[1:] for name in host()[1].split(",")}
    if cpu in ("", "native", host()[0], *(_KNOWN if "sse2" in known else ())) and all(
        name[1:] in known for name in signed
    ):
        return
    cpus, more = _names()
    if cpus and cpu not in ("", "native", *cpus):
        hint = did_you_mean(cpu, cpus) or "'native' is this machine's; llc -mcpu=help lists them"
        raise BadOption(f"LLVM knows no CPU {cpu!r} of this machine's kind", hint=hint)
    for name in signed:
        if more and name[1:] not in more:
            hint = did_you_mean(name[1:], more) or "llc -mattr=help lists them"
            raise BadOption(f"LLVM knows no feature {name[1:]!r} of this machine's kind", hint=hint)


_LIST = """
import llvmlite.binding as llvm
llvm.initialize_native_target()
llvm.initialize_native_asmprinter()
llvm.Target.from_default_triple().create_target_machine(cpu="help")
"""


@functools.cache
def _names() -> tuple[frozenset[str], frozenset[str]]:
    """The CPUs and the features that LLVM knows; it prints them and gives them in no other way. Empty where it fails."""
    import subprocess  # 7 ms, and only on the way to an error

    try:
        said = subprocess.run(
            [sys.executable, "-c", _LIST], capture_output=True, text=True, timeout=60, check=True
        ).stderr
    except (OSError, subprocess.SubprocessError):
        return frozenset(), frozenset()
    cpus, _, features = said.partition("Available features")
    return frozenset(re.findall(r"^  (\S+) +- ", cpus, re.M)), frozenset(re.findall(r"^  (\S+) +- ", features, re.M))
