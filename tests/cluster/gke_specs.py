"""Small specs of one job on gke, and their configs."""

from collections.abc import Iterator
from typing import Any

from spec_factory import CATALOG, configs, spec
from tpucfg.render.config import Config


def rendered(**changes: Any) -> list[Config]:
    """Return the configs of a spec on gke."""
    sizes = changes["sizes"]
    slice_ = CATALOG.find(sizes[0])
    assert slice_
    environment = {
        "project": "my-project-dev",
        "region": slice_.regions(official=True)[0],
        "kube_context": "c",
    }
    training = {"tuned_on": sizes[0], "batch_size": 4096 * slice_.devices, "train_steps": 4000}
    data = spec(target="gke", environments={"dev": environment}, training=training, **changes)
    return configs(data)


def objects(config: Config) -> Iterator[dict[str, Any]]:
    """Yield the objects of a config, then a Job of each pod template, which the server looks into."""
    yield from (dict(each) for each in (*config.companions, config.request_body))
    for number, replicated in enumerate(config.request_body["spec"]["replicatedJobs"]):
        metadata = {"name": f"{config.job.name}-{number}", "namespace": "default"}
        yield {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": metadata,
            "spec": replicated["template"]["spec"],
        }
