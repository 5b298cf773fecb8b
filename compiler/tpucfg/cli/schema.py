"""`tpucfg schema`."""

import sys
from typing import Annotated

import typer

from tpucfg.cli.exit_codes import USAGE, CommandExit
from tpucfg.package_data import data_folder
from tpucfg.text_format import nearest


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
    names = sorted(path.name.removesuffix(".schema.json") for path in data_folder("schema").glob("*.schema.json"))
    if name not in names:
        near = nearest(name, names)
        hint = f"did you mean {near}?" if near else f"there are: {', '.join(names)}"
        raise CommandExit(USAGE, f"there is no schema {name}", hint)
    sys.stdout.write((data_folder("schema") / f"{name}.schema.json").read_text(encoding="utf-8"))
