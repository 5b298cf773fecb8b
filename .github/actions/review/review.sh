#!/usr/bin/env bash
# Writes the review of HEAD against the revision BASE to the file COMMENT and to the summary of the job: of SPEC, or without
# it of every spec that the change affects. In the folder RESOURCES, base/base.json and head/head.json have what the stack
# programs of both revisions declare; nothing of them runs here. In the folder PREVIEWS, FOLDER/ENV.jsonl is the preview of
# an environment of the project in FOLDER; anything else in it is an error, because the comment would show the content of
# the file that a link leads to. In the folder FITS, FOLDER/fit.json has the results of the job that compiled the project
# in FOLDER; where it has none, the comment states that.
set -euo pipefail

# As in tpucfg itself: no folder of the change is a repository, and none of its commands runs.
git() { command git -c safe.bareRepository=explicit -c core.fsmonitor= -c core.hooksPath=/dev/null "$@"; }

arguments=(--base "$BASE" --head HEAD --fail-on "$FAIL_ON")
[ -z "$SPEC" ] || arguments+=(--spec "$SPEC")
if [ -n "$RESOURCES" ]; then
  # The jobs that wrote them ran the programs: only files of fixed names are read, and no links followed.
  [ ! -d "$RESOURCES" ] || find "$RESOURCES" -mindepth 1 ! -type f ! -type d -delete
  arguments+=(--resources "$RESOURCES/base/base.json" "$RESOURCES/head/head.json")
fi
if [ -n "$PREVIEWS" ] && [ -d "$PREVIEWS" ]; then
  while IFS= read -r -d '' path; do
    file=$PREVIEWS/$path
    if [ -L "$file" ] || ! [ -f "$file" ] || ! [[ $path =~ ^([^/=]+/)*[a-z]([-a-z0-9]{0,28}[a-z0-9])?\.jsonl$ ]]; then
      # Quoted by %q, because a line break in the name could start a command of the workflow.
      printf '::error title=tpucfg review::%q in the folder of previews is no file called ENV.jsonl\n' "$path"
      exit 1
    fi
    arguments+=(--preview "${path%.jsonl}=$file")
  done < <(find "$PREVIEWS" -mindepth 1 ! -type d -printf '%P\0' | sort -z)
fi
if [ -n "$FITS" ] && [ -d "$FITS" ]; then
  # The job that wrote them ran the program of the change: only files of fixed names are read, and no links followed.
  find "$FITS" -mindepth 1 ! -type f ! -type d -delete
  specs=("$SPEC")
  [ -n "$SPEC" ] || mapfile -d '' -t specs < <(git ls-files -z -- tpucfg.yaml '*/tpucfg.yaml')
  for spec in "${specs[@]}"; do
    folder=$(dirname -- "$spec")
    # The option ends a folder's name at the first equals sign.
    [[ $folder == *=* ]] || arguments+=(--fit "$folder=$FITS/$folder/fit.json")
  done
fi
status=0
tpucfg review "${arguments[@]}" > "$COMMENT" || status=$?
cat "$COMMENT" >> "$GITHUB_STEP_SUMMARY" # visible even without permission to write a comment, as on a fork
exit "$status"
