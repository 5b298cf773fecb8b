"""Where an environment is: regions, zones and buckets, with the list that says so."""

from typing import Any

import pytest

from making import CATALOG, ids, planned, spec, the
from tpucfg.findings import Finding


def found_in(region: str, *sizes: str, **changes: Any) -> tuple[Finding, ...]:
    """What is said about these sizes in a region, tuned on the first of them."""
    training = {"training__tuned_on": sizes[0], "training__batch_size": 8 * 10**4}
    return planned(spec(sizes=list(sizes), environments__dev__region=region, **training, **changes)).findings


@pytest.mark.parametrize(
    ("region", "size"),
    [("us-central1", "v2-8"), ("europe-west4", "v3-32"), ("us-central2", "v4-8"), ("us-south1", "v6e-4")],
)
def test_a_region_of_google_s_list(region: str, size: str) -> None:
    """Nothing is said where Google's current list has the size; an AI zone belongs to its region."""
    assert found_in(region, size, target="cloud-tpu") == ()


@pytest.mark.parametrize(
    ("region", "size", "said"),
    [
        ("us-east1", "v3-32", "is listed by SkyPilot"),
        ("us-east5", "v5litepod-8", "is in Google's list for customers with capacity of their own only"),
    ],
)
def test_a_region_of_another_list(region: str, size: str, said: str) -> None:
    """It is a warning that says whose list it is, with the address of that list and of Google's."""
    warning = the("TPU021", found_in(region, size, target="cloud-tpu"))
    assert warning.level == "warning"
    assert warning.message.startswith(f"{size} in {region} {said}")
    assert [detail.partition(": https://")[0] for detail in warning.details] == ["that list", "Google's current list"]
    slice_ = CATALOG.find(size)
    assert slice_ is not None
    assert slice_.regions(official=True)[0] in warning.help


def test_a_region_without_the_size() -> None:
    """An error at the rung, with the region beside it, the regions that have every rung, and the edit that ends it."""
    (found,) = found_in("us-central1", "v3-8", "v3-32")
    assert (found.id, found.level) == ("TPU021", "error")
    assert found.message == "v3-32 is not offered in us-central1"
    assert found.details == (
        "europe-west4 offers every rung of this ladder (v3-8, v3-32)",
        "by Cloud TPU's list, as vertex-ai publishes none: https://cloud.google.com/tpu/docs/regions-zones",
    )
    assert found.help == "set environments.dev.region to europe-west4, or leave v3-32 out"
    assert [said for _, said in found.related] == ["the region of dev"]


def test_cloud_tpu_s_list_is_its_own() -> None:
    """On cloud-tpu nobody needs to be told whose list it is."""
    (found,) = found_in("us-central1", "v3-32", target="cloud-tpu")
    assert len(found.details) == 1


def test_no_region_has_every_rung() -> None:
    """Where no region would do, the finding says where the rung itself is."""
    (found,) = [it for it in found_in("us-central2", "v4-8", "v2-32", target="cloud-tpu") if it.id == "TPU021"]
    assert found.details == (
        "no region offers every rung of this ladder (v4-8, v2-32); v2-32 is in us-central1, europe-west4",
    )
    assert found.help == "leave v2-32 out here and give it to an environment in us-central1"


def test_every_environment_has_its_own_finding() -> None:
    """The same rung in two environments is two mistakes: each region is wrong by itself."""
    environments = {name: {"project": f"my-project-{name}", "region": "us-west1"} for name in ("dev", "prod")}
    found = planned(spec(environments=environments, sizes=["v2-8"])).findings
    assert ids(found) == ["TPU021", "TPU021"]
    assert [it.related[0][1] for it in found] == ["the region of dev", "the region of prod"]


def test_only_what_is_selected_is_looked_at() -> None:
    """A rung or an environment that was not asked for may be wherever it likes; all rungs count for the way out."""
    data = spec(
        sizes=["v3-8", "v3-32"],
        training__tuned_on="v3-8",
        environments__prod={"project": "my-project-prod", "region": "us-west1"},
    )
    assert planned(data, environments=("dev",), sizes=("v3-8",)).findings == ()
    (found,) = planned(data, environments=("dev",), sizes=("v3-32",)).findings
    assert "every rung of this ladder (v3-8, v3-32)" in found.details[0]
    assert ids(planned(data, environments=("prod",)).findings) == ["TPU021", "TPU021"]


@pytest.mark.parametrize(
    ("size", "zone", "id_", "level", "said"),
    [
        ("v2-8", "us-central1-c", "", "", ""),
        ("v2-8", "us-central1-z", "TPU022", "error", "v2-8 is not offered in the zone us-central1-z"),
        (
            "v2-8",
            "europe-west4-a",
            "TPU022",
            "error",
            "the zone europe-west4-a is in europe-west4, and dev is in us-central1",
        ),
        ("v2-8", "us-central1-f", "TPU022", "warning", "v2-8 in us-central1-f is in an older list of Google's"),
    ],
)
def test_zones(size: str, zone: str, id_: str, level: str, said: str) -> None:
    """A zone must be of the region and have the size; one that another list names is a warning."""
    found = found_in("us-central1", size, environments__dev__zones={size: zone})
    assert ids(found) == ([id_] if id_ else [])
    assert [it.level for it in found] == ([level] if id_ else [])
    assert all(it.message.startswith(said) for it in found)


def test_a_zone_takes_the_region_s_place() -> None:
    """With a zone of its own a rung is judged by that zone, so one mistake stays one finding."""
    found = found_in("us-west1", "v2-8", environments__dev__zones={"v2-8": "us-west1-a"})
    assert ids(found) == ["TPU022"]


@pytest.mark.parametrize(
    ("region", "size", "zones", "zone"),
    [
        ("us-central1", "v2-8", {}, "us-central1-b"),
        ("us-central1", "v2-8", {"v2-8": "us-central1-c"}, "us-central1-c"),
        ("us-east1", "v3-32", {}, "us-east1-d"),
        ("us-west1", "v2-8", {}, None),
    ],
)
def test_the_zone_of_a_job(region: str, size: str, zones: dict[str, str], zone: str | None) -> None:
    """The spec's, else the first that a list names in the region, Google's own list first."""
    data = spec(sizes=[size], training__tuned_on=size, environments__dev__region=region, environments__dev__zones=zones)
    assert planned(data).jobs[0].zone == zone


@pytest.mark.parametrize(
    ("bucket", "said"),
    [
        ("my-bucket", None),
        ("a1_b", None),
        ("a" * 63, None),
        ("a" * 64, "it has 64 characters, and Cloud Storage takes 63"),
        ("ab", "it takes 3 to 63"),
        ("My-bucket", "it takes 3 to 63"),
        ("-bucket", "it takes 3 to 63"),
        ("bucket-", "it takes 3 to 63"),
        ("gs://bucket", "it takes 3 to 63"),
        ("a.b.c", "it takes 3 to 63"),
        ("bucket\n", "it takes 3 to 63"),
        ("my-google-data", "it starts with goog or contains google"),
        ("goog-data", "it starts with goog or contains google"),
    ],
)
def test_the_name_of_a_bucket(bucket: str, said: str | None) -> None:
    """By Cloud Storage's rules for names without dots: https://cloud.google.com/storage/docs/buckets#naming."""
    found = planned(spec(environments__dev__bucket=bucket)).findings
    assert ids(found) == (["TPU028"] if said else [])
    assert all(f": {said}" in it.message for it in found)


@pytest.mark.parametrize("project", ["a-project-of-thirty-characters", "example.com:my-project"])
def test_a_name_that_follows_can_be_wrong_too(project: str) -> None:
    """A long project, or one of a domain, gives a name that Cloud Storage refuses; the finding asks for `bucket`."""
    names = {"name": "a-name-of-twenty-four-ch", "environments__dev__project": project}
    found = the("TPU028", planned(spec(**names)).findings)
    assert found.help == "set environments.dev.bucket to a name that does"
    assert project in found.message
    assert planned(spec(**names, environments__dev__bucket="my-bucket")).findings == ()


def test_a_bucket_is_judged_where_it_is_selected() -> None:
    """A name that cannot be one stops only the environment that has it."""
    other = {"project": "my-project-prod", "region": "us-central1", "bucket": "NO"}
    data = spec(environments__prod=other)
    assert planned(data, environments=("dev",)).findings == ()
    assert ids(planned(data).findings) == ["TPU028"]
