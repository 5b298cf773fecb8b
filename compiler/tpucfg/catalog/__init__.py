"""The catalogue of TPU sizes: data with its sources, and a small loader.

The facts live in `data/`, one file per generation. Adding a size or a generation is an edit there:
no code knows a size by name.
"""

from tpucfg.catalog.catalog import Catalog
from tpucfg.catalog.slices import Generation, Machine, Refusal, Slice, Source, Zone

__all__ = ["Catalog", "Generation", "Machine", "Refusal", "Slice", "Source", "Zone"]
