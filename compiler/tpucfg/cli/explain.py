"""The command `tpucfg explain`."""

import sys
from typing import Annotated, Final

import typer

from tpucfg.findings import RULES, Rule
from tpucfg.findings.formats import sections
from tpucfg.refusal import UsageError
from tpucfg.text_format import printable

_PREFIX: Final = "TPU"


def explain(
    id: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="A finding's id. [default: all]")
    ] = None,
) -> None:
    """Show a finding's section of the documents: its meaning, an example, the fix, and when to allow it.

    Example: tpucfg explain TPU021
    """
    if id is None:
        print("\n".join(_rule_list()))
    else:
        sys.stdout.write(sections()[_find_rule(id).id].text)


def _find_rule(text: str) -> Rule:
    """Return the rule of an id, which may be in lower case or the number alone.

    Raises:
        UsageError: There is no such rule.
    """
    number = text.upper().removeprefix(_PREFIX)
    id_ = f"{_PREFIX}{number:0>3}"
    if id_ in RULES:
        return RULES[id_]
    raise UsageError(f"there is no finding {printable(text)}", "list all with: tpucfg explain")


def _rule_list() -> list[str]:
    width = max(len(rule.level) for rule in RULES.values())
    return [
        f"{rule.id}  {rule.level:<{width}}  {rule.title}{' (can be allowed)' if rule.allowable else ''}"
        for rule in RULES.values()
    ]
