"""Kernels in the LLVM dialect to machine code: one object for each kernel, by llvmlite, without a system compiler.

A kernel `@k(ptr, ptr, ...)` gets an entry of the one signature that the executor calls:

    void k(void *const *buffers, int64_t begin, int64_t end)
"""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import threading
from dataclasses import dataclass

import llvmlite.binding as llvm

from stablehlo_py.mlir import ir
from stablehlo_py.targets.cpu.features import resolved
from stablehlo_py.targets.cpu.nest import VECTOR_CODE
from stablehlo_py.targets.llvm_passes import run_passes
from stablehlo_py.targets.llvm_text import to_llvm_ir
from stablehlo_py.transforms.kernel_parallel import WORK

ENTRY = "kernel_entry"
# That no part begins below 0 lets LLVM see that a flat index, split into the indices of a shape, is itself again.
BEGIN = "i64 range(i64 0, 281474976710656)"
VECTORISED = "; vectorised\n"  # the first line of a kernel's text that has nothing left to vectorise
FEW = 300  # ops that a kernel runs in all: too few for vectors to matter
# For such kernels the whole O2 pipeline makes the same code in ten times the time of these.
SHORT = ("sroa", "simplify_cfg", "instruction_combine")


@dataclass(frozen=True)
class CodegenOptions:
    """What the code of a kernel depends on beside its IR.

    cpu, features: LLVM's names; empty for the host's own, or what is known of a CPU of that name. speed: LLVM's
    optimisation level, 0 to 3.
    """

    cpu: str = ""
    features: str = ""
    speed: int = 2

    def resolved(self) -> CodegenOptions:
        """With the host's own names filled in."""
        return CodegenOptions(*resolved(self.cpu, self.features), self.speed)


@functools.cache
def _initialize() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    # kernels call libm by name; the names are looked up in the process, where Python need not have them
    name = ctypes.util.find_library("m")
    if name:
        ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)


def kernel_module(function: ir.Operation, symbols: dict[str, ir.Operation]) -> ir.Module:
    """A module of its own with a kernel and what it refers to, in the LLVM dialect."""
    module = ir.Module.create(loc=ir.Location.unknown())
    waiting, taken = [function], {ir.StringAttr(function.attributes["sym_name"]).value}
    while waiting:
        op = waiting.pop()
        clone = op.clone()
        module.body.append(clone)
        for name in sorted(_references(op) - taken):
            if name in symbols:
                taken.add(name)
                waiting.append(symbols[name])
    return module


def _references(op: ir.Operation) -> set[str]:
    found: set[str] = set()

    def visit(inner: ir.Operation) -> ir.WalkResult:
        for key in ("callee", "global_name"):
            if key in inner.attributes:
                found.add(ir.FlatSymbolRefAttr(inner.attributes[key]).value)
        return ir.WalkResult.ADVANCE

    op.walk(visit)
    return found


def llvm_ir_of(function: ir.Operation, symbols: dict[str, ir.Operation]) -> str:
    """The LLVM IR text of a kernel, its entry included; independent of the kernel's name."""
    name = ir.StringAttr(function.attributes["sym_name"]).value
    # pointers to buffers, and in a kernel that can be split the bounds of its part
    types = llvm_function_inputs(function)
    pointers = [ty for ty in types if "ptr" in ty]
    text = to_llvm_ir(kernel_module(function, symbols).operation)
    head, found, tail = text.partition(f"define void @{name}(")
    arguments, _, body = tail.partition(")")
    # The planner gives each buffer its own memory; where a result updates an operand, the kernel does not touch the
    # operand's pointer. Without this, LLVM guards each vector loop by comparing all pointers.
    arguments = arguments.replace("ptr %", "ptr noalias %")
    text = f"{head}{'define internal void @kernel_body(' if found else ''}{arguments}){body}"
    loads, operands = [], []
    for i in range(len(pointers)):
        loads.append(f"  %slot{i} = getelementptr ptr, ptr %buffers, i64 {i}\n  %p{i} = load ptr, ptr %slot{i}\n")
        operands.append(f"ptr %p{i}")
    if len(types) > len(pointers):
        operands += ["i64 %begin", "i64 %end"]
    short = VECTOR_CODE in function.attributes or _work(function) <= FEW
    head = VECTORISED if short else ""
    return (
        f"{head}{text}\ndefine void @{ENTRY}(ptr %buffers, {BEGIN} %begin, i64 %end) {{\n{''.join(loads)}"
        f"  call void @kernel_body({', '.join(operands)})\n  ret void\n}}\n"
    )


def _work(function: ir.Operation) -> int:
    return ir.IntegerAttr(function.attributes[WORK]).value if WORK in function.attributes else FEW + 1


def llvm_function_inputs(function: ir.Operation) -> list[str]:
    """The types of an llvm.func's arguments, as text."""
    return [str(argument.type) for argument in function.regions[0].blocks[0].arguments]


def make_object(text: str, options: CodegenOptions) -> bytes:
    """A relocatable object from LLVM IR text."""
    module, machine = _optimised(text, options)
    return machine.emit_object(module)


def make_assembly(text: str, options: CodegenOptions) -> str:
    """The assembly of the same code."""
    module, machine = _optimised(text, options)
    return machine.emit_assembly(module)


def _optimised(text: str, options: CodegenOptions) -> tuple[llvm.ModuleRef, llvm.TargetMachine]:
    _initialize()
    options = options.resolved()
    machine = _machine(options)
    # LLVM's global context keeps what the vectoriser notes of each loop for ever; one of its own goes with the module.
    module = llvm.parse_assembly(text, context=llvm.create_context())
    module.triple, module.data_layout = llvm.get_default_triple(), str(machine.target_data)
    # The vectoriser interleaves by itself; unrolling and SLP double the time here and bought nothing in the benchmarks.
    tuning = llvm.create_pipeline_tuning_options(speed_level=options.speed)
    tuning.loop_unrolling = tuning.slp_vectorization = False
    builder = llvm.create_pass_builder(machine, tuning)
    run_passes(module, builder, SHORT if text.startswith(VECTORISED) else ())
    return module, machine


def _machine(options: CodegenOptions) -> llvm.TargetMachine:
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=options.cpu, features=options.features, opt=options.speed, reloc="pic", codemodel="small", jit=False
    )


class Code:
    """Loaded objects; their addresses hold as long as this lives."""

    def __init__(self, objects: list[bytes]) -> None:
        linker = _linker()
        self._trackers = [linker.link(data) for data in objects]
        self.addresses = [tracker[ENTRY] for tracker in self._trackers]


class _Linker:
    """The one JIT of the process; llvmlite's objects are not safe to use from several threads."""

    def __init__(self) -> None:
        _initialize()
        machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
        # JITLink keeps the sections of an object together. The older linker maps each by itself, and where a process holds
        # large mappings it finds its constants beyond the 2 GiB that an address in the code can span, and aborts.
        self._jit = llvm.create_lljit_compiler(machine, use_jit_link=True)
        self._lock = threading.Lock()
        self._count = 0

    def link(self, data: bytes) -> llvm.ResourceTracker:
        with self._lock:
            self._count += 1
            library = llvm.JITLibraryBuilder().add_object_img(data).export_symbol(ENTRY).add_current_process()
            return library.link(self._jit, f"kernel{self._count}")


@functools.cache
def _linker() -> _Linker:
    return _Linker()
