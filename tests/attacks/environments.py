"""Attacks on environments: their protection, their location, and their removal."""

from typing import Final

from attacks.attack import Attack, before_deploy, edit, together

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
            before_deploy("raise SystemExit(0)"),
        ),
        ("**prod**: protection lifted", "changes to resources are unknown"),
    ),
)
