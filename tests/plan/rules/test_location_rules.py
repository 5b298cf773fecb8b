"""Locations of an environment: regions, zones and buckets, with the list that a finding relies on."""

from typing import Any

import pytest

from spec_factory import CATALOG, finding_with_id, ids, missing_words, planned, spec
from tpucfg.findings import Finding

OFFICIAL = "https://cloud.google.com/tpu/docs/regions-zones"


def finding_in(region: str, *sizes: str, **changes: Any) -> tuple[Finding, ...]:
    """Return the findings about sizes in a region, tuned on the first of them."""
    training = {"training__tuned_on": sizes[0], "training__batch_size": 8 * 10**4}
    return planned(
        spec(sizes=list(sizes), environments__dev__region=region, **training, **changes)
    ).findings


@pytest.mark.parametrize(
    ("region", "size"),
    [
        ("us-central1", "v2-8"),
        ("europe-west4", "v3-32"),
        ("us-central2", "v4-8"),
        ("us-south1", "v6e-4"),
    ],
)
def test_a_region_of_googles_list_has_no_finding(region: str, size: str) -> None:
    """A size in Google's current list has no finding; an AI zone belongs to its region."""
    assert finding_in(region, size, target="cloud-tpu") == ()


@pytest.mark.parametrize(
    ("region", "size", "expected"),
    [
        ("us-east1", "v3-32", "SkyPilot"),
        ("us-east5", "v5litepod-8", "customers with capacity of their own"),
    ],
)
def test_a_region_of_another_list_is_a_warning(region: str, size: str, expected: str) -> None:
    """The warning names the list with its address, Google's list, and a region of Google's list."""
    warning = finding_with_id("TPU021", finding_in(region, size, target="cloud-tpu"))
    assert warning.level == "warning"
    slice_ = CATALOG.find(size)
    assert slice_ is not None
    source = CATALOG.sources[slice_.zones_in(region)[0].source].url
    assert (
        missing_words(
            warning, region, size, expected, source, OFFICIAL, slice_.regions(official=True)[0]
        )
        == []
    )


def test_a_warning_about_several_sizes_is_in_the_plural() -> None:
    """Sizes whose zones are in the same list share a warning."""
    warning = finding_with_id(
        "TPU021", finding_in("asia-northeast1", "v6e-8", "v6e-16", target="cloud-tpu")
    )
    assert warning.message.startswith(
        "v6e-8 and v6e-16 are not in Google's list for asia-northeast1"
    )


def test_a_region_without_the_size_is_an_error() -> None:
    """The error is at the rung and refers to the region; the help names the regions that have every rung."""
    (finding,) = finding_in("us-central1", "v3-8", "v3-32")
    assert (finding.id, finding.level) == ("TPU021", "error")
    assert finding.message == "v3-32 is not offered in us-central1"
    assert "europe-west4 offers every rung of this ladder (v3-8, v3-32)" in finding.details
    assert finding.help == "set environments.dev.region to europe-west4, or leave v3-32 out"
    assert [expected for _, expected in finding.related] == ["the region of dev"]
    assert missing_words(finding, "Cloud TPU", "vertex-ai", OFFICIAL) == [], (
        "whose list it is, as vertex-ai has none"
    )


def test_the_use_of_its_own_list_is_not_explained_on_cloud_tpu() -> None:
    """Other targets use Cloud TPU's list, and only their findings explain it."""
    (finding,) = finding_in("us-central1", "v3-32", target="cloud-tpu")
    assert missing_words(finding, OFFICIAL, "cloud-tpu publishes") == ["cloud-tpu publishes"]


def test_no_region_may_have_every_rung() -> None:
    """If no region offers every rung, the finding names the regions of the missing rung."""
    findings = finding_in("us-central2", "v4-8", "v2-32", target="cloud-tpu")
    (finding,) = [finding for finding in findings if finding.id == "TPU021"]
    assert (
        missing_words(
            finding,
            "no region offers every rung of this ladder (v4-8, v2-32)",
            "us-central1, europe-west4",
        )
        == []
    )
    assert "us-central1" in finding.help


def test_a_region_without_any_rung_is_one_finding() -> None:
    """A region without any rung is one finding at the region, and not one at each rung."""
    for region, expected in (
        ("us-west1", "v2-8 and v2-32 are not offered"),
        ("us-centrall1", "did you mean us-central1?"),
    ):
        result = planned(spec(environments__dev__region=region))
        finding = finding_with_id("TPU021", result.findings)
        assert finding.location == result.project.document.value_location(
            ("environments", "dev", "region")
        )
        assert missing_words(finding, region, expected) == []


def test_every_environment_has_its_own_finding() -> None:
    """A rung that two environments lack is two findings, one for each region."""
    environments = {
        name: {"project": f"my-project-{name}", "region": "us-central1"} for name in ("dev", "prod")
    }
    findings = planned(
        spec(environments=environments, sizes=["v3-8", "v3-32"], training__tuned_on="v3-8")
    ).findings
    assert ids(findings) == ["TPU021", "TPU021"]
    assert [finding.related[0][1] for finding in findings] == [
        "the region of dev",
        "the region of prod",
    ]


def test_only_the_selection_is_checked() -> None:
    """An unselected rung or environment is not checked; the help considers all rungs."""
    other = {"project": "my-project-prod", "region": "us-west1"}
    data = spec(sizes=["v3-8", "v3-32"], training__tuned_on="v3-8", environments__prod=other)
    assert planned(data, environments=("dev",), sizes=("v3-8",)).findings == ()
    (finding,) = planned(data, environments=("dev",), sizes=("v3-32",)).findings
    assert missing_words(finding, "every rung of this ladder (v3-8, v3-32)") == []
    assert ids(planned(data, environments=("prod",)).findings) == ["TPU021"]


@pytest.mark.parametrize(
    ("zone", "id_", "level", "words"),
    [
        ("us-central1-c", "", "", []),
        ("us-central1-z", "TPU022", "error", ["v2-8", "us-central1-z", "us-central1-b", OFFICIAL]),
        ("europe-west4-a", "TPU022", "error", ["europe-west4-a", "us-central1", "us-central1-b"]),
        ("us-central1-f", "TPU022", "warning", ["v2-8", "us-central1-f", "older", OFFICIAL]),
    ],
)
def test_a_zone_must_offer_the_size(zone: str, id_: str, level: str, words: list[str]) -> None:
    """A zone must be in the region and offer the size; one that only another list names is a warning."""
    findings = finding_in("us-central1", "v2-8", environments__dev__zones={"v2-8": zone})
    assert [(finding.id, finding.level) for finding in findings] == ([(id_, level)] if id_ else [])
    assert [missing_words(finding, *words) for finding in findings] == ([[]] if id_ else [])


def test_a_zone_is_checked_instead_of_the_region() -> None:
    """A rung with its own zone is checked by that zone only, so one mistake is one finding."""
    findings = finding_in("us-west1", "v2-8", environments__dev__zones={"v2-8": "us-west1-a"})
    assert ids(findings) == ["TPU022"]


@pytest.mark.parametrize(
    ("region", "size", "zones", "zone"),
    [
        ("us-central1", "v2-8", {}, "us-central1-b"),
        ("us-central1", "v2-8", {"v2-8": "us-central1-c"}, "us-central1-c"),
        ("us-east1", "v3-32", {}, "us-east1-d"),
        ("us-west1", "v2-8", {}, None),
    ],
)
def test_a_job_has_the_zone_of_the_spec_or_a_listed_one(
    region: str, size: str, zones: dict[str, str], zone: str | None
) -> None:
    """The zone is that of the spec, or else the first listed one in the region, with Google's own list first."""
    data = spec(
        sizes=[size],
        training__tuned_on=size,
        environments__dev__region=region,
        environments__dev__zones=zones,
    )
    assert planned(data).jobs[0].zone == zone


@pytest.mark.parametrize(
    ("bucket", "rule"),
    [
        *((right, None) for right in ("my-bucket", "a1_b", "a" * 63, "123")),
        ("a" * 64, "64 characters"),
        *(
            (wrong, "3 to 63")
            for wrong in (
                "ab",
                "My-bucket",
                "-bucket",
                "bucket-",
                "gs://bucket",
                "a.b.c",
                "bucket\n",
            )
        ),
    ],
)
def test_a_bucket_name_follows_the_rules(bucket: str, rule: str | None) -> None:
    """A bucket has the length and the characters of a name without dots: https://cloud.google.com/storage/docs/buckets#naming."""
    findings = planned(spec(environments__dev__bucket=bucket)).findings
    assert ids(findings) == (["TPU028"] if rule else [])
    assert all(rule in finding.message for finding in findings if rule)


@pytest.mark.parametrize("project", ["a-project-of-thirty-characters", "example.com:my-project"])
def test_a_default_bucket_name_may_be_invalid(project: str) -> None:
    """With a long or domain-scoped project, Cloud Storage refuses the default name, and the help is to set `bucket`."""
    names = {"name": "a-name-of-twenty-four-ch", "environments__dev__project": project}
    findings = finding_with_id("TPU028", planned(spec(**names)).findings)
    assert missing_words(findings, "set environments.dev.bucket", project) == []
    assert planned(spec(**names, environments__dev__bucket="my-bucket")).findings == ()


def test_a_bucket_is_checked_only_if_selected() -> None:
    """An invalid bucket name stops only its own environment."""
    other = {"project": "my-project-prod", "region": "us-central1", "bucket": "NO"}
    data = spec(environments__prod=other)
    assert planned(data, environments=("dev",)).findings == ()
    assert ids(planned(data).findings) == ["TPU028"]
