"""What may remain after a stage."""

from __future__ import annotations

import pytest

from stablehlo_py.core.legality import Legality


@pytest.mark.parametrize(
    ("legality", "op_name", "permitted"),
    [
        (Legality(), "stablehlo.add", True),
        (Legality(allow=("func",)), "func.call", True),
        (Legality(allow=("func",)), "arith.addf", False),
        (Legality(allow=("func",)), "builtin.module", True),
        (Legality(allow=("func",)), "builtin.unrealized_conversion_cast", False),
        (Legality(allow=("func", "builtin")), "builtin.unrealized_conversion_cast", True),
        (Legality(forbid=("stablehlo",)), "stablehlo.add", False),
        (Legality(forbid=("stablehlo",)), "chlo.erf", True),
        (Legality(allow=("stablehlo.custom_call",), forbid=("stablehlo",)), "stablehlo.custom_call", True),
        (Legality(allow=("stablehlo.custom_call",), forbid=("stablehlo",)), "stablehlo.add", False),
        (Legality(allow=("linalg",), forbid=("linalg.generic",)), "linalg.generic", False),
        (Legality(allow=("linalg",), forbid=("linalg.generic",)), "linalg.matmul", True),
    ],
)
def test_an_ops_own_name_beats_its_dialect(legality, op_name, permitted):
    assert legality.permits(op_name) is permitted


def test_nothing_said_is_false():
    assert not Legality()
    assert Legality(forbid=("chlo",))
