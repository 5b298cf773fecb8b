"""The command `tpucfg schema`."""

import sys
from typing import Annotated

import typer

from tpucfg.package_data import data_folder
from tpucfg.refusal import UsageError
from tpucfg.text_format import suggestion


def schema(
    name: Annotated[
        str,
        typer.Argument(
            metavar="[NAME]",
            help="tpucfg, record, fit, stack, catalog, or a target.",
            show_default=False,
        ),
    ] = "tpucfg",
) -> None:
    """Print a JSON Schema: of the spec, a record, a fit, a stack file, the catalog, or a target's request body.

    Example: tpucfg schema > tpucfg.schema.json
    """
    folder = data_folder("schema")
    names = sorted(path.name.removesuffix(".schema.json") for path in folder.glob("*.schema.json"))
    if name not in names:
        raise UsageError(
            f"there is no schema {name}",
            suggestion(name, names, f"give one of: {', '.join(names)}"),
        )
    sys.stdout.write((folder / f"{name}.schema.json").read_text(encoding="utf-8"))
