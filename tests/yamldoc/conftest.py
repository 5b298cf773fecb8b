"""The two parsers that the reader can stand on."""

import pytest
import yaml

from tpucfg.yamldoc import parser as events


@pytest.fixture(params=["libyaml", "PyYAML"])
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Either parser: libyaml's, and the one in Python that stands in where PyYAML was built without it."""
    if request.param == "PyYAML":
        monkeypatch.setattr(yaml, "__with_libyaml__", False)
        monkeypatch.setattr(events, "_Parser", events._event_parser())  # noqa: SLF001 - chosen once, when the module is imported
    return str(request.param)
