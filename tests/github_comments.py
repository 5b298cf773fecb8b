"""A stand-in for the part of GitHub's REST API about the comments on a pull request.

It behaves as documented and observed: pages of at most 100 comments, of any author, and GitHub's error messages:
https://docs.github.com/rest/issues/comments
"""

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.message import Message
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from loopback import serving_json

BOT: Final = "github-actions[bot]"
NONE: Final = """\
<!-- tpucfg-review -->

### tpucfg review: failed for {}

There is no review of this commit; see [the run](https://github.com/acme/mnist/actions/runs/42) for the reason. \
**The effects of this commit are not known.**
"""
"""The comment without a review of the spec at the root, with a placeholder for the commit."""
LIMIT: Final = 65_536
"""The maximum number of characters."""
_LIST: Final = re.compile(r"/repos/([\w.-]+/[\w.-]+)/issues/(\d+)/comments")
_ONE: Final = re.compile(r"/repos/([\w.-]+/[\w.-]+)/issues/comments/(\d+)")


@dataclass
class Comments:
    """The comments on one pull request, and the requests about them."""

    repository: str = "acme/mnist"
    number: int = 7
    token: str = "ghs_" + "t" * 36
    may_write: bool = True
    """False for the token of a fork, whatever permissions the workflow requests."""
    is_busy: bool = False
    """True if the rate limit is exceeded: https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api."""
    url: str = ""
    listed: list[dict[str, Any]] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    """Each request: method, path and query."""

    def add(self, body: str, author: str = "ada") -> int:
        """Add a comment and return its id."""
        number = 1000 + len(self.listed)
        url = f"https://github.com/{self.repository}/pull/{self.number}#issuecomment-{number}"
        self.listed.append({"id": number, "body": body, "user": {"login": author}, "html_url": url})
        return number

    @property
    def ours(self) -> list[str]:
        """The comments of the bot."""
        return [comment["body"] for comment in self.listed if comment["user"]["login"] == BOT]

    @property
    def writes(self) -> list[str]:
        """The requests that are not reads."""
        return [call for call in self.calls if not call.startswith("GET")]

    def answer(self, method: str, target: str, headers: Message, body: Any) -> tuple[int, Any]:
        """Return the status and the body of a response."""
        self.calls.append(f"{method} {target}")
        url = urlsplit(target)
        path = _LIST.fullmatch(url.path) or _ONE.fullmatch(url.path)
        if headers["Authorization"] != f"Bearer {self.token}":
            return 401, {"message": "Bad credentials"}
        if not path or path[1] != self.repository:
            return 404, {"message": "Not Found"}
        return self._page(url.query) if method == "GET" else self._write(method, int(path[2]), body)

    def _page(self, query: str) -> tuple[int, Any]:
        parameters = {key: int(values[0]) for key, values in parse_qs(query).items()}
        size, page = min(parameters.get("per_page", 30), 100), parameters.get("page", 1)
        return 200, self.listed[(page - 1) * size : page * size]

    def _write(self, method: str, number: int, body: Any) -> tuple[int, Any]:
        if self.is_busy:
            return 403, {"message": "You have exceeded a secondary rate limit."}
        if not self.may_write:
            return 403, {"message": "Resource not accessible by integration"}
        if len(body["body"]) > LIMIT:
            return 422, {"message": f"Body is too long (maximum is {LIMIT} characters)"}
        if method == "POST":
            self.add(body["body"], BOT)
            return 201, self.listed[-1]
        comment = next(
            (own for own in self.listed if own["id"] == number and own["user"]["login"] == BOT),
            None,
        )
        if comment is None:
            return 404, {"message": "Not Found"}
        comment["body"] = body["body"]
        return 200, comment


@contextlib.contextmanager
def serving(comments: Comments) -> Iterator[Comments]:
    """Serve the comments until the context ends; `comments.url` is the address."""
    with serving_json(comments.answer) as comments.url:
        yield comments
