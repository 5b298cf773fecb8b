"""The JAX of a trainer's lock file must find the hosts of Compute Engine."""

from pathlib import Path
from typing import Any

import pytest

from jobs import CATALOG, project
from tpucfg.findings import Finding
from tpucfg.render.pipeline import findings_beside

EAST = {"region": "us-east5"}


def warnings(
    folder: Path, *sizes: str, target: str = "compute-engine", **options: Any
) -> list[Finding]:
    """Return the findings about files beside a spec with these sizes."""
    spec = project(target, *(sizes or ("v6e-4", "v6e-16")), environment=EAST)
    return list(findings_beside(spec, folder, CATALOG, **options))


UV = 'version = 1\n\n[[package]]\nname = "jax"\nversion = "{}"\nsource = {{ registry = "x" }}\n'
PYLOCK = 'lock-version = "1.0"\n\n[[packages]]\nname = "jax"\nversion = "{}"\nindex = "https://pypi.org/simple"\n'


@pytest.mark.parametrize(
    ("file", "text", "line"),
    [
        ("requirements.txt", "jax==0.9.2\n", 1),
        ("trainer/requirements.txt", "numpy==2.4\njax[tpu]==0.4.38 ; python_version > '3.10'\n", 2),
        ("requirements-tpu.txt", "# pip-compile\njax == 0.9.2 \\\n    --hash=sha256:00\n", 2),
        ("uv.lock", UV.format("0.9.2"), 4),
        ("uv.lock", UV.format("0.9.2").replace("\n", "\r\n"), 4),
        ("requirements.txt", "numpy==2.4\r\njax==0.9\r\n", 2),
        ("trainer/poetry.lock", UV.format("0.6.0"), 4),
        ("requirements.txt", "numpy==2.4\nJAX[tpu]==0.9.1\n", 2),
        ("requirements.txt", "jax===0.9.1\n", 1),
        ("requirements.txt", "  jax [tpu] == 0.9.1,>0.8  # newer ones fail\n", 1),
        ("requirements.txt", "jax (==0.9.*)\n", 1),
        ("pylock.toml", PYLOCK.format("0.9.1"), 4),
        ("trainer/pylock.tpu.toml", PYLOCK.format("0.9.1").replace('"', "'"), 4),
    ],
)
def test_an_old_jax_is_a_warning(tmp_path: Path, file: str, text: str, line: int) -> None:
    """The warning names the file, the line and the sizes of several hosts."""
    (tmp_path / "trainer").mkdir()
    (tmp_path / file).write_bytes(text.encode())
    (finding,) = warnings(tmp_path)
    assert (finding.id, finding.level) == ("TPU049", "warning")
    assert f"{file}:{line} names" in finding.message
    assert "to 0.10.0 or newer" in (finding.help or "")
    assert "the hosts of v6e-16 on compute-engine" in finding.message


@pytest.mark.parametrize(
    "text",
    [
        "jax==0.10.0\n",
        "jax==0.10.0rc1\n",
        "jax==0.10\r\n",
        "jax==1.0\n",
        "jaxlib==0.4.1\n",
        "jax-triton==0.4.1\n",
        "jax [tpu] === 0.10.1\n",
        "# jax==0.4.1\n",
        "flax==0.4.1\n",
        "jax>=0.4\n",
        "",
        "\0\xff",
    ],
)
def test_other_lines_are_no_warning(tmp_path: Path, text: str) -> None:
    """Only a pinned JAX before 0.10 is one."""
    (tmp_path / "requirements.txt").write_text(text)
    assert warnings(tmp_path) == []


def test_only_several_hosts_of_compute_engine_need_it(tmp_path: Path) -> None:
    """Single hosts, and other targets, take any JAX; another target may be chosen on the command line."""
    (tmp_path / "requirements.txt").write_text("jax==0.4.38\n")
    assert warnings(tmp_path, "v6e-4", "v6e-8") == []
    assert warnings(tmp_path, target="cloud-tpu") == []
    spec = project("cloud-tpu", "v6e-16", environment=EAST)
    assert [
        finding.id for finding in findings_beside(spec, tmp_path, CATALOG, "compute-engine")
    ] == ["TPU049"]


def test_a_file_that_cannot_be_read_is_skipped(tmp_path: Path) -> None:
    """A folder or a broken link of such a name is no lock file."""
    (tmp_path / "requirements.txt").mkdir()
    (tmp_path / "requirements-a.txt").symlink_to(tmp_path / "nowhere")
    assert warnings(tmp_path) == []
