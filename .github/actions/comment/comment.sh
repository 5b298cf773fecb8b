#!/usr/bin/env bash
# Posts the file COMMENT on the pull request NUMBER as one comment: creates it, or replaces the earlier comment by
# AUTHOR if the text differs. A hidden marker in the first line identifies the comment; it names the spec, unless that is
# the default. If COMMENT contains no review of SPEC, posts that there is no review of COMMIT, so that the review of an
# earlier commit is not mistaken for one of this commit. The job that wrote COMMENT also ran the program of the pull
# request, so nothing but the text of the comment is taken from it: above all, it does not choose what is replaced.
set -euo pipefail

MAX_BYTES=262144 # GitHub accepts 65,536 characters, of at most 4 bytes
comments="$GITHUB_API_URL/repos/$GITHUB_REPOSITORY/issues/$NUMBER/comments"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

call() { # METHOD URL [FILE]: prints the HTTP status, and writes the response to $work/answer
  local data=()
  [ $# -lt 3 ] || data=(--data-binary "@$3")
  # The token is passed in a file, because other processes can read the arguments of a process.
  curl --silent --show-error --config "$work/headers" --output "$work/answer" --write-out '%{http_code}' \
    --max-time 60 --request "$1" "${data[@]}" "$2"
}

failed() { # STATUS ACTION: ends the script because the API rejected a call
  local message
  message=$(jq -r '.message // empty' "$work/answer" 2>/dev/null || true)
  # The token of a fork is read-only. A rate limit also returns 403, but has to fail: the comment would be outdated.
  if $reviewed && { [ "$1" = 403 ] || [ "$1" = 404 ]; } && [[ ${message,,} != *'rate limit'* ]]; then
    echo "::notice title=tpucfg review::The token may not $2, so the review is in the summary of this run."
    exit 0
  fi
  echo "The comment could not be written: to $2, $GITHUB_API_URL returned $1 $message" >&2
  exit 1
}

marker_of() { # SPEC: prints the marker of its review, with the characters escaped that @uri of jq 1.6 leaves unescaped
  jq --null-input --raw-output --arg spec "${1#./}" '$spec | if . == "tpucfg.yaml" then "" else ": " + reduce
    (["%2F", "/"], ["--", "%2D%2D"], ["!", "%21"], ["*", "%2A"], ["\u0027", "%27"], ["(", "%28"], [")", "%29"])
    as [$from, $to] (@uri; split($from) | join($to)) end | "<!-- tpucfg-review\(.) -->"'
}

is_review() { # FILE: succeeds for a file that starts with the marker
  [ -f "$1" ] && [ ! -L "$1" ] && [ "$(wc -c < "$1")" -le "$MAX_BYTES" ] && [ "$(head -n 1 "$1" | tr -d '\0')" = "$marker" ]
}

no_review() { # prints a comment without a review; it contains no text from the pull request except the commit id
  local subject='this commit'
  ! [[ $COMMIT =~ ^[0-9a-f]{40,64}$ ]] || subject=${COMMIT:0:12}
  printf '%s\n\n### tpucfg review: failed for %s\n\n' "$marker" "$subject"
  printf 'There is no review of this commit; see [the run](%s) for the reason. ' \
    "$GITHUB_SERVER_URL/$GITHUB_REPOSITORY/actions/runs/$GITHUB_RUN_ID"
  printf '**The effects of this commit are not known.**\n'
}

(
  umask 077
  printf 'header = "%s"\n' "Authorization: Bearer $TOKEN" 'Accept: application/vnd.github+json' \
    'X-GitHub-Api-Version: 2022-11-28' 'Content-Type: application/json' > "$work/headers"
)
reviewed=true marker=$(marker_of "${SPEC:-tpucfg.yaml}")
if ! is_review "$COMMENT"; then
  echo "There is no review in $COMMENT: the file is missing or too large, or its first line is not $marker" >&2
  reviewed=false COMMENT="$work/none"
  no_review > "$COMMENT"
fi
jq --null-input --rawfile body "$COMMENT" '{body: $body}' > "$work/new"

page=1 found=''
while [ -z "$found" ]; do
  status=$(call GET "$comments?per_page=100&page=$page")
  [ "$status" = 200 ] || failed "$status" 'read the comments'
  # Anyone can write the marker, so the author must match as well.
  found=$(jq --compact-output --arg marker "$marker" --arg author "$AUTHOR" \
    'map(select(.user.login == $author and (.body // "" | startswith($marker)))) | first // empty' "$work/answer")
  [ "$(jq length "$work/answer")" = 100 ] || break
  page=$((page + 1))
done

if [ -z "$found" ]; then
  status=$(call POST "$comments" "$work/new")
  [ "$status" = 201 ] || failed "$status" 'write a comment'
  echo "Created the comment: $(jq -r .html_url "$work/answer")"
elif jq --exit-status --slurpfile new "$work/new" \
  'def plain: gsub("\r\n"; "\n") | sub("\n+$"; ""); (.body | plain) == ($new[0].body | plain)' <<< "$found" > /dev/null; then
  echo 'The comment is already up to date.'
else
  status=$(call PATCH "${comments%/*/comments}/comments/$(jq -r .id <<< "$found")" "$work/new")
  [ "$status" = 200 ] || failed "$status" 'change the comment'
  echo "Updated the comment: $(jq -r .html_url "$work/answer")"
fi
$reviewed # fail the step if there was no review
