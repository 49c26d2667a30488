// RUN: stablehlo-opt %s --pass-pipeline='mxu-tiles{chip=v5e}' | FileCheck %s --check-prefixes=CHECK,V5E
// RUN: stablehlo-opt %s --pass-pipeline='mxu-tiles{chip=v4-megacore}' | FileCheck %s --check-prefixes=CHECK,V4
// RUN: stablehlo-opt %s --pass-pipeline='mxu-tiles{chip=v5e vmem-limit=300000}' | FileCheck %s --check-prefix=SMALL
// RUN: not stablehlo-opt %s --pass-pipeline='mxu-tiles{vmem-limit=1000}' 2>&1 | FileCheck %s --check-prefix=ERROR

// Operands and result in whole tiles; the larger operand waits in fast memory: VMEM, or CMEM where there is one.
// CHECK-LABEL: func.func @product
// CHECK: %[[L:.*]] = "mxu.pad"(%{{.*}}) : (tensor<1x300x500xbf16>) -> tensor<1x304x512xbf16>
// CHECK: %[[R:.*]] = "mxu.pad"(%{{.*}}) : (tensor<1x500x700xbf16>) -> tensor<1x504x768xbf16>
// CHECK: %[[P:.*]] = "mxu.tiled_contract"(%[[L]], %[[R]])
// CHECK-SAME: logical = [1, 300, 700, 500]
// V5E-SAME: spaces = ["hbm", "vmem"]
// V4-SAME: spaces = ["hbm", "cmem"]
// CHECK: "mxu.unpad"(%[[P]]) : (tensor<1x304x768xbf16>) -> tensor<1x300x700xbf16>
// With so little VMEM a block has less than 100 rows.
// SMALL: blocks = [{{[0-9][0-9]}}, {{[0-9]+}}, {{[0-9]+}}]
// ERROR: no blocks of a 300x700x500 product fit into 1000 bytes of VMEM
func.func @product(%x: tensor<1x300x500xbf16>, %y: tensor<1x500x700xbf16>) -> tensor<1x300x700xbf16> {
  %r = "mxu.contract"(%x, %y) {lhs_t = false, rhs_t = false, passes = 1 : i64} : (tensor<1x300x500xbf16>, tensor<1x500x700xbf16>) -> tensor<1x300x700xbf16>
  return %r : tensor<1x300x700xbf16>
}
