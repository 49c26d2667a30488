"""From a kernel in the LLVM dialect to its object: text, LLVM's passes, threads that make objects beside the lowering."""
