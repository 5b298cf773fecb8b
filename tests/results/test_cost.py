"""Hours and cost: measured where there is a record, else by linear scaling from the nearest."""

from fractions import Fraction

from spec_factory import CATALOG
from tpucfg.results import Record, evaluate_rungs
from tpucfg.results.cost import Cost, costs
from tpucfg.spec.project import Number

PRICE = {"v2": Number(Fraction(3, 2), "1.5")}
SIZES = ("v2-8", "v2-32", "v2-128")
HOUR = 3600


def made(
    sizes: tuple[str, ...] = SIZES, *, examples: int | None = 1000 * HOUR, **throughput: float
) -> tuple[Cost, ...]:
    """The costs of a ladder with these throughputs, by size: `v2_8=1000`."""
    slices = [slice_ for size in sizes if (slice_ := CATALOG.find(size))]
    records = {
        size: Record("mnist", size, {"examples_per_second": throughput[size.replace("-", "_")]})
        for size in sizes
        if size.replace("-", "_") in throughput
    }
    return costs(evaluate_rungs(slices, records, None), [examples] * len(slices), PRICE)


def test_measured_and_forecast() -> None:
    """4 chips for one hour at 1.50 are 6.00; by linear scaling four times the chips take a quarter of the time."""
    first, second, third = made(v2_8=1000)
    assert first == Cost(Fraction(6), Fraction(1000), "v2-8", Fraction(1))
    assert [first.usd, second.usd, third.usd] == [Fraction(6)] * 3
    assert second == Cost(Fraction(24), Fraction(4000), "v2-8", Fraction(1, 4))
    assert (third.hours, third.source) == (Fraction(1, 16), "v2-8")


def test_the_nearest_below_goes_before_the_nearest_above() -> None:
    """A forecast comes from the rung below where one was measured, else from the one above."""
    assert [it.source for it in made(v2_32=3000)] == ["v2-32", "v2-32", "v2-32"]
    assert [it.source for it in made(v2_8=1000, v2_128=9000)] == ["v2-8", "v2-8", "v2-128"]
    assert [it.source for it in made(v2_8=1000, v2_32=3000)] == ["v2-8", "v2-32", "v2-32"]
    assert made(v2_32=3000)[0].throughput == 750


def test_another_generation_says_nothing() -> None:
    """The chips of another generation are not as fast, and have a price of their own or none."""
    small, large = made(("v2-8", "v3-32"), v2_8=1000)
    assert small.usd == 6
    assert large == Cost(None, None, None, None)


def test_what_is_not_known_is_not_made_up() -> None:
    """Nothing recorded: no hours. A run in epochs: no hours, as its examples are not known. The hour costs the same."""
    for unknown in (made(), made(examples=None, v2_8=1000)):
        assert [it.usd_per_hour for it in unknown] == [6, 24, 96]
        assert {(it.hours, it.usd) for it in unknown} == {(None, None)}
