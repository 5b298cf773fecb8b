"""What the wheel has ready, so that no start parses it again: templates as Python modules, the catalogue as JSON.

The templates' folder is named after the version of jinja2 that made it, and is read by that version alone: with any
other, the templates themselves are. The build runs this as a hook.
"""

import json
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

import yaml
from hatchling.builders.hooks.plugin.interface import BuildHookInterface


def prepare(root: Path, into: Path) -> None:
    """Makes it, below `into` as it will be in the package.

    Args:
        root: of the checkout.
        into: a folder.
    """
    sys.path.insert(0, str(root / "compiler"))
    _compile_templates(into / "templates")
    _read_catalogue(root / "compiler" / "tpucfg" / "catalog" / "data", into / "catalog" / "data")


def _compile_templates(into: Path) -> None:
    """Those of the targets, by the engine that will render them: its filters are part of what is made."""
    wanted = {*import_module("tpucfg.targets").TARGETS, "config.yaml.j2"}
    import_module("tpucfg.render.pipeline").config_environment().compile_templates(
        into / import_module("tpucfg.templating").compiled_for(),
        filter_func=lambda name: name.partition("/")[0] in wanted,
        zip=None,
        ignore_errors=False,
    )


def _read_catalogue(data: Path, into: Path) -> None:
    into.mkdir(parents=True)
    for path in sorted(data.glob("*.yaml")):
        read = yaml.safe_load(path.read_bytes())
        (into / f"{path.stem}.json").write_text(json.dumps(read, separators=(",", ":")), encoding="utf-8")


class Prepared(BuildHookInterface):  # type: ignore[type-arg] # of a builder's configuration, which is not used
    """Puts it into the wheel, and not into an editable install, whose templates and data may change at any time."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make it in a folder of its own, as a checkout is left as it was."""
        if version != "editable":
            self._made = tempfile.TemporaryDirectory()
            prepare(Path(self.root), Path(self._made.name))
            build_data["force_include"][self._made.name] = "tpucfg"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002 - the hook's interface
        """Take away what the wheel has by now."""
        if version != "editable":
            self._made.cleanup()
