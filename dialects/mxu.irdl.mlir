// The mxu dialect, as IRDL: exported from python/stablehlo_py/dialects/mxu.py, where the verifiers are.
// To write it again: python -m stablehlo_py.dialects.mxu_export dialects/mxu.irdl.mlir
module {
  irdl.dialect @mxu {
    irdl.type @ref {
      %0 = irdl.base "#builtin.type" 
      %1 = irdl.base "#builtin.string" 
      %2 = irdl.base @mxu::@tiled 
      irdl.parameters(tensor: %0, space: %1, layout: %2)
    }
    irdl.type @semaphore {
      irdl.parameters()
    }
    irdl.type @weights {
      %0 = irdl.base "#builtin.type" 
      irdl.parameters(tensor: %0)
    }
    irdl.attribute @tiled {
      %0 = irdl.base "#builtin.string" 
      irdl.parameters(text: %0)
    }
    irdl.operation @contract {
      %0 = irdl.base "!builtin.tensor" 
      %1 = irdl.base "!builtin.tensor" 
      irdl.operands(lhs: %0, rhs: %1)
      %2 = irdl.base "#builtin.integer" 
      %3 = irdl.base "#builtin.integer" 
      %4 = irdl.base "#builtin.integer" 
      irdl.attributes {"lhs_t" = %2, "rhs_t" = %3, "passes" = %4}
      %5 = irdl.base "!builtin.tensor" 
      irdl.results(out: %5)
    }
    irdl.operation @pad {
      %0 = irdl.base "!builtin.tensor" 
      irdl.operands(value: %0)
      %1 = irdl.base "!builtin.tensor" 
      irdl.results(out: %1)
    }
    irdl.operation @unpad {
      %0 = irdl.base "!builtin.tensor" 
      irdl.operands(value: %0)
      %1 = irdl.base "!builtin.tensor" 
      irdl.results(out: %1)
    }
    irdl.operation @bitcast {
      %0 = irdl.base "!builtin.tensor" 
      irdl.operands(value: %0)
      %1 = irdl.base "!builtin.tensor" 
      irdl.results(out: %1)
    }
    irdl.operation @laid_out {
      %0 = irdl.base "!builtin.tensor" 
      irdl.operands(value: %0)
      %1 = irdl.base "!builtin.tensor" 
      irdl.results(out: %1)
    }
    irdl.operation @prefetch_start {
      %0 = irdl.base "!builtin.tensor" 
      irdl.operands(value: %0)
      %1 = irdl.base "#builtin.string" 
      %2 = irdl.base "#builtin.integer" 
      %3 = irdl.base "#builtin.integer" 
      irdl.attributes {"space" = %1, "offset" = %2, "shared" = %3}
      %4 = irdl.base "!builtin.tensor" 
      irdl.results(out: %4)
    }
    irdl.operation @prefetch_wait {
      %0 = irdl.base "!builtin.tensor" 
      irdl.operands(value: %0)
      %1 = irdl.base "!builtin.tensor" 
      irdl.results(out: %1)
    }
    irdl.operation @tiled_contract {
      %0 = irdl.base "!builtin.tensor" 
      %1 = irdl.base "!builtin.tensor" 
      irdl.operands(lhs: %0, rhs: %1)
      %2 = irdl.base "#builtin.integer" 
      %3 = irdl.base "#builtin.integer" 
      %4 = irdl.base "#builtin.integer" 
      %5 = irdl.base "#builtin.array" 
      %6 = irdl.base "#builtin.array" 
      %7 = irdl.base "#builtin.array" 
      %8 = irdl.base "#builtin.string" 
      %9 = irdl.base "#builtin.string" 
      %10 = irdl.base "#builtin.float" 
      %11 = irdl.base "#builtin.string" 
      irdl.attributes {"lhs_t" = %2, "rhs_t" = %3, "passes" = %4, "logical" = %5, "blocks" = %6, "spaces" = %7, "split" = %8, "order" = %9, "estimate" = %10, "chip" = %11}
      %12 = irdl.base "!builtin.tensor" 
      irdl.results(out: %12)
    }
    irdl.operation @fusion {
      %0 = irdl.base "!builtin.tensor" 
      irdl.results(out: %0)
      %1 = irdl.region
      irdl.regions(body: %1)
    }
    irdl.operation @yield {
      %0 = irdl.base "!builtin.tensor" 
      irdl.operands(value: %0)
    }
    irdl.operation @kernel {
      %0 = irdl.base "!builtin.tensor" 
      %1 = irdl.base "!builtin.tensor" 
      %2 = irdl.base "!builtin.tensor" 
      %3 = irdl.base "!builtin.tensor" 
      %4 = irdl.base "!builtin.tensor" 
      %5 = irdl.base "!builtin.tensor" 
      %6 = irdl.base "!builtin.tensor" 
      %7 = irdl.base "!builtin.tensor" 
      irdl.operands(in0: %0, in1: optional %1, in2: optional %2, in3: optional %3, in4: optional %4, in5: optional %5, in6: optional %6, in7: optional %7)
      %8 = irdl.base "#builtin.string" 
      %9 = irdl.base "#builtin.string" 
      %10 = irdl.base "#builtin.array" 
      irdl.attributes {"label" = %8, "chip" = %9, "logical" = %10}
      %11 = irdl.base "!builtin.tensor" 
      irdl.results(out: %11)
      %12 = irdl.region
      irdl.regions(body: %12)
    }
    irdl.operation @core_split {
      %0 = irdl.base "#builtin.integer" 
      irdl.attributes {"cores" = %0}
      %1 = irdl.region
      irdl.regions(body: %1)
    }
    irdl.operation @barrier 
    irdl.operation @loop {
      %0 = irdl.base "#builtin.array" 
      irdl.attributes {"bounds" = %0}
      %1 = irdl.region
      irdl.regions(body: %1)
    }
    irdl.operation @alloc {
      %0 = irdl.base "#builtin.string" 
      %1 = irdl.base "#builtin.integer" 
      %2 = irdl.base "#builtin.integer" 
      irdl.attributes {"label" = %0, "offset" = %1, "buffers" = %2}
      %3 = irdl.base @mxu::@ref 
      irdl.results(out: %3)
    }
    irdl.operation @make_semaphore {
      %0 = irdl.base @mxu::@semaphore 
      irdl.results(out: %0)
    }
    irdl.operation @dma_start {
      %0 = irdl.base @mxu::@ref 
      %1 = irdl.base @mxu::@ref 
      %2 = irdl.base @mxu::@semaphore 
      %3 = irdl.base "!builtin.index" 
      irdl.operands(source: %0, target: %1, semaphore: %2, indices: variadic %3)
      %4 = irdl.base "#builtin.affine_map" 
      irdl.attributes {"map" = %4}
    }
    irdl.operation @dma_strided {
      %0 = irdl.base @mxu::@ref 
      %1 = irdl.base @mxu::@ref 
      %2 = irdl.base @mxu::@semaphore 
      %3 = irdl.base "!builtin.index" 
      irdl.operands(source: %0, target: %1, semaphore: %2, indices: variadic %3)
      %4 = irdl.base "#builtin.affine_map" 
      %5 = irdl.base "#builtin.integer" 
      %6 = irdl.base "#builtin.integer" 
      %7 = irdl.base "#builtin.array" 
      %8 = irdl.base "#builtin.integer" 
      irdl.attributes {"map" = %4, "dim" = %5, "step" = %6, "count" = %7, "at" = %8}
    }
    irdl.operation @view {
      %0 = irdl.base @mxu::@ref 
      %1 = irdl.base "!builtin.index" 
      irdl.operands(source: %0, indices: variadic %1)
      %2 = irdl.base "#builtin.affine_map" 
      irdl.attributes {"map" = %2}
      %3 = irdl.base @mxu::@ref 
      irdl.results(out: %3)
    }
    irdl.operation @dma_wait {
      %0 = irdl.base @mxu::@semaphore 
      irdl.operands(semaphore: %0)
    }
    irdl.operation @fill {
      %0 = irdl.base @mxu::@ref 
      irdl.operands(target: %0)
      %1 = irdl.base "#builtin.float" 
      irdl.attributes {"value" = %1}
    }
    irdl.operation @mask {
      %0 = irdl.base @mxu::@ref 
      %1 = irdl.base "!builtin.index" 
      irdl.operands(target: %0, indices: variadic %1)
      %2 = irdl.base "#builtin.integer" 
      %3 = irdl.base "#builtin.integer" 
      %4 = irdl.base "#builtin.affine_map" 
      irdl.attributes {"dim" = %2, "limit" = %3, "map" = %4}
    }
    irdl.operation @push {
      %0 = irdl.base @mxu::@ref 
      %1 = irdl.base "!builtin.index" 
      %2 = irdl.base "!builtin.index" 
      irdl.operands(source: %0, k: %1, n: %2)
      %3 = irdl.base "#builtin.integer" 
      irdl.attributes {"transposed" = %3}
      %4 = irdl.base @mxu::@weights 
      irdl.results(out: %4)
    }
    irdl.operation @matmul {
      %0 = irdl.base @mxu::@ref 
      %1 = irdl.base @mxu::@weights 
      %2 = irdl.base @mxu::@ref 
      %3 = irdl.base "!builtin.index" 
      %4 = irdl.base "!builtin.index" 
      irdl.operands(lhs: %0, weights: %1, acc: %2, k: %3, n: %4)
      %5 = irdl.base "#builtin.integer" 
      irdl.attributes {"passes" = %5}
    }
    irdl.operation @pop {
      %0 = irdl.base @mxu::@ref 
      %1 = irdl.base @mxu::@ref 
      irdl.operands(acc: %0, target: %1)
    }
    irdl.operation @transpose {
      %0 = irdl.base @mxu::@ref 
      %1 = irdl.base @mxu::@ref 
      irdl.operands(source: %0, target: %1)
    }
    irdl.operation @relayout {
      %0 = irdl.base @mxu::@ref 
      %1 = irdl.base @mxu::@ref 
      irdl.operands(source: %0, target: %1)
    }
    irdl.operation @place {
      %0 = irdl.base @mxu::@ref 
      %1 = irdl.base @mxu::@ref 
      irdl.operands(source: %0, target: %1)
      %2 = irdl.base "#builtin.array" 
      irdl.attributes {"lanes" = %2}
    }
    irdl.operation @read_index {
      %0 = irdl.base @mxu::@ref 
      %1 = irdl.base "!builtin.index" 
      irdl.operands(source: %0, indices: variadic %1)
      %2 = irdl.base "#builtin.affine_map" 
      %3 = irdl.base "#builtin.integer" 
      irdl.attributes {"map" = %2, "limit" = %3}
      %4 = irdl.base "!builtin.index" 
      irdl.results(out: %4)
    }
    irdl.operation @vector {
      %0 = irdl.base @mxu::@ref 
      %1 = irdl.base @mxu::@ref 
      %2 = irdl.base @mxu::@ref 
      %3 = irdl.base @mxu::@ref 
      irdl.operands(target: %0, first: optional %1, second: optional %2, third: optional %3)
      %4 = irdl.base "#builtin.string" 
      %5 = irdl.base "#builtin.array" 
      irdl.attributes {"function" = %4, "arguments" = %5}
    }
    irdl.operation @reduce {
      %0 = irdl.base @mxu::@ref 
      %1 = irdl.base @mxu::@ref 
      irdl.operands(source: %0, target: %1)
      %2 = irdl.base "#builtin.string" 
      %3 = irdl.base "#builtin.integer" 
      irdl.attributes {"function" = %2, "limit" = %3}
    }
  }
}

