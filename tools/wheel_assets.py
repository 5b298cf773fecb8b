"""Files that the wheel contains for faster start-up: templates as Python modules, and data in YAML as JSON.

The folder of the compiled templates is named after the version of jinja2, and only that version reads it; any other
version reads the templates themselves. The build runs this module as a hook.
"""

import json
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

import yaml
from hatchling.builders.hooks.plugin.interface import BuildHookInterface


def write_assets(root: Path, into: Path) -> None:
    """Write the files below `into`, with the package's folders.

    Args:
        root: the checkout.
        into: an empty folder.
    """
    sys.path.insert(0, str(root / "compiler"))
    _compile_templates(into / "templates")
    for folder in (Path("catalog", "data"), Path("fit")):
        _write_data(root / "compiler" / "tpucfg" / folder, into / folder)


def _compile_templates(into: Path) -> None:
    """Compile the targets' templates, in the environment that renders them: its filters are part of the code."""
    template_folders = {*import_module("tpucfg.targets").TARGETS, "config.yaml.j2", "hosts"}
    import_module("tpucfg.render.config").config_template_engine().compile_templates(
        into / import_module("tpucfg.package_data").compiled_folder(),
        filter_func=lambda name: name.partition("/")[0] in template_folders,
        zip=None,
        ignore_errors=False,
    )


def _write_data(data: Path, into: Path) -> None:
    into.mkdir(parents=True)
    for path in sorted(data.glob("*.yaml")):
        entries = yaml.safe_load(path.read_bytes())
        (into / f"{path.stem}.json").write_text(
            json.dumps(entries, separators=(",", ":")), encoding="utf-8"
        )


class WheelAssetsHook(BuildHookInterface):  # type: ignore[type-arg] # the builder's configuration is not used
    """Adds the files to the wheel, but not to an editable install, whose templates and data may change at any time."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the files into a temporary folder, so that the checkout is unchanged."""
        if version != "editable":
            self._folder = tempfile.TemporaryDirectory()
            write_assets(Path(self.root), Path(self._folder.name))
            build_data["force_include"][self._folder.name] = "tpucfg"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002 - the hook's interface
        """Remove the temporary folder after the build."""
        if version != "editable":
            self._folder.cleanup()
