// RUN: stablehlo-opt %s --split-input-file --pass-pipeline='builtin.module(cpu-vectorize{features=+avx512f,+avx512vl,+avx512bw})' | FileCheck %s
// RUN: stablehlo-opt %s --split-input-file --pass-pipeline='builtin.module(cpu-vectorize{features=+avx2})' | FileCheck %s --check-prefix=AVX2

// 100 = 6 * 16 + 4: two vectors at once leave none over, then one with a mask; without masks the rest is the loop as it was.
// CHECK-LABEL: func.func @elementwise
// CHECK-SAME: kernel.vectors
// CHECK: scf.for {{.*}} step %c32
// CHECK-COUNT-2: arith.addf {{.*}} vector<16xf32>
// CHECK-NOT: scf.for
// CHECK: dense<[true, true, true, true, false, {{.*}}]>
// CHECK: llvm.intr.masked.load
// CHECK: llvm.intr.masked.store
// AVX2-LABEL: func.func @elementwise
// AVX2: scf.for {{.*}} step %c16
// AVX2-COUNT-2: arith.addf {{.*}} vector<8xf32>
// AVX2: scf.for {{.*}} step %c1
// AVX2: memref.load
func.func @elementwise(%x: memref<100xf32>, %y: memref<100xf32>) attributes {kernel = "elementwise"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c100 = arith.constant 100 : index
  scf.for %i = %c0 to %c100 step %c1 {
    %a = memref.load %x[%i] : memref<100xf32>
    %b = arith.addf %a, %a : f32
    memref.store %b, %y[%i] : memref<100xf32>
  }
  return
}

// -----

// A sum that may be put in another order has four partial sums a lane; one that may not stays as it is.
// CHECK-LABEL: func.func @sum
// CHECK: %[[P:.*]]:4 = scf.for {{.*}} -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>)
// CHECK: %[[A:.*]] = arith.addf %[[P]]#0, %[[P]]#1
// CHECK: %[[B:.*]] = arith.addf %[[P]]#2, %[[P]]#3
// CHECK: %[[C:.*]] = arith.addf %[[A]], %[[B]]
// CHECK: vector.reduction <add>, %[[C]], {{.*}} fastmath<reassoc>
// CHECK-NOT: scf.for
// AVX2-LABEL: func.func @sum
func.func @sum(%x: memref<128xf32>, %y: memref<1xf32>) attributes {kernel = "rows"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  %zero = arith.constant 0.0 : f32
  %s = scf.for %i = %c0 to %c128 step %c1 iter_args(%acc = %zero) -> f32 {
    %a = memref.load %x[%i] : memref<128xf32>
    %b = arith.addf %acc, %a fastmath<reassoc> : f32
    scf.yield %b : f32
  }
  memref.store %s, %y[%c0] : memref<1xf32>
  return
}

// CHECK-LABEL: func.func @in_order
// CHECK-NOT: vector
// CHECK: return
func.func @in_order(%x: memref<128xf32>, %y: memref<1xf32>) attributes {kernel = "rows"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  %zero = arith.constant 0.0 : f32
  %s = scf.for %i = %c0 to %c128 step %c1 iter_args(%acc = %zero) -> f32 {
    %a = memref.load %x[%i] : memref<128xf32>
    %b = arith.addf %acc, %a : f32
    scf.yield %b : f32
  }
  memref.store %s, %y[%c0] : memref<1xf32>
  return
}

// -----

// A step that reads what the step before it wrote.
// CHECK-LABEL: func.func @recurrence
// CHECK-NOT: vector
// CHECK: return
func.func @recurrence(%x: memref<129xf32>) attributes {kernel = "single"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  scf.for %i = %c0 to %c128 step %c1 {
    %a = memref.load %x[%i] : memref<129xf32>
    %j = arith.addi %i, %c1 : index
    memref.store %a, %x[%j] : memref<129xf32>
  }
  return
}

// CHECK-LABEL: func.func @strided
// CHECK-NOT: vector
// CHECK: return
func.func @strided(%x: memref<128x4xf32>, %y: memref<128xf32>) attributes {kernel = "single"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  scf.for %i = %c0 to %c128 step %c1 {
    %a = memref.load %x[%i, %c1] : memref<128x4xf32>
    memref.store %a, %y[%i] : memref<128xf32>
  }
  return
}

// -----

// Eight rows at once: the sums are loaded and stored once for all of them, and added in the order of the rows.
// CHECK-LABEL: func.func @columns
// CHECK: scf.for {{.*}} step %c8
// CHECK: scf.for
// CHECK: llvm.load
// CHECK: %[[S:.*]] = llvm.load
// CHECK: arith.addf %[[S]],
// CHECK-COUNT-7: arith.addf
// CHECK: llvm.store
// CHECK: llvm.store {{.*}} : f32, !llvm.ptr
// CHECK: scf.for {{.*}} step %c1
// Without masks, the elements that are left are done row by row.
// AVX2-LABEL: func.func @columns
// AVX2: scf.for %[[I:.*]] = {{.*}} step %c8
// AVX2: scf.for {{.*}} step %c8
// AVX2: %[[NEXT:.*]] = arith.addi %[[I]], %c1
// AVX2: scf.for %[[J:.*]] =
// AVX2: memref.load %arg0[%[[I]], %[[J]]]
// AVX2: scf.for %[[K:.*]] =
// AVX2: memref.load %arg0[%[[NEXT]], %[[K]]]
// AVX2: return
func.func @columns(%x: memref<20x65xf32>, %y: memref<65xf32>) attributes {kernel = "single"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c20 = arith.constant 20 : index
  %c65 = arith.constant 65 : index
  scf.for %i = %c0 to %c20 step %c1 {
    scf.for %j = %c0 to %c65 step %c1 {
      %a = memref.load %x[%i, %j] : memref<20x65xf32>
      %s = memref.load %y[%j] : memref<65xf32>
      %b = arith.addf %s, %a : f32
      memref.store %b, %y[%j] : memref<65xf32>
    }
  }
  return
}

// -----

// The largest float by integers in the same order.
// CHECK-LABEL: func.func @largest
// CHECK: arith.maxui {{.*}} vector<16xi32>
// CHECK-NOT: arith.maximumf {{.*}} vector
// CHECK: arith.maximumf {{.*}} f32
func.func @largest(%x: memref<64xf32>, %y: memref<1xf32>) attributes {kernel = "rows"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %least = arith.constant 0xFF800000 : f32
  %s = scf.for %i = %c0 to %c64 step %c1 iter_args(%acc = %least) -> f32 {
    %a = memref.load %x[%i] : memref<64xf32>
    %b = arith.maximumf %acc, %a : f32
    scf.yield %b : f32
  }
  memref.store %s, %y[%c0] : memref<1xf32>
  return
}

// -----

// What is uniform stays a scalar in front of the loop, and is spread once.
// AVX2-LABEL: func.func @uniform(
// AVX2-SAME: %[[X:.*]]: memref<4x100xf32>, %[[M:.*]]: memref<4xf32>, %[[Y:.*]]: memref<4x100xf32>, %[[LOW:.*]]: index, %[[HIGH:.*]]: index)
// AVX2-SAME: kernel.vectors
// AVX2: scf.for %[[R:.*]] = %[[LOW]] to %[[HIGH]]
// AVX2: %[[UNIFORM:.*]] = memref.load %[[M]][%[[R]]]
// AVX2: %[[SPLAT:.*]] = vector.broadcast %[[UNIFORM]] : f32 to vector<8xf32>
// AVX2: scf.for
// AVX2: arith.subf %{{.*}}, %[[SPLAT]] : vector<8xf32>
func.func @uniform(%x: memref<4x100xf32>, %m: memref<4xf32>, %y: memref<4x100xf32>, %low: index, %high: index) attributes {kernel = "elementwise"} {
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

// -----

// The numbers of the steps, as data.
// AVX2-LABEL: func.func @iota(
// AVX2: arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7]> : vector<8xi32>
func.func @iota(%y: memref<64xi32>) attributes {kernel = "elementwise"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  scf.for %i = %c0 to %c64 step %c1 {
    %0 = arith.index_cast %i : index to i32
    memref.store %0, %y[%i] : memref<64xi32>
  }
  return
}

// -----

// A loop that is shorter than a vector stays where there are no masks; one with a call stays anywhere.
// CHECK-LABEL: func.func @short(
// CHECK-NOT: scf.for
// CHECK: arith.addf {{.*}} vector<16xf32>
// AVX2-LABEL: func.func @short(
// AVX2-NOT: vector
// AVX2: return
func.func @short(%x: memref<7xf32>, %y: memref<7xf32>) attributes {kernel = "single"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  scf.for %i = %c0 to %c7 step %c1 {
    %0 = memref.load %x[%i] : memref<7xf32>
    %1 = arith.addf %0, %0 : f32
    memref.store %1, %y[%i] : memref<7xf32>
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

// -----

// As many vectors as a step: no loop, and nothing to split.
// CHECK-LABEL: func.func @one_block(
// CHECK-SAME: %{{.*}}: memref<32xf32>, %{{.*}}: memref<32xf32>) attributes {kernel = "elementwise", kernel.vectors}
// CHECK-NOT: scf.for
// CHECK-COUNT-2: arith.addf {{.*}} vector<16xf32>
// CHECK-NOT: arith.addf
// CHECK: return
func.func @one_block(%x: memref<32xf32>, %y: memref<32xf32>, %begin: index, %end: index) attributes {kernel = "elementwise", kernel.extent = 32 : i64} {
  %c1 = arith.constant 1 : index
  scf.for %i = %begin to %end step %c1 {
    %a = memref.load %x[%i] : memref<32xf32>
    %b = arith.addf %a, %a : f32
    memref.store %b, %y[%i] : memref<32xf32>
  }
  return
}

// Begin and end count blocks; only the last of them has a rest.
// CHECK-LABEL: func.func @blocks(
// CHECK-SAME: %[[BEGIN:[^:]*]]: index, %[[END:[^:]*]]: index) attributes {kernel = "elementwise", kernel.extent = 4 : i64, kernel.vectors}
// CHECK: %[[LOW:.*]] = arith.muli %[[BEGIN]], %c256
// CHECK: %[[PART:.*]] = arith.muli %[[END]], %c256
// CHECK: %[[HIGH:.*]] = arith.minsi %[[PART]], %c1000
// CHECK: %[[WHOLE:.*]] = arith.minsi %[[HIGH]], %c992
// CHECK: scf.for {{.*}} = %[[LOW]] to %[[WHOLE]] step %c32
// CHECK: arith.subi %[[HIGH]], %[[WHOLE]]
// CHECK-NOT: scf.for
// CHECK: llvm.intr.masked.store
func.func @blocks(%x: memref<1000xf32>, %y: memref<1000xf32>, %begin: index, %end: index) attributes {kernel = "elementwise", kernel.extent = 1000 : i64} {
  %c1 = arith.constant 1 : index
  scf.for %i = %begin to %end step %c1 {
    %a = memref.load %x[%i] : memref<1000xf32>
    %b = arith.addf %a, %a : f32
    memref.store %b, %y[%i] : memref<1000xf32>
  }
  return
}

// -----

// What is the same in each step is added up in front of the loop; one of two varying values stays as it is. The
// few numbers of 8 bytes take two registers.
// CHECK-LABEL: func.func @keys(
// CHECK-SAME: %{{[^:]*}}: memref<64xi32>, %{{[^:]*}}: memref<64xi32>, %[[KEY:.*]]: i32)
// CHECK-SAME: kernel.vectors
// CHECK: %[[SUM:.*]] = arith.addi %[[KEY]], %c1_i32 : i32
// CHECK: %[[KEYS:.*]] = vector.broadcast %[[SUM]] : i32 to vector<16xi32>
// CHECK: arith.trunci {{.*}} vector<16xi64> to vector<16xi32>
// CHECK: %[[TWO:.*]] = arith.addi {{.*}} vector<16xi32>
// CHECK: arith.addi %[[TWO]], %[[KEYS]] : vector<16xi32>
func.func @keys(%x: memref<64xi32>, %y: memref<64xi32>, %key: i32) attributes {kernel = "elementwise"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %one = arith.constant 1 : i32
  scf.for %i = %c0 to %c64 step %c1 {
    %wide = arith.index_cast %i : index to i64
    %a = arith.trunci %wide : i64 to i32
    %b = memref.load %x[%i] : memref<64xi32>
    %c = arith.xori %b, %a : i32
    %d = arith.addi %c, %b : i32
    %e = arith.addi %d, %key : i32
    %f = arith.addi %e, %one : i32
    %g = arith.xori %f, %b : i32
    %h = arith.shli %g, %key : i32
    memref.store %h, %y[%i] : memref<64xi32>
  }
  return
}

// -----

// Of the loops over a row, the one that computes longest asks for the next row.
// CHECK-LABEL: func.func @next_row
// CHECK: scf.for
// CHECK-NOT: llvm.intr.prefetch
// CHECK: vector.reduction <add>
// CHECK: scf.for
// CHECK: llvm.intr.prefetch
// CHECK: arith.divf {{.*}} vector<16xf32>
// CHECK: return
func.func @next_row(%x: memref<60x8192xf32>, %y: memref<60x8192xf32>) attributes {kernel = "rows"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c60 = arith.constant 60 : index
  %c8192 = arith.constant 8192 : index
  %zero = arith.constant 0.0 : f32
  scf.for %r = %c0 to %c60 step %c1 {
    %s = scf.for %i = %c0 to %c8192 step %c1 iter_args(%acc = %zero) -> f32 {
      %a = memref.load %x[%r, %i] : memref<60x8192xf32>
      %b = arith.addf %acc, %a fastmath<reassoc> : f32
      scf.yield %b : f32
    }
    scf.for %i = %c0 to %c8192 step %c1 {
      %a = memref.load %x[%r, %i] : memref<60x8192xf32>
      %b = arith.divf %a, %s : f32
      %c = arith.mulf %b, %b : f32
      %d = arith.subf %c, %s : f32
      memref.store %d, %y[%r, %i] : memref<60x8192xf32>
    }
  }
  return
}

// -----

// The next row, and on a core that is told to ask ahead what memory takes for the end of it.
// CHECK-LABEL: func.func @next_short_row
// CHECK: llvm.getelementptr {{.*}}[5120]
// CHECK-NEXT: llvm.intr.prefetch
// AVX2-LABEL: func.func @next_short_row
// AVX2: llvm.getelementptr {{.*}}[4096]
// AVX2-NEXT: llvm.intr.prefetch
func.func @next_short_row(%x: memref<512x1024xf32>, %y: memref<512xf32>) attributes {kernel = "rows"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c512 = arith.constant 512 : index
  %c1024 = arith.constant 1024 : index
  %zero = arith.constant 0.0 : f32
  scf.for %r = %c0 to %c512 step %c1 {
    %s = scf.for %i = %c0 to %c1024 step %c1 iter_args(%acc = %zero) -> f32 {
      %a = memref.load %x[%r, %i] : memref<512x1024xf32>
      %b = arith.addf %acc, %a fastmath<reassoc> : f32
      scf.yield %b : f32
    }
    memref.store %s, %y[%r] : memref<512xf32>
  }
  return
}

// -----

// A loop over a long buffer asks for what comes soon, of the buffers that no cache of a core holds.
// CHECK-LABEL: func.func @soon
// CHECK: scf.for
// CHECK-COUNT-2: llvm.intr.prefetch
// CHECK-NOT: llvm.intr.prefetch
// CHECK: return
// AVX2-LABEL: func.func @soon
// AVX2-NOT: llvm.intr.prefetch
// AVX2: return
func.func @soon(%x: memref<524288xf32>, %y: memref<1024xf32>, %z: memref<524288xf32>) attributes {kernel = "elementwise"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c524288 = arith.constant 524288 : index
  %c1024 = arith.constant 1024 : index
  scf.for %i = %c0 to %c524288 step %c1 {
    %a = memref.load %x[%i] : memref<524288xf32>
    %b = arith.mulf %a, %a : f32
    memref.store %b, %z[%i] : memref<524288xf32>
  }
  scf.for %i = %c0 to %c1024 step %c1 {
    %a = memref.load %y[%i] : memref<1024xf32>
    %b = arith.mulf %a, %a : f32
    memref.store %b, %y[%i] : memref<1024xf32>
  }
  return
}

// -----

// A row that is gone over once is part of a long buffer: nothing comes back to the next row.
// CHECK-LABEL: func.func @row_and_bias
// CHECK: llvm.getelementptr {{.*}}[2048]
// CHECK-NEXT: llvm.intr.prefetch
// AVX2-LABEL: func.func @row_and_bias
// AVX2: llvm.getelementptr {{.*}}[4000]
// AVX2-NEXT: llvm.intr.prefetch
func.func @row_and_bias(%x: memref<512x1000xf32>, %y: memref<1000xf32>, %z: memref<512x1000xf32>) attributes {kernel = "elementwise"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c512 = arith.constant 512 : index
  %c1000 = arith.constant 1000 : index
  scf.for %r = %c0 to %c512 step %c1 {
    scf.for %i = %c0 to %c1000 step %c1 {
      %a = memref.load %x[%r, %i] : memref<512x1000xf32>
      %b = memref.load %y[%i] : memref<1000xf32>
      %c = arith.addf %a, %b : f32
      memref.store %c, %z[%r, %i] : memref<512x1000xf32>
    }
  }
  return
}

// -----

// Dimensions of one element do not matter: a step moves by one.
// CHECK-LABEL: func.func @of_one_element
// CHECK-SAME: kernel.vectors
// CHECK-NOT: memref.load
// CHECK: llvm.load {{.*}} -> vector<16xf32>
func.func @of_one_element(%x: memref<1x160x1xf32>, %y: memref<1x160xf32>) attributes {kernel = "elementwise"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c160 = arith.constant 160 : index
  scf.for %i = %c0 to %c160 step %c1 {
    %a = memref.load %x[%c0, %i, %c0] : memref<1x160x1xf32>
    memref.store %a, %y[%c0, %i] : memref<1x160xf32>
  }
  return
}

// -----

// A step that writes where memory says, or what the last one left, waits for it: no vectoriser need try.
// CHECK-LABEL: func.func @scatter
// CHECK-SAME: kernel.ordered
func.func @scatter(%x: memref<100xindex>, %y: memref<100xf32>, %z: memref<100xf32>) attributes {kernel = "scatter"} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c100 = arith.constant 100 : index
  scf.for %i = %c0 to %c100 step %c1 {
    %place = memref.load %x[%i] : memref<100xindex>
    %a = memref.load %y[%i] : memref<100xf32>
    memref.store %a, %z[%place] : memref<100xf32>
  }
  %sum = scf.for %i = %c0 to %c100 step %c1 iter_args(%s = %zero) -> f32 {
    %a = memref.load %y[%i] : memref<100xf32>
    %next = arith.addf %s, %a : f32
    memref.store %next, %z[%i] : memref<100xf32>
    scf.yield %next : f32
  }
  return
}

// -----

// What an emitter wrote on vectors is left as it is, as no vectoriser takes it.
// CHECK-LABEL: func.func @on_vectors
// CHECK-SAME: kernel.ordered
// CHECK: scf.for {{.*}} -> (vector<8xf32>)
func.func @on_vectors(%x: memref<800xf32>, %y: memref<8xf32>) attributes {kernel = "single"} {
  %zero = arith.constant dense<0.0> : vector<8xf32>
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c800 = arith.constant 800 : index
  %sums = scf.for %i = %c0 to %c800 step %c8 iter_args(%s = %zero) -> vector<8xf32> {
    %a = vector.load %x[%i] : memref<800xf32>, vector<8xf32>
    %next = arith.addf %s, %a : vector<8xf32>
    scf.yield %next : vector<8xf32>
  }
  vector.store %sums, %y[%c0] : memref<8xf32>, vector<8xf32>
  return
}

// -----

// Elements from places that memory names can be gathered: that is left to LLVM.
// CHECK-LABEL: func.func @gather
// CHECK-NOT: kernel.ordered
// CHECK: return
func.func @gather(%x: memref<100xindex>, %y: memref<100xf32>, %z: memref<100xf32>) attributes {kernel = "gather"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c100 = arith.constant 100 : index
  scf.for %i = %c0 to %c100 step %c1 {
    %place = memref.load %x[%i] : memref<100xindex>
    %a = memref.load %y[%place] : memref<100xf32>
    memref.store %a, %z[%i] : memref<100xf32>
  }
  return
}

// -----

// A sum of more than the last cache holds reads at two places, here 2048 elements apart, and asks for nothing ahead.
// AVX2-LABEL: func.func @far_rows
// AVX2: scf.for
// AVX2: %[[P:.*]]:4 = scf.for {{.*}} to %c2048 step %c16
// AVX2-NOT: prefetch
// AVX2: llvm.getelementptr {{.*}}[2048]
// AVX2: scf.yield
// AVX2-NOT: scf.for
// AVX2: return
// A core that fetches far ahead by itself reads at one.
// CHECK-LABEL: func.func @far_rows
// CHECK: scf.for
// CHECK: scf.for {{.*}} to %c4096 step %c32
// CHECK-NOT: llvm.getelementptr {{.*}}[2048]
// CHECK: llvm.intr.prefetch
// CHECK-NOT: scf.for
// CHECK: return
func.func @far_rows(%x: memref<4096x4096xf32>, %y: memref<4096xf32>) attributes {kernel = "rows"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4096 = arith.constant 4096 : index
  %zero = arith.constant 0.0 : f32
  scf.for %i = %c0 to %c4096 step %c1 {
    %s = scf.for %j = %c0 to %c4096 step %c1 iter_args(%acc = %zero) -> f32 {
      %a = memref.load %x[%i, %j] : memref<4096x4096xf32>
      %b = arith.addf %acc, %a fastmath<reassoc> : f32
      scf.yield %b : f32
    }
    memref.store %s, %y[%i] : memref<4096xf32>
  }
  return
}

// -----

// Eight rows at once ask for the eight that follow; a core that asks for them by itself only where they find their place in its
// first cache.
// AVX2-LABEL: func.func @far_columns
// AVX2-COUNT-8: llvm.intr.prefetch
// AVX2: return
// CHECK-LABEL: func.func @far_columns
// CHECK-NOT: llvm.intr.prefetch
// CHECK: return
func.func @far_columns(%x: memref<160x4096xf32>, %y: memref<4096xf32>) attributes {kernel = "columns"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c160 = arith.constant 160 : index
  %c4096 = arith.constant 4096 : index
  scf.for %i = %c0 to %c160 step %c1 {
    scf.for %j = %c0 to %c4096 step %c1 {
      %sum = memref.load %y[%j] : memref<4096xf32>
      %a = memref.load %x[%i, %j] : memref<160x4096xf32>
      %b = arith.addf %sum, %a : f32
      memref.store %b, %y[%j] : memref<4096xf32>
    }
  }
  return
}

// -----

// CHECK-LABEL: func.func @near_columns
// CHECK-COUNT-8: llvm.intr.prefetch
// CHECK: return
func.func @near_columns(%x: memref<2048x256xf32>, %y: memref<256xf32>) attributes {kernel = "columns"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c256 = arith.constant 256 : index
  %c2048 = arith.constant 2048 : index
  scf.for %i = %c0 to %c2048 step %c1 {
    scf.for %j = %c0 to %c256 step %c1 {
      %sum = memref.load %y[%j] : memref<256xf32>
      %a = memref.load %x[%i, %j] : memref<2048x256xf32>
      %b = arith.addf %sum, %a : f32
      memref.store %b, %y[%j] : memref<256xf32>
    }
  }
  return
}

// -----

// The largest of many floats: by three ends of their bits in the loop, by one key at the end.
// AVX2-LABEL: func.func @largest
// AVX2: scf.for
// AVX2-NOT: arith.shrsi
// AVX2: arith.maxsi
// AVX2: arith.minui
// AVX2: arith.maxui
// AVX2-NOT: arith.shrsi
// AVX2: scf.yield
// AVX2: arith.shrsi
// AVX2: vector.reduction <maxui>
func.func @largest(%x: memref<128xf32>, %y: memref<1xf32>) attributes {kernel = "rows"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  %start = arith.constant 0xFF800000 : f32
  %s = scf.for %i = %c0 to %c128 step %c1 iter_args(%acc = %start) -> f32 {
    %a = memref.load %x[%i] : memref<128xf32>
    %b = arith.maximumf %acc, %a : f32
    scf.yield %b : f32
  }
  memref.store %s, %y[%c0] : memref<1xf32>
  return
}

// -----

// The last loop of a row is done a row later, within the loop before it, by the sum of that row; the last row's is left.
// AVX2-LABEL: func.func @delayed_rows
// AVX2: %[[R:.*]]:2 = scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[BEFORE:.*]] = %{{.*}}, %[[SUM:.*]] = %{{.*}}) -> (index, f32)
// AVX2: vector.broadcast %[[SUM]]
// AVX2: scf.for
// AVX2-DAG: arith.addf {{.*}} vector<8xf32>
// AVX2-DAG: arith.divf {{.*}} vector<8xf32>
// AVX2: scf.yield %[[I]], %{{.*}} : index, f32
// AVX2: vector.broadcast %[[R]]#1
// AVX2: arith.divf {{.*}} vector<8xf32>
func.func @delayed_rows(%x: memref<64x128xf32>, %y: memref<64x128xf32>) attributes {kernel = "rows"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %zero = arith.constant 0.0 : f32
  scf.for %i = %c0 to %c64 step %c1 {
    %s = scf.for %j = %c0 to %c128 step %c1 iter_args(%acc = %zero) -> f32 {
      %a = memref.load %x[%i, %j] : memref<64x128xf32>
      %b = arith.addf %acc, %a fastmath<reassoc> : f32
      scf.yield %b : f32
    }
    scf.for %j = %c0 to %c128 step %c1 {
      %a = memref.load %x[%i, %j] : memref<64x128xf32>
      %b = arith.divf %a, %s : f32
      memref.store %b, %y[%i, %j] : memref<64x128xf32>
    }
  }
  return
}

// -----

// Not where the result may stand in the memory of an operand: the first row would be written before it is read.
// AVX2-LABEL: func.func @rows_in_place
// AVX2-NOT: -> (index, f32)
func.func @rows_in_place(%x: memref<64x128xf32>, %y: memref<64x128xf32>) attributes {kernel = "rows", kernel.reuse = array<i64: 0, 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %zero = arith.constant 0.0 : f32
  scf.for %i = %c0 to %c64 step %c1 {
    %s = scf.for %j = %c0 to %c128 step %c1 iter_args(%acc = %zero) -> f32 {
      %a = memref.load %x[%i, %j] : memref<64x128xf32>
      %b = arith.addf %acc, %a fastmath<reassoc> : f32
      scf.yield %b : f32
    }
    scf.for %j = %c0 to %c128 step %c1 {
      %a = memref.load %x[%i, %j] : memref<64x128xf32>
      %b = arith.divf %a, %s : f32
      memref.store %b, %y[%i, %j] : memref<64x128xf32>
    }
  }
  return
}

// -----

// The largest element of the next row is looked for beside the work on this one; that of the first row before.
// CHECK-LABEL: func.func @first_loop_early
// CHECK: vector.reduction <maxui>
// CHECK: %{{.*}} = scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[MOST:.*]] = %{{.*}}) -> (f32)
// CHECK: arith.minsi
// CHECK: vector.broadcast %[[MOST]]
// CHECK: scf.for
// CHECK-DAG: arith.subf {{.*}} vector<16xf32>
// CHECK-DAG: arith.maxui {{.*}} vector<16xi32>
// CHECK: vector.reduction <maxui>
// CHECK: scf.yield %{{.*}} : f32
func.func @first_loop_early(%x: memref<64x128xf32>, %y: memref<64x128xf32>) attributes {kernel = "rows"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %start = arith.constant 0xFF800000 : f32
  scf.for %i = %c0 to %c64 step %c1 {
    %m = scf.for %j = %c0 to %c128 step %c1 iter_args(%acc = %start) -> f32 {
      %a = memref.load %x[%i, %j] : memref<64x128xf32>
      %b = arith.maximumf %acc, %a : f32
      scf.yield %b : f32
    }
    scf.for %j = %c0 to %c128 step %c1 {
      %a = memref.load %x[%i, %j] : memref<64x128xf32>
      %p0 = arith.subf %a, %m : f32
      %p1 = arith.mulf %p0, %a : f32
      %p2 = arith.mulf %p1, %a : f32
      %p3 = arith.mulf %p2, %a : f32
      %p4 = arith.mulf %p3, %a : f32
      %p5 = arith.mulf %p4, %a : f32
      %p6 = arith.mulf %p5, %a : f32
      %p7 = arith.mulf %p6, %a : f32
      %p8 = arith.mulf %p7, %a : f32
      memref.store %p8, %y[%i, %j] : memref<64x128xf32>
    }
  }
  return
}

// -----

// Not a sum, which has another order by itself.
// CHECK-LABEL: func.func @first_sum_stays
// CHECK-NOT: iter_args({{.*}} -> (f32)
// CHECK: return
func.func @first_sum_stays(%x: memref<64x128xf32>, %y: memref<64x128xf32>) attributes {kernel = "rows"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %start = arith.constant 0.0 : f32
  scf.for %i = %c0 to %c64 step %c1 {
    %m = scf.for %j = %c0 to %c128 step %c1 iter_args(%acc = %start) -> f32 {
      %a = memref.load %x[%i, %j] : memref<64x128xf32>
      %b = arith.addf %acc, %a fastmath<reassoc> : f32
      scf.yield %b : f32
    }
    scf.for %j = %c0 to %c128 step %c1 {
      %a = memref.load %x[%i, %j] : memref<64x128xf32>
      %p0 = arith.subf %a, %m : f32
      %p1 = arith.mulf %p0, %a : f32
      %p2 = arith.mulf %p1, %a : f32
      %p3 = arith.mulf %p2, %a : f32
      %p4 = arith.mulf %p3, %a : f32
      %p5 = arith.mulf %p4, %a : f32
      %p6 = arith.mulf %p5, %a : f32
      %p7 = arith.mulf %p6, %a : f32
      %p8 = arith.mulf %p7, %a : f32
      memref.store %p8, %y[%i, %j] : memref<64x128xf32>
    }
  }
  return
}

// -----

// Two vectors of bf16 share words: the lower halves are the first one's, the upper the second's.
// CHECK-LABEL: func.func @halves
// CHECK: scf.for {{.*}} step %c32
// CHECK: %[[WORDS:.*]] = llvm.load {{.*}} -> vector<16xi32>
// CHECK: arith.trunci %[[WORDS]] : vector<16xi32> to vector<16xi16>
// CHECK: %[[UPPER:.*]] = arith.shrui %[[WORDS]]
// CHECK: arith.trunci %[[UPPER]] : vector<16xi32> to vector<16xi16>
// CHECK: %[[BOTH:.*]] = arith.ori {{.*}} vector<16xi32>
// CHECK: llvm.store %[[BOTH]]
func.func @halves(%x: memref<256xi16>, %y: memref<256xi16>) attributes {kernel = "elementwise"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c256 = arith.constant 256 : index
  %c16 = arith.constant 16 : i32
  scf.for %i = %c0 to %c256 step %c1 {
    %0 = memref.load %x[%i] : memref<256xi16>
    %1 = arith.extui %0 : i16 to i32
    %2 = arith.shli %1, %c16 : i32
    %3 = arith.shrui %2, %c16 : i32
    %4 = arith.trunci %3 : i32 to i16
    memref.store %4, %y[%i] : memref<256xi16>
  }
  return
}

// -----

// A long chain of ops: two vectors side by side, each op for both before the next.
// AVX2-LABEL: func.func @chain
// AVX2: scf.for {{.*}} step %c16
// AVX2-COUNT-2: arith.mulf {{.*}} vector<8xf32>
// AVX2-NEXT: arith.addf {{.*}} vector<8xf32>
// AVX2-NEXT: arith.addf {{.*}} vector<8xf32>
// AVX2-NEXT: arith.mulf {{.*}} vector<8xf32>
func.func @chain(%x: memref<256xf32>, %y: memref<256xf32>, %c: f32) attributes {kernel = "elementwise"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c256 = arith.constant 256 : index
  scf.for %i = %c0 to %c256 step %c1 {
    %0 = memref.load %x[%i] : memref<256xf32>
    %1 = arith.mulf %0, %c : f32
    %2 = arith.addf %1, %c : f32
    %3 = arith.mulf %2, %c : f32
    %4 = arith.addf %3, %c : f32
    %5 = arith.mulf %4, %c : f32
    %6 = arith.addf %5, %c : f32
    %7 = arith.mulf %6, %c : f32
    %8 = arith.addf %7, %c : f32
    %9 = arith.mulf %8, %c : f32
    %10 = arith.addf %9, %c : f32
    %11 = arith.mulf %10, %c : f32
    %12 = arith.addf %11, %c : f32
    %13 = arith.mulf %12, %c : f32
    %14 = arith.addf %13, %c : f32
    %15 = arith.mulf %14, %c : f32
    %16 = arith.addf %15, %c : f32
    %17 = arith.mulf %16, %c : f32
    %18 = arith.addf %17, %c : f32
    %19 = arith.mulf %18, %c : f32
    %20 = arith.addf %19, %c : f32
    %21 = arith.mulf %20, %c : f32
    %22 = arith.addf %21, %c : f32
    %23 = arith.mulf %22, %c : f32
    %24 = arith.addf %23, %c : f32
    memref.store %24, %y[%i] : memref<256xf32>
  }
  return
}

// -----

// A sum of a long chain: what the chain begins with is computed a step ahead, in the last step once more for that step.
// CHECK-LABEL: func.func @long_sum
// CHECK: llvm.load
// CHECK: %[[A:.*]] = math.fma
// CHECK: scf.for %[[J:.*]] = %c0 to %c1024 step %c32 iter_args({{.*}}, {{.*}}, %[[BEFORE:.*]] = %{{.*}}, %{{.*}} = %{{.*}})
// CHECK: %[[NEXT:.*]] = arith.addi %[[J]], %c32
// CHECK: %[[INSIDE:.*]] = arith.minsi %[[NEXT]], %c992
// CHECK: llvm.load
// CHECK: %[[AHEAD:.*]] = math.fma
// CHECK: math.fma %[[BEFORE]]
// CHECK: arith.addf
// CHECK: scf.yield
// A chain that is no sum stays in its step.
// CHECK-LABEL: func.func @long
// CHECK: scf.for
// CHECK-NOT: iter_args
// CHECK-NOT: arith.minsi
// CHECK: return
func.func @long_sum(%x: memref<1024xf32>, %y: memref<1xf32>) attributes {kernel = "rows"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c1024 = arith.constant 1024 : index
  %zero = arith.constant 0.0 : f32
  %k = arith.constant 3.0 : f32
  %s = scf.for %i = %c0 to %c1024 step %c1 iter_args(%acc = %zero) -> f32 {
    %0 = memref.load %x[%i] : memref<1024xf32>
    %1 = math.fma %0, %0, %k : f32
    %2 = math.fma %1, %1, %k : f32
    %3 = math.fma %2, %2, %k : f32
    %4 = math.fma %3, %3, %k : f32
    %5 = math.fma %4, %4, %k : f32
    %6 = math.fma %5, %5, %k : f32
    %7 = math.fma %6, %6, %k : f32
    %8 = math.fma %7, %7, %k : f32
    %9 = math.fma %8, %8, %k : f32
    %10 = math.fma %9, %9, %k : f32
    %11 = math.fma %10, %10, %k : f32
    %12 = arith.addf %acc, %11 fastmath<reassoc> : f32
    scf.yield %12 : f32
  }
  memref.store %s, %y[%c0] : memref<1xf32>
  return
}

func.func @long(%x: memref<1024xf32>, %y: memref<1024xf32>) attributes {kernel = "elementwise"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c1024 = arith.constant 1024 : index
  %k = arith.constant 3.0 : f32
  scf.for %i = %c0 to %c1024 step %c1 {
    %0 = memref.load %x[%i] : memref<1024xf32>
    %1 = math.fma %0, %0, %k : f32
    %2 = math.fma %1, %1, %k : f32
    %3 = math.fma %2, %2, %k : f32
    %4 = math.fma %3, %3, %k : f32
    %5 = math.fma %4, %4, %k : f32
    %6 = math.fma %5, %5, %k : f32
    %7 = math.fma %6, %6, %k : f32
    %8 = math.fma %7, %7, %k : f32
    %9 = math.fma %8, %8, %k : f32
    %10 = math.fma %9, %9, %k : f32
    %11 = math.fma %10, %10, %k : f32
    memref.store %11, %y[%i] : memref<1024xf32>
  }
  return
}

// -----

// Steps along a row read what was written a row before at their own place. Where a row ends with half a vector, vectors are
// half as long: whole ones would lie in two cache lines each in every second row.
// CHECK-LABEL: func.func @row_from_row
// CHECK-SAME: kernel.vectors
// CHECK: arith.addf {{.*}} vector<16xf32>
// AVX2-LABEL: func.func @row_from_row
// AVX2: arith.addf {{.*}} vector<8xf32>
func.func @row_from_row(%x: memref<9x62xf32>, %y: memref<9x62xf32>) attributes {kernel = "single"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %c62 = arith.constant 62 : index
  scf.for %i = %c1 to %c9 step %c1 {
    scf.for %j = %c0 to %c62 step %c1 {
      %before = arith.subi %i, %c1 : index
      %a = memref.load %y[%before, %j] : memref<9x62xf32>
      %b = memref.load %x[%i, %j] : memref<9x62xf32>
      %c = arith.addf %a, %b : f32
      memref.store %c, %y[%i, %j] : memref<9x62xf32>
    }
  }
  return
}

// CHECK-LABEL: func.func @row_ends_with_half
// CHECK: arith.addf {{.*}} vector<8xf32>
// AVX2-LABEL: func.func @row_ends_with_half
// AVX2: arith.addf {{.*}} vector<8xf32>
func.func @row_ends_with_half(%x: memref<9x56xf32>, %y: memref<9x56xf32>) attributes {kernel = "single"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %c56 = arith.constant 56 : index
  scf.for %i = %c1 to %c9 step %c1 {
    scf.for %j = %c0 to %c56 step %c1 {
      %before = arith.subi %i, %c1 : index
      %a = memref.load %y[%before, %j] : memref<9x56xf32>
      %b = memref.load %x[%i, %j] : memref<9x56xf32>
      %c = arith.addf %a, %b : f32
      memref.store %c, %y[%i, %j] : memref<9x56xf32>
    }
  }
  return
}

// Another place of the row before may be one that another step wrote, if both rows are one; and rows that overlap are not
// apart.
// CHECK-LABEL: func.func @beside_in_row
// CHECK-NOT: vector
// CHECK: return
func.func @beside_in_row(%y: memref<9x60xf32>, %k: index) attributes {kernel = "single"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c59 = arith.constant 59 : index
  scf.for %j = %c0 to %c59 step %c1 {
    %next = arith.addi %j, %c1 : index
    %a = memref.load %y[%k, %next] : memref<9x60xf32>
    memref.store %a, %y[%c1, %j] : memref<9x60xf32>
  }
  return
}

// CHECK-LABEL: func.func @overlapping_rows
// CHECK-NOT: vector
// CHECK: return
func.func @overlapping_rows(%y: memref<9x60xf32, strided<[1, 1]>>, %k: index) attributes {kernel = "single"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c60 = arith.constant 60 : index
  scf.for %j = %c0 to %c60 step %c1 {
    %a = memref.load %y[%k, %j] : memref<9x60xf32, strided<[1, 1]>>
    memref.store %a, %y[%c1, %j] : memref<9x60xf32, strided<[1, 1]>>
  }
  return
}

// The rows of a loop that updates one row each time are not taken at once where it reads another one too.
// CHECK-LABEL: func.func @two_rows
// CHECK: scf.for {{.*}} step %c1
// CHECK: return
func.func @two_rows(%x: memref<16x64xf32>, %y: memref<2x64xf32>) attributes {kernel = "rows"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  scf.for %i = %c0 to %c16 step %c1 {
    scf.for %j = %c0 to %c64 step %c1 {
      %a = memref.load %x[%i, %j] : memref<16x64xf32>
      %b = memref.load %y[%c0, %j] : memref<2x64xf32>
      %c = memref.load %y[%c1, %j] : memref<2x64xf32>
      %d = arith.addf %a, %b : f32
      %e = arith.mulf %c, %d : f32
      memref.store %e, %y[%c1, %j] : memref<2x64xf32>
    }
  }
  return
}
