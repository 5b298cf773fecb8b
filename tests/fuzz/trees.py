"""Output folders of `render --out` with unexpected entries: files, folders, links and pipes."""

import os
import stat
from pathlib import Path
from random import Random
from typing import Final

from fuzz import corpus
from fuzz.cases import Case, Entry, EntryType
from fuzz.mutations import mutate
from fuzz.shell import Shell

_SPEC: Final = corpus.BAD / "TPU084-other-bucket" / "tpucfg.yaml"
_PATHS: Final = (
    *("out", "out/dev", "out/dev/v2-8", "out/dev/v2-8/config.yaml", "out/dev/v2-8/config.json"),
    *(
        "out/dev/v2-8/.config.yaml.tpucfg-staged-1-0",
        "out/dev/v2-8/notes.txt",
        "out/old/v2-8/config.yaml",
    ),
    *(
        "out/old/v2-8/config.json",
        "out/dev/v3-8/config.yaml",
        "out/a b/$(id)-1/config.yaml",
        "out/-rf/v2-8/config.yaml",
    ),
    *(
        "out/old/v2-8/config.yaml/x",
        "out/\udcff/v2-8/config.yaml",
        "out/x/v2-8/config.\n",
        "outside/v2-8/config.yaml",
    ),
    *("out/.git/v2-8/config.yaml", "out/dev/.git", "out/é/v2-8/config.yaml"),
)
_TYPES: Final[tuple[EntryType, ...]] = (
    "file",
    "file",
    "file",
    "folder",
    "link",
    "link",
    "pipe",
    "large",
)
_LINK_TARGETS: Final = (
    *(
        b"../outside",
        b"../../outside",
        b"../../../outside/v2-8",
        b"../../../outside/mine.txt",
        b"config.yaml",
        b".",
        b"..",
    ),
    *(b"/dev/null", b"/dev/zero", b"/proc/self/environ", b"nowhere", b"/proc", b"../out"),
)
_CONTENT: Final = b"# Made by tpucfg 0.1.0: x\na: 1\n"
_OPTIONS: Final = (
    (),
    ("--check",),
    ("--prune",),
    ("--check", "--prune"),
    ("--format", "json"),
    ("--prune", "--format", "json"),
)


def make_tree(rng: Random) -> tuple[tuple[Entry, ...], tuple[str, ...]]:
    """Return a spec, an unrelated folder, and entries at the paths of configs."""
    entries = [
        Entry("tpucfg.yaml", "file", _SPEC.read_bytes()),
        Entry("outside/mine.txt", "file", b"mine\n"),
    ]
    for _ in range(rng.choice([1, 2, 3, 6])):
        type_ = rng.choice(_TYPES)
        content = (
            rng.choice([_CONTENT, mutate(rng, _CONTENT), b"", b"x\n"]) if type_ == "file" else b""
        )
        entries.append(
            Entry(
                rng.choice(_PATHS), type_, rng.choice(_LINK_TARGETS) if type_ == "link" else content
            )
        )
    return tuple(entries), rng.choice(_OPTIONS)


def check_tree(case: Case, _: Random, tpucfg: Shell) -> None:
    """Check that other files are unchanged, a failure writes nothing, and the written configs are up to date."""
    before = snapshot(Path())
    completed = tpucfg("render", "--out", "out", *case.words)
    after = snapshot(Path())
    format_ = ("--format", "json") if "json" in case.words else ()
    inside = tuple(f"out{end}" for end in ("", "/"))
    changed_ = {path for path in before | after if before.get(path) != after.get(path)}
    if not Path("out").is_symlink():  # a link as the output folder is followed
        assert all(path == "out" or path.startswith(inside[1]) for path in changed_), (
            f"{changed_} changed"
        )
    if completed.status or "--check" in case.words:
        made_folders = {
            path for path in changed_ if path not in before and after[path][0] == "folder"
        }
        assert changed_ <= made_folders, f"{completed} changed {changed_ - made_folders}"
        return
    assert not [path for path in set(after) - set(before) if "tpucfg-staged" in path]
    for path in changed_ & set(before):
        if path not in after:
            assert (
                path.endswith((".yaml", ".json")) or before[path][0] == "folder" or "staged" in path
            ), path
    again = tpucfg("render", "--out", "out", "--check", *case.words)
    assert again.status in ((0,) if "--prune" in case.words else (0, 3)), again
    assert "create" not in again.out, again
    assert "update" not in again.out, again
    printed = tpucfg("render", *format_)
    texts = [
        Path(f"out/dev/{size}/config.{'json' if format_ else 'yaml'}").read_text()
        for size in ("v2-8", "v2-32")
    ]
    assert printed.out == ("" if format_ else "---\n").join(texts)


def snapshot(folder: Path) -> dict[str, tuple[str, bytes]]:
    """Return the entries by path, without following links."""
    entries = {}
    for above, folders, files in os.walk(folder):
        for name in [*folders, *files]:
            path = Path(above, name)
            mode = path.lstat().st_mode
            if stat.S_ISLNK(mode):
                entry = ("link", os.fsencode(path.readlink()))
            elif stat.S_ISREG(mode):
                entry = ("file", path.read_bytes() if path.stat().st_size < 1 << 20 else b"large")
            else:
                entry = ("folder" if stat.S_ISDIR(mode) else "other", b"")
            entries[path.as_posix()] = entry
    return entries
