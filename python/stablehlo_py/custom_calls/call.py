"""One custom call as plain data: its name, attributes and types, which a stored program keeps as JSON."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from stablehlo_py.errors import BadInput
from stablehlo_py.records import field, record
from stablehlo_py.runtime.program import ArrayType

# The name of what unset.py registers, which imports every custom call.
UNSET = "stablehlo_py.unset"

Layout = tuple[int, ...] | None  # dimensions from the fastest to the slowest in memory; None is row-major


@record
class CustomCall:
    """What a program says of a custom call.

    attributes: the backend_config's entries as Python values; a backend_config that is text, under that name; other
    attributes that are not the op's own, under theirs. aliases: (result, operand) pairs that share memory in XLA.
    where: the place in the program's source.
    """

    name: str
    attributes: Mapping[str, Any] = field(
        default_factory=dict
    )  # Any: bool, int, float, str, bytes, array, list or dict
    operands: tuple[ArrayType, ...] = ()
    results: tuple[ArrayType, ...] = ()
    operand_layouts: tuple[Layout, ...] = ()
    result_layouts: tuple[Layout, ...] = ()
    aliases: tuple[tuple[int, int], ...] = ()
    where: str = ""

    def to_json(self) -> str:
        return json.dumps(
            {
                "custom_call": self.name,
                "attributes": dict(self.attributes),
                "operands": [[list(ty.shape), ty.dtype] for ty in self.operands],
                "results": [[list(ty.shape), ty.dtype] for ty in self.results],
                "operand_layouts": self.operand_layouts,
                "result_layouts": self.result_layouts,
                "aliases": self.aliases,
                "where": self.where,
            },
            separators=(",", ":"),
            default=_to_json,
        )

    @staticmethod
    def from_json(text: str) -> CustomCall:
        """The call that `to_json` wrote; BadInput for anything else."""
        try:
            fields = json.loads(text, object_hook=_from_json)
            return CustomCall(
                name=fields["custom_call"],
                attributes=fields["attributes"],
                operands=tuple(ArrayType(tuple(shape), dtype) for shape, dtype in fields["operands"]),
                results=tuple(ArrayType(tuple(shape), dtype) for shape, dtype in fields["results"]),
                operand_layouts=_layouts(fields["operand_layouts"]),
                result_layouts=_layouts(fields["result_layouts"]),
                aliases=tuple((int(result), int(operand)) for result, operand in fields["aliases"]),
                where=fields["where"],
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise BadInput(f"not a stored custom call: {text[:60]}") from error


def _layouts(rows: list[list[int] | None]) -> tuple[Layout, ...]:
    return tuple(None if row is None else tuple(row) for row in rows)


def _to_json(value: object) -> dict[str, Any]:
    if isinstance(value, bytes):
        return {"$bytes": base64.b64encode(value).decode()}
    if isinstance(value, np.generic):
        value = np.asarray(value)
    if not isinstance(value, np.ndarray):
        raise TypeError(f"an attribute of a custom call is {type(value).__name__}, which cannot be stored")
    data = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()
    return {"$array": [value.dtype.name, list(value.shape), data]}


def _from_json(fields: dict[str, Any]) -> Any:  # Any: a dict as it is, or the array or bytes that it stands for
    if list(fields) == ["$bytes"]:
        return base64.b64decode(fields["$bytes"])
    if list(fields) != ["$array"]:
        return fields
    dtype, shape, data = fields["$array"]
    return np.frombuffer(base64.b64decode(data), ArrayType((), dtype).numpy).reshape(shape)
