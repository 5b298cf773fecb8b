"""jinja2 as this project uses it, for configs and for the scripts inside them."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from tpucfg.package_data import data_folder

if TYPE_CHECKING:
    from pathlib import Path

    from jinja2 import BaseLoader, Environment


def environment(**filters: Callable[..., str]) -> "Environment":
    """An engine that lets no undefined name pass, reads no file outside templates/ and escapes nothing by itself.

    A value is quoted by a filter for what surrounds it: `comment` and `sh` here, those of the caller besides.
    """
    from jinja2 import Environment, StrictUndefined

    made = Environment(
        loader=_loader(data_folder("templates")),
        undefined=StrictUndefined,
        autoescape=False,  # noqa: S701 - the output is YAML or a shell script, not HTML: the filters quote
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,  # a template does not change while a command runs
    )
    made.globals.clear()  # jinja2's own functions: no template uses them, and every rendering would copy them
    made.filters.update(comment=comment, counted=counted, sh=shell_word, **filters)
    return made


def _loader(templates: "Path") -> "BaseLoader":
    from jinja2 import ChoiceLoader, FileSystemLoader, ModuleLoader

    compiled, written = templates / compiled_for(), FileSystemLoader(templates)
    return ChoiceLoader([ModuleLoader(compiled), written]) if compiled.is_dir() else written


def compiled_for() -> str:
    """The folder in templates/ where a wheel has its templates as Python modules, made by this version of jinja2."""
    import jinja2

    return f"compiled-{jinja2.__version__}"


def comment(value: object) -> str:
    """A value inside a comment: on one line, so that it cannot end the comment."""
    text = str(value)
    return text if text.isprintable() else "".join(char if char.isprintable() else "?" for char in text)


def counted(number: int, noun: str) -> str:
    """`1 host`, `4 hosts`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def shell_word(value: str) -> str:
    """A value as one word of a shell's command line, to the letter."""
    from shlex import quote

    return quote(value)
