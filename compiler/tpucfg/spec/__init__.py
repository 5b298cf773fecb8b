"""The spec, tpucfg.yaml: parsing, rules, and the resulting immutable values."""

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
from tpucfg.spec.project import Cluster, Environment, Gate, Number, Override, Prices, Probe, Project, Training
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
    "deletion_help",
    "layer_scope",
    "layers_of",
    "present_layers",
    "takes_away",
]
