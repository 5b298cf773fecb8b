"""`tpucfg diff`."""

import sys
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from tpucfg.catalog import Catalog
from tpucfg.cli.exit_codes import DIFFERENT, ERRORS, USAGE, CommandExit
from tpucfg.cli.load_spec import print_findings
from tpucfg.cli.options import (
    SPEC,
    EnvOption,
    SizeOption,
    SpecOption,
    TargetOption,
    format_option,
    require_choice,
    selection,
)
from tpucfg.diff.change import Difference
from tpucfg.diff.config_diff import config_difference
from tpucfg.findings import errors
from tpucfg.fs import is_directory
from tpucfg.plan import SelectionError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tpucfg.diff.compiled_revisions import CompiledRevision
    from tpucfg.git.snapshots import CompareRequest
    from tpucfg.plan import Selection


def diff(
    base: Annotated[
        str, typer.Argument(metavar="[BASE]", help="A git revision, or a folder of configs.", show_default=False)
    ] = "HEAD",
    head: Annotated[
        str | None,
        typer.Argument(metavar="[HEAD]", help="Likewise. [default: the working tree]", show_default=False),
    ] = None,
    spec: SpecOption = SPEC,
    env: EnvOption = None,
    size: SizeOption = None,
    target: TargetOption = None,
    format: Annotated[str, format_option("text|json|markdown")] = "text",
    exit_code: Annotated[bool, typer.Option("--exit-code", help="Exit 3 where there are differences.")] = False,
) -> None:
    """Print what changed in the configs between two revisions, by meaning: flags by name, the same change once.

    Both sides are made by this version of tpucfg. Without arguments HEAD is compared with the working tree; with one,
    that revision is. Two folders that exist are compared as they are, as `render --out` writes them, or any YAML and
    JSON files: they come before revisions of the same names.
    Values under names like api_key or password, tokens and people's addresses are not shown.

    Example: tpucfg diff main --env prod
    """
    require_choice(format, tuple(_FORMATS), "--format")
    if head is not None and is_directory(Path(base)) and is_directory(Path(head)):
        found = _of_folders(Path(base), Path(head))
    else:
        found = _of_revisions(base, head, spec, selection(env, size, target))
    from tpucfg.diff.change import redact_difference

    print(_FORMATS[format](redact_difference(found)))
    if exit_code and found:
        sys.stdout.flush()
        raise CommandExit(DIFFERENT)


def _of_folders(base: Path, head: Path) -> Difference:
    from tpucfg.diff.config_folder import read_folder

    before, after = read_folder(base), read_folder(head)
    if found := (*before.findings, *after.findings):
        print_findings(found, before.sources | after.sources)
        raise CommandExit(ERRORS)
    return config_difference(before.configs, after.configs)


def _of_revisions(base: str, head: str | None, spec: Path, chosen: "Selection") -> Difference:
    from tpucfg.git.snapshots import CompareRequest

    with compiled_sides(CompareRequest(base, head, spec, whole=False), chosen) as (before, after):
        stops = [made for made in (before, after) if made.is_broken]
        for made in stops:
            print(f"tpucfg: {made.snapshot.title} cannot be compared:", file=sys.stderr)
            print_findings(errors(made.findings), {made.snapshot.shown: made.text})
        if stops:
            raise CommandExit(ERRORS)
        return config_difference(before.configs, after.configs)


@contextmanager
def compiled_sides(
    asked: "CompareRequest", chosen: "Selection"
) -> "Iterator[tuple[CompiledRevision, CompiledRevision]]":
    """Both sides of a comparison, compiled.

    Raises:
        Stop: A revision cannot be read, or neither side has what is selected.
    """
    from tpucfg.diff.compiled_revisions import compile_revisions
    from tpucfg.git.repository import RevisionError
    from tpucfg.git.snapshots import open_snapshots

    try:
        with open_snapshots(asked) as sides:
            yield compile_revisions(sides, Catalog(), chosen)
    except RevisionError as error:
        raise CommandExit(ERRORS, str(error), error.help) from None
    except SelectionError as error:
        raise CommandExit(USAGE, str(error)) from None


def _text(found: Difference) -> str:
    from tpucfg.diff.describe import text_lines

    return "\n".join(text_lines(found))


def _json(found: Difference) -> str:
    from tpucfg.diff.describe import json_data, print_json

    return print_json(json_data(found))


def _markdown(found: Difference) -> str:
    from tpucfg.review.markdown.sections import whole_difference

    return whole_difference(found)


_FORMATS: Final[Mapping[str, Callable[[Difference], str]]] = {"text": _text, "json": _json, "markdown": _markdown}
