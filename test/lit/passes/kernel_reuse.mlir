// RUN: stablehlo-opt %s --pass-pipeline='kernel-reuse' | FileCheck %s

#flat = affine_map<(d0) -> (d0)>
#first = affine_map<(d0) -> (0)>
#square = affine_map<(d0, d1) -> (d0, d1)>
#turned = affine_map<(d0, d1) -> (d1, d0)>

// Both inputs are read at the places that are written, one through another shape.
// CHECK-LABEL: func.func @at_its_own_place
// CHECK-SAME: kernel.reuse = array<i64: 0, 2, 1, 2>
func.func @at_its_own_place(%x: memref<8xf32>, %y: memref<2x4xf32>, %z: memref<8xf32>) attributes {kernel = "elementwise"} {
  %flat = memref.collapse_shape %y [[0, 1]] : memref<2x4xf32> into memref<8xf32>
  linalg.generic {indexing_maps = [#flat, #flat, #flat], iterator_types = ["parallel"]} ins(%x, %flat : memref<8xf32>, memref<8xf32>) outs(%z : memref<8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %d = arith.addf %a, %b : f32
    linalg.yield %d : f32
  }
  return
}

// CHECK-LABEL: func.func @at_another_place
// CHECK-NOT: kernel.reuse
func.func @at_another_place(%x: memref<4x4xf32>, %z: memref<4x4xf32>) attributes {kernel = "elementwise"} {
  linalg.generic {indexing_maps = [#turned, #square], iterator_types = ["parallel", "parallel"]} ins(%x : memref<4x4xf32>) outs(%z : memref<4x4xf32>) {
  ^bb0(%a: f32, %c: f32):
    linalg.yield %a : f32
  }
  return
}

// CHECK-LABEL: func.func @in_two_ops
// CHECK-NOT: kernel.reuse
func.func @in_two_ops(%x: memref<8xf32>, %y: memref<8xf32>, %z: memref<8xf32>) attributes {kernel = "elementwise"} {
  linalg.copy ins(%x : memref<8xf32>) outs(%y : memref<8xf32>)
  linalg.generic {indexing_maps = [#flat, #flat], iterator_types = ["parallel"]} ins(%x : memref<8xf32>) outs(%z : memref<8xf32>) {
  ^bb0(%a: f32, %c: f32):
    linalg.yield %a : f32
  }
  return
}

// A part of a buffer, and the same element in each step.
// CHECK-LABEL: func.func @not_all_of_it
// CHECK-NOT: kernel.reuse
func.func @not_all_of_it(%x: memref<9xf32>, %y: memref<1xf32>, %z: memref<8xf32>) attributes {kernel = "elementwise"} {
  %part = memref.subview %x[0] [8] [1] : memref<9xf32> to memref<8xf32>
  linalg.generic {indexing_maps = [#flat, #first, #flat], iterator_types = ["parallel"]} ins(%part, %y : memref<8xf32>, memref<1xf32>) outs(%z : memref<8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %d = arith.addf %a, %b : f32
    linalg.yield %d : f32
  }
  return
}
