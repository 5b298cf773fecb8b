"""Import each JobSet of a folder and print which specs render it again.

    python benchmarks/import_jobsets.py FOLDER [--notes]

A file with placeholders of a shell is no JobSet yet: fill them in first. The exit status is 1 if a config differs.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "compiler"))

from tpucfg.catalog import Catalog
from tpucfg.importing import Given, ImportRefusedError, import_config
from tpucfg.importing.comparison import tables
from tpucfg.yamldoc.reader import read_file


def main(folder: str, *options: str) -> int:
    """Print a line for each file, and the count; return the exit status."""
    files = sorted(Path(folder).glob("*.yaml"))
    equal = 0
    for file in files:
        given = Given(project="my-project", batch_size=1024, train_steps=30)
        try:
            imported = import_config(read_file(file, several=True), given, Catalog())
        except ImportRefusedError as error:
            print(f"refused  {file.name}: {error}")
            continue
        # What no import carries over changes nothing about the job.
        differing = [
            note for note in imported.notes if note.reason not in tables()["left_out"].values()
        ]
        equal += not differing
        print(f"{'differs' if differing else 'equal':<8} {file.name}")
        for note in imported.notes:
            if note in differing or "--notes" in options:
                print(f"         {note}")
    print(f"{equal} of {len(files)} equal")
    return 0 if equal == len(files) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
