"""`tpucfg render`."""

import shlex
import sys
from collections import Counter
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tpucfg.catalog import Catalog
from tpucfg.cli.exits import DIFFERENT, ERRORS, USAGE, Stop
from tpucfg.cli.options import (
    SPEC,
    EnvOption,
    RunOption,
    SizeOption,
    SpecsOption,
    TargetOption,
    choice,
    folder_named,
    format_option,
    selection,
)
from tpucfg.cli.workspace import say
from tpucfg.config.rendered import Format, Rendered, rendered
from tpucfg.findings import errors
from tpucfg.plan import Selection, SelectionError
from tpucfg.processes import LostProcessError, each
from tpucfg.wording import listed, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tpucfg.config.tree import Change


def render(
    spec: SpecsOption = None,
    env: EnvOption = None,
    size: SizeOption = None,
    target: TargetOption = None,
    run: RunOption = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Write DIR/<env>/<size>/config.yaml; of several specs, below DIR/<name>/.",
            parser=folder_named,
        ),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="With --out: write nothing, exit 3 where a file would change.")
    ] = False,
    prune: Annotated[
        bool, typer.Option("--prune", help="With --out: remove the configs that no job of these specs makes.")
    ] = False,
    format: Annotated[
        str, format_option("yaml|json", "How to print or write; as JSON, each job is a document.")
    ] = "yaml",
) -> None:
    """Print or write the configs of the selected jobs, each checked before anything is written.

    Example: tpucfg render --env prod --size v3-32
    """
    choice(format, ("yaml", "json"), "--format")
    if out is None and (check or prune):
        raise Stop(USAGE, f"--{'check' if check else 'prune'} goes with --out")
    made = _made(spec or [SPEC], selection(env, size, target, run), "json" if format == "json" else "yaml")
    if out is None:
        sys.stdout.write(("---\n" if format == "yaml" else "").join(text for one in made for _, text in one.configs))
    else:
        _write(made, out, check=check, prune=prune)


def _made(specs: list[Path], chosen: Selection, format_: Format) -> list[Rendered]:
    """What became of each spec; the errors and warnings are said as they come, of all specs before an error ends it."""
    from tpucfg.cli.progress import progress

    made = []
    work = partial(rendered, catalog=Catalog(), selection=chosen, format_=format_)
    try:
        with closing(each(work, specs)) as each_made, progress("rendering", len(specs)) as step:
            for one in each_made:
                say(one.findings, {one.spec: one.text})
                made.append(one)
                step()
    except SelectionError as error:
        raise Stop(USAGE, str(error)) from None
    except LostProcessError:
        message = "a process that rendered was ended by somebody else, and nothing was written"
        raise Stop(ERRORS, message, "where the machine is short of memory, render fewer specs at once") from None
    if any(errors(one.findings) for one in made):
        raise Stop(ERRORS)
    return made


def _write(made: list[Rendered], out: Path, *, check: bool, prune: bool) -> None:
    from tpucfg.config import tree

    folders = _folders(made)
    files = {folder + path: text for one, folder in zip(made, folders, strict=True) for path, text in one.configs}
    try:
        changes = tree.compare(out, files)
        if prune or check:
            wanted = (folder + path for one, folder in zip(made, folders, strict=True) for path in one.jobs)
            changes += tree.stale(out, folders, wanted)
        if not check:
            tree.apply(out, changes, files)
    except tree.TreeError as error:
        raise Stop(ERRORS, str(error), error.help) from None
    _say_changes(changes, out, len(files))
    if check and changes:
        prune_too = " --prune" if any(change.kind == "remove" for change in changes) else ""
        raise Stop(DIFFERENT, help=f"write them with: tpucfg render --out {shlex.quote(str(out))}{prune_too}")


def _folders(made: list[Rendered]) -> list[str]:
    """With several specs, a folder for each project: what the paths of its configs begin with."""
    if len(made) == 1:
        return [""]
    names = [one.project for one in made]
    for name, count in Counter(names).items():
        if count > 1:
            same = listed([one.spec for one in made if one.project == name])
            message = f"{count} of the specs are called {name}, so they would write the same files: {printable(same)}"
            raise Stop(USAGE, message, "change the name in one of them, or render them into folders of their own")
    return [f"{name}/" for name in names]


def _say_changes(changes: "Sequence[Change]", out: Path, total: int) -> None:
    below = "" if out == Path() else f"{out}/"
    sys.stdout.write("".join(f"{change.kind} {below}{change.path}\n" for change in changes))
    sys.stdout.flush()  # what sums it up comes after it, wherever both go
    same = total - sum(change.kind != "remove" for change in changes)
    print(f"{total} config{'s' if total != 1 else ''}, {same} unchanged", file=sys.stderr)
