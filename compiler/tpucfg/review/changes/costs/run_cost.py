"""The cost of one run of a config, and the measures by which two of them are compared."""

from collections.abc import Callable
from fractions import Fraction
from typing import Final, NamedTuple

from tpucfg.number_format import format_dollars, format_hours, format_number
from tpucfg.results.run_limit import RunLimit


class RunCost(NamedTuple):
    """The cost of one run of a config; None for a value that is not known."""

    chips: Fraction
    usd_per_hour: Fraction | None
    hours: Fraction | None
    limit: RunLimit
    """The longest time that the config allows."""

    @property
    def max_hours(self) -> Fraction | None:
        """The limit of the whole run; None if the config sets none."""
        return self.limit.hours

    @property
    def chip_hours(self) -> Fraction | None:
        """Chips times hours of the whole run."""
        return None if self.hours is None else self.chips * self.hours

    @property
    def usd(self) -> Fraction | None:
        """The cost of the whole run."""
        return None if self.hours is None or self.usd_per_hour is None else self.hours * self.usd_per_hour

    @property
    def max_usd(self) -> Fraction | None:
        """The most that the run can cost."""
        return None if self.max_hours is None or self.usd_per_hour is None else self.max_hours * self.usd_per_hour


class Measure(NamedTuple):
    """A value of RunCost that is compared."""

    key: str
    column: str
    get: Callable[[RunCost], Fraction | None]
    format: Callable[[Fraction | None], str]
    is_summed: bool = True
    """False for a value whose sum over the configs means nothing."""


MEASURES: Final = (
    Measure("chips", "chips", lambda cost: cost.chips, format_number),
    Measure("usd_per_hour", "USD/hour", lambda cost: cost.usd_per_hour, format_dollars),
    Measure("hours", "hours", lambda cost: cost.hours, format_hours, is_summed=False),
    Measure("chip_hours", "chip hours", lambda cost: cost.chip_hours, format_hours),
    Measure("usd", "USD/run", lambda cost: cost.usd, format_dollars),
    Measure("max_usd", "USD/run at most", lambda cost: cost.max_usd, format_dollars),
)
