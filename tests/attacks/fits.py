"""Attacks on what is known to fit: forged, deleted, outdated and hostile results of compilations."""

import json
from collections.abc import Callable
from typing import Any, Final

from attacks.attack import Attack, append, delete, edit, link, together, write
from fit_repositories import FIT_STEP, PROGRAM, add_step, compiled, write_fits
from repositories import Repository
from tpucfg.fit.fit_file import fit_file_text, fit_path

_FILE: Final = "results/fit.json"
_SIZES: Final = ("v2-8", "v2-32", "v2-128")
_KNOWN: Final = dict.fromkeys(_SIZES, 3.2)
_TOO_MUCH: Final = dict.fromkeys(_SIZES, 23.26)
_RUN: Final = ("--fit", "../fit.json")
_LARGER_STEP: Final = append(PROGRAM, "# twice the layers\n")
_NOT_FROM_THIS_RUN: Final = "the fit is not known from this run"
_RAISED: Final = "  xla_flags: {v2: [--xla_tpu_max_hbm_size_mib=65536]}\n"
_NO_LONGER: Final = "the training step no longer fits: at least 23.26 of 7.48 GiB"
_OTHER_RESULT: Final = (
    "> - **every config**: `results/fit.json` has another result for the same program and flags"
)
_OPENED: Final = "`gate.fit` lets it start, and did not before: its result in `results/fit.json` is new, as committed"
_HOSTILE: Final = "x\x1b[2J\u202e</details> | @team `y"


def _base(repository: Repository) -> None:
    add_step(repository)
    write_fits(repository, _KNOWN)


def _fits(memory: dict[str, float]) -> Callable[[Repository], None]:
    return lambda repository: void(write_fits(repository, memory))


def _of_this_run(memory: dict[str, float]) -> Callable[[Repository], None]:
    return lambda repository: void(
        write_fits(repository, memory, repository.folder.parent / "fit.json")
    )


def void(_: object) -> None:
    """Return nothing."""


def _results(change: Callable[[dict[str, Any]], None]) -> Callable[[Repository], None]:
    """Change each result of the committed file."""

    def apply(repository: Repository) -> None:
        path = fit_path(repository.folder)
        data = json.loads(path.read_text())
        for result in data["results"]:
            change(result)
        path.write_text(json.dumps(data))

    return apply


def _run_file(content: Callable[[Repository], bytes]) -> Callable[[Repository], None]:
    return lambda repository: void(
        (repository.folder.parent / "fit.json").write_bytes(content(repository))
    )


def _one_of_another_version(repository: Repository) -> bytes:
    results = [
        result._replace(files={PROGRAM: "0" * 16})
        for result in compiled(repository.folder, dict(_KNOWN))
    ]
    return fit_file_text(results).encode()


ATTACKS: Final = (
    Attack(
        "forged-result-beside-a-larger-step",
        together(_LARGER_STEP, _fits(_KNOWN), _of_this_run(_TOO_MUCH)),
        (
            f"> - **every config**: {_NO_LONGER}, was 3.2 of 7.48 GiB",
            "`results/fit.json` has another result than this run",
        ),
        status=0,
        base=_base,
        arguments=_RUN,
    ),
    Attack(
        "forged-result-without-a-run",
        together(_LARGER_STEP, _fits({**_KNOWN, "v2-8": 1.2})),
        (
            "as committed in `results/fit.json`",
            "- v2-8 in dev, prod: 1.2 of 7.48 GiB (as committed), was 3.2",
        ),
        status=0,
        base=_base,
    ),
    Attack(
        "result-edited-by-hand",
        _fits(dict.fromkeys(_SIZES, 1.2)),
        (_OTHER_RESULT, "- v2-8 in dev, prod: 1.2 of 7.48 GiB (as committed), was 3.2"),
        status=0,
        base=_base,
    ),
    Attack(
        "lower-result-behind-another-version",
        together(
            _fits(dict.fromkeys(_SIZES, 1.2)), _results(lambda result: result.update(libtpu="9.9"))
        ),
        (_OTHER_RESULT,),
        status=0,
        base=_base,
    ),
    Attack(
        "program-left-out-of-a-result",
        _results(lambda result: result.update(files={})),
        (_OTHER_RESULT,),
        status=0,
        base=_base,
    ),
    Attack(
        "larger-step-left-out-of-a-result",
        together(_LARGER_STEP, _results(lambda result: result.update(files={}))),
        ("as committed in `results/fit.json`",),
        status=0,
        base=_base,
    ),
    Attack(
        "larger-step-with-the-result-of-the-smaller-one",
        together(_LARGER_STEP, _fits(_KNOWN)),
        ("- **every config**: its result in `results/fit.json` is new, as committed",),
        status=0,
        base=_base,
    ),
    Attack(
        "gate-kept-open-by-a-committed-result",
        together(_LARGER_STEP, _fits(_KNOWN)),
        (_OPENED,),
        status=0,
        base=together(
            _base, edit("tpucfg.yaml", ("version: 1\n", "version: 1\ngate: {fit: true}\n"))
        ),
    ),
    Attack(
        "larger-step-that-was-not-compiled",
        _LARGER_STEP,
        (f"the fit is not known any more: outdated by a change of `{PROGRAM}`",),
        status=0,
        base=_base,
    ),
    Attack(
        "results-deleted",
        delete(_FILE),
        ("the fit is not known any more: not compiled",),
        status=0,
        base=_base,
    ),
    Attack(
        "results-as-a-link",
        link(_FILE, "/proc/self/environ"),
        ("the fit is not known any more",),
        status=0,
        base=_base,
    ),
    Attack(
        "results-that-cannot-be-read",
        append(_FILE, "x"),
        (
            "`results/fit.json` cannot be read: `fit.json: it is not valid JSON",
            "the fit is not known any more",
        ),
        status=0,
        base=_base,
    ),
    Attack(
        "step-removed",
        edit("tpucfg.yaml", (FIT_STEP, "")),
        ("step to compile removed", "another function decides what is known to fit, or none"),
        status=0,
        base=_base,
    ),
    Attack(
        "step-exchanged",
        together(edit("tpucfg.yaml", ("fit:abstract_step", "fit:small_step")), _fits(_KNOWN)),
        ("another function decides what is known to fit",),
        status=0,
        base=_base,
    ),
    Attack(
        "gate-without-fit",
        edit("tpucfg.yaml", ("gate: {fit: true}\n", "")),
        ("gate `fit` removed (was `true`)",),
        status=0,
        base=together(
            _base, edit("tpucfg.yaml", ("version: 1\n", "version: 1\ngate: {fit: true}\n"))
        ),
    ),
    Attack(
        "gate-opened-by-a-committed-result",
        _fits(_KNOWN),
        (_OPENED,),
        status=0,
        base=together(
            add_step, edit("tpucfg.yaml", ("version: 1\n", "version: 1\ngate: {fit: true}\n"))
        ),
    ),
    Attack(
        "limit-of-the-memory-raised",
        together(
            edit("tpucfg.yaml", (FIT_STEP, FIT_STEP + _RAISED)),
            _fits(_KNOWN),
            _results(lambda result: result["hbm"].update(used=23 << 30, available=64 << 30)),
        ),
        (
            "a device is taken to have `64 GiB` of memory, previously `7.48 GiB`",
            "`--xla_tpu_max_hbm_size_mib",
        ),
        status=0,
        base=_base,
    ),
    Attack(
        "results-of-another-version-of-the-program",
        _run_file(_one_of_another_version),
        (
            f"{_NOT_FROM_THIS_RUN}: the result of its job is of another version of the program (`{PROGRAM}`)",
        ),
        status=0,
        base=_base,
        arguments=_RUN,
    ),
    Attack(
        "results-of-another-project",
        _run_file(
            lambda repository: (
                fit_path(repository.folder).read_bytes().replace(b'"mnist"', b'"other"')
            )
        ),
        ("the fit is not known from this run: not compiled",),
        status=0,
        base=_base,
        arguments=_RUN,
    ),
    Attack(
        "results-of-a-hundred-megabytes",
        _run_file(lambda _: b'{"version": 1, "results": [' + b" " * 100_000_000 + b"]}"),
        ("the fit is not known from this run: `fit.json: the file is larger than 8,388,608 bytes",),
        status=0,
        base=_base,
        arguments=_RUN,
    ),
    Attack(
        "no-results-of-this-run",
        _LARGER_STEP,
        (
            "the fit is not known from this run: `its job has left no fit.json`",
            "the fit is not known any more",
        ),
        status=0,
        base=_base,
        arguments=_RUN,
    ),
    Attack(
        "hostile-names-in-results",
        together(
            _LARGER_STEP,
            _results(lambda result: result["flags"].update({_HOSTILE: "1"})),
            _run_file(
                lambda _: json.dumps({"version": 1, "results": [], _HOSTILE: "@team"}).encode()
            ),
        ),
        ("the fit is not known from this run", "the fit is not known any more"),
        status=0,
        base=_base,
        arguments=_RUN,
        absent=("\x1b", "\u202e", "</details>\n"),
    ),
    Attack(
        "file-name-that-is-no-text",
        together(
            write(_FILE, ""),
            _fits(_KNOWN),
            _results(lambda result: result["files"].update({"a\ud800.py": "0" * 16})),
        ),
        ("the fit is not known any more",),
        status=0,
        base=_base,
    ),
    Attack(
        "results-pushed-out-of-the-export",
        together(
            _LARGER_STEP,
            _fits(_TOO_MUCH),
            *(write(f"a/{number}.txt", "") for number in range(5200)),
        ),
        (_NO_LONGER,),
        status=0,
        base=_base,
    ),
)
