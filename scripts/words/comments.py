"""Finds the lines of comments that are too long, for scripts/check-comments."""

import re

import text

MAX_COLUMNS = 100
# Lines that cannot be wrapped: a row of a table, and one long word, such as an address.
UNBREAKABLE = re.compile(r"^\s*(?://[/!]?|\#|\*)?\s*(?:\|.*\||\S+)\s*$")


def long_lines(source, kind):
    """Returns the numbers of the lines of comments that are too long."""
    lines = source.splitlines()
    found = set()
    for start, end in text.comments(source, kind):
        first = source.count("\n", 0, start)
        last = source.count("\n", 0, max(start, end - 1))
        found |= {line for line in range(first, min(last + 1, len(lines))) if len(lines[line]) > MAX_COLUMNS}
    return sorted(line + 1 for line in found if not UNBREAKABLE.match(lines[line]))


def breaches(root):
    """Returns the lines that are too long, by file."""
    found = {}
    for path in text.files(root):
        source, kind = text.read(root, path)
        if kind not in (None, "markdown") and (lines := long_lines(source, kind)):
            found[path] = lines
    return found
