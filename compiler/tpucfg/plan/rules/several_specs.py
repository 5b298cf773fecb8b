"""Rules about the specs of one command: a bucket that two create, or use in two regions, and folders that two share."""

from collections.abc import Iterator, Mapping, Sequence

from tpucfg.findings import Allowance, Finding, Location
from tpucfg.named_tuple import NamedTuple
from tpucfg.plan.naming import bucket_of
from tpucfg.spec import Project
from tpucfg.text_format import dotted


class BucketUse(NamedTuple):
    """An environment's use of its bucket: all that the rules need, as hundreds of specs are not kept."""

    project: str
    """The spec's name."""
    environment: str
    bucket: str
    is_created: bool
    """False if the bucket exists already."""
    region: str
    region_location: Location
    bucket_location: Location
    name_location: Location
    allow: Mapping[str, Allowance]

    @property
    def file(self) -> str:
        """The spec."""
        return self.name_location.file

    @property
    def user(self) -> str:
        """The environment, for another spec's finding."""
        return f"{self.environment} in {self.file}"


def bucket_uses(project: Project) -> tuple[BucketUse, ...]:
    """Return how a spec's environments use their buckets."""
    locate = project.document.value_location
    return tuple(
        BucketUse(
            project=project.name,
            environment=environment.name,
            bucket=bucket_of(project, environment),
            is_created=environment.creates_bucket,
            region=environment.region,
            region_location=locate((*environment.path, "region")),
            bucket_location=locate((*environment.path, "bucket")),
            name_location=locate(("name",)),
            allow=project.allow,
        )
        for environment in project.environments.values()
    )


def shared_bucket_findings(uses: Sequence[BucketUse]) -> Iterator[Finding]:
    """Yield the findings about each spec that creates the bucket, or has the folders, of an earlier spec."""
    creators: dict[str, BucketUse] = {}
    regions = {use.bucket: use for use in reversed(uses) if use.is_created}
    folders: dict[tuple[str, str], BucketUse] = {}
    for use in uses:
        creator = creators.setdefault(use.bucket, use) if use.is_created else use
        if creator.file != use.file:
            yield _created_twice(use, creator)
        maker = regions.get(use.bucket, use)
        if maker.region != use.region and not use.is_created:
            yield _distant(use, maker)
        first = folders.setdefault((use.bucket, use.project), use)
        if first.file != use.file:
            yield _same_folders(use, first).allowed_by(use.allow)


def _created_twice(use: BucketUse, creator: BucketUse) -> Finding:
    path = dotted(("environments", use.environment, "bucket"))
    return Finding.of(
        "TPU131",
        f"{use.environment} creates the bucket {use.bucket}, as does {creator.user}: whichever stack is updated second "
        "would fail, as the name is taken",
        use.bucket_location,
        help=f"set {path} to {{name: {use.bucket}, create: false}}, which shares the bucket of {creator.user}",
        related=((creator.bucket_location, f"the bucket of {creator.environment}"),),
    )


def _distant(use: BucketUse, maker: BucketUse) -> Finding:
    path = f"environments.{use.environment}"
    return Finding.of(
        "TPU133",
        f"{use.environment} is in {use.region}, and its bucket {use.bucket} in {maker.region}, where {maker.user} "
        "creates it",
        use.region_location,
        help=f"set {path}.region to {maker.region}, or {path}.bucket to a bucket in {use.region}",
        related=((maker.region_location, f"the region of {maker.environment}"),),
    )


def _same_folders(use: BucketUse, first: BucketUse) -> Finding:
    return Finding.of(
        "TPU126",
        f"{use.environment} has the folders of {first.user}: gs://{use.bucket}/jobs/{use.project}",
        use.name_location,
        help="give one of the specs another name",
        related=((first.name_location, "the same name"),),
    )
