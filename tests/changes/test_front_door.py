"""The modules of the room that others import."""

import re
from pathlib import Path
from typing import Final

import tpucfg.changes

ROOM: Final = Path(tpucfg.changes.__file__).parent
_NAME: Final = re.compile(r"`([a-z_]+)`")
_IMPORT: Final = re.compile(r"tpucfg\.changes\.([a-z_]+)")


def test_other_rooms_import_what_the_room_shows() -> None:
    """Other rooms import the modules that the room's docstring names, and it names no others."""
    others = [path for path in ROOM.parent.rglob("*.py") if ROOM not in path.parents]
    imported = {name for path in others for name in _IMPORT.findall(path.read_text())}

    assert {*_NAME.findall(tpucfg.changes.__doc__ or "")} == imported
