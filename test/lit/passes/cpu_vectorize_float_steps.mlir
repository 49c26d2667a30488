// RUN: stablehlo-opt %s --split-input-file --pass-pipeline='builtin.module(cpu-vectorize{features=+avx512f,+avx512vl,+avx512bw,+avx512dq})' | FileCheck %s

// The largest of many floats: the larger number of two, and what is a NaN on the side. 5: the larger one.
// CHECK-LABEL: func.func @largest(
// CHECK: scf.for
// CHECK: %[[LARGER:.*]] = arith.constant 5 : i32
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.mask.range.ps.512"(%{{.*}}, %{{.*}}, %[[LARGER]],
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.mask.fixupimm.ps.512"
// CHECK-NOT: arith.maxsi
// CHECK: scf.yield
// CHECK: vector.reduction <maxui>
func.func @largest(%x: memref<128xf32>, %y: memref<1xf32>) attributes {kernel = "rows"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  %least = arith.constant 0xFF800000 : f32
  %m = scf.for %i = %c0 to %c128 step %c1 iter_args(%acc = %least) -> f32 {
    %a = memref.load %x[%i] : memref<128xf32>
    %b = arith.maximumf %acc, %a : f32
    scf.yield %b : f32
  }
  memref.store %m, %y[%c0] : memref<1xf32>
  return
}

// -----

// Of three vectors it goes by keys.
// CHECK-LABEL: func.func @largest_of_few(
// CHECK-NOT: llvm.call_intrinsic
// CHECK: arith.maxui
// CHECK: return
func.func @largest_of_few(%x: memref<48xf32>, %y: memref<1xf32>) attributes {kernel = "rows"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c48 = arith.constant 48 : index
  %least = arith.constant 0xFF800000 : f32
  %m = scf.for %i = %c0 to %c48 step %c1 iter_args(%acc = %least) -> f32 {
    %a = memref.load %x[%i] : memref<48xf32>
    %b = arith.maximumf %acc, %a : f32
    scf.yield %b : f32
  }
  memref.store %m, %y[%c0] : memref<1xf32>
  return
}

// -----

// Of eight rows at once the largest number and a NaN stay in registers; what was there is either's start.
// CHECK-LABEL: func.func @largest_of_columns(
// CHECK: scf.for
// CHECK: %[[BEFORE:.*]] = llvm.load
// CHECK: %[[FIRST:.*]] = llvm.call_intrinsic "llvm.x86.avx512.mask.range.ps.512"(%[[BEFORE]],
// CHECK: %[[NAN:.*]] = llvm.call_intrinsic "llvm.x86.avx512.mask.fixupimm.ps.512"(%[[BEFORE]],
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.mask.range.ps.512"(%[[FIRST]],
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.mask.fixupimm.ps.512"(%[[NAN]],
// CHECK-NOT: arith.maxui
// CHECK: return
func.func @largest_of_columns(%x: memref<16x64xf32>, %y: memref<64xf32>) attributes {kernel = "columns"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  scf.for %i = %c0 to %c16 step %c1 {
    scf.for %j = %c0 to %c64 step %c1 {
      %m = memref.load %y[%j] : memref<64xf32>
      %a = memref.load %x[%i, %j] : memref<16x64xf32>
      %b = arith.maximumf %m, %a : f32
      memref.store %b, %y[%j] : memref<64xf32>
    }
  }
  return
}

// -----

// x + 12582912 ends in the bits of the integer nearest to x: 1262485504 are the bits of 12582912. The difference is that
// integer as a float.
// CHECK-LABEL: func.func @power(
// CHECK: %[[S:.*]] = arith.addf
// CHECK: %[[N:.*]] = arith.subf %[[S]]
// CHECK-NOT: arith.bitcast
// CHECK-NOT: arith.subi
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.mask.scalef.ps.512"(%{{.*}}, %[[N]],
// CHECK: return
func.func @power(%x: memref<64xf32>, %y: memref<64xf32>) attributes {kernel = "elementwise"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %magic = arith.constant 1.2582912e+07 : f32
  %bits = arith.constant 1262485504 : i32
  scf.for %i = %c0 to %c64 step %c1 {
    %a = memref.load %x[%i] : memref<64xf32>
    %s = arith.addf %a, %magic : f32
    %n = arith.subf %s, %magic : f32
    %r = arith.subf %a, %n : f32
    %low = arith.bitcast %s : f32 to i32
    %e = arith.subi %low, %bits : i32
    %p = llvm.call_intrinsic "llvm.ldexp"(%r, %e) : (f32, i32) -> f32
    memref.store %p, %y[%i] : memref<64xf32>
  }
  return
}

// -----

// An exponent that is one more is no float that is there.
// CHECK-LABEL: func.func @power_and_one(
// CHECK: arith.subi
// CHECK: llvm.call_intrinsic "llvm.ldexp"(%{{.*}}, %{{.*}}) : (vector<16xf32>, vector<16xi32>) -> vector<16xf32>
// CHECK: return
func.func @power_and_one(%x: memref<64xf32>, %y: memref<64xf32>) attributes {kernel = "elementwise"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %magic = arith.constant 1.2582912e+07 : f32
  %bits = arith.constant 1262485503 : i32
  scf.for %i = %c0 to %c64 step %c1 {
    %a = memref.load %x[%i] : memref<64xf32>
    %s = arith.addf %a, %magic : f32
    %n = arith.subf %s, %magic : f32
    %r = arith.subf %a, %n : f32
    %low = arith.bitcast %s : f32 to i32
    %e = arith.subi %low, %bits : i32
    %p = llvm.call_intrinsic "llvm.ldexp"(%r, %e) : (f32, i32) -> f32
    memref.store %p, %y[%i] : memref<64xf32>
  }
  return
}

// -----

// Beside numbers of 8 bytes, floats take half of a register, for which there are no such steps here.
// CHECK-LABEL: func.func @half_register(
// CHECK-NOT: scalef
// CHECK: llvm.call_intrinsic "llvm.ldexp"
// CHECK: return
func.func @half_register(%x: memref<64xf32>, %y: memref<64xf32>, %z: memref<64xf64>) attributes {kernel = "elementwise"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %magic = arith.constant 1.2582912e+07 : f32
  %bits = arith.constant 1262485504 : i32
  scf.for %i = %c0 to %c64 step %c1 {
    %a = memref.load %x[%i] : memref<64xf32>
    %s = arith.addf %a, %magic : f32
    %n = arith.subf %s, %magic : f32
    %r = arith.subf %a, %n : f32
    %low = arith.bitcast %s : f32 to i32
    %e = arith.subi %low, %bits : i32
    %p = llvm.call_intrinsic "llvm.ldexp"(%r, %e) : (f32, i32) -> f32
    %wide = arith.extf %p : f32 to f64
    memref.store %p, %y[%i] : memref<64xf32>
    memref.store %wide, %z[%i] : memref<64xf64>
  }
  return
}
