"""Exceptions that end a command with an error for its user, and with the edit or command that solves it."""


class RefusalError(Exception):
    """A problem that the user can solve."""

    def __init__(self, message: str, help: str = "") -> None:
        super().__init__(message)
        self.help = help
        """The edit or the command that solves it, as an imperative."""


class UsageError(RefusalError):
    """A command or an option that does not fit the spec."""
