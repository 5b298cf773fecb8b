"""The spec, tpucfg.yaml: parsing, rules, and the resulting immutable values."""

from typing import Final

SPEC_NAME: Final = "tpucfg.yaml"
"""The spec that commands read without --spec. A file of this name in a repository is a spec."""
