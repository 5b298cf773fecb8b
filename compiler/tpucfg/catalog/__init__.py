"""The catalog of TPU sizes: sourced data, and a loader.

The facts are in `data/`, one file per generation. A new size or generation is added only there: no code contains the
name of a size.
"""

from tpucfg.catalog.catalog import Catalog
from tpucfg.catalog.slices import Generation, Machine, Slice, Source, Zone
from tpucfg.catalog.target_facts import TARGET_FACTS, SizeRefusal

__all__ = [
    "TARGET_FACTS",
    "Catalog",
    "Generation",
    "Machine",
    "SizeRefusal",
    "Slice",
    "Source",
    "Zone",
]
