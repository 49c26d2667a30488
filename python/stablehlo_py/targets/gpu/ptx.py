"""The last mile: a gpu.module in the NVVM dialect to PTX text by llvmlite, and ptxas where it is found."""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import llvmlite.binding as binding

from stablehlo_py.errors import CompileError, UnsupportedOp
from stablehlo_py.machine.gpu import GpuChip
from stablehlo_py.mlir import ir
from stablehlo_py.targets.llvm_literals import fix_literals
from stablehlo_py.targets.llvm_passes import run_passes
from stablehlo_py.targets.llvm_text import to_llvm_ir

TRIPLE = "nvptx64-nvidia-cuda"


def module_to_ptx(gpu_module: ir.Operation, chip: GpuChip) -> str:
    """The PTX of one gpu.module whose functions are in the LLVM and NVVM dialects."""
    alone = ir.Module.create(loc=gpu_module.location)
    for view in gpu_module.regions[0].blocks[0].operations:
        alone.body.append(view.operation.clone())
    return llvm_to_ptx(fix_literals(to_llvm_ir(alone.operation)), chip)


def llvm_to_ptx(text: str, chip: GpuChip) -> str:
    """LLVM IR text to PTX; what it calls of libdevice is linked in."""
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    module = binding.parse_assembly(text)
    machine = binding.Target.from_triple(TRIPLE).create_target_machine(cpu=chip.name, features=f"+ptx{chip.ptx}", opt=3)
    module.triple, module.data_layout = TRIPLE, str(machine.target_data)
    if "@__nv_" in text:
        _link_device_functions(module)
    builder = binding.create_pass_builder(machine, binding.create_pipeline_tuning_options(speed_level=3))
    run_passes(builder.getModulePassManager(), module, builder)
    return machine.emit_assembly(module)


# Functions of libdevice that are one intrinsic, with their number of arguments: no need for the library itself.
_INTRINSICS = {
    "fabs": ("fabs", 1),
    "sqrt": ("sqrt", 1),
    "floor": ("floor", 1),
    "ceil": ("ceil", 1),
    "trunc": ("trunc", 1),
    "rint": ("roundeven", 1),
    "copysign": ("copysign", 2),
    "fma": ("fma", 3),
}


def _link_device_functions(module: binding.ModuleRef) -> None:
    """Define what the module calls of libdevice: by intrinsics where that is all, else from the library."""
    wanted = {f.name for f in module.functions if f.name.startswith("__nv_")}
    definitions = []
    for stem, (intrinsic, count) in _INTRINSICS.items():
        for suffix, ty, width in (("f", "float", "f32"), ("", "double", "f64")):
            name = f"__nv_{stem}{suffix}"
            if name in wanted:
                wanted.remove(name)
                arguments = ", ".join(f"{ty} %x{i}" for i in range(count))
                types = ", ".join([ty] * count)
                definitions.append(
                    f"declare {ty} @llvm.{intrinsic}.{width}({types})\n"
                    f"define {ty} @{name}({arguments}) alwaysinline {{\n"
                    f"  %y = call {ty} @llvm.{intrinsic}.{width}({arguments})\n  ret {ty} %y\n}}\n"
                )
    own = {f.name for f in module.functions if not f.is_declaration}
    libraries = [binding.parse_assembly("\n".join(definitions))] if definitions else []
    if wanted:
        libraries.append(_libdevice(wanted))
    for library in libraries:
        library.triple, library.data_layout = module.triple, module.data_layout
        module.link_in(library)
        _make_internal(module, own)


def _make_internal(module: binding.ModuleRef, own: set[str]) -> None:
    """What was linked in may be inlined and dropped."""
    for function in module.functions:
        if not function.is_declaration and function.name not in own:
            function.linkage = "internal"


def _libdevice(wanted: set[str]) -> binding.ModuleRef:
    path = find_libdevice()
    if path is None:
        raise UnsupportedOp(
            "math",
            f"{', '.join(sorted(wanted))} of NVIDIA's libdevice.10.bc is needed, which is not found",
            target="gpu",
            hint="install the CUDA toolkit or the extra [gpu], or set CUDA_HOME",
        )
    library = binding.parse_bitcode(path.read_bytes())
    missing = wanted - {f.name for f in library.functions}
    if missing:
        raise UnsupportedOp("math", f"libdevice has no {', '.join(sorted(missing))}", target="gpu")
    return library


@functools.cache
def find_libdevice() -> Path | None:
    """libdevice.10.bc of the CUDA toolkit or of NVIDIA's Python package."""
    roots = [Path(os.environ[name]) for name in ("CUDA_HOME", "CUDA_PATH") if name in os.environ]
    roots += [Path("/usr/local/cuda")]
    tool = find_ptxas()
    if tool is not None:
        roots.append(tool.resolve().parent.parent)
    spec = importlib.util.find_spec("nvidia")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        roots += [Path(place) / "cu13", Path(place) / "cuda_nvcc"]
    for root in roots:
        path = root / "nvvm" / "libdevice" / "libdevice.10.bc"
        if path.is_file():
            return path
    return None


@functools.cache
def find_ptxas() -> Path | None:
    """NVIDIA's assembler, in PATH or where the CUDA toolkit puts it."""
    for root in (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"):
        if root and (Path(root) / "bin" / "ptxas").is_file():
            return Path(root) / "bin" / "ptxas"
    found = shutil.which("ptxas")
    return Path(found) if found else None


def assemble(ptx: str, chip: GpuChip) -> tuple[bytes, str]:
    """Machine code (cubin) and what ptxas says of registers and spills."""
    tool = find_ptxas()
    if tool is None:
        raise CompileError("ptxas is not found", hint="install the CUDA toolkit, or set CUDA_HOME")
    with tempfile.TemporaryDirectory() as folder:
        source, cubin = Path(folder) / "kernel.ptx", Path(folder) / "kernel.cubin"
        source.write_text(ptx)
        command = [str(tool), "-v", f"-arch={chip.name}", str(source), "-o", str(cubin)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise CompileError(f"ptxas refuses the PTX: {done.stderr.strip()}")
        return cubin.read_bytes(), done.stderr
