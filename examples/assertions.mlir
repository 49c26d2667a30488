// Programs that check themselves, written as StableHLO's own tests are: `shlo check examples/assertions.mlir`.

func.func @square_root() {
  %x = stablehlo.constant dense<[0.0, 2.0, 1.0e+10]> : tensor<3xf32>
  %root = stablehlo.sqrt %x : tensor<3xf32>
  %expected = stablehlo.constant dense<[0.0, 1.41421354, 1.0e+05]> : tensor<3xf32>
  check.expect_close %root, %expected, max_ulp_difference = 1 : tensor<3xf32>, tensor<3xf32>
  func.return
}

// -----

func.func @wraps() {
  %x = stablehlo.constant dense<[100, -100]> : tensor<2xi8>
  %sum = stablehlo.add %x, %x : tensor<2xi8>
  check.expect_eq_const %sum, dense<[-56, 56]> : tensor<2xi8>
  func.return
}
