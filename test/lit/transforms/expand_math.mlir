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

// A rounding to bf16 of what comes from bf16 takes no other way for NaN; one of a float of any bits does.
// CHECK-LABEL: func.func @short_nans
// CHECK: arith.mulf
// CHECK-NOT: arith.select
// CHECK: return
// CHECK-LABEL: func.func @long_nans
// CHECK: arith.select
// CHECK: return
func.func @short_nans(%x: i16) -> i32 {
  %quiet = arith.constant 64 : i32
  %half = arith.constant 32767 : i32
  %one = arith.constant 1 : i32
  %n = arith.constant 16 : i32
  %0 = arith.extui %x : i16 to i32
  %1 = arith.shli %0, %n : i32
  %2 = arith.bitcast %1 : i32 to f32
  %3 = arith.mulf %2, %2 : f32
  %4 = math.sqrt %3 : f32
  %bits = arith.bitcast %4 : f32 to i32
  %high = arith.shrui %bits, %n : i32
  %odd = arith.andi %high, %one : i32
  %5 = arith.addi %bits, %half : i32
  %6 = arith.addi %5, %odd : i32
  %up = arith.shrui %6, %n : i32
  %nan = arith.ori %high, %quiet : i32
  %is_nan = arith.cmpf uno, %4, %4 : f32
  %r = arith.select %is_nan, %nan, %up : i32
  return %r : i32
}
func.func @long_nans(%x: f32) -> i32 {
  %quiet = arith.constant 64 : i32
  %half = arith.constant 32767 : i32
  %one = arith.constant 1 : i32
  %n = arith.constant 16 : i32
  %0 = arith.mulf %x, %x : f32
  %bits = arith.bitcast %0 : f32 to i32
  %high = arith.shrui %bits, %n : i32
  %odd = arith.andi %high, %one : i32
  %5 = arith.addi %bits, %half : i32
  %6 = arith.addi %5, %odd : i32
  %up = arith.shrui %6, %n : i32
  %nan = arith.ori %high, %quiet : i32
  %is_nan = arith.cmpf uno, %0, %0 : f32
  %r = arith.select %is_nan, %nan, %up : i32
  return %r : i32
}
