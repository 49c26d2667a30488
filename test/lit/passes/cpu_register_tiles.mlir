// RUN: stablehlo-opt %s --pass-pipeline='builtin.module(cpu-register-tiles{bytes=32})' | FileCheck %s

#lhs = affine_map<(m, k, n) -> (m, k)>
#rhs = affine_map<(m, k, n) -> (k, n)>
#out = affine_map<(m, k, n) -> (m, n)>

// 6 x 2 vectors of 8 floats stay in registers; the panel of rhs is packed once for all rows.
// CHECK-LABEL: func.func @matmul
// CHECK-SAME: (%[[X:.*]]: memref<60x50xf32>, %[[Y:.*]]: memref<50x64xf32>, %[[OUT:.*]]: memref<60x64xf32>)
// CHECK: %[[PANEL:.*]] = memref.alloc() {{.*}} : memref<50x16xf32>
// CHECK: vector.load %[[Y]]
// CHECK: vector.store %{{.*}}, %[[PANEL]]
// CHECK: scf.for
// CHECK: vector.load %[[OUT]]
// CHECK: scf.for
// CHECK: vector.load %[[PANEL]]
// CHECK: memref.load %[[X]]
// CHECK: vector.broadcast
// CHECK: vector.fma
// CHECK-NOT: memref.store
// CHECK: vector.store %{{.*}}, %[[OUT]]
// CHECK-NOT: linalg
// CHECK: return
func.func @matmul(%x: memref<60x50xf32>, %y: memref<50x64xf32>, %out: memref<60x64xf32>) {
  linalg.generic {indexing_maps = [#lhs, #rhs, #out], iterator_types = ["parallel", "reduction", "parallel"]}
      ins(%x, %y : memref<60x50xf32>, memref<50x64xf32>) outs(%out : memref<60x64xf32>) {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %acc, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// The last columns are masked.
// CHECK-LABEL: func.func @columns_left_over
// CHECK: arith.constant dense<[true, true, true, false, false, false, false, false]> : vector<8xi1>
// CHECK: vector.maskedstore
func.func @columns_left_over(%x: memref<60x50xf32>, %y: memref<50x11xf32>, %out: memref<60x11xf32>) {
  linalg.generic {indexing_maps = [#lhs, #rhs, #out], iterator_types = ["parallel", "reduction", "parallel"]}
      ins(%x, %y : memref<60x50xf32>, memref<50x11xf32>) outs(%out : memref<60x11xf32>) {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %acc, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// bf16 in memory: the panel holds f32.
// CHECK-LABEL: func.func @bf16
// CHECK: memref.alloc() {{.*}} : memref<50x16xf32>
// CHECK: arith.extui %{{.*}} : vector<8xi16> to vector<8xi32>
func.func @bf16(%x: memref<60x50xi16>, %y: memref<50x64xi16>, %out: memref<60x64xf32>) {
  %c16 = arith.constant 16 : i32
  linalg.generic {indexing_maps = [#lhs, #rhs, #out], iterator_types = ["parallel", "reduction", "parallel"]}
      ins(%x, %y : memref<60x50xi16>, memref<50x64xi16>) outs(%out : memref<60x64xf32>) {
  ^bb0(%a: i16, %b: i16, %acc: f32):
    %0 = arith.extui %a : i16 to i32
    %1 = arith.shli %0, %c16 : i32
    %2 = arith.bitcast %1 : i32 to f32
    %3 = arith.extui %b : i16 to i32
    %4 = arith.shli %3, %c16 : i32
    %5 = arith.bitcast %4 : i32 to f32
    %6 = arith.mulf %2, %5 : f32
    %7 = arith.addf %acc, %6 : f32
    linalg.yield %7 : f32
  }
  return
}

// A maximum of products is no sum of products.
// CHECK-LABEL: func.func @not_a_sum
// CHECK: linalg.generic
func.func @not_a_sum(%x: memref<60x50xf32>, %y: memref<50x64xf32>, %out: memref<60x64xf32>) {
  linalg.generic {indexing_maps = [#lhs, #rhs, #out], iterator_types = ["parallel", "reduction", "parallel"]}
      ins(%x, %y : memref<60x50xf32>, memref<50x64xf32>) outs(%out : memref<60x64xf32>) {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.maximumf %acc, %0 : f32
    linalg.yield %1 : f32
  }
  return
}
