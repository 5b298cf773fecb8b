#!/usr/bin/env bash
# Writes the commit that the earlier comment on the pull request NUMBER is about to $RUNNER_TEMP/tpucfg-reviewed, and
# fetches it, so that the review can name what is new. Runs before any code of the pull request, which never gets the
# token. Without an earlier comment, or if it cannot be read, there is no such file, and the review says nothing of it.
set -euo pipefail

output="$RUNNER_TEMP/tpucfg-reviewed"
rm -f "$output"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(
  umask 077
  printf 'header = "%s"\n' "Authorization: Bearer $TOKEN" 'Accept: application/vnd.github+json' \
    'X-GitHub-Api-Version: 2022-11-28' > "$work/headers"
)

page=1 body=''
while [ -z "$body" ] && [ "$page" -le 10 ]; do
  curl --silent --show-error --fail --config "$work/headers" --output "$work/answer" --max-time 60 \
    "$GITHUB_API_URL/repos/$GITHUB_REPOSITORY/issues/$NUMBER/comments?per_page=100&page=$page"
  # Anyone can write the marker, so the author must match as well.
  body=$(jq --raw-output --arg author "$AUTHOR" 'map(select(.user.login == $author and
    (.body // "" | startswith("<!-- tpucfg-review"))) | .body) | first // empty' "$work/answer")
  [ "$(jq length "$work/answer")" = 100 ] || break
  page=$((page + 1))
done

# The second line only: a text from a spec could contain such a line further below.
line=$(sed -n '2s/\r*$//p' <<< "$body")
[[ $line =~ ^\<!--\ tpucfg-reviewed:\ ([0-9a-f]{40,64})(\ since\ ([0-9a-f]{40,64}))?\ --\>$ ]] || exit 0
commit=${BASH_REMATCH[1]}
# Another run for the same commit compares with the same commit as the first one.
[ "$commit" != "$(git rev-parse HEAD)" ] || commit=${BASH_REMATCH[3]}
[ -n "$commit" ] || exit 0
echo "$commit" > "$output"
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0="http.$GITHUB_SERVER_URL/.extraheader"
GIT_CONFIG_VALUE_0="AUTHORIZATION: basic $(printf 'x-access-token:%s' "$TOKEN" | base64 --wrap=0)"
export GIT_CONFIG_VALUE_0
# A trial merge and both of its parents. A commit that was pushed away may be gone, which the review reports.
git fetch --quiet --no-tags --depth=2 origin "$commit" || echo "The commit $commit cannot be fetched any more."
