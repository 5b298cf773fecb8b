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
from tpucfg.cli.exit_codes import DIFFERENT, ERRORS, USAGE, CommandExit
from tpucfg.cli.load_spec import print_findings
from tpucfg.cli.options import (
    SPEC,
    EnvOption,
    RunOption,
    SizeOption,
    SpecsOption,
    TargetOption,
    format_option,
    output_folder,
    require_choice,
    selection,
)
from tpucfg.findings import errors
from tpucfg.parallel import LostWorkerError, parallel_map
from tpucfg.plan import Selection, SelectionError
from tpucfg.render.pipeline import Format, RenderedSpec, render_spec
from tpucfg.text_format import listed, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tpucfg.render.output_dir import FileChange


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
            parser=output_folder,
        ),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="With --out: write nothing, exit 3 where a file would change.")
    ] = False,
    prune: Annotated[
        bool, typer.Option("--prune", help="With --out: remove the configs that no job of these specs makes.")
    ] = False,
    format: Annotated[
        str, format_option("yaml|json", "How to print or write; as JSON, parallel_map job is a document.")
    ] = "yaml",
) -> None:
    """Print or write the configs of the selected jobs, each checked before anything is written.

    Example: tpucfg render --env prod --size v3-32
    """
    require_choice(format, ("yaml", "json"), "--format")
    if out is None and (check or prune):
        raise CommandExit(USAGE, f"--{'check' if check else 'prune'} goes with --out")
    made = _made(spec or [SPEC], selection(env, size, target, run), "json" if format == "json" else "yaml")
    if out is None:
        sys.stdout.write(("---\n" if format == "yaml" else "").join(text for one in made for _, text in one.configs))
    else:
        _write(made, out, check=check, prune=prune)


def _made(specs: list[Path], chosen: Selection, format_: Format) -> list[RenderedSpec]:
    """What became of each spec; the errors and warnings are said as they come, of all specs before an error ends it."""
    from tpucfg.cli.progress import progress

    made = []
    work = partial(render_spec, catalog=Catalog(), selection=chosen, format_=format_)
    try:
        with closing(parallel_map(work, specs)) as each_made, progress("rendering", len(specs)) as step:
            for one in each_made:
                print_findings(one.findings, {one.spec: one.text})
                made.append(one)
                step()
    except SelectionError as error:
        raise CommandExit(USAGE, str(error)) from None
    except LostWorkerError:
        message = "a process that rendered was ended by somebody else, and nothing was written"
        raise CommandExit(ERRORS, message, "where the machine is short of memory, render fewer specs at once") from None
    if any(errors(one.findings) for one in made):
        raise CommandExit(ERRORS)
    return made


def _write(made: list[RenderedSpec], out: Path, *, check: bool, prune: bool) -> None:
    from tpucfg.render import output_dir as tree

    folders = _folders(made)
    files = {folder + path: text for one, folder in zip(made, folders, strict=True) for path, text in one.configs}
    try:
        changes = tree.compare_files(out, files)
        if prune or check:
            wanted = (folder + path for one, folder in zip(made, folders, strict=True) for path in one.jobs)
            changes += tree.stale_files(out, folders, wanted)
        if not check:
            tree.apply_changes(out, changes, files)
    except tree.OutputError as error:
        raise CommandExit(ERRORS, str(error), error.help) from None
    _say_changes(changes, out, len(files))
    if check and changes:
        prune_too = " --prune" if any(change.kind == "remove" for change in changes) else ""
        raise CommandExit(DIFFERENT, help=f"write them with: tpucfg render --out {shlex.quote(str(out))}{prune_too}")


def _folders(made: list[RenderedSpec]) -> list[str]:
    """With several specs, a folder for each project: what the paths of its configs begin with."""
    if len(made) == 1:
        return [""]
    names = [one.project for one in made]
    for name, count in Counter(names).items():
        if count > 1:
            same = listed([one.spec for one in made if one.project == name])
            message = f"{count} of the specs are called {name}, so they would write the same files: {printable(same)}"
            raise CommandExit(
                USAGE, message, "change the name in one of them, or render them into folders of their own"
            )
    return [f"{name}/" for name in names]


def _say_changes(changes: "Sequence[FileChange]", out: Path, total: int) -> None:
    below = "" if out == Path() else f"{out}/"
    sys.stdout.write("".join(f"{change.kind} {below}{change.path}\n" for change in changes))
    sys.stdout.flush()  # what sums it up comes after it, wherever both go
    same = total - sum(change.kind != "remove" for change in changes)
    print(f"{total} config{'s' if total != 1 else ''}, {same} unchanged", file=sys.stderr)
