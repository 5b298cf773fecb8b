"""The modules of a room that others import."""

import re
from importlib import import_module
from pathlib import Path
from typing import Final

import pytest

import tpucfg

PACKAGE: Final = Path(tpucfg.__file__).parent
ROOMS: Final = ("changes", "git", "render", "review")
"""Rooms whose modules are imported by their names; the others show in `__init__` what they offer."""
_NAME: Final = re.compile(r"`([a-z_]+)`")


@pytest.mark.parametrize("room", ROOMS)
def test_other_rooms_import_what_the_room_shows(room: str) -> None:
    """Other rooms import the modules that the room's docstring names, and it names no others."""
    others = [path for path in PACKAGE.rglob("*.py") if PACKAGE / room not in path.parents]
    imported = {name for path in others for name in re.findall(rf"tpucfg\.{room}\.([a-z_]+)", path.read_text())}

    modules = {path.stem for path in (PACKAGE / room).glob("*.py")}
    named = {*_NAME.findall(import_module(f"tpucfg.{room}").__doc__ or "")} & modules
    assert named == imported
