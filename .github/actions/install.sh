#!/usr/bin/env bash
# Installs what runs beside an identity into FOLDER/.venv, all of it pinned by hashes: the packages of tpucfg's own lock,
# tpucfg without its dependencies, and the lock of the project, FOLDER/stacks/requirements.lock, if there is one. The
# address of tpucfg, a commit or a wheel, is that of FOLDER/stacks/requirements.txt, or of REQUIREMENT.
# Usage: install.sh FOLDER REQUIREMENT
set -euo pipefail

folder=$1
stated=$folder/stacks/requirements.txt lock=$folder/stacks/requirements.lock
fail() {
  printf '::error title=tpucfg install::%q: %s\n' "$stated" "$1"
  exit 1
}
requirement=$(grep -sE -m 1 '^tpucfg(\[infra\])? @ ' "$stated") || requirement=$2
if [ ! -f "$lock" ] && grep -qsvE '^[[:space:]]*(#|$|tpucfg(\[infra\])? @ )' "$stated"; then
  fail "it names packages of its own, and there is no requirements.lock with their hashes; create it in this folder: uv pip compile --generate-hashes --no-emit-package tpucfg requirements.txt --output-file requirements.lock"
fi
address=${requirement#*@ }
address=${address%%[[:space:]]*}

python -I -m venv --clear "$folder/.venv"
install=("$folder/.venv/bin/python" -I -m pip install --quiet --disable-pip-version-check)
if [[ $address =~ ^git\+(.+)@([0-9a-f]{40}([0-9a-f]{24})?)$ ]]; then
  source=$(mktemp --directory)
  git init --quiet "$source"
  git -C "$source" fetch --quiet --depth 1 -- "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}"
  git -C "$source" checkout --quiet --detach FETCH_HEAD
  "${install[@]}" --require-hashes --requirement "$source/requirements-infra.txt"
  # The lock has the packages that build it.
  "${install[@]}" --no-deps --no-build-isolation "$source"
elif [[ $address =~ ^https://.+\.whl#sha256=[0-9a-f]{64}$ ]]; then
  "${install[@]}" --no-deps "tpucfg @ $address"
  "${install[@]}" --require-hashes --requirement "$folder"/.venv/lib/python3*/site-packages/tpucfg/requirements-infra.txt
else
  fail "tpucfg is not pinned by a commit or a hash"
fi
[ ! -f "$lock" ] || "${install[@]}" --require-hashes --requirement "$lock"
"$folder/.venv/bin/python" -I -m pip check
