"""The check that many a team has: PyYAML and jsonschema. `check.py SCHEMA FOLDER`."""

import json
import sys
from pathlib import Path

import jsonschema
import yaml

schema, folder = map(Path, sys.argv[1:])
validator = jsonschema.Draft202012Validator(json.loads(schema.read_text()))
status = 0
for path in sorted(folder.rglob("*.yaml")):
    for error in validator.iter_errors(yaml.load(path.read_text(), yaml.CSafeLoader)):
        print(f"{path}: {error.json_path}: {error.message}")
        status = 1
sys.exit(status)
