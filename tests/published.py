"""Published runs for tests, whose forecasts must not change when a real run is added."""

from fractions import Fraction
from typing import Final

from tpucfg.fit.forecast import PublishedRow

RATIOS: Final = ("0.8", "0.9", "0.95", "1", "1.05", "1.1", "1.25")


def rows(generation: str, *, used: bool = False, reliable: bool = True) -> tuple[PublishedRow, ...]:
    """Return runs that took 0.8 to 1.25 times as long as the model has it."""
    return tuple(
        PublishedRow(
            f"{generation}-{ratio}",
            generation,
            "",
            ratio,
            Fraction(ratio),
            Fraction(1),
            used,
            reliable,
        )
        for ratio in RATIOS
    )
