"""The review as one Markdown comment on a pull request."""
