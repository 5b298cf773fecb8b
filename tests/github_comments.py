"""A stand-in of the part of GitHub's REST API that a pull request's comments need, on the loopback.

It behaves as documented and observed: pages of at most 100, comments of everybody on the pull request, refusals in
GitHub's words. https://docs.github.com/rest/issues/comments
"""

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.message import Message
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from loopback import answering

BOT: Final = "github-actions[bot]"
NONE: Final = """\
<!-- tpucfg-review -->

### tpucfg review: failed for {}

There is no review of this commit; see [the run](https://github.com/acme/mnist/actions/runs/42) for the reason. \
**The effects of this commit are not known.**
"""
"""The comment where a review of the spec at the root did not come about, with the commit's place."""
LIMIT: Final = 65_536
"""Characters of a comment."""
_LIST: Final = re.compile(r"/repos/([\w.-]+/[\w.-]+)/issues/(\d+)/comments")
_ONE: Final = re.compile(r"/repos/([\w.-]+/[\w.-]+)/issues/comments/(\d+)")


@dataclass
class Comments:
    """The comments of one pull request, and what was asked about them."""

    repository: str = "acme/mnist"
    number: int = 7
    token: str = "ghs_" + "t" * 36
    may_write: bool = True
    """Whether the token may; that of a fork may not, whatever the workflow asks for."""
    is_busy: bool = False
    """Whether too much was asked: https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api."""
    url: str = ""
    listed: list[dict[str, Any]] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    """Each request: method, path and query."""

    def add(self, body: str, author: str = "ada") -> int:
        """Somebody writes a comment; its id."""
        number = 1000 + len(self.listed)
        url = f"https://github.com/{self.repository}/pull/{self.number}#issuecomment-{number}"
        self.listed.append({"id": number, "body": body, "user": {"login": author}, "html_url": url})
        return number

    @property
    def ours(self) -> list[str]:
        """What the bot wrote."""
        return [comment["body"] for comment in self.listed if comment["user"]["login"] == BOT]

    @property
    def writes(self) -> list[str]:
        """The requests that change something."""
        return [call for call in self.calls if not call.startswith("GET")]

    def answer(self, method: str, target: str, headers: Message, body: Any) -> tuple[int, Any]:
        """Status and answer."""
        self.calls.append(f"{method} {target}")
        url = urlsplit(target)
        where = _LIST.fullmatch(url.path) or _ONE.fullmatch(url.path)
        if headers["Authorization"] != f"Bearer {self.token}":
            return 401, {"message": "Bad credentials"}
        if not where or where[1] != self.repository:
            return 404, {"message": "Not Found"}
        return self._page(url.query) if method == "GET" else self._write(method, int(where[2]), body)

    def _page(self, query: str) -> tuple[int, Any]:
        asked = {key: int(values[0]) for key, values in parse_qs(query).items()}
        size, page = min(asked.get("per_page", 30), 100), asked.get("page", 1)
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
        found = next((it for it in self.listed if it["id"] == number and it["user"]["login"] == BOT), None)
        if found is None:
            return 404, {"message": "Not Found"}
        found["body"] = body["body"]
        return 200, found


@contextlib.contextmanager
def serving(comments: Comments) -> Iterator[Comments]:
    """Answer for as long as the block lasts; `comments.url` is where."""
    with answering(comments.answer) as comments.url:
        yield comments
