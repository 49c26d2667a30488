"""Files that come with the package are found by name, and nothing else is."""

from __future__ import annotations

import pytest

from stablehlo_py.errors import BadInput
from stablehlo_py.resources import dialect_path, names, native_library, pipeline_path


def test_pipelines_and_dialects_are_found_with_and_without_suffix():
    assert pipeline_path("cpu") == pipeline_path("cpu.pipeline")
    assert "stage" in pipeline_path("cpu").read_text()
    assert "irdl.dialect" in dialect_path("mxu.irdl").read_text()
    assert {"cpu", "gpu", "tpu"} <= set(names("pipelines", ".pipeline"))


@pytest.mark.parametrize("name", ["cpux", "../pyproject", "../pipelines/../Makefile", "", "."])
def test_an_unknown_name_is_an_error_that_lists_the_known(name):
    with pytest.raises(BadInput, match=r"known are .*cpu, gpu, tpu"):
        pipeline_path(name)


def test_a_library_that_was_not_built_is_none():
    assert native_library("no_such_thing") is None
