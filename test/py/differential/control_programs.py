"""Programs whose control flow and updates in place are easy to get wrong, each with its arguments."""

from __future__ import annotations

import numpy as np

F = np.arange(1, 5, dtype=np.float32)
TABLE = np.arange(12, dtype=np.float32).reshape(4, 3)

# name -> (body of the module, arguments)
PROGRAMS: dict[str, tuple[str, tuple[np.ndarray | np.generic, ...]]] = {}


def program(name: str, *arguments: np.ndarray | np.generic, text: str) -> None:
    PROGRAMS[name] = (text, arguments)


def counted(carried: str, types: str, body: str, returned: str, *, limit: int = 5) -> str:
    """A while that counts %i to the limit and carries other values too."""
    return f"""
      %r:{types.count("tensor") + 1} = stablehlo.while(%i = %zero, {carried}) : tensor<i32>, {types}
      cond {{
        %limit = stablehlo.constant dense<{limit}> : tensor<i32>
        %go = stablehlo.compare LT, %i, %limit : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %go : tensor<i1>
      }} do {{
        %next = stablehlo.add %i, %one : tensor<i32>
        {body}
        stablehlo.return %next, {returned} : tensor<i32>, {types}
      }}"""


CONSTANTS = """
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %one = stablehlo.constant dense<1> : tensor<i32>"""

for limit in (0, 1, 4, 5):
    program(
        f"swapped_{limit}",
        F,
        -F,
        text=f"""func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {{
      {CONSTANTS}
      {counted("%a = %x, %b = %y", "tensor<4xf32>, tensor<4xf32>", "", "%b, %a", limit=limit)}
      return %r#1, %r#2 : tensor<4xf32>, tensor<4xf32>
    }}""",
    )

program(
    "rotated_and_changed",
    F,
    -F,
    F * 10,
    text=f"""func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>, %z: tensor<4xf32>)
        -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {{
      {CONSTANTS}
      {
        counted(
            "%a = %x, %b = %y, %c = %z",
            "tensor<4xf32>, tensor<4xf32>, tensor<4xf32>",
            "%s = stablehlo.add %a, %b : tensor<4xf32>",
            "%c, %s, %b",
        )
    }
      return %r#1, %r#2, %r#3 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
    }}""",
)

program(
    "one_value_carried_twice",
    F,
    text=f"""func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {{
      {CONSTANTS}
      {
        counted(
            "%a = %x, %b = %x",
            "tensor<4xf32>, tensor<4xf32>",
            "%s = stablehlo.add %a, %b : tensor<4xf32>",
            "%s, %s",
        )
    }
      return %r#1, %r#2 : tensor<4xf32>, tensor<4xf32>
    }}""",
)

program(
    "captured_values",
    F,
    TABLE,
    text=f"""func.func @main(%x: tensor<4xf32>, %t: tensor<4x3xf32>) -> (tensor<4xf32>, tensor<4x3xf32>) {{
      {CONSTANTS}
      %k = stablehlo.multiply %x, %x : tensor<4xf32>
      %wide = stablehlo.broadcast_in_dim %k, dims = [0] : (tensor<4xf32>) -> tensor<4x3xf32>
      {
        counted(
            "%a = %x, %b = %t",
            "tensor<4xf32>, tensor<4x3xf32>",
            "%s = stablehlo.subtract %a, %k : tensor<4xf32>  %u = stablehlo.add %b, %wide : tensor<4x3xf32>",
            "%s, %u",
        )
    }
      return %r#1, %r#2 : tensor<4xf32>, tensor<4x3xf32>
    }}""",
)

program(
    "captured_after_use",
    F,
    text=f"""func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {{
      {CONSTANTS}
      %k = stablehlo.negate %x : tensor<4xf32>
      {counted("%a = %k", "tensor<4xf32>", "%s = stablehlo.add %a, %x : tensor<4xf32>", "%s")}
      return %r#1, %k : tensor<4xf32>, tensor<4xf32>
    }}""",
)

program(
    "nested_whiles",
    F,
    text=f"""func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<i32>) {{
      {CONSTANTS}
      %out:3 = stablehlo.while(%j = %zero, %v = %x, %total = %zero) : tensor<i32>, tensor<4xf32>, tensor<i32>
      cond {{
        %limit = stablehlo.constant dense<3> : tensor<i32>
        %go = stablehlo.compare LT, %j, %limit : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %go : tensor<i1>
      }} do {{
        %nextj = stablehlo.add %j, %one : tensor<i32>
        %r:3 = stablehlo.while(%i = %zero, %w = %v, %t = %total) : tensor<i32>, tensor<4xf32>, tensor<i32>
        cond {{
          %go = stablehlo.compare LT, %i, %nextj : (tensor<i32>, tensor<i32>) -> tensor<i1>
          stablehlo.return %go : tensor<i1>
        }} do {{
          %next = stablehlo.add %i, %one : tensor<i32>
          %s = stablehlo.add %w, %v : tensor<4xf32>
          %u = stablehlo.add %t, %nextj : tensor<i32>
          stablehlo.return %next, %s, %u : tensor<i32>, tensor<4xf32>, tensor<i32>
        }}
        stablehlo.return %nextj, %r#1, %r#2 : tensor<i32>, tensor<4xf32>, tensor<i32>
      }}
      return %out#1, %out#2 : tensor<4xf32>, tensor<i32>
    }}""",
)

program(
    "if_in_while",
    F,
    text=f"""func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
      {CONSTANTS}
      {
        counted(
            "%a = %x",
            "tensor<4xf32>",
            '''%two = stablehlo.constant dense<2> : tensor<i32>
        %rest = stablehlo.remainder %i, %two : tensor<i32>
        %odd = stablehlo.compare EQ, %rest, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
        %s = "stablehlo.if"(%odd) ({
          %p = stablehlo.add %a, %x : tensor<4xf32>
          stablehlo.return %p : tensor<4xf32>
        }, {
          stablehlo.return %a : tensor<4xf32>
        }) : (tensor<i1>) -> tensor<4xf32>''',
            "%s",
        )
    }
      return %r#1 : tensor<4xf32>
    }}""",
)

for index in (-2147483648, -1, 0, 1, 2, 3, 2147483647):
    program(
        f"case_{index}",
        np.int32(index),
        F,
        text="""func.func @main(%n: tensor<i32>, %x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
      %y = stablehlo.negate %x : tensor<4xf32>
      %r:2 = "stablehlo.case"(%n) ({
        stablehlo.return %x, %y : tensor<4xf32>, tensor<4xf32>
      }, {
        stablehlo.return %y, %x : tensor<4xf32>, tensor<4xf32>
      }, {
        %s = stablehlo.multiply %x, %y : tensor<4xf32>
        stablehlo.return %s, %s : tensor<4xf32>, tensor<4xf32>
      }) : (tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>)
      return %r#0, %r#1 : tensor<4xf32>, tensor<4xf32>
    }""",
    )

for truth in (False, True):
    program(
        f"if_gives_arguments_{truth}",
        np.bool_(truth),
        F,
        text="""func.func @main(%p: tensor<i1>, %x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
      %c = stablehlo.constant dense<[9.0, 8.0, 7.0, 6.0]> : tensor<4xf32>
      %r = "stablehlo.if"(%p) ({
        stablehlo.return %x : tensor<4xf32>
      }, {
        stablehlo.return %c : tensor<4xf32>
      }) : (tensor<i1>) -> tensor<4xf32>
      %s = stablehlo.add %r, %x : tensor<4xf32>
      return %r, %s : tensor<4xf32>, tensor<4xf32>
    }""",
    )

# --- updates in place

UPDATE = "%{0} = stablehlo.dynamic_update_slice %{1}, %{2}, %i, %zero : "
UPDATE += "(tensor<4x3xf32>, tensor<1x3xf32>, tensor<i32>, tensor<i32>) -> tensor<4x3xf32>"

program(
    "update_in_a_loop",
    TABLE,
    np.float32([[7, 8, 9]]),
    text=f"""func.func @main(%t: tensor<4x3xf32>, %row: tensor<1x3xf32>) -> (tensor<4x3xf32>, tensor<4x3xf32>) {{
      {CONSTANTS}
      {counted("%a = %t", "tensor<4x3xf32>", UPDATE.format("s", "a", "row"), "%s", limit=3)}
      return %r#1, %t : tensor<4x3xf32>, tensor<4x3xf32>
    }}""",
)

program(
    "the_old_value_is_read_after_the_update",
    TABLE,
    np.float32([[7, 8, 9]]),
    text=f"""func.func @main(%t: tensor<4x3xf32>, %row: tensor<1x3xf32>) -> (tensor<4x3xf32>, tensor<4x3xf32>) {{
      {CONSTANTS}
      {
        counted(
            "%a = %t, %b = %t",
            "tensor<4x3xf32>, tensor<4x3xf32>",
            UPDATE.format("s", "a", "row") + " %u = stablehlo.add %a, %s : tensor<4x3xf32>",
            "%s, %u",
        )
    }
      return %r#1, %r#2 : tensor<4x3xf32>, tensor<4x3xf32>
    }}""",
)

program(
    "the_update_comes_from_its_target",
    TABLE,
    text=f"""func.func @main(%t: tensor<4x3xf32>) -> tensor<4x3xf32> {{
      {CONSTANTS}
      {
        counted(
            "%a = %t",
            "tensor<4x3xf32>",
            "%p = stablehlo.dynamic_slice %a, %zero, %zero, sizes = [3, 3] "
            ": (tensor<4x3xf32>, tensor<i32>, tensor<i32>) -> tensor<3x3xf32> "
            "%s = stablehlo.dynamic_update_slice %a, %p, %one, %zero "
            ": (tensor<4x3xf32>, tensor<3x3xf32>, tensor<i32>, tensor<i32>) -> tensor<4x3xf32>",
            "%s",
            limit=2,
        )
    }
      return %r#1 : tensor<4x3xf32>
    }}""",
)

program(
    "two_updates_of_one_value",
    TABLE,
    np.float32([[7, 8, 9]]),
    np.int32(2),
    text=f"""func.func @main(%t: tensor<4x3xf32>, %row: tensor<1x3xf32>, %i: tensor<i32>)
        -> (tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>) {{
      {CONSTANTS}
      %base = stablehlo.negate %t : tensor<4x3xf32>
      {UPDATE.format("p", "base", "row")}
      %other = stablehlo.negate %row : tensor<1x3xf32>
      {UPDATE.format("q", "base", "other")}
      return %p, %q, %base : tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>
    }}""",
)

program(
    "update_of_a_constant",
    np.float32([[7, 8, 9]]),
    np.int32(1),
    text=f"""func.func @main(%row: tensor<1x3xf32>, %i: tensor<i32>) -> (tensor<4x3xf32>, tensor<4x3xf32>) {{
      {CONSTANTS}
      %t = stablehlo.constant dense<{TABLE.tolist()}> : tensor<4x3xf32>
      {UPDATE.format("s", "t", "row")}
      return %s, %t : tensor<4x3xf32>, tensor<4x3xf32>
    }}""",
)

program(
    "update_beyond_the_end_is_clamped",
    TABLE,
    np.float32([[7, 8, 9]]),
    np.int32(99),
    text=f"""func.func @main(%t: tensor<4x3xf32>, %row: tensor<1x3xf32>, %i: tensor<i32>) -> tensor<4x3xf32> {{
      {CONSTANTS}
      {UPDATE.format("s", "t", "row")}
      return %s : tensor<4x3xf32>
    }}""",
)

program(
    "scatter_in_a_loop",
    TABLE,
    np.int32([[3], [0], [3], [9], [-1]]),
    text=f"""func.func @main(%t: tensor<4x3xf32>, %n: tensor<5x1xi32>) -> (tensor<4x3xf32>, tensor<4x3xf32>) {{
      {CONSTANTS}
      %ones = stablehlo.constant dense<1.0> : tensor<5x3xf32>
      {
        counted(
            "%a = %t",
            "tensor<4x3xf32>",
            '''%s = "stablehlo.scatter"(%a, %n, %ones) <{
          scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0],
            scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
          ^bb0(%old: tensor<f32>, %new: tensor<f32>):
            %sum = stablehlo.add %old, %new : tensor<f32>
            stablehlo.return %sum : tensor<f32>
        }) : (tensor<4x3xf32>, tensor<5x1xi32>, tensor<5x3xf32>) -> tensor<4x3xf32>''',
            "%s",
        )
    }
      return %r#1, %t : tensor<4x3xf32>, tensor<4x3xf32>
    }}""",
)
