"""A fixture that runs a test with each of the two YAML parsers."""

import pytest
import yaml

from tpucfg.yamldoc import parser as parser_module


@pytest.fixture(params=["libyaml", "PyYAML"])
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Select libyaml's parser, or PyYAML's own, which is used if PyYAML was built without libyaml."""
    if request.param == "PyYAML":
        monkeypatch.setattr(parser_module, "_Parser", yaml.SafeLoader)
    return str(request.param)
