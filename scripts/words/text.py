"""Finds the comments of source files and their code spans, for check-comments and check-names."""

import ast
import io
import pathlib
import re
import subprocess
import tokenize

# Comments first, then literals that may contain their marks. A lone quote is a lifetime.
C_LIKE = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)|b?r(?P<hashes>\#*)".*?"(?P=hashes)|[bc]?"(?:\\.|[^"\\])*"|b?'(?:\\.[^'\n]*|[^'\\\n])'""",
    re.S,
)
SUFFIXES = {
    **dict.fromkeys([".rs", ".cu", ".cuh", ".c", ".h", ".cpp", ".hpp", ".wgsl"], "c"),
    ".py": "python",
    ".sh": "shell",
    ".md": "markdown",
}
SHELL_COMMENT = re.compile(r"(?:^|(?<=\s))#(?!!)(?=\s|$)[^\n]*", re.M)
FENCE = re.compile(r"^\s*(?:```|~~~)")
# Names of source files also count without backticks.
SOURCE = re.compile(r"(?<![\w./<-])[\w/]+\.(?:rs|cu|cuh)\b(?!\()")
SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.S)


def files(root):
    """Returns the paths of the repository's tracked files that exist, relative to its root."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, check=True, capture_output=True, text=True).stdout
    return [path for path in listed.split("\0") if path and (root / path).is_file()]


def language(path, source):
    """Returns the kind of comments of a file, or None."""
    suffix = pathlib.PurePath(path).suffix
    if suffix in SUFFIXES:
        return SUFFIXES[suffix]
    first = source.partition("\n")[0] if source.startswith("#!") else ""
    return "python" if "python" in first else "shell" if re.search(r"\b(ba|da)?sh\b", first) else None


def read(root, path):
    """Returns the text and the language of a file; no text if it is not UTF-8."""
    try:
        source = (root / path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return "", None
    return source, language(path, source)


def comments(source, kind):
    """Returns the comments of a source as pairs of start and end."""
    if kind == "c":
        return [found.span() for found in C_LIKE.finditer(source) if found["comment"]]
    if kind == "shell":
        return [found.span() for found in SHELL_COMMENT.finditer(source)]
    if kind == "python":
        return python_comments(source)
    return [(0, len(source))] if kind == "markdown" else []


def python_comments(source):
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and not token.string.startswith("#!"):
            start = starts[token.start[0] - 1] + token.start[1]
            found.append((start, start + len(token.string)))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node) is not None:
            text = node.body[0]
            found.append((starts[text.lineno - 1] + text.col_offset, starts[text.end_lineno] - 1))
    return sorted(found)


def without(source, spans):
    """Blanks the spans; every line stays."""
    for start, end in spans:
        source = source[:start] + re.sub(r"[^\n]", " ", source[start:end]) + source[end:]
    return source


def code_spans(source, kind):
    """Yields the line and the text of each code span in comments, outside fenced blocks, and of
    each name of a source file."""
    kept = without(source, gaps(comments(source, kind), len(source))).split("\n")
    fenced = False
    for number, line in enumerate(kept):
        bare = re.sub(r"^\s*(?://[/!]?|/?\*+|#)? ?", "", line) if kind != "markdown" else line
        if not line.strip():
            fenced = fenced and kind == "markdown"
        if FENCE.match(bare):
            fenced = not fenced
            kept[number] = ""
        else:
            kept[number] = "" if fenced else bare
    # A span may continue on the next line, but not beyond an empty one.
    start = 0
    for number in range(len(kept) + 1):
        if number == len(kept) or not kept[number].strip():
            block = "\n".join(kept[start:number])
            for found in SPAN.finditer(block):
                yield start + 1 + block[: found.start()].count("\n"), " ".join(found[2].split())
            for found in SOURCE.finditer(SPAN.sub(lambda span: re.sub(r"\S", " ", span[0]), block)):
                yield start + 1 + block[: found.start()].count("\n"), found[0]
            start = number + 1


def gaps(spans, length):
    """Returns what lies between the spans."""
    edges = [0, *(edge for span in spans for edge in span), length]
    return list(zip(edges[::2], edges[1::2]))
