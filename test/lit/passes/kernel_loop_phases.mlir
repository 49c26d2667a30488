// RUN: stablehlo-opt %s --pass-pipeline='kernel-mark-parallel,func.func(convert-linalg-to-loops),expand-strided-metadata,cpu-fold-loops,kernel-parallel' | FileCheck %s

// Loops of other extents, which are large: a launch of each, between clamped steps, and what lies between them is shared.
// CHECK-LABEL: func.func @padded
// CHECK-SAME: %[[BEGIN:[a-z0-9]+]]: index, %[[END:[a-z0-9]+]]: index)
// CHECK-SAME: kernel.extent = 1202
// CHECK-SAME: kernel.phases = array<i64: 0, 602, 602, 1202>
// CHECK-SAME: kernel.scratch = array<i64>
// CHECK-SAME: kernel.shared = array<i64: 2408>
// CHECK: %[[HIGH:.*]] = arith.minsi %[[END]], %c602
// CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}}
// CHECK: %[[LEFT:.*]] = arith.subi %[[BEGIN]], %c602
// CHECK: %[[FROM_0:.*]] = arith.maxsi %[[LEFT]], %c0
// CHECK: arith.minsi %[[FROM_0]], %c600
// CHECK: scf.for
#whole = affine_map<(d0, d1) -> (d0, d1)>
func.func @padded(%x: memref<600x600xf32>, %y: memref<600x600xf32>, %s: memref<602x600xf32>) attributes {
  kernel = "single", kernel.scratch = array<i64: 2408>
} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%s : memref<602x600xf32>)
  %inside = memref.subview %s[1, 0] [600, 600] [1, 1] : memref<602x600xf32> to memref<600x600xf32, strided<[600, 1], offset: 600>>
  linalg.generic {indexing_maps = [#whole, #whole, #whole], iterator_types = ["parallel", "parallel"]}
      ins(%x, %inside : memref<600x600xf32>, memref<600x600xf32, strided<[600, 1], offset: 600>>) outs(%y : memref<600x600xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %0 = arith.addf %a, %b : f32
    linalg.yield %0 : f32
  }
  return
}

// What one leaves for the next in a thread's own stack keeps them together.
// CHECK-LABEL: func.func @on_the_stack
// CHECK-NOT: kernel.phases
func.func @on_the_stack(%x: memref<200xf32>, %y: memref<2000x200xf32>) attributes {kernel = "single"} {
  %s = memref.alloca() : memref<200xf32>
  linalg.copy ins(%x : memref<200xf32>) outs(%s : memref<200xf32>)
  linalg.generic {
    indexing_maps = [affine_map<(d0, d1) -> (d1)>, #whole], iterator_types = ["parallel", "parallel"]
  } ins(%s : memref<200xf32>) outs(%y : memref<2000x200xf32>) {
  ^bb0(%a: f32, %c: f32):
    linalg.yield %a : f32
  }
  return
}
