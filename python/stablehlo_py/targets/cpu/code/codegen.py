"""Kernels in the LLVM dialect to machine code: one object for each kernel, by llvmlite, without a system compiler.

A kernel `@k(ptr, ptr, ...)` gets an entry of the one signature that the executor calls:

    void k(void *const *buffers, int64_t begin, int64_t end)
"""

from __future__ import annotations

import contextlib
import functools

import llvmlite.binding as llvm

from stablehlo_py.mlir import ir
from stablehlo_py.targets.cpu.code.address_text import plain_addresses
from stablehlo_py.targets.cpu.code.support import support_for
from stablehlo_py.targets.cpu.emit.nest import ORDERED_CODE, VECTOR_CODE
from stablehlo_py.targets.llvm_passes import Buffer, emit, parse, pass_manager, run_passes
from stablehlo_py.targets.llvm_text import to_llvm_ir
from stablehlo_py.targets.machine_code import ENTRY, CodegenOptions, initialize
from stablehlo_py.transforms.kernels.kernel_parallel import WORK

# That no part begins below 0 lets LLVM see that a flat index, split into the indices of a shape, is itself again.
PARAMETERS = "ptr %buffers, i64 range(i64 0, 281474976710656) %begin, i64 %end"
BODY = "kernel_body"  # what the entry calls, where it is not one with it
# The first line of the text of a kernel that has nothing left to vectorise, or nothing that could be.
VECTORISED = "; vectorised\n"
ORDERED = "; ordered\n"
# LLVM's level of code generation for each speed: what 2 has more than 1 is a second scheduling, which no core here needs.
CODE_LEVELS = (0, 1, 1, 3)
FEW = 300  # ops that a kernel runs in all: too few for vectors to matter
# LLVM's passes for these, in place of its whole pipeline: vectors are written as code generation wants them, which joins
# blocks by itself; scalar loops are as fast after this list, in a third of the time.
PASSES: dict[str, tuple[str, ...]] = {
    VECTORISED: (),
    ORDERED: ("simplify_cfg", "sroa", "new_gvn", "instruction_combine", "loop_rotate", "simplify_cfg"),
}


def llvm_ir_of(function: ir.Operation) -> str:
    """The LLVM IR text of a kernel that has a module of its own, with its entry; independent of the kernel's name."""
    name = ir.StringAttr(function.attributes["sym_name"]).value
    module = function.parent
    assert module is not None
    # pointers to buffers, and in a kernel that can be split the bounds of its part
    types = llvm_function_inputs(function)
    text = to_llvm_ir(module.operation)
    head, found, tail = text.partition(f"define void @{name}(")
    arguments, _, body = tail.partition(")")
    assert found
    if may_share_memory(function):
        return VECTORISED + head + plain_addresses(_with_loads(types, body)) + support_for(text)
    # The planner gives each buffer its own memory; where a result updates an operand, the kernel does not touch the
    # operand's pointer. Without this, LLVM guards each vector loop by comparing all pointers.
    arguments = arguments.replace("ptr %", "ptr noalias %")
    first = ORDERED if ORDERED_CODE in function.attributes else ""
    return (
        f"{first}{head}define internal void @{BODY}({arguments}) nounwind{body}\n{_calling(types)}{support_for(text)}"
    )


def may_share_memory(function: ir.Operation) -> bool:
    """Whether the code of a kernel takes no two of its buffers for apart because they have two pointers."""
    return VECTOR_CODE in function.attributes or _work(function) <= FEW


def _calling(types: list[str]) -> str:
    """The entry as a function that calls the kernel's body."""
    pointers = [f"%p{i}" for i, ty in enumerate(types) if "ptr" in ty]
    operands = [f"ptr {name}" for name in pointers] + ["i64 %begin", "i64 %end"][: len(types) - len(pointers)]
    loads = _loads(pointers)
    return f"define void @{ENTRY}({PARAMETERS}) nounwind {{\n{loads}  call void @{BODY}({', '.join(operands)})\n  ret void\n}}\n"


def _with_loads(types: list[str], body: str) -> str:
    """The entry as the kernel's body itself, with the pointers loaded in front; `body` is what follows its arguments.

    Arguments and the first block have the numbers 0, 1, ... in LLVM's text: the loads take those of the arguments.
    """
    count = len(types)
    pointers = [f"%{i}" for i, ty in enumerate(types) if "ptr" in ty]
    bounds = [f"  %{len(pointers) + i} = add i64 {name}, 0\n" for i, name in enumerate(("%begin", "%end"))]
    bounds = bounds[: count - len(pointers)]
    _, _, blocks = body.partition("{\n")
    start = f"start:\n{_loads(pointers)}{''.join(bounds)}  br label %{count}\n"
    return f"define void @{ENTRY}({PARAMETERS}) nounwind {{\n{start}\n{count}:\n{blocks}"


def _loads(names: list[str]) -> str:
    """Load the pointers of all buffers."""
    places = [f"  %slot{i} = getelementptr ptr, ptr %buffers, i64 {i}\n" for i in range(len(names))]
    return "".join(places + [f"  {name} = load ptr, ptr %slot{i}\n" for i, name in enumerate(names)])


def _work(function: ir.Operation) -> int:
    return ir.IntegerAttr(function.attributes[WORK]).value if WORK in function.attributes else FEW + 1


def llvm_function_inputs(function: ir.Operation) -> list[str]:
    """The types of an llvm.func's arguments, as text."""
    return [str(argument.type) for argument in function.regions[0].blocks[0].arguments]


class Making:
    """The object of a kernel while it is made: `run` is the long part, which any thread may do.

    What it needs is made here, and freed by whoever drops it, under llvmlite's lock. `run` goes around that lock:
    a context, a module and a target machine of its own are all that LLVM asks for.
    """

    module: llvm.ModuleRef | None = None
    _builder: llvm.PassBuilder | None = None
    _buffer: Buffer | None = None
    _error: Exception | None = None

    def __init__(self, text: str, options: CodegenOptions) -> None:
        initialize()
        options = options.resolved()
        self._options, self._machine = options, _take_machine(options)
        # LLVM's global context keeps what the vectoriser notes of each loop for ever; one of its own goes with the module.
        self._text, self._context = _target_lines(options) + text, llvm.create_context()
        passes = PASSES.get(text[: text.find("\n") + 1])
        if passes == ():
            return
        # The vectoriser interleaves by itself; unrolling and SLP double the time here and bought nothing in the benchmarks.
        tuning = llvm.create_pipeline_tuning_options(speed_level=options.speed)
        tuning.loop_unrolling = tuning.slp_vectorization = False
        self._builder = llvm.create_pass_builder(self._machine, tuning)
        self._manager = pass_manager(self._builder, passes or ())

    def run(self) -> None:
        """Read the text, optimise and make the object."""
        try:
            self.module = parse(self._text, self._context)
            if self._builder is not None:
                run_passes(self._manager, self.module, self._builder)
            self._buffer = emit(self._machine, self.module)
        except Exception as error:  # raised where the object is asked for
            self._error = error

    def object(self) -> bytes:
        """The relocatable object, once `run` has returned."""
        if self._error is not None:
            raise self._error
        assert self._buffer is not None
        return self._buffer.data

    def assembly(self) -> str:
        """The text of the same code."""
        if self._error is not None:
            raise self._error
        return self._machine.emit_assembly(self.module)

    def close(self) -> None:
        """Free the module now: were it part of a cycle, its context could go before it."""
        if self.module is not None:
            self.module.close()
        self._error = None
        _give_back(self._options, self._machine)


def make_object(text: str, options: CodegenOptions) -> bytes:
    """A relocatable object from LLVM IR text."""
    with contextlib.closing(Making(text, options)) as making:
        making.run()
        return making.object()


def make_assembly(text: str, options: CodegenOptions) -> str:
    """The assembly of the same code."""
    with contextlib.closing(Making(text, options)) as making:
        making.run()
        return making.assembly()


_machines: dict[CodegenOptions, list[llvm.TargetMachine]] = {}  # those that nobody uses now


def _take_machine(options: CodegenOptions) -> llvm.TargetMachine:
    """A target machine for one kernel at a time; what it works out about its cpu, in 0.7 ms, it keeps."""
    try:
        return _machines[options].pop()
    except LookupError:
        return _machine(options)


def _give_back(options: CodegenOptions, machine: llvm.TargetMachine) -> None:
    _machines.setdefault(options, []).append(machine)


@functools.cache
def _target_lines(options: CodegenOptions) -> str:
    """What a module says about its target."""
    machine = _take_machine(options)
    layout = str(machine.target_data)
    _give_back(options, machine)
    return f'target datalayout = "{layout}"\ntarget triple = "{llvm.get_default_triple()}"\n'


def _machine(options: CodegenOptions) -> llvm.TargetMachine:
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=options.cpu,
        features=options.features,
        opt=CODE_LEVELS[options.speed],
        reloc="pic",
        codemodel="small",
        jit=False,
    )
