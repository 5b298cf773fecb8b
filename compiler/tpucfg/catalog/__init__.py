"""The catalog of TPU sizes: sourced data, and a loader.

The facts are in `data/`, one file per generation. A size or a generation is added there: no code knows a size by name.
"""

from tpucfg.catalog.catalog import Catalog
from tpucfg.catalog.slices import Generation, Machine, Refusal, Slice, Source, Zone

__all__ = ["Catalog", "Generation", "Machine", "Refusal", "Slice", "Source", "Zone"]
