"""The gate before a merge, `.ci/run`."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_ci_runs_the_test_command_of_the_readme() -> None:
    """A reader of the README can run the tests that CI runs."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    commands = (ROOT / ".ci/run").read_text(encoding="utf-8").splitlines()

    assert "`make test`" in readme
    assert "make test" in commands


def test_ci_runs_every_target_with_tests() -> None:
    """Each target that starts pytest, but for `quick`, is one of CI, and so are the kinds that slow-test omits."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", "")
    recipes = dict(re.findall(r"^([a-z-]+):.*\n((?:\t.*\n)+)", makefile, re.MULTILINE))
    with_tests = {
        name: recipe
        for name, recipe in recipes.items()
        if re.search(r"PYTEST|/pytest|freeze\.py", recipe)
    }
    called = {
        word
        for line in re.findall(r"make (.+)", (ROOT / ".ci/run").read_text())
        for word in line.split()
    }

    assert with_tests.keys() - {"quick"} <= called
    heavy, apart = re.findall(
        r"^(?:HEAVY|APART) := (?:\$\(HEAVY\) or )?(.+)", makefile, re.MULTILINE
    )
    kinds = {*f"{heavy} or {apart}".split(" or ")}
    selections = re.findall(
        r"-m ('[^']+'|\S+)",
        " ".join(with_tests.values()).replace(r"$(APART)", "").replace(r"$(HEAVY)", heavy),
    )
    assert kinds <= {*re.findall(r"\w+", " ".join(selections))}
