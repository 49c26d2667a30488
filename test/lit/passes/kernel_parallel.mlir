// RUN: stablehlo-opt %s --pass-pipeline='builtin.module(kernel-parallel)' | FileCheck %s

// What is read through a view of another rank is setup.
// CHECK-LABEL: func.func @view
// CHECK-SAME: %[[BEGIN:[a-z0-9]+]]: index, %[[END:[a-z0-9]+]]: index) attributes {{.*}}kernel.extent = 9
// CHECK: scf.for %{{.*}} = %[[BEGIN]] to %[[END]]
func.func @view(%s: memref<1xf32>, %y: memref<9xf32>) attributes {kernel = "elementwise", kernel.extent = 9 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %base, %offset, %sizes, %strides = memref.extract_strided_metadata %s : memref<1xf32> -> memref<f32>, index, index, index
  scf.for %i = %c0 to %c9 step %c1 {
    %0 = memref.load %base[] : memref<f32>
    memref.store %0, %y[%i] : memref<9xf32>
  }
  return
}

// A store outside of the loop is for one thread: without begin and end, no extent is left either.
// CHECK-LABEL: func.func @store_before
// CHECK-NOT: kernel.extent
// CHECK: scf.for %{{.*}} = %c0
func.func @store_before(%x: memref<f32>, %y: memref<9xf32>) attributes {kernel = "elementwise", kernel.extent = 9 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %0 = memref.load %x[] : memref<f32>
  memref.store %0, %x[] : memref<f32>
  scf.for %i = %c0 to %c9 step %c1 {
    memref.store %0, %y[%i] : memref<9xf32>
  }
  return
}
