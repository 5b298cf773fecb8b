"""The command `tpucfg diff`."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from tpucfg.changes.config_diff import (
    Difference,
    config_difference,
    read_folders,
    redact_difference,
)
from tpucfg.cli import options
from tpucfg.cli.exit_codes import DIFFERENT, ERRORS, CommandExit
from tpucfg.cli.load_spec import print_findings, require_none
from tpucfg.cli.options import SPEC, argument, format_option, option, selection
from tpucfg.findings import errors
from tpucfg.fs import is_directory
from tpucfg.plan import Selection
from tpucfg.refusal import UsageError
from tpucfg.text_format import json_text


def diff(
    base: Annotated[
        str | None, argument("[BASE]", "A git revision, or a folder of configs. [default: HEAD]")
    ] = None,
    head: Annotated[
        str | None, argument("[HEAD]", "Another one. [default: the working tree]")
    ] = None,
    spec: options.SpecOption = SPEC,
    env: options.EnvOption = None,
    size: options.SizeOption = None,
    target: options.TwoTargetsOption = None,
    format: Annotated[str, format_option("text|json|markdown")] = "text",
    exit_code: Annotated[bool, option("--exit-code", "Exit 3 if there are differences.")] = False,
) -> None:
    """Print how the configs differ between two revisions: flags by name, and each common change once.

    Both revisions are compiled by the installed version of tpucfg. The defaults compare HEAD with the working tree.
    Two existing folders are compared without git: the output of `render --out`, or any YAML and JSON files. A folder
    takes precedence over a revision of the same name. A job that moves to another target is compared by its figures,
    image, arguments, variables, secrets, mounts, capacity and account instead of its request body; --target given
    twice does this for the spec of the working tree, before anything is edited. Credentials and personal addresses are
    redacted.

    Example: tpucfg diff main --env prod
    """
    targets = tuple(target or ())
    if len(targets) > 1:
        _require_two_targets(targets, base)
        first, second = (selection(env, size, name) for name in targets)
        difference = _compare_targets(spec, first, second)
    elif (
        base is not None
        and head is not None
        and is_directory(Path(base))
        and is_directory(Path(head))
    ):
        difference = _compare_folders(Path(base), Path(head))
    else:
        difference = _compare_revisions(base or "HEAD", head, spec, selection(env, size, *targets))
    print(_shown(redact_difference(difference), format))
    if exit_code and difference:
        sys.stdout.flush()
        raise CommandExit(DIFFERENT)


def _compare_folders(base: Path, head: Path) -> Difference:
    folders = read_folders(base, head)
    require_none(folders.findings, folders.sources)
    return config_difference(folders.before, folders.after, folders.equal)


def _require_two_targets(targets: Sequence[str], base: str | None) -> None:
    if len(targets) > 2 or len({*targets}) < len(targets):  # noqa: PLR2004 - two sides of a comparison
        raise UsageError(
            f"--target {' --target '.join(targets)}: give one target, or two different ones"
        )
    if base is not None:
        raise UsageError(
            f"with two targets, the working tree is compared, not {base}", f"leave out {base}"
        )


def _compare_targets(spec: Path, first: Selection, second: Selection) -> Difference:
    from tpucfg.catalog import Catalog
    from tpucfg.changes.revision_facts import job_difference, own_settings
    from tpucfg.cli.load_spec import load_compiled

    catalog = Catalog()
    before, after = (load_compiled(spec, catalog, chosen)[1].jobs for chosen in (first, second))
    if settings := own_settings([*before, *after]):
        print(
            f"tpucfg: not compared, as one target reads them: {', '.join(settings)}",
            file=sys.stderr,
        )
    return job_difference(before, after)


def _compare_revisions(base: str, head: str | None, spec: Path, chosen: Selection) -> Difference:
    from tpucfg.changes.revision_facts import revision_difference
    from tpucfg.changes.revisions import open_compiled_revisions
    from tpucfg.git.snapshots import CompareRequest

    request = CompareRequest(base, head, spec, with_program=False)
    with open_compiled_revisions(request, chosen) as (before, after):
        broken = [revision for revision in (before, after) if revision.is_broken]
        for revision in broken:
            print(f"tpucfg: {revision.snapshot.title} cannot be compared:", file=sys.stderr)
            print_findings(
                errors(revision.findings), {revision.snapshot.display_path: revision.text}
            )
        if broken:
            raise CommandExit(ERRORS)
        return revision_difference(before, after)


def _shown(difference: Difference, format: str) -> str:
    if format == "markdown":
        from tpucfg.review.folds import difference_markdown

        return difference_markdown(difference)
    from tpucfg.changes.statements import difference_json, text_lines

    if format == "json":
        return json_text(difference_json(difference)).rstrip("\n")
    return "\n".join(text_lines(difference))
