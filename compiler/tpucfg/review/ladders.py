"""What becomes of the ladders: the rungs that leave, join, or take the place of others."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from tpucfg.diff.model import Key
from tpucfg.diff.wording import where
from tpucfg.plan import Job
from tpucfg.review.remarks import Fact, Remark, grouped
from tpucfg.review.rungs import Row, times
from tpucfg.wording import listed

_MOST_NAMES: Final = 16


def ladder_remarks(before: Mapping[Key, Job], after: Mapping[Key, Job], changed: Sequence[Row]) -> Iterator[Remark]:
    """What is said of the rungs that one side has and the other has not; `changed` are those with other figures."""
    replaced = {(name, row.against) for row in changed for name in row.environments if not row.below}
    gone = [key for key in before if key not in after and _climbs(key, after) and key not in replaced]
    yield from grouped([(key, Fact("leaves the ladder")) for key in gone], where)
    exchanged: dict[tuple[tuple[str, ...], str], list[Row]] = {}
    for row in changed:
        if row.environments and row.against:
            if row.below:
                said = f"{{}} joins the ladder, with {_cores(row)} the cores of {{}}, the rung below"
                yield Remark(listed(row.environments, _MOST_NAMES), Fact(said, (row.size, row.against)))
            else:
                exchanged.setdefault((row.environments, _cores(row)), []).append(row)
    for (names, cores), of in exchanged.items():
        yield Remark(listed(names, _MOST_NAMES), _exchange(of, cores))


def _exchange(of: Sequence[Row], cores: str) -> Fact:
    """Rungs that came in the places of others, each of which has the same factor of their cores."""
    many = "each with as many" if cores == "1×" else f"each with {cores} the"
    one = "with as many" if cores == "1×" else f"with {cores} its"
    first, *others = of[:_MOST_NAMES]
    more = [f"{len(of) - _MOST_NAMES} more likewise"] if len(of) > _MOST_NAMES else []
    said = ["{} takes the place of {}", *("{} of {}" for _ in others), *more]
    values = [size for row in (first, *others) for size in (row.size, row.against)]
    return Fact(f"{listed(said, len(said), ' and ')}, {many if len(of) > 1 else one} cores", tuple(values))


def _cores(row: Row) -> str:
    old, new = row.before.get("cores"), row.after.get("cores")
    return times(new / old) if old and new else "–"


def _climbs(key: Key, jobs: Mapping[Key, Job]) -> bool:
    return any(other.environment == key.environment for other in jobs)
