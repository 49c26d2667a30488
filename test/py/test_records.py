"""Records: what they share with dataclasses, and what tells them apart."""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

import pytest

from stablehlo_py import records
from stablehlo_py.records import Field, field, fields, record, replace


@record
class Point:
    x: int
    y: int = 2
    kind: ClassVar[str] = "point"

    @functools.cached_property
    def sum(self) -> int:
        return self.x + self.y


@record
class Named(Point):
    name: str = ""


@record(frozen=False)
class Bag:
    items: list[int] = field(default_factory=list)
    label: str = field(default="", compare=False)


@record(eq=False)
class Rule:
    name: str


@record
class Lone:
    values: tuple[float, ...]


@record
class Nothing:
    pass


@record
class Checked:
    size: int
    twice: int = 0

    def __post_init__(self) -> None:
        if self.size < 0:
            raise ValueError("negative")
        object.__setattr__(self, "twice", 2 * self.size)


def test_fields_are_parameters():
    assert (Point(1).x, Point(1).y, Point(x=3, y=4).y) == (1, 2, 4)
    assert str(inspect.signature(Named)) == "(x, y=2, name='')"
    assert Point.__init__.__qualname__ == "Point.__init__"
    assert Point.y == 2
    assert not hasattr(Point, "x")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Point(), r"Point.__init__\(\) missing 1 required positional argument: 'x'"),
        (lambda: Point(1, 2, 3), r"takes from 2 to 3 positional arguments but 4 were given"),
        (lambda: Point(1, z=2), r"got an unexpected keyword argument 'z'"),
        (lambda: Point(1, x=2), r"got multiple values for argument 'x'"),
    ],
)
def test_refuses_other_arguments(make, message):
    with pytest.raises(TypeError, match=message):
        make()


def test_is_equal_with_its_class_and_its_fields():
    assert Point(1, 2) == Point(1)
    assert Point(1, 2) != Point(2, 2)
    assert Point(1, 2) != Named(1, 2)
    assert Point(1) != (1, 2)
    assert Nothing() == Nothing()
    nan = float("nan")
    assert Lone((nan,)) == Lone((nan,))  # as tuples, and dataclasses, have it
    assert len({Point(1), Point(1, 2), Point(2), Nothing(), Nothing()}) == 3


def test_equality_leaves_out_fields_that_say_so_and_all_where_the_class_says_so():
    assert Bag([1], "a") == Bag([1], "b")
    assert Bag([1]) != Bag([2])
    assert Rule("a") != Rule("a")
    assert len({Rule("a"), Rule("a")}) == 2


def test_cannot_be_changed_where_frozen():
    point = Point(1)
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'x'"):
        point.x = 2
    with pytest.raises(AttributeError, match="cannot delete field 'x'"):
        del point.x
    bag = Bag()
    bag.label = "new"
    assert bag.label == "new"
    with pytest.raises(TypeError, match="unhashable"):
        hash(bag)


def test_caches_properties():
    point = Point(1)
    assert point.sum == 3
    assert point == Point(1)
    assert "sum" in vars(point)


def test_defaults_are_made_anew():
    first, second = Bag(), Bag()
    first.items.append(1)
    assert second.items == []
    assert Bag([3]).items == [3]
    assert repr(inspect.signature(Bag).parameters["items"].default) == "<factory>"


def test_post_init_is_called_last():
    assert Checked(3).twice == 6
    with pytest.raises(ValueError, match="negative"):
        Checked(-1)


def test_shows_its_fields():
    assert repr(Named(1, name="n")) == "Named(x=1, y=2, name='n')"
    assert repr(Nothing()) == "Nothing()"


def test_a_shared_default_is_refused():
    with pytest.raises(ValueError, match=r"Shared\.items would be shared"):
        record(type("Shared", (), {"__annotations__": {"items": "list"}, "__qualname__": "Shared", "items": []}))


def test_a_field_without_default_comes_first():
    with pytest.raises(TypeError, match="field 'b' of Late has no default, after 'a' which has one"):
        record(type("Late", (), {"__annotations__": {"a": "int", "b": "int"}, "__qualname__": "Late", "a": 1}))


def test_methods_of_the_class_stay():
    @record
    class Own:
        value: int

        def __repr__(self) -> str:
            return f"<{self.value}>"

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Own)

        def __hash__(self) -> int:
            return 7

    assert repr(Own(1)) == "<1>"
    assert Own(1) == Own(2)
    assert hash(Own(1)) == 7


def test_copies():
    assert replace(Named(1), y=5, name="z") == Named(1, 5, "z")
    with pytest.raises(TypeError, match="'w'"):
        replace(Point(1), w=2)
    for one in (Named(1, name="n"), Checked(2), Bag([1, 2])):
        assert pickle.loads(pickle.dumps(one)) == one
        assert copy.deepcopy(one) == one


def test_matches_by_position():
    match Point(1, 5):
        case Point(x, y):
            assert (x, y) == (1, 5)


def test_annotations_may_be_types():
    made = record(type("Typed", (Point,), {"__annotations__": {"w": float, "k": ClassVar[int]}, "w": 1.5, "k": 3}))
    assert [(one.name, one.type) for one in fields(made)] == [("x", "int"), ("y", "int"), ("w", "float")]
    assert made(1, 2).w == 1.5
    assert record(type("Bare", (Point,), {}))(1, 2) != Point(1, 2)


def test_knows_its_fields():
    assert [(one.name, one.type, one.required) for one in fields(Named)] == [
        ("x", "int", True),
        ("y", "int", False),
        ("name", "str", False),
    ]
    assert all(isinstance(one, Field) for one in fields(Bag))


def test_dataclasses_take_it_for_one_of_theirs():
    assert dataclasses.is_dataclass(Point)
    assert [f.name for f in dataclasses.fields(Named)] == ["x", "y", "name"]
    assert dataclasses.replace(Point(1), y=9) == Point(1, 9)
    assert dataclasses.asdict(Bag([1], "a")) == {"items": [1], "label": "a"}

    @dataclasses.dataclass(frozen=True)
    class Further(Point):
        z: int = 0

    assert Further(1, 2, 3) == Further(1, 2, z=3)
    with pytest.raises(TypeError, match="cannot inherit non-frozen"):
        dataclasses.dataclass(type("Loose", (Point,), {"__annotations__": {}}))


def test_does_not_import_dataclasses():
    """Which costs 20 ms with all that it imports."""
    code = "import sys; before = set(sys.modules); import stablehlo_py.records; print('dataclasses' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_the_package_has_records_and_no_dataclasses():
    """One that came back would cost each first program half a millisecond."""
    package = Path(records.__file__).parent
    found = [
        f"{path.relative_to(package)}:{number}"
        for path in sorted(package.rglob("*.py"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if re.match(r"@(dataclasses\.)?dataclass\b", line)
    ]
    assert found == []


def test_the_first_records_are_as_all_others():
    """The first few of a class are made without a compiled `__init__`."""

    @record
    class Late:
        x: int
        items: list[int] = field(default_factory=list)
        y: int = 3

        sum = 0

        def __post_init__(self) -> None:
            object.__setattr__(self, "sum", self.x + self.y)

    made = [Late(1), Late(1, [2]), Late(y=4, x=0), *(Late(1, y=number) for number in range(20))]
    assert [(one.items, one.y, one.sum) for one in made[:4]] == [([], 3, 4), ([2], 3, 4), ([], 4, 4), ([], 0, 1)]
    assert [one.y for one in made[3:]] == list(range(20))
    assert made[0].items is not made[3].items
    assert type(vars(Late)["__init__"]).__name__ == "function"


@pytest.mark.parametrize("many", [False, True])
def test_wrong_arguments_are_refused_by_the_first_record_and_by_the_hundredth(many):
    @record
    class Pair:
        x: int
        y: int = 2

    if many:
        _ = [Pair(1) for _ in range(100)]
    for arguments, named, said in (
        ((), {}, r"missing 1 required positional argument: 'x'"),
        ((1, 2, 3), {}, r"takes from 2 to 3 positional arguments but 4 were given"),
        ((1,), {"x": 2}, r"got multiple values for argument 'x'"),
        ((1,), {"z": 2}, r"got an unexpected keyword argument 'z'"),
    ):
        with pytest.raises(TypeError, match=said):
            Pair(*arguments, **named)
