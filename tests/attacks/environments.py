"""Attacks on environments: their protection, their location, and their removal."""

from typing import Final

from attacks.attack import Attack, edit, together

PROTECT: Final = (
    "    protect: true                # Pulumi refuses to delete or replace resources with data\n"
)

ATTACKS: Final = (
    Attack(
        "protection-lifted", edit("tpucfg.yaml", (PROTECT, "")), ("**prod**: protection lifted",)
    ),
    Attack(
        "protection-lifted-while-the-program-fails",
        together(
            edit("tpucfg.yaml", (PROTECT, "")),
            edit("stacks/__main__.py", ("import pulumi\n", "import pulumi\nraise SystemExit(0)\n")),
        ),
        ("**prod**: protection lifted", "changes to resources are unknown"),
    ),
)
