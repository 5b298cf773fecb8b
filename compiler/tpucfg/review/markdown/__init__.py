"""The review as one Markdown comment."""
