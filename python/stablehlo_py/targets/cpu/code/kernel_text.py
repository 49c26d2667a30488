"""Kernels in the LLVM dialect to LLVM IR text, of which `codegen` makes objects.

A kernel `@k(ptr, ptr, ...)` gets an entry of the one signature that the executor calls:

    void k(void *const *buffers, int64_t begin, int64_t end)
"""

from __future__ import annotations

from stablehlo_py.mlir import ir
from stablehlo_py.targets.cpu.code.address_text import plain_addresses
from stablehlo_py.targets.cpu.code.support import support_for
from stablehlo_py.targets.cpu.emit.nest import ORDERED_CODE, TILED_CODE, VECTOR_CODE
from stablehlo_py.targets.llvm_text import to_llvm_ir
from stablehlo_py.targets.machine_code import ENTRY
from stablehlo_py.transforms.kernels.kernel_parallel import WORK

# That no part begins below 0 lets LLVM see that a flat index, split into the indices of a shape, is itself again.
PARAMETERS = "ptr %buffers, i64 range(i64 0, 281474976710656) %begin, i64 %end"
BODY = "kernel_body"  # what the entry calls, where it is not one with it
# The first line of the text of a kernel for which LLVM's passes have nothing to do: its vectors are written as code generation
# wants them, which joins blocks by itself, or its loops are such as nobody could vectorise.
READY = "; ready"
# The same of one whose time goes to multiply-adds, which fast selection of instructions leaves to the usual one, with all
# that stands before them in their block: what is selected fast is seldom run. Sums alone get slower by a fifth.
QUICK = f"{READY}, selected fast"
FEW = 300  # ops that a kernel runs in all: too few for vectors to matter


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
        first = QUICK if TILED_CODE in function.attributes else READY
        return f"{first}\n{head}" + plain_addresses(_with_loads(types, body)) + support_for(text)
    # The planner gives each buffer its own memory; where a result updates an operand, the kernel does not touch the
    # operand's pointer. Without this, LLVM guards each vector loop by comparing all pointers.
    arguments = arguments.replace("ptr %", "ptr noalias %")
    first = f"{READY}\n" if ORDERED_CODE in function.attributes else ""
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
