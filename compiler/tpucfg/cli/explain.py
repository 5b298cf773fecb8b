"""`tpucfg explain`."""

import sys
from typing import Annotated

import typer

from tpucfg.cli.exit_codes import USAGE, CommandExit
from tpucfg.findings import RULES, Rule
from tpucfg.package_data import data_folder
from tpucfg.text_format import printable


def _complete_id(incomplete: str) -> list[str]:
    return [id_ for id_ in RULES if id_.startswith(incomplete.upper())]


def explain(
    id: Annotated[
        str | None,
        typer.Argument(
            metavar="[ID]", help="A finding's id: TPU021. Without one, all are listed.", autocompletion=_complete_id
        ),
    ] = None,
) -> None:
    """Print a finding's page: what it means, an example, how to fix it, and when to allow it.

    Example: tpucfg explain TPU021
    """
    if id is None:
        print("\n".join(_listed()))
    else:
        sys.stdout.write(page(_rule(id)))


def page(rule: Rule) -> str:
    """The page as people read it, without the marks of the script that keeps its examples true."""
    text = (data_folder("docs/findings") / f"{rule.id}.md").read_text(encoding="utf-8")
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("<!-- "))


def _rule(id_: str) -> Rule:
    """The rule of that id, which may be written in lower case, or as its number alone."""
    number = id_.upper().removeprefix("TPU")
    written = f"TPU{int(number):03}" if number.isascii() and number.isdigit() and len(number) <= 3 else id_.upper()  # noqa: PLR2004 - as many digits as an id has
    if written in RULES:
        return RULES[written]
    alike = [known for known in RULES if known.startswith(written[: len("TPU0")])]
    near = max(alike, key=lambda known: sum(a == b for a, b in zip(known, written, strict=False)), default=None)
    hint = f"did you mean {near}? " if near and len(written) > len("TPU") else ""
    raise CommandExit(USAGE, f"there is no finding {printable(id_)}", f"{hint}all are listed by: tpucfg explain")


def _listed() -> list[str]:
    widest = max(len(rule.level) for rule in RULES.values())
    return [
        f"{rule.id}  {rule.level:<{widest}}  {rule.title}{' (can be allowed)' if rule.allowable else ''}"
        for rule in RULES.values()
    ]
