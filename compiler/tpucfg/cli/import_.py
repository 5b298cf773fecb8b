"""The command `tpucfg import`, in a module whose name is no keyword."""

import re
import sys
from pathlib import Path
from typing import Annotated

from tpucfg.catalog import Catalog
from tpucfg.cli.exit_codes import ERRORS, CommandExit
from tpucfg.cli.load_spec import print_findings
from tpucfg.cli.options import argument, environment_name_form, option
from tpucfg.findings import errors
from tpucfg.redaction import redact
from tpucfg.refusal import UsageError
from tpucfg.text_format import dotted, format_count, format_value, printable


def import_(
    file: Annotated[Path, argument("FILE", "The config, as YAML or JSON.")],
    env: Annotated[str, option("--env NAME", "The name of the environment.")] = "dev",
    project: Annotated[
        str | None, option("--project ID", "The Google project, if the file names none.")
    ] = None,
    region: Annotated[
        str | None, option("--region REGION", "The region, if the file names none.")
    ] = None,
    batch_size: Annotated[
        int | None, option("--batch-size", "The global batch, if the file has none.", min=1)
    ] = None,
    train_steps: Annotated[
        int | None, option("--train-steps", "The steps, if the file has none.", min=1)
    ] = None,
) -> None:
    """Print the spec of a JobSet, a Vertex AI custom job or a queued resource.

    The spec has a ladder of one rung, and its config was compared with the file. What it lacks is `null  # fill in`;
    what was not carried over is listed on stderr. The exit status is 1 if there is either.

    Example: tpucfg import jobset.yaml --project my-project-dev --region us-east5 > tpucfg.yaml
    """
    from tpucfg.importing import Given, import_config
    from tpucfg.spec.credentials import hidden_text
    from tpucfg.yamldoc.reader import read_file

    form = environment_name_form()
    if not re.fullmatch(form["pattern"], env):
        raise UsageError(
            f"--env is {format_value(env)}: {form['patternErrorMessage']}",
            "give another name: --env dev",
        )
    document = read_file(file, several=True)
    if document.root is None or errors(document.findings):
        print_findings(document.findings, {str(file): hidden_text(document)})
        raise CommandExit(ERRORS)
    imported = import_config(
        document, Given(env, project, region, batch_size, train_steps), Catalog()
    )
    sys.stdout.write(imported.text)
    if imported.notes:
        print(
            printable(f"{file}: {format_count(len(imported.notes), 'difference')} from the file"),
            file=sys.stderr,
        )
    for note in imported.notes:
        print(printable(f"  {redact(str(note))}"), file=sys.stderr)
    if imported.gaps:
        gaps = ", ".join(map(dotted, imported.gaps))
        print(printable(f"{file}: fill in {gaps}"), file=sys.stderr)
    if imported.notes or imported.gaps:
        raise CommandExit(ERRORS)
