"""The data that the package reads: its folders, such as schema/, files in YAML, and templates.

A wheel contains the folders inside the package; in a checkout they are at its root.
"""

import json
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tpucfg.text_format import format_count, replace_invisible

if TYPE_CHECKING:
    from jinja2 import BaseLoader, Environment

_PACKAGE: Final = Path(__file__).parent
_CHECKOUT: Final = _PACKAGE.parent.parent


@cache
def data_folder(name: str) -> Path:
    """Return the path of a data folder: `schema` or `docs/findings`, for example."""
    packaged = _PACKAGE / name
    return packaged if packaged.is_dir() else _CHECKOUT / name


@cache
def read_data(path: Path) -> dict[str, Any]:
    """Read a data file, only once per process, because the data does not change while a command runs."""
    data: dict[str, Any]
    # A wheel contains the data as JSON, which is parsed many times faster than YAML.
    with suppress(FileNotFoundError):
        data = json.loads(path.with_suffix(".json").read_bytes())
        return data
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    data = yaml.load(path.read_bytes(), Loader=loader)  # noqa: S506  a safe loader, in C where there is one
    return data


# Templates, of configs, of the scripts inside them and of new projects.


def template_engine(**filters: Callable[..., str]) -> "Environment":
    """Return an engine that rejects undefined names and reads no file outside templates/.

    It does not escape values by itself: a filter quotes them, `comment`, `sh` or one of the caller's.
    """
    from jinja2 import Environment, StrictUndefined

    engine = Environment(
        loader=_loader(data_folder("templates")),
        undefined=StrictUndefined,
        autoescape=False,  # noqa: S701 - the output is YAML or a shell script, not HTML: the filters quote
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,  # a template does not change while a command runs
    )
    # No template uses jinja2's built-in functions, and each rendering would copy them.
    engine.globals.clear()
    engine.filters.update(comment=comment, format_count=format_count, sh=shell_word, **filters)
    return engine


def _loader(templates: Path) -> "BaseLoader":
    from jinja2 import ChoiceLoader, FileSystemLoader, ModuleLoader

    compiled, source = templates / compiled_folder(), FileSystemLoader(templates)
    return ChoiceLoader([ModuleLoader(compiled), source]) if compiled.is_dir() else source


def compiled_folder() -> str:
    """Return the folder in templates/ where a wheel has the templates, compiled by this version of jinja2."""
    import jinja2

    return f"compiled-{jinja2.__version__}"


def comment(value: object) -> str:
    """Return a value on one line, so that it cannot end the comment that contains it."""
    return replace_invisible(str(value), lambda _: "?")


def shell_word(value: str) -> str:
    """Return a value quoted as one word of a shell command."""
    from shlex import quote

    return quote(value)
