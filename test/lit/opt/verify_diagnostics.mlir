// RUN: stablehlo-opt %s --load-pass-plugin=%S/Inputs/passes.py --test-refuse --split-input-file --verify-diagnostics

func.func @same_line(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.subtract %x, %x : tensor<4xf32> // expected-error {{stablehlo.subtract is refused}}
  return %0 : tensor<4xf32>
}

// -----

func.func @other_lines(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{is refused}}
  %0 = stablehlo.subtract %x, %x : tensor<4xf32>
  // expected-error @below {{is refused}}
  %1 = stablehlo.subtract %x, %x : tensor<4xf32>
  %2 = stablehlo.subtract %x, %x : tensor<4xf32>
  // expected-error @above {{is refused}}

  // expected-error-re @+1 {{stablehlo.{{sub[a-z]+}} is {{refused$}}}}
  %3 = stablehlo.subtract %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @parser(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{custom op 'stablehlo.ad' is unknown}}
  %0 = stablehlo.ad %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @none() { return }
