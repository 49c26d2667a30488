// Matmul, bias, relu and softmax as PTX.
// RUN: shlo compile %S/../../../examples/mlp.mlir --target=gpu --emit=ptx --chip=sm_80 | FileCheck %s
// The same to the NVVM dialect.
// RUN: stablehlo-opt %S/../../../examples/mlp.mlir --pipeline=gpu | FileCheck %s --check-prefix=NVVM

// CHECK: program(float32[16,48], float32[48,64], float32[64], float32[64,10], float32[10]) -> (float32[16,10])
// CHECK: .target sm_80
// CHECK: .visible .entry [[DOT:dot_general_[0-9a-z_]+]](
// CHECK: fma.rn.f32

// NVVM: gpu.container_module
// NVVM: gpu.module
// NVVM: llvm.func @{{.*}} attributes {{{.*}}gpu.kernel
// NVVM: nvvm.read.ptx.sreg.ctaid.x
// NVVM-NOT: stablehlo.
