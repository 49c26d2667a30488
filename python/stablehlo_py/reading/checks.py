"""StableHLO's check dialect, the assertions of its test programs, as custom calls.

    check.expect_close %0, %1, max_ulp_difference = 3 : tensor<2xf32>, tensor<2xf32>
 -> "stablehlo.custom_call"(%0, %1) {call_target_name = "check.expect_close", has_side_effect = true,
                                     max_ulp_difference = 3 : ui64} : (tensor<2xf32>, tensor<2xf32>) -> ()

The bindings have no such dialect, so the text is rewritten before it is parsed, in either form that the op may have.
Expected values in attributes become constants. Lines stay where they are.
"""

from __future__ import annotations

from stablehlo_py.errors import BadInput
from stablehlo_py.patterns import pattern
from stablehlo_py.reading.assembly import VALUE, replace_ops, skip_balanced, skip_blanks, type_at, types_at

# What compares two arrays; expect_serialized_eq compares with files that another run of another tool left.
_COMPARISONS = ("expect_eq", "expect_eq_const", "expect_almost_eq", "expect_almost_eq_const", "expect_close")
_NAMED = pattern(r"(\w+)\s*=\s*(-?[\d.]+(?:[eE][-+]?\d+)?)")
_ELEMENTS = pattern(r"dense(?:_resource)?(?=<)")
_VALUE_ATTRIBUTE = pattern(r"(?:^|,)\s*value\s*=\s*(?=dense)")


def to_custom_calls(text: str, where: str) -> str:
    """`text` with each comparison as a custom call; text without any comes back as it is."""
    if "check.expect_" not in text:
        return text
    return replace_ops(text, "check", _rewrite, where, _not_understood, in_generic_form=True)


def _rewrite(text: str, name: str, at: int) -> tuple[str, int]:
    is_generic = text[at - 1] == '"'
    if name not in _COMPARISONS:
        return f'"check.{name}"' if is_generic else f"check.{name}", at  # the parser says that nobody knows it
    operands, elements, attributes, types, end = (_generic if is_generic else _plain)(text, at)
    constant = ""
    if elements:
        operands.append(f"%expected_at_{at}")
        constant = f"{operands[-1]} = stablehlo.constant {elements} "
        types = types * 2
    if len(operands) != 2 or len(types) != 2:
        raise ValueError("not two tensors")
    attributes = [f'call_target_name = "check.{name}"', "has_side_effect = true", *attributes]
    call = f'"stablehlo.custom_call"({", ".join(operands)}) {{{", ".join(attributes)}}} : ({", ".join(types)}) -> ()'
    return constant + call + "\n" * (text.count("\n", at, end) - f"{constant}{call}".count("\n")), end


# operands, `dense<..> : type` or nothing, other attributes, types, where the op ends
_Parts = tuple[list[str], str, list[str], list[str], int]


def _plain(text: str, at: int) -> _Parts:
    """`%0, %1, max_ulp_difference = 3 {..} : type, type`, or `%0, dense<..> : type {..}`."""
    operands, elements, attributes = list[str](), "", list[str]()
    types: list[str] = []
    while True:
        at = skip_blanks(text, at)
        if value := VALUE.match(text, at):
            operands.append(value[0])
            at = value.end()
        elif _ELEMENTS.match(text, at):
            elements, ty, at = _typed_elements(text, at)
            types = [ty]
        elif named := _NAMED.match(text, at):
            attributes.append(f"{named[1]} = {named[2]} : {'ui64' if named[2].isdigit() else 'f64'}")
            at = named.end()
        else:
            raise ValueError("neither a value nor an attribute")
        if text[skip_blanks(text, at)] != ",":
            break
        at = skip_blanks(text, at) + 1
    if text[skip_blanks(text, at)] == "{":
        end = skip_balanced(text, at)
        attributes.append(text[skip_blanks(text, at) + 1 : end - 1])
        at = end
    if not elements:
        types, at = types_at(text, _after(text, at, ":"))
        types = types * 2 if len(types) == 1 else types
    return operands, elements, attributes, types, at


def _generic(text: str, at: int) -> _Parts:
    """`(%0, %1) <{..}> {..} : (type, type) -> ()`."""
    end = skip_balanced(text, at)
    operands = VALUE.findall(text, at, end)
    elements, attributes = "", list[str]()
    while text[skip_blanks(text, at := end)] in "<{":
        end = skip_balanced(text, at)
        brace = text.index("{", at)
        inside = text[brace + 1 : skip_balanced(text, brace) - 1]
        if value := _VALUE_ATTRIBUTE.search(inside):
            elements, _, after = _typed_elements(inside, value.end())
            inside = (inside[: value.start()] + inside[after:]).strip(", \n")
        attributes += [inside] if inside else []
    types, at = types_at(text, _after(text, _after(text, at, ":"), "("))
    for token in (")", "->", "(", ")"):
        at = _after(text, at, token)
    return operands, elements, attributes, types, at


def _typed_elements(text: str, at: int) -> tuple[str, str, int]:
    """`dense<..> : type` at a place, its type, and where it ends."""
    end = skip_balanced(text, text.index("<", at))
    ty, after = type_at(text, _after(text, end, ":"))
    return f"{text[at:end]} : {ty}", ty, after


def _after(text: str, at: int, token: str) -> int:
    at = skip_blanks(text, at)
    if not text.startswith(token, at):
        raise ValueError(f"no {token}")
    return at + len(token)


def _not_understood(name: str, place: str) -> BadInput:
    return BadInput(
        f"check.{name} is not written as StableHLO's test programs write it",
        where=place,
        hint=f"write a call: stablehlo.custom_call @check.{name}(%actual, %expected) : (type, type) -> ()",
    )
