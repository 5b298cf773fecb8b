"""The spec, tpucfg.yaml: parsing, rules, and the resulting immutable values."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tpucfg.spec.layers import (
    LAYERED,
    Layered,
    deletion_help,
    layer_scope,
    layers_of,
    present_layers,
    takes_away,
)
from tpucfg.spec.project import (
    Cluster,
    Environment,
    Gate,
    Number,
    Override,
    Prices,
    Probe,
    Project,
    Training,
)
from tpucfg.spec.settings import (
    PRESET,
    Capacity,
    CapacityKind,
    Duration,
    FitStep,
    Mount,
    Secret,
    Settings,
    Trainer,
)

SPEC_NAME: Final = "tpucfg.yaml"
"""The spec that commands read without --spec. A file of this name in a repository is a spec."""


def command_words(
    name: str, *specs: str | Path, **options: str | Sequence[str] | None
) -> list[str]:
    """Return a tpucfg command about specs, with the options that have a value, once for each of several values."""
    paths = [str(spec) for spec in specs]
    given = {"spec": () if paths == [SPEC_NAME] else paths, **options}
    values = {
        option: [value] if isinstance(value, str) else value
        for option, value in given.items()
        if value
    }
    return [
        "tpucfg",
        name,
        *(word for option in values for value in values[option] for word in (f"--{option}", value)),
    ]


__all__ = [
    "LAYERED",
    "PRESET",
    "SPEC_NAME",
    "Capacity",
    "CapacityKind",
    "Cluster",
    "Duration",
    "Environment",
    "FitStep",
    "Gate",
    "Layered",
    "Mount",
    "Number",
    "Override",
    "Prices",
    "Probe",
    "Project",
    "Secret",
    "Settings",
    "Trainer",
    "Training",
    "command_words",
    "deletion_help",
    "layer_scope",
    "layers_of",
    "present_layers",
    "takes_away",
]
