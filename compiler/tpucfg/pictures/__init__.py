"""Pictures of the ladder: rungs to charts, charts to one SVG or one HTML page. Pure: nothing here touches a file."""

from tpucfg.pictures.page import Section, page
from tpucfg.pictures.speed import Measured
from tpucfg.pictures.story import story
from tpucfg.pictures.svg import picture

__all__ = ["Measured", "Section", "page", "picture", "story"]
