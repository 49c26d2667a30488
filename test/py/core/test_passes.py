"""Python passes: names, options, the registry, and where passes are found."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from dataclasses import dataclass
from typing import ClassVar

import pytest

from stablehlo_py.core import passes, upstream
from stablehlo_py.core.passes import PASSES, Pass, find_pass, load_all_passes


class Tile(Pass):
    """Tile loops.

    More about it.
    """

    name: ClassVar[str] = "test-passes-tile"

    tile_size: int = 8
    scale: float = 0.5
    strict: bool = False
    layout: str = "row major"


@dataclass(frozen=True)  # which a pass does without, and may have
class Needs(Pass):
    """A pass with an option that has no default."""

    name: ClassVar[str] = "test-passes-needs"
    target: str


def test_summary_is_the_first_line():
    assert Tile.summary() == "Tile loops."


def test_options_have_kebab_names():
    assert [str(option) for option in Tile.options()] == [
        "tile-size=8",
        "scale=0.5",
        "strict=false",
        'layout="row major"',
    ]
    assert str(Needs.options()[0]) == "target=<str>"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", Tile()),
        ("tile-size=0x10", Tile(tile_size=16)),
        ("tile-size=-3 scale=1e-3", Tile(tile_size=-3, scale=1e-3)),
        ("strict", Tile(strict=True)),
        ("strict=True", Tile(strict=True)),
        ("strict=0 layout=a", Tile(layout="a")),
        ("layout='a \"b\"'", Tile(layout='a "b"')),
        ("layout={x=1 y}", Tile(layout="x=1 y")),
    ],
)
def test_reads_options(text, expected):
    assert Tile.from_options(text) == expected


@pytest.mark.parametrize(
    ("cls", "text", "message"),
    [
        (Tile, "tile-size=big", "option 'tile-size' wants a whole number, not 'big'"),
        (Tile, "scale=x", "option 'scale' wants a number, not 'x'"),
        (Tile, "strict=maybe", "option 'strict' wants true or false, not 'maybe'"),
        (Tile, "tile_size=1", "test-passes-tile has no option 'tile_size'; it takes tile-size, scale, strict, layout"),
        (Needs, "", "test-passes-needs needs the option 'target'"),
    ],
)
def test_refuses_options(cls, text, message):
    with pytest.raises(ValueError, match="^" + message):
        cls.from_options(text)


def test_is_equal_with_its_options_and_cannot_change():
    assert Tile(3) == Tile(tile_size=3) != Tile(4)
    assert len({Tile(3), Tile(3), Needs("a"), Needs("a"), Needs("b")}) == 3
    assert repr(Needs("a")) == "Needs(target='a')"
    for one in (Tile(), Needs("a")):
        with pytest.raises(AttributeError, match="cannot assign to field 'name'"):
            one.name = "other"
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'target'"):
        Needs()


def test_prints_as_mlir_and_reads_back():
    one = Tile(tile_size=3, strict=True, layout='say "x" \\ y')
    text = str(one)
    assert text.startswith("test-passes-tile{tile-size=3 strict=true layout=")
    assert Tile.from_options(text.partition("{")[2].removesuffix("}")) == one
    assert str(Tile()) == "test-passes-tile"
    assert str(Needs(target="cpu")) == "test-passes-needs{target=cpu}"


def test_registering_twice_names_both_files(tmp_path):
    file = tmp_path / "other.py"
    file.write_text(
        "from stablehlo_py.core.passes import Pass\nclass Other(Pass):\n    '''x'''\n    name = 'test-passes-tile'\n"
    )
    spec = importlib.util.spec_from_file_location("other_file_of_passes", file)
    sys.modules[spec.name] = module = importlib.util.module_from_spec(spec)
    with pytest.raises(ValueError, match="registered twice") as caught:
        spec.loader.exec_module(module)
    assert str(file) in str(caught.value)
    assert __file__ in str(caught.value)
    assert PASSES["test-passes-tile"] is Tile


def test_names_are_in_kebab_case():
    with pytest.raises(ValueError, match="'Not_Kebab' is not in kebab-case"):
        type("Bad", (Pass,), {"name": "Not_Kebab"})


def test_names_of_upstream_passes_are_taken():
    with pytest.raises(ValueError, match="'cse' is the name of a C\\+\\+ pass"):
        type("Bad", (Pass,), {"name": "cse"})


def test_option_types_are_the_four():
    cls = dataclass(frozen=True)(
        type("Listy", (Pass,), {"name": "test-passes-listy", "__annotations__": {"sizes": "list[int]"}})
    )
    with pytest.raises(TypeError, match=r"option sizes of pass test-passes-listy is list\[int\]"):
        cls.options()


def test_a_pass_is_found_by_the_stem_of_its_file(monkeypatch):
    assert find_pass("no-such-pass-anywhere") is None
    known = find_pass("hlo-to-linalg")
    assert known is not None and known.__module__ == "stablehlo_py.transforms.kernels.hlo_to_linalg"


def test_homes_that_are_not_there_hold_no_passes():
    assert passes.modules_under("stablehlo_py.nonesuch") == []


def test_a_broken_module_hides_no_other_pass(monkeypatch):
    monkeypatch.setattr(passes, "_modules", lambda: ("stablehlo_py.transforms.nonesuch",))
    monkeypatch.setattr(passes, "BROKEN", broken := {})
    assert "test-passes-tile" in load_all_passes()
    assert list(broken) == ["stablehlo_py.transforms.nonesuch"]
    assert broken["stablehlo_py.transforms.nonesuch"].startswith("ModuleNotFoundError: ")


def test_no_module_of_ours_is_broken():
    load_all_passes()
    assert passes.BROKEN == {}


OURS = [cls for cls in load_all_passes().values() if cls.__module__.startswith("stablehlo_py.")]


@pytest.mark.parametrize("cls", OURS, ids=lambda cls: cls.name)
def test_our_passes_are_as_the_house_wants_them(cls):
    assert cls.summary() and cls.summary()[0].isupper(), "the docstring's first line is the summary"
    assert inspect.isclass(cls) and cls.__dataclass_params__.frozen
    assert all(option.name == option.name.lower() for option in cls.options())
    assert cls.name not in upstream.passes()
    assert cls.__module__.rpartition(".")[2] == cls.name.replace("-", "_"), "the file's stem is the pass's name"


def test_passes_wait_for_what_they_are_for():
    """Tables say of passes that are not imported what their classes say."""
    load_all_passes()
    assert len(passes._NEEDS) > 10
    for name, needs in passes._NEEDS.items():
        assert set(needs) == set(PASSES[name].only_with), name
        assert passes.waits_for(name) == ()


def test_a_pass_waits_until_it_is_imported(monkeypatch):
    monkeypatch.setattr(passes, "_NEEDS", {})
    passes.wait_for({"test-passes-later": "a.one b.two", "test-passes-tile": "a.one"})
    assert passes.waits_for("test-passes-later") == ("a.one", "b.two")
    assert passes.waits_for("test-passes-tile") == ()
    assert passes.waits_for("test-passes-never") == ()
