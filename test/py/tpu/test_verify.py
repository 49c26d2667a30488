"""Each rule that holds for a whole kernel, broken once: the verifier names the op and says what is wrong."""

from __future__ import annotations

import pytest

from stablehlo_py.mlir import ir

from .kernels import parsed

REF = '!mxu.ref<tensor<{0}>, "{1}", #mxu.tiled<"T(8,128)">>'
HBM_X = REF.format("1x16x256xf32", "hbm")
HBM_Y = REF.format("1x256x384xf32", "hbm")
HBM_Z = REF.format("1x16x384xf32", "hbm")
X = REF.format("16x128xf32", "vmem")
Y = REF.format("128x384xf32", "vmem")
Z = REF.format("16x384xf32", "vmem")
WEIGHTS = "!mxu.weights<tensor<128x128xf32>>"
MAP = "affine_map<(k) -> (0, 0, k)>"

# One product, 16x200 by 200x300, in two blocks of the contracted dimension.
GOOD = f"""
func.func @f(%a: tensor<1x16x256xf32>, %b: tensor<1x256x384xf32>) -> tensor<1x16x384xf32> {{
  %r = "mxu.kernel"(%a, %b) ({{
  ^bb0(%x: {HBM_X}, %y: {HBM_Y}, %z: {HBM_Z}):
    %xb = "mxu.alloc"() {{label = "x", offset = 0 : i64, buffers = 2 : i64}} : () -> {X}
    %yb = "mxu.alloc"() {{label = "y", offset = 65536 : i64, buffers = 2 : i64}} : () -> {Y}
    %acc = "mxu.alloc"() {{label = "acc", offset = 524288 : i64, buffers = 1 : i64}} : () -> {Z}
    %zb = "mxu.alloc"() {{label = "z", offset = 589824 : i64, buffers = 1 : i64}} : () -> {Z}
    %load = "mxu.make_semaphore"() : () -> !mxu.semaphore
    %store = "mxu.make_semaphore"() : () -> !mxu.semaphore
    "mxu.loop"() ({{
    ^bb1(%i: index):
      "mxu.fill"(%acc) {{value = 0.0 : f32}} : ({Z}) -> ()
      "mxu.loop"() ({{
      ^bb2(%k: index):
        "mxu.dma_start"(%x, %xb, %load, %k) {{map = affine_map<(k) -> (0, 0, k)>}}
          : ({HBM_X}, {X}, !mxu.semaphore, index) -> ()
        "mxu.dma_start"(%y, %yb, %load, %k) {{map = affine_map<(k) -> (0, k, 0)>}}
          : ({HBM_Y}, {Y}, !mxu.semaphore, index) -> ()
        "mxu.dma_wait"(%load) : (!mxu.semaphore) -> ()
        "mxu.mask"(%xb, %k) {{dim = 1 : i64, limit = 200 : i64, map = affine_map<(k) -> (0, 0, k)>}} : ({X}, index) -> ()
        "mxu.mask"(%yb, %k) {{dim = 0 : i64, limit = 200 : i64, map = affine_map<(k) -> (0, k, 0)>}} : ({Y}, index) -> ()
        "mxu.loop"() ({{
        ^bb3(%kk: index, %n: index):
          %w = "mxu.push"(%yb, %kk, %n) {{transposed = false}} : ({Y}, index, index) -> {WEIGHTS}
          "mxu.matmul"(%xb, %w, %acc, %kk, %n) {{passes = 1 : i64}} : ({X}, {WEIGHTS}, {Z}, index, index) -> ()
        }}) {{bounds = [1, 3]}} : () -> ()
      }}) {{bounds = [2]}} : () -> ()
      "mxu.pop"(%acc, %zb) : ({Z}, {Z}) -> ()
      "mxu.dma_start"(%zb, %z, %store, %i) {{map = affine_map<(i) -> (0, 0, 0)>}}
        : ({Z}, {HBM_Z}, !mxu.semaphore, index) -> ()
      "mxu.dma_wait"(%store) : (!mxu.semaphore) -> ()
    }}) {{bounds = [1]}} : () -> ()
  }}) {{label = "k", chip = "v5e", logical = [[1, 16, 200], [1, 200, 300], [1, 16, 300]],
       operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>}}
    : (tensor<1x16x256xf32>, tensor<1x256x384xf32>) -> tensor<1x16x384xf32>
  return %r : tensor<1x16x384xf32>
}}
"""

WAIT = '        "mxu.dma_wait"(%load) : (!mxu.semaphore) -> ()\n'
STORED = '      "mxu.dma_wait"(%store) : (!mxu.semaphore) -> ()\n'
MASK_X = next(line + "\n" for line in GOOD.splitlines() if '"mxu.mask"(%xb' in line)
MASK_Y = next(line + "\n" for line in GOOD.splitlines() if '"mxu.mask"(%yb' in line)
FILL = next(line + "\n" for line in GOOD.splitlines() if '"mxu.fill"' in line)

RULES = {
    "unknown chip": ('chip = "v5e"', 'chip = "v99"', "is for chip 'v99'"),
    "a logical shape for each ref": (", [1, 16, 300]]", "]", "3 refs, 2 shapes"),
    "logical within physical": ("[1, 16, 200]", "[1, 16, 300]", r"\(1, 16, 300\) defined elements"),
    "refs as operands": ("(%a: tensor<1x16x256xf32>", "(%a: tensor<1x24x256xf32>", "and has a ref of tensor<1x16x256"),
    "vmem capacity": ('label = "z", offset = 589824', 'label = "z", offset = 134217728', "v5e has 134217728"),
    "buffers apart": ('label = "z", offset = 589824', 'label = "z", offset = 524288', "overlaps the buffer before it"),
    "copies apart": ('label = "y", offset = 65536', 'label = "y", offset = 8192', "overlaps the buffer before it"),
    "at least one copy": ("offset = 0 : i64, buffers = 2", "offset = 0 : i64, buffers = 0", "has 0 copies"),
    "wait before mask": (WAIT, "", "mxu.mask reads a buffer before the wait"),
    "wait before read": (WAIT + MASK_X + MASK_Y, "", "reads a buffer before the wait|push reads a buffer before"),
    "wait for the store": (STORED, "", "writes to a buffer before the wait for the transfer out of it"),
    "nothing to wait for": (WAIT, WAIT + WAIT.replace("%load", "%store"), "on which nothing was started"),
    "mask of the lhs": (MASK_X, "", "mxu.matmul contracts over padding that may be undefined: dimension 1 ends at 200"),
    "mask of the rhs": (MASK_Y, "", "mxu.push contracts over padding that may be undefined: dimension 0 ends at 200"),
    "mask far enough": (
        "dim = 1 : i64, limit = 200",
        "dim = 1 : i64, limit = 201",
        "mxu.matmul contracts over padding",
    ),
    "filled accumulator": (FILL, "", "adds to an accumulator that was not filled"),
    "order of sums": (
        "affine_map<(k) -> (0, k, 0)>",
        "affine_map<(k) -> (0, 1 - k, 0)>",
        "block numbers must not fall",
    ),
    "map of the ref's rank": (
        "affine_map<(k) -> (0, 0, k)>",
        "affine_map<(k) -> (0, k)>",
        "has a map of 1 indices to 2",
    ),
    "loop indices": ("bounds = [1, 3]", "bounds = [1]", "has 1 bounds and 2 indices"),
    "loop bounds": ("bounds = [2]", "bounds = [0]", "must be positive"),
    "whole tiles": (X, REF.format("12x128xf32", "vmem"), "is not whole tiles of 8x128"),
    "a block's rank": (X, REF.format("128xf32", "vmem"), "a block has two dimensions"),
    "the unit's tile": (WEIGHTS, "!mxu.weights<tensor<64x128xf32>>", "v5e takes 128 square"),
    "rows of the accumulator": (X, REF.format("24x128xf32", "vmem"), "streams 24 rows into an accumulator of 16"),
    "element of a transfer": (X, REF.format("16x128xbf16", "vmem"), "moves f32 to bf16"),
    "shape of a pop": (
        f'"z", offset = 589824 : i64, buffers = 1 : i64}} : () -> {Z}',
        f'"z", offset = 589824 : i64, buffers = 1 : i64}} : () -> {REF.format("8x384xf32", "vmem")}',
        "pops tensor<16x384xf32> into tensor<8x384xf32>",
    ),
    "transfers touch an argument": ("(%x, %xb, %load, %k)", "(%xb, %xb, %load, %k)", "between an argument"),
    "foreign ops": (FILL, "      %c = arith.constant 1 : index\n", "has no place in an mxu.kernel"),
}


def test_the_good_kernel_is_fine():
    assert "mxu.kernel" in str(parsed(GOOD))


@pytest.mark.parametrize("rule", RULES)
def test_a_broken_rule_is_found(rule):
    old, new, message = RULES[rule]
    assert old in GOOD
    # Types stand in several places, so all of them change together.
    broken = GOOD.replace(old, new) if old.startswith("!mxu") else GOOD.replace(old, new, 1)
    if rule == "shape of a pop":
        small = REF.format("8x384xf32", "vmem")
        broken = broken.replace(f'"mxu.pop"(%acc, %zb) : ({Z}, {Z})', f'"mxu.pop"(%acc, %zb) : ({Z}, {small})')
        broken = broken.replace(f": ({Z}, {HBM_Z}, !mxu.semaphore", f": ({small}, {HBM_Z}, !mxu.semaphore")
    if rule == "refs as operands":
        broken = broken.replace("    : (tensor<1x16x256xf32>", "    : (tensor<1x24x256xf32>")
    if rule == "transfers touch an argument":
        broken = broken.replace(f": ({HBM_X}, {X}, !mxu.semaphore", f": ({X}, {X}, !mxu.semaphore")
    with pytest.raises(ir.MLIRError, match=message):
        parsed(broken)


def test_a_view_must_be_of_vmem():
    text = GOOD.replace(
        FILL,
        FILL + f'      %v = "mxu.view"(%x, %i) {{map = affine_map<(i) -> (0, 0, i)>}} : ({HBM_X}, index) -> {X}\n',
    )
    with pytest.raises(ir.MLIRError, match="only VMEM can be read in place"):
        parsed(text)


def test_a_split_must_be_over_the_chips_cores():
    text = GOOD.replace(
        FILL, FILL + '      "mxu.core_split"() ({\n      ^bb9(%c: index):\n      }) {cores = 2 : i64} : () -> ()\n'
    )
    with pytest.raises(ir.MLIRError, match="splits over 2 cores; v5e has 1"):
        parsed(text)


def _vector(text: str) -> str:
    """The good kernel with vector code in front of its fill; %xb holds a block of 16x128 by then."""
    load = GOOD[GOOD.index('        "mxu.dma_start"(%x, %xb') : GOOD.index('        "mxu.dma_start"(%y, %yb')]
    return GOOD.replace(FILL, load.replace("%k", "%i") + WAIT + text + FILL)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            f"""      "mxu.vector"(%acc, %xb) {{arguments = [0], function = "copy",
              operandSegmentSizes = array<i32: 1, 1, 0, 0>}} : ({Z}, {X}) -> ()\n""",
            None,
        ),
        (
            f"""      "mxu.vector"(%acc, %xb) {{arguments = [1], function = "copy",
              operandSegmentSizes = array<i32: 1, 1, 0, 0>}} : ({Z}, {X}) -> ()\n""",
            r"has 1 sources, and arguments \[1\]",
        ),
        (
            f"""      "mxu.vector"(%yb, %xb) {{arguments = [0], function = "copy",
              operandSegmentSizes = array<i32: 1, 1, 0, 0>}} : ({Y}, {X}) -> ()\n""",
            "takes a block of tensor<16x128xf32> for one of tensor<128x384xf32>",
        ),
        (
            f"""      "mxu.reduce"(%xb, %xb) {{function = "add", limit = 129 : i64}} : ({X}, {X}) -> ()\n""",
            "reduces 129 elements of a row, of which 72 are defined",
        ),
        (
            f"""      "mxu.reduce"(%xb, %acc) {{function = "add", limit = 9 : i64}} : ({X}, {Z}) -> ()\n""",
            "not to one register's lanes",
        ),
    ],
)
def test_vector_code(text, message):
    if message is None:
        parsed(_vector(text))
        return
    with pytest.raises(ir.MLIRError, match=message):
        parsed(_vector(text))


def test_a_fusion_must_yield_its_result():
    text = """func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
      %r = "mxu.fusion"() ({ %e = stablehlo.negate %x : tensor<4xf32> "mxu.yield"(%e) : (tensor<4xf32>) -> () })
        : () -> tensor<4xf32>
      return %r : tensor<4xf32> }"""
    parsed(text)
    with pytest.raises(ir.MLIRError, match="yields another type"):
        parsed(
            text.replace("() -> tensor<4xf32>", "() -> tensor<5xf32>").replace(
                "return %r : tensor<4xf32>", "return %x : tensor<4xf32>"
            )
        )
    with pytest.raises(ir.MLIRError, match=r"ends without mxu\.yield"):
        parsed(text.replace('"mxu.yield"(%e) : (tensor<4xf32>) -> ()', ""))
