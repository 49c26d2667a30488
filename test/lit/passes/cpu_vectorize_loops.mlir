// RUN: stablehlo-opt %s --pass-pipeline='cpu-vectorize-loops{features=+avx2}' | FileCheck %s

// What is uniform stays a scalar in front of the loop; the rest of the steps runs as before.
// CHECK-LABEL: func.func @elementwise(
// CHECK-SAME: %[[X:.*]]: memref<4x100xf32>, %[[M:.*]]: memref<4xf32>, %[[Y:.*]]: memref<4x100xf32>, %[[LOW:.*]]: index, %[[HIGH:.*]]: index)
// CHECK-SAME: kernel.vectors
// CHECK: scf.for %[[R:.*]] = %[[LOW]] to %[[HIGH]]
// CHECK: %[[UNIFORM:.*]] = memref.load %[[M]][%[[R]]]
// CHECK: %[[SPLAT:.*]] = vector.broadcast %[[UNIFORM]] : f32 to vector<8xf32>
// CHECK: scf.for %[[I:.*]] = {{.*}} {
// CHECK-NEXT: %[[LANES:.*]] = vector.load %[[X]][%[[R]], %[[I]]] : memref<4x100xf32>, vector<8xf32>
// CHECK-NEXT: %[[SUM:.*]] = arith.subf %[[LANES]], %[[SPLAT]] : vector<8xf32>
// CHECK-NEXT: vector.store %[[SUM]], %[[Y]][%[[R]], %[[I]]]
// CHECK: scf.for
// CHECK: memref.load %[[X]]
// CHECK: memref.store
func.func @elementwise(%x: memref<4x100xf32>, %m: memref<4xf32>, %y: memref<4x100xf32>, %low: index, %high: index) attributes {kernel = "elementwise"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c100 = arith.constant 100 : index
  scf.for %r = %low to %high step %c1 {
    scf.for %i = %c0 to %c100 step %c1 {
      %0 = memref.load %x[%r, %i] : memref<4x100xf32>
      %1 = memref.load %m[%r] : memref<4xf32>
      %2 = arith.subf %0, %1 : f32
      memref.store %2, %y[%r, %i] : memref<4x100xf32>
    }
  }
  return
}

// A sum that may be reordered is kept in four vectors; whole vectors leave no loop of scalars behind.
// CHECK-LABEL: func.func @sum(
// CHECK-SAME: kernel.vectors
// CHECK: %[[PARTS:.*]]:4 = scf.for {{.*}} -> (vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>)
// CHECK-COUNT-4: vector.load
// CHECK: vector.reduction <add>, {{.*}} fastmath<reassoc> : vector<8xf32> into f32
// CHECK-NOT: scf.for
// CHECK: return
func.func @sum(%x: memref<64xf32>, %y: memref<f32>) attributes {kernel = "rows"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  %0 = scf.for %i = %c0 to %c64 step %c1 iter_args(%acc = %zero) -> (f32) {
    %1 = memref.load %x[%i] : memref<64xf32>
    %2 = arith.addf %acc, %1 fastmath<reassoc> : f32
    scf.yield %2 : f32
  }
  memref.store %0, %y[] : memref<f32>
  return
}

// The numbers of the steps, as data.
// CHECK-LABEL: func.func @iota(
// CHECK: arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7]> : vector<8xi32>
// CHECK: vector.store
func.func @iota(%y: memref<16xi32>) attributes {kernel = "elementwise"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  scf.for %i = %c0 to %c16 step %c1 {
    %0 = arith.index_cast %i : index to i32
    memref.store %0, %y[%i] : memref<16xi32>
  }
  return
}

// A sum in the given order, a step that reads what the one before it wrote, a gap between elements, a loop that is
// shorter than a vector, a call: all stay, and LLVM's vectoriser looks at them.
// CHECK-LABEL: func.func @ordered_sum(
// CHECK-NOT: vector
// CHECK: return
func.func @ordered_sum(%x: memref<64xf32>, %y: memref<f32>) attributes {kernel = "rows"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  %0 = scf.for %i = %c0 to %c64 step %c1 iter_args(%acc = %zero) -> (f32) {
    %1 = memref.load %x[%i] : memref<64xf32>
    %2 = arith.addf %acc, %1 : f32
    scf.yield %2 : f32
  }
  memref.store %0, %y[] : memref<f32>
  return
}

// CHECK-LABEL: func.func @running_sum(
// CHECK-NOT: vector
// CHECK: return
func.func @running_sum(%y: memref<65xf32>) attributes {kernel = "single"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  scf.for %i = %c0 to %c64 step %c1 {
    %next = arith.addi %i, %c1 : index
    %0 = memref.load %y[%i] : memref<65xf32>
    %1 = memref.load %y[%next] : memref<65xf32>
    %2 = arith.addf %0, %1 : f32
    memref.store %2, %y[%next] : memref<65xf32>
  }
  return
}

// CHECK-LABEL: func.func @column(
// CHECK-NOT: vector
// CHECK: return
func.func @column(%x: memref<64x2xf32>, %y: memref<64xf32>) attributes {kernel = "single"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  scf.for %i = %c0 to %c64 step %c1 {
    %0 = memref.load %x[%i, %c0] : memref<64x2xf32>
    memref.store %0, %y[%i] : memref<64xf32>
  }
  return
}

// CHECK-LABEL: func.func @short(
// CHECK-NOT: vector
// CHECK: return
func.func @short(%x: memref<7xf32>, %y: memref<7xf32>) attributes {kernel = "single"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  scf.for %i = %c0 to %c7 step %c1 {
    %0 = memref.load %x[%i] : memref<7xf32>
    memref.store %0, %y[%i] : memref<7xf32>
  }
  return
}

func.func private @f(f32) -> f32

// CHECK-LABEL: func.func @call(
// CHECK-NOT: vector
// CHECK: return
func.func @call(%x: memref<64xf32>, %y: memref<64xf32>) attributes {kernel = "single"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  scf.for %i = %c0 to %c64 step %c1 {
    %0 = memref.load %x[%i] : memref<64xf32>
    %1 = func.call @f(%0) : (f32) -> f32
    memref.store %1, %y[%i] : memref<64xf32>
  }
  return
}
