"""Create objects in order; if one cannot be created, delete those before it again."""

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from tpucfg.cli.exit_codes import ERRORS, CommandExit
from tpucfg.text_format import listed


class NotCreatedError(CommandExit):
    """Raised for an object that does not exist, or that another command has created."""


class Undoable(NamedTuple):
    """An object, and its creation and deletion."""

    name: str
    deletion: str
    """The command that deletes it, to copy."""
    create: Callable[[], None]
    """Raises NotCreatedError if nothing was created; CommandExit if something may have been."""
    delete: Callable[[], tuple[bool, str]]
    """Returns True if the object is gone for good, and the result as a clause."""
    charge: str = ""
    """What the object costs while it exists, as a clause."""


def create_in_order(objects: Sequence[Undoable]) -> None:
    """Create objects in order.

    Raises:
        CommandExit: One could not be created; those that this call may have created are deleted.
    """
    # Printed before anything is created: whatever ends this process then, the user knows what to delete.
    report(_deletions("if this is killed, delete what it leaves:", objects))
    sent: list[Undoable] = []
    try:
        for each in objects:
            sent.append(each)  # before the request, as an answer may be lost
            try:
                each.create()
            except NotCreatedError:
                sent.pop()
                raise
    except CommandExit as error:
        remaining = _undo(sent)
        if not remaining:
            raise CommandExit(ERRORS, f"{error.message}; nothing is left of this submission") from None
        names = listed([each.name for each in remaining])
        # The last line of the output names what may be charged.
        charges = [each.charge for each in remaining if each.charge][:1]
        help_ = "; ".join([*charges, f"delete: {'; '.join(each.deletion for each in remaining)}"])
        raise CommandExit(ERRORS, f"{error.message}; not deleted: {names}", help_) from None
    except BaseException:
        if remaining := _undo(sent):
            report(_deletions("not deleted; run:", remaining[::-1]))
        raise


def _undo(sent: Sequence[Undoable]) -> list[Undoable]:
    """Delete objects from the last to the first, and return those that may remain.

    The commands are printed first, as this may be killed.
    """
    if sent:
        report(_deletions("deleting what was created; if this is interrupted, run:", sent))
    remaining = []
    for each in reversed(sent):
        is_gone, result = each.delete()
        if not is_gone:
            remaining.append(each)
        report(f"{each.name}: {result}")
    return remaining


def _deletions(title: str, objects: Sequence[Undoable]) -> str:
    """Return the commands that delete objects, from the last to the first."""
    return "\n".join([title, *(f"  {each.deletion}" for each in reversed(objects))])


def report(text: str) -> None:
    """Print a line on stderr."""
    # A closed stderr must end neither the start in the middle nor the deletion.
    with suppress(OSError):
        print(text, file=sys.stderr, flush=True)
