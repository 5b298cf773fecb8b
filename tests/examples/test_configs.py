"""The configs of the examples, and what `check` finds in them, compared with golden files byte for byte.

`pytest --write-goldens tests/examples` writes them. A file has the first config of each target whole. Of another one it
has the difference from the last whole one, in which the names of the other job have taken the place of its own.
"""

import re
from collections.abc import Iterator, Sequence
from difflib import unified_diff
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from goldens import Goldens
from tpucfg.cli.app import run

ROOT: Final = Path(__file__).parents[2]
GOLDEN: Final = Path(__file__).parent / "configs"
TARGETS: Final = ("vertex-ai", "cloud-tpu", "compute-engine", "gke", "ai-platform")
EVERY_LAYER: Final = "every-layer"
"""The golden file of a spec with each kind of setting, one config of which is also rendered for every target."""
_FINDING: Final = re.compile(r"^(\S+): (error|warning|note)\[(TPU\d{3})\]: ", re.MULTILINE)
_HEAD: Final = re.compile(r"# .*: (.+), environment (.+), size (.+), target (.+)\.\n")


def _specs() -> dict[str, list[str]]:
    """Return the specs of each golden file; those of a folder of examples have one together."""
    specs = {"root": ["tpucfg.yaml"], EVERY_LAYER: ["tests/e2e/every_layer.yaml"]}
    for path in sorted(ROOT.glob("examples/**/tpucfg.yaml")):
        spec = path.relative_to(ROOT)
        specs.setdefault(spec.parts[1], []).append(spec.as_posix())
    return specs


SPECS: Final = _specs()


class Config(NamedTuple):
    """A config, with the names that its first line has."""

    file: str
    text: str
    target: str
    names: tuple[str, ...]
    """Its own name, and its parts."""

    def renamed(self, names: Sequence[str]) -> str:
        """Return the text with other names in the place of its own."""
        others = dict(zip(self.names, names, strict=True))
        own = "|".join(map(re.escape, self.names))
        return re.sub(rf"(?<![\w.])({own})(?!\w)", lambda match: others[match[1]], self.text)


@pytest.mark.parametrize("name", SPECS)
def test_configs_equal_the_golden_file(
    name: str,
    goldens: Goldens,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A changed batch, flag or line of a template shows in every config that has it, and so do other findings."""
    monkeypatch.chdir(ROOT)
    commands: list[tuple[str, ...]] = []
    for spec in SPECS[name]:
        commands.append(("render", "--spec", spec))
        commands.extend(("check", "--spec", spec, *of) for of in _targets())
        if name == EVERY_LAYER:
            one = ("--env", "dev", "--size", "v5litepod-16")
            commands.append(("render", "--spec", spec, *one, "--run", "r1"))
            commands.extend(("render", "--spec", spec, *one, *of) for of in _targets())

    seen = "".join(_printed(commands, tmp_path, capsys))

    assert seen == goldens.text(GOLDEN / f"{name}.txt", seen)


def test_every_golden_file_has_its_specs() -> None:
    """No golden file is left of an example that is gone."""
    assert {path.stem for path in GOLDEN.iterdir()} == {*SPECS}


def _targets() -> Iterator[tuple[str, ...]]:
    """Yield the options of a spec's own target, and of each one by name."""
    yield ()
    yield from (("--target", target) for target in TARGETS)


def _printed(
    commands: Sequence[Sequence[str]], folder: Path, capsys: pytest.CaptureFixture[str]
) -> Iterator[str]:
    """Yield status and findings or configs of each command."""
    last_whole: dict[str, Config] = {}
    for number, command in enumerate(commands):
        out = folder / str(number)
        status = run([*command, *(["--out", str(out)] if command[0] == "render" else [])])
        findings = _FINDING.findall(capsys.readouterr().out)
        yield f"$ tpucfg {' '.join(command)}  # status {status}\n"
        yield from (f"{place} {level} {id_}\n" for place, level, id_ in findings)
        for path in sorted(out.rglob("*.yaml"), key=_natural_order):
            config = _read(path, path.relative_to(out).as_posix())
            whole, difference = _whole(config), _difference(config, last_whole.get(config.target))
            if difference is None or len(difference) > len(whole):
                last_whole[config.target] = config
                yield whole
            else:
                yield difference


def _natural_order(path: Path) -> list[tuple[int, str]]:
    """Return a key by which v2-8 comes before v2-32."""
    return [(int(part) if part.isdigit() else 0, part) for part in re.split(r"(\d+)", str(path))]


def _read(path: Path, file: str) -> Config:
    text = path.read_bytes().decode()
    match = _HEAD.match(text)
    assert match
    name, environment, size, target = match.groups()
    return Config(file, text, target, (f"{name}-{environment}-{size}", size, environment, name))


def _whole(config: Config) -> str:
    return f"=== {config.file}\n{config.text}"


def _difference(config: Config, other: Config | None) -> str | None:
    """Return the lines of a config that another one lacks, and the reverse."""
    if other is None:
        return None
    before = other.renamed(config.names).splitlines(keepends=True)
    lines = [*unified_diff(before, config.text.splitlines(keepends=True), n=0)]
    return "".join([f"=== {config.file}, as {other.names[0]} but\n", *lines[2:]])
