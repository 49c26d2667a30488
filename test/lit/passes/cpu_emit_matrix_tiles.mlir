// RUN: stablehlo-opt %s --split-input-file --pass-pipeline='builtin.module(cpu-emit-contractions{features=+avx512f,+avx512vl,+avx512bw,+avx512vnni,+avx512bf16,+amx-tile,+amx-int8,+amx-bf16})' | FileCheck %s
// RUN: stablehlo-opt %s --split-input-file --pass-pipeline='builtin.module(cpu-emit-contractions{features=+avx512f,+avx512vl,+avx512bw,+avx512vnni,+avx512bf16,-amx-tile,+amx-int8,+amx-bf16})' | FileCheck %s --check-prefix=WITHOUT

// Two by two tiles of sums: each tile of an operand is loaded once for two products. They go to the result themselves, and
// tiles are released in the end. Without tiles, vectors of sums are carried by the loop over k.
// CHECK-LABEL: func.func public @bytes
// CHECK: llvm.call_intrinsic "llvm.x86.ldtilecfg"
// CHECK-COUNT-4: "llvm.x86.tilezero"
// CHECK: scf.for
// CHECK-COUNT-3: "llvm.x86.tileloadd64"
// CHECK-COUNT-2: "llvm.x86.tdpbssd"
// CHECK: "llvm.x86.tileloadd64"
// CHECK-COUNT-2: "llvm.x86.tdpbssd"
// CHECK-NEXT: }
// CHECK-COUNT-4: "llvm.x86.tilestored64"
// CHECK-NOT: vector.load
// CHECK: "llvm.x86.tilerelease"
// WITHOUT-LABEL: func.func public @bytes
// WITHOUT-NOT: llvm.x86.tile
// WITHOUT: "llvm.x86.avx512.vpdpbusd.512"
// WITHOUT-NOT: llvm.x86.tile
func.func public @bytes(%a: memref<64x256xi8>, %b: memref<256x96xi8>, %c: memref<64x96xi32>) attributes {kernel} {
  %zero = arith.constant 0 : i32
  linalg.fill ins(%zero : i32) outs(%c : memref<64x96xi32>)
  linalg.generic {indexing_maps = [affine_map<(m, k, n) -> (m, k)>, affine_map<(m, k, n) -> (k, n)>, affine_map<(m, k, n) -> (m, n)>],
      iterator_types = ["parallel", "reduction", "parallel"]} ins(%a, %b : memref<64x256xi8>, memref<256x96xi8>) outs(%c : memref<64x96xi32>)
      attrs = {kernel.contraction = ["mk", "kn", "mn", "i8"]} {
  ^bb0(%x: i8, %y: i8, %acc: i32):
    %0 = arith.extsi %x : i8 to i32
    %1 = arith.extsi %y : i8 to i32
    %2 = arith.muli %0, %1 : i32
    %3 = arith.addi %acc, %2 : i32
    linalg.yield %3 : i32
  }
  return
}

// -----

// Two rows: a tile would be all but empty.
// CHECK-LABEL: func.func public @few_rows
// CHECK-NOT: llvm.x86.tile
// CHECK: "llvm.x86.avx512.vpdpbusd.512"
// CHECK-NOT: llvm.x86.tile
func.func public @few_rows(%a: memref<2x256xi8>, %b: memref<256x96xi8>, %c: memref<2x96xi32>) attributes {kernel} {
  %zero = arith.constant 0 : i32
  linalg.fill ins(%zero : i32) outs(%c : memref<2x96xi32>)
  linalg.generic {indexing_maps = [affine_map<(m, k, n) -> (m, k)>, affine_map<(m, k, n) -> (k, n)>, affine_map<(m, k, n) -> (m, n)>],
      iterator_types = ["parallel", "reduction", "parallel"]} ins(%a, %b : memref<2x256xi8>, memref<256x96xi8>) outs(%c : memref<2x96xi32>)
      attrs = {kernel.contraction = ["mk", "kn", "mn", "i8"]} {
  ^bb0(%x: i8, %y: i8, %acc: i32):
    %0 = arith.extsi %x : i8 to i32
    %1 = arith.extsi %y : i8 to i32
    %2 = arith.muli %0, %1 : i32
    %3 = arith.addi %acc, %2 : i32
    linalg.yield %3 : i32
  }
  return
}
