"""Folders that `render --out` finds in its way: files, folders, links, pipes where they do not belong."""

import os
import stat
from pathlib import Path
from random import Random
from typing import Final

from fuzz import corpus
from fuzz.cases import Case, Entry, Sort
from fuzz.changes import changed
from fuzz.trying import Shell

_SPEC: Final = corpus.BAD / "TPU084-other-bucket" / "tpucfg.yaml"
_PLACES: Final = (
    *("out", "out/dev", "out/dev/v2-8", "out/dev/v2-8/config.yaml", "out/dev/v2-8/config.json"),
    *("out/dev/v2-8/.config.yaml.tpucfg-staged-1-0", "out/dev/v2-8/notes.txt", "out/old/v2-8/config.yaml"),
    *(
        "out/old/v2-8/config.json",
        "out/dev/v3-8/config.yaml",
        "out/a b/$(id)-1/config.yaml",
        "out/-rf/v2-8/config.yaml",
    ),
    *("out/old/v2-8/config.yaml/x", "out/\udcff/v2-8/config.yaml", "out/x/v2-8/config.\n", "outside/v2-8/config.yaml"),
    *("out/.git/v2-8/config.yaml", "out/dev/.git", "out/é/v2-8/config.yaml"),
)
_SORTS: Final[tuple[Sort, ...]] = ("file", "file", "file", "folder", "link", "link", "pipe", "large")
_LEADS_TO: Final = (
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
_MADE: Final = b"# Made by tpucfg 0.1.0: x\na: 1\n"
_CHOICES: Final = (
    (),
    ("--check",),
    ("--prune",),
    ("--check", "--prune"),
    ("--format", "json"),
    ("--prune", "--format", "json"),
)


def make_tree(rng: Random) -> tuple[tuple[Entry, ...], tuple[str, ...]]:
    """A spec, a folder that is nobody's business, and what stands at places of configs."""
    entries = [Entry("tpucfg.yaml", "file", _SPEC.read_bytes()), Entry("outside/mine.txt", "file", b"mine\n")]
    for _ in range(rng.choice([1, 2, 3, 6])):
        sort = rng.choice(_SORTS)
        content = rng.choice([_MADE, changed(rng, _MADE), b"", b"x\n"]) if sort == "file" else b""
        entries.append(Entry(rng.choice(_PLACES), sort, rng.choice(_LEADS_TO) if sort == "link" else content))
    return tuple(entries), rng.choice(_CHOICES)


def prove_tree(case: Case, _: Random, tpucfg: Shell) -> None:
    """What is outside stays; a refusal changes nothing; what is written is what is printed, and then up to date."""
    before = seen(Path())
    ended = tpucfg("render", "--out", "out", *case.words)
    after = seen(Path())
    format_ = ("--format", "json") if "json" in case.words else ()
    inside = tuple(f"out{end}" for end in ("", "/"))
    changed_ = {path for path in before | after if before.get(path) != after.get(path)}
    if not Path("out").is_symlink():  # whoever names a link means where it leads
        assert all(path == "out" or path.startswith(inside[1]) for path in changed_), f"{changed_} changed"
    if ended.status or "--check" in case.words:
        made_folders = {path for path in changed_ if path not in before and after[path][0] == "folder"}
        assert changed_ <= made_folders, f"{ended} changed {changed_ - made_folders}"
        return
    assert not [path for path in set(after) - set(before) if "tpucfg-staged" in path]
    for path in changed_ & set(before):
        if path not in after:
            assert path.endswith((".yaml", ".json")) or before[path][0] == "folder" or "staged" in path, path
    again = tpucfg("render", "--out", "out", "--check", *case.words)
    assert again.status in ((0,) if "--prune" in case.words else (0, 3)), again
    assert "create" not in again.out, again
    assert "update" not in again.out, again
    printed = tpucfg("render", *format_)
    texts = [Path(f"out/dev/{size}/config.{'json' if format_ else 'yaml'}").read_text() for size in ("v2-8", "v2-32")]
    assert printed.out == ("" if format_ else "---\n").join(texts)


def seen(folder: Path) -> dict[str, tuple[str, bytes]]:
    """What lies where, without following a link."""
    found = {}
    for above, folders, files in os.walk(folder):
        for name in [*folders, *files]:
            path = Path(above, name)
            mode = path.lstat().st_mode
            if stat.S_ISLNK(mode):
                what = ("link", os.fsencode(path.readlink()))
            elif stat.S_ISREG(mode):
                what = ("file", path.read_bytes() if path.stat().st_size < 1 << 20 else b"large")
            else:
                what = ("folder" if stat.S_ISDIR(mode) else "other", b"")
            found[path.as_posix()] = what
    return found
