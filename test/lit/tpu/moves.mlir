// RUN: stablehlo-opt %s --pass-pipeline='mxu-moves' | FileCheck %s
// RUN: stablehlo-opt %s --pass-pipeline='mxu-moves{chip=v4-megacore}' | FileCheck %s --check-prefix=TWO

// Rows that keep their lanes are loaded and stored: nothing goes through the cross-lane unit.
// CHECK-LABEL: func.func @rows
// CHECK: "mxu.kernel"
// CHECK: "mxu.dma_strided"{{.*}}dim = 1 : i64{{.*}}step = 1 : i64
// CHECK-NOT: "mxu.transpose"
// CHECK-NOT: "mxu.place"
// CHECK: "mxu.dma_strided"{{.*}}dim = 0 : i64{{.*}}step = 1 : i64
// CHECK-NOT: stablehlo.transpose
// TWO-LABEL: func.func @rows
// TWO: "mxu.core_split"
// TWO: "mxu.barrier"
func.func @rows(%x: tensor<8x64x256xf32>) -> tensor<64x8x256xf32> {
  %r = stablehlo.transpose %x, dims = [1, 0, 2] : (tensor<8x64x256xf32>) -> tensor<64x8x256xf32>
  return %r : tensor<64x8x256xf32>
}

// Lanes that become rows are turned.
// CHECK-LABEL: func.func @turned
// CHECK: "mxu.dma_strided"
// CHECK: "mxu.transpose"
// CHECK: "mxu.dma_strided"
func.func @turned(%x: tensor<64x256xf32>) -> tensor<256x64xf32> {
  %r = stablehlo.transpose %x, dims = [1, 0] : (tensor<64x256xf32>) -> tensor<256x64xf32>
  return %r : tensor<256x64xf32>
}

// A reshape, a transpose and a slice are one kernel; heads of 64 lanes are placed one by one.
// CHECK-LABEL: func.func @heads
// CHECK: "mxu.kernel"
// CHECK-COUNT-2: "mxu.place"
// CHECK-NOT: "mxu.kernel"
// CHECK: return
func.func @heads(%x: tensor<32x384xf32>) -> tensor<2x32x64xf32> {
  %a = stablehlo.reshape %x : (tensor<32x384xf32>) -> tensor<32x3x2x64xf32>
  %b = stablehlo.transpose %a, dims = [1, 2, 0, 3] : (tensor<32x3x2x64xf32>) -> tensor<3x2x32x64xf32>
  %c = stablehlo.slice %b [1:2, 0:2, 0:32, 0:64] : (tensor<3x2x32x64xf32>) -> tensor<1x2x32x64xf32>
  %r = stablehlo.reshape %c : (tensor<1x2x32x64xf32>) -> tensor<2x32x64xf32>
  return %r : tensor<2x32x64xf32>
}

// What lies in memory as before is no kernel.
// CHECK-LABEL: func.func @same_tiles
// CHECK-NOT: "mxu.kernel"
// CHECK: stablehlo.reshape
// CHECK-NOT: stablehlo.transpose
func.func @same_tiles(%x: tensor<1x64x256xf32>) -> tensor<64x1x256xf32> {
  %r = stablehlo.transpose %x, dims = [1, 0, 2] : (tensor<1x64x256xf32>) -> tensor<64x1x256xf32>
  return %r : tensor<64x1x256xf32>
}

// The number of the padding first, then what is inside it.
// CHECK-LABEL: func.func @pad
// CHECK: "mxu.fill"
// CHECK: "mxu.dma_strided"
// CHECK: "mxu.place"
func.func @pad(%x: tensor<30x60xf32>) -> tensor<40x70xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %r = stablehlo.pad %x, %z, low = [5, 5], high = [5, 5], interior = [0, 0] : (tensor<30x60xf32>, tensor<f32>) -> tensor<40x70xf32>
  return %r : tensor<40x70xf32>
}

// A dynamic start is read from SMEM, and clamped.
// CHECK-LABEL: func.func @dynamic
// CHECK: ^bb0({{.*}}!mxu.ref<tensor<1x1xi32>, "smem"
// CHECK: "mxu.read_index"{{.*}}limit = 60 : i64
// CHECK: "mxu.dma_strided"
// CHECK-NOT: stablehlo.dynamic_slice
func.func @dynamic(%x: tensor<64x256xf32>, %i: tensor<i32>) -> tensor<4x256xf32> {
  %z = stablehlo.constant dense<0> : tensor<i32>
  %r = stablehlo.dynamic_slice %x, %i, %z, sizes = [4, 256] : (tensor<64x256xf32>, tensor<i32>, tensor<i32>) -> tensor<4x256xf32>
  return %r : tensor<4x256xf32>
}

// Between lanes nothing begins at a number that is not known.
// CHECK-LABEL: func.func @between_lanes
// CHECK-NOT: "mxu.kernel"
// CHECK: stablehlo.dynamic_slice
func.func @between_lanes(%x: tensor<64x256xf32>, %i: tensor<i32>) -> tensor<64x4xf32> {
  %z = stablehlo.constant dense<0> : tensor<i32>
  %r = stablehlo.dynamic_slice %x, %z, %i, sizes = [64, 4] : (tensor<64x256xf32>, tensor<i32>, tensor<i32>) -> tensor<64x4xf32>
  return %r : tensor<64x4xf32>
}
