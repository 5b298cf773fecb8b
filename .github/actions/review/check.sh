#!/usr/bin/env bash
# Checks SPEC, or without it every tpucfg.yaml, and compares the committed configs in the folder CONFIGS beside each spec
# with the spec. Annotates the lines of the pull request that findings are about.
set -euo pipefail

# As in tpucfg itself: no folder of the change is a repository, and none of its commands runs.
git() { command git -c safe.bareRepository=explicit -c core.fsmonitor= -c core.hooksPath=/dev/null "$@"; }

specs=("$SPEC")
[ -n "$SPEC" ] || mapfile -d '' -t specs < <(git ls-files -z -- tpucfg.yaml '*/tpucfg.yaml')
status=0
tpucfg check "${specs[@]/#/--spec=}" --format github || status=$?
for spec in "${specs[@]}"; do
  folder=$(dirname -- "$spec")/$CONFIGS
  [ ! -d "$folder" ] || tpucfg render --spec "$spec" --out "$folder" --check || status=$?
done
exit "$status"
