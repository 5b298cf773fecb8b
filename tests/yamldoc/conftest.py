"""A fixture that runs a test with each of the two YAML parsers."""

import pytest
import yaml

from tpucfg.yamldoc import parser as parser_module


@pytest.fixture(params=["libyaml", "PyYAML"])
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Select libyaml's parser, or PyYAML's own, which is used if PyYAML was built without libyaml."""
    if request.param == "PyYAML":
        monkeypatch.setattr(yaml, "__with_libyaml__", False)
        selected = parser_module._event_parser()  # noqa: SLF001 - selected once, when the module is imported
        monkeypatch.setattr(parser_module, "_Parser", selected)
    return str(request.param)
