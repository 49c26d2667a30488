// RUN: stablehlo-opt %s --pass-pipeline='builtin.module(expand-math{features=+fma})' | FileCheck %s
// RUN: stablehlo-opt %s --pass-pipeline='builtin.module(expand-math{features=+sse2})' | FileCheck %s --check-prefix=SPLIT

// x = n log(2) + r: n by a rounding sum, a polynomial in r, 2^n from bits in two factors.
// CHECK-LABEL: func.func @exp
// CHECK-SAME: (%[[X:.*]]: f32) -> f32
// CHECK-NOT: math.exp
// CHECK: %[[BIG:.*]] = arith.cmpf ogt, %[[X]]
// CHECK: arith.select %[[BIG]]
// CHECK: %[[SHIFTED:.*]] = math.fma
// CHECK: arith.bitcast %[[SHIFTED]] : f32 to i32
// the rounding sum has brought the bias of exponents along
// CHECK-NOT: arith.addi
// CHECK-COUNT-2: arith.shli
// CHECK-NOT: arith.addi
// CHECK-NOT: scf.if
// CHECK-NOT: call
// CHECK: return
// SPLIT-LABEL: func.func @exp
// SPLIT-NOT: math.
// SPLIT: return
func.func @exp(%x: f32) -> f32 {
  %0 = math.exp %x : f32
  return %0 : f32
}

// The polynomial goes by pairs: half of its products wait for each other.
// CHECK-LABEL: func.func @log
// CHECK: %[[SQUARE:.*]] = arith.mulf %[[F:.*]], %[[F]] : f32
// CHECK: %[[PAIR:.*]] = math.fma %{{.*}}, %[[F]], %{{.*}}
// CHECK: math.fma %[[PAIR]], %[[SQUARE]]
// CHECK: return
func.func @log(%x: f32) -> f32 {
  %0 = math.log %x : f32
  return %0 : f32
}

// The sign is put back by an or: what gets it has none.
// CHECK-LABEL: func.func @tanh
// CHECK-NOT: math.copysign
// CHECK-NOT: arith.addi
// CHECK: arith.ori
// CHECK: return
func.func @tanh(%x: f32) -> f32 {
  %0 = math.tanh %x : f32
  return %0 : f32
}

// Without a fused multiply-add exact products are split; nothing else of the math dialect is left but rounding.
// CHECK-LABEL: func.func @pow
// CHECK-NOT: math.powf
// CHECK: math.fma
// CHECK: return
// SPLIT-LABEL: func.func @pow
// SPLIT-NOT: math.powf
// SPLIT-NOT: math.fma
// SPLIT: return
func.func @pow(%x: f64, %y: f64) -> f64 {
  %0 = math.powf %x, %y : f64
  return %0 : f64
}

// CHECK-LABEL: func.func @calls
// CHECK-NOT: call @hypotf
// CHECK: math.sqrt
// CHECK: call @lgammaf
func.func private @hypotf(f32, f32) -> f32
func.func private @lgammaf(f32) -> f32
func.func @calls(%x: f32, %y: f32) -> f32 {
  %0 = func.call @hypotf(%x, %y) : (f32, f32) -> f32
  %1 = func.call @lgammaf(%0) : (f32) -> f32
  return %1 : f32
}

// Vectors and other widths are not ours.
// CHECK-LABEL: func.func @others_stay
// CHECK: math.exp %{{.*}} : vector<4xf32>
// CHECK: math.exp %{{.*}} : f16
func.func @others_stay(%x: vector<4xf32>, %y: f16) -> (vector<4xf32>, f16) {
  %0 = math.exp %x : vector<4xf32>
  %1 = math.exp %y : f16
  return %0, %1 : vector<4xf32>, f16
}
