#!/usr/bin/env bash
# Puts the file COMMENT on the pull request NUMBER as one comment: a new one, or in place of the one that AUTHOR wrote
# before, and nothing where that says the same. A comment is found by the hidden marker in its first line, which names a
# spec that is not the only one. Without a review of SPEC in COMMENT the comment says that there is none of COMMIT, so
# that what an earlier commit changed is not taken for what this one does.
set -euo pipefail

comments="$GITHUB_API_URL/repos/$GITHUB_REPOSITORY/issues/$NUMBER/comments"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

call() { # METHOD URL [FILE]: the status; the answer is left in $work/answer
  local data=()
  [ $# -lt 3 ] || data=(--data-binary "@$3")
  # The token comes by a file, as the arguments of a process can be read by others.
  curl --silent --show-error --config "$work/headers" --output "$work/answer" --write-out '%{http_code}' \
    --max-time 60 --request "$1" "${data[@]}" "$2"
}

failed() { # STATUS WHAT
  local said
  said=$(jq -r '.message // empty' "$work/answer" 2>/dev/null || true)
  # As for a fork, whose token only reads. Who asked too much is answered 403 as well, and has a comment that is old.
  if $reviewed && { [ "$1" = 403 ] || [ "$1" = 404 ]; } && [[ ${said,,} != *'rate limit'* ]]; then
    echo "::notice title=tpucfg review::The token may not $2, so the review is in the summary of this run."
    exit 0
  fi
  echo "The comment could not be written: to $2, $GITHUB_API_URL answered $1 $said" >&2
  exit 1
}

marker_of() { # SPEC: the same as in a review of it; jq 1.6 leaves some of what is escaped there
  jq --null-input --raw-output --arg spec "${1#./}" '$spec | if . == "tpucfg.yaml" then "" else ": " + reduce
    (["%2F", "/"], ["--", "%2D%2D"], ["!", "%21"], ["*", "%2A"], ["\u0027", "%27"], ["(", "%28"], [")", "%29"])
    as [$from, $to] (@uri; split($from) | join($to)) end | "<!-- tpucfg-review\(.) -->"'
}

no_review() { # the comment where there is none; nothing in it is from the pull request, but for the commit's id
  local of='this commit'
  ! [[ $COMMIT =~ ^[0-9a-f]{40,64}$ ]] || of=${COMMIT:0:12}
  printf '%s\n\n### tpucfg review: failed for %s\n\n' "$(marker_of "$SPEC")" "$of"
  printf 'There is no review of this commit: [the run](%s) says why. **What it changes is not known.**\n' \
    "$GITHUB_SERVER_URL/$GITHUB_REPOSITORY/actions/runs/$GITHUB_RUN_ID"
}

(
  umask 077
  printf 'header = "%s"\n' "Authorization: Bearer $TOKEN" 'Accept: application/vnd.github+json' \
    'X-GitHub-Api-Version: 2022-11-28' 'Content-Type: application/json' > "$work/headers"
)
reviewed=true marker=''
[ ! -f "$COMMENT" ] || marker=$(head -n 1 "$COMMENT")
if ! [[ $marker =~ ^'<!-- tpucfg-review'(': '[A-Za-z0-9/._%~-]+)?' -->'$ ]]; then
  echo "There is no review in $COMMENT: none was written, or its first line is not <!-- tpucfg-review -->" >&2
  reviewed=false COMMENT="$work/none"
  no_review > "$COMMENT"
  marker=$(head -n 1 "$COMMENT")
fi
jq --null-input --rawfile body "$COMMENT" '{body: $body}' > "$work/new"

page=1 found=''
while [ -z "$found" ]; do
  status=$(call GET "$comments?per_page=100&page=$page")
  [ "$status" = 200 ] || failed "$status" 'read the comments'
  # Ours is one that begins with the marker and that the same account wrote: anybody may write a marker.
  found=$(jq --compact-output --arg marker "$marker" --arg author "$AUTHOR" \
    'map(select(.user.login == $author and (.body // "" | startswith($marker)))) | first // empty' "$work/answer")
  [ "$(jq length "$work/answer")" = 100 ] || break
  page=$((page + 1))
done

if [ -z "$found" ]; then
  status=$(call POST "$comments" "$work/new")
  [ "$status" = 201 ] || failed "$status" 'write a comment'
  echo "A new comment: $(jq -r .html_url "$work/answer")"
elif jq --exit-status --slurpfile new "$work/new" \
  'def plain: gsub("\r\n"; "\n") | sub("\n+$"; ""); (.body | plain) == ($new[0].body | plain)' <<< "$found" > /dev/null; then
  echo 'The comment says the same already.'
else
  status=$(call PATCH "${comments%/*/comments}/comments/$(jq -r .id <<< "$found")" "$work/new")
  [ "$status" = 200 ] || failed "$status" 'change the comment'
  echo "The comment is brought up to date: $(jq -r .html_url "$work/answer")"
fi
$reviewed # or the step fails
