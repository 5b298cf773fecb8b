"""`tpucfg schema`."""

import sys
from typing import Annotated

import typer

from tpucfg.cli.exits import USAGE, Stop
from tpucfg.resources import folder
from tpucfg.wording import nearest


def schema(
    name: Annotated[
        str,
        typer.Argument(
            metavar="[NAME]",
            help="tpucfg (the spec's), record, stack, catalog, or a target's name.",
            show_default=False,
        ),
    ] = "tpucfg",
) -> None:
    """Print a JSON Schema: of the spec, of a record, a stack file, the catalogue, or a target's API message.

    Example: tpucfg schema > tpucfg.schema.json
    """
    names = sorted(path.name.removesuffix(".schema.json") for path in folder("schema").glob("*.schema.json"))
    if name not in names:
        near = nearest(name, names)
        hint = f"did you mean {near}?" if near else f"there are: {', '.join(names)}"
        raise Stop(USAGE, f"there is no schema {name}", hint)
    sys.stdout.write((folder("schema") / f"{name}.schema.json").read_text(encoding="utf-8"))
