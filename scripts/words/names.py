"""Finds names in backticks that do not exist, for scripts/check-names."""

import fnmatch
import functools
import pathlib
import re

import text

EXTENSIONS = "rs|cu|cuh|c|h|cpp|hpp|wgsl|py|sh|md|toml|lock|json|jsonl|txt|yml|npy|obj|ptx|png|gif"
PATH = re.compile(r"[\w.*{},@-]+(?:/[\w.*{},@-]+)*/?")
NAME = re.compile(r"&?(?P<name>[A-Za-z_]\w*(?:::\w+)*)!?(?:\(.*\)|<.*>)?(?:::\w+)?")
# CamelCase, snake_case with an underscore, or a path of `::`.
ITEM = re.compile(r"[A-Z]\w*[a-z]\w*|\w*[A-Za-z0-9]_\w+")
# Names that are not in the sources: the standard library, and products of a build or a run.
STANDARD = {"std", "core", "alloc", "cargo", "rustc", "rustdoc"}
MADE = ("target/", ".gpu/", "fuzz/corpus", "fuzz/artifacts")
# The change log may have old names; the lists of the public API are generated.
UNREAD = ("CHANGELOG.md", "docs/api/", "kernels/prebuilt/", "gpu-suite.json", "scripts/words/")


def alternatives(pattern):
    """Expands the first `{a,b}` of a path, and so on."""
    found = re.search(r"\{([^{}]*)\}", pattern)
    if not found:
        return [pattern]
    return [path for part in found[1].split(",") for path in alternatives(pattern[: found.start()] + part.strip() + pattern[found.end() :])]


class Sources:
    """The names of a repository's tracked files, and the words of their code."""

    def __init__(self, root):
        self.root = root
        self.files = text.files(root)
        self.read = {path: text.read(root, path) for path in self.files if not path.startswith(UNREAD)}
        self.paths = set(self.files)
        for path in self.files:
            self.paths |= {str(folder) for folder in pathlib.PurePath(path).parents}
        self.top = {path.split("/")[0] for path in self.files}
        self.words = set()
        for path, (source, kind) in self.read.items():
            if kind != "markdown":
                self.words |= set(re.findall(r"\w+", text.without(source, text.comments(source, kind))))
                self.words |= set(re.findall(r"\w+", path))
        lock = root / "Cargo.lock"
        packages = re.findall(r'^name = "(.*)"', lock.read_text(), re.M) if lock.exists() else []
        self.foreign = STANDARD | {name.replace("-", "_") for name in packages}
        own = re.findall(r'^name = "(.*)"\nversion = "[^"]*"\n(?!source)', lock.read_text(), re.M) if lock.exists() else []
        self.foreign -= {name.replace("-", "_") for name in own}

    @functools.cache
    def has_path(self, path):
        """Returns whether a path names a tracked file or folder, from the root or any folder."""
        path = re.sub(r"^(\.\.?/)+", "", path).rstrip("/")
        if "*" in path:
            return any(fnmatch.fnmatch(known, pattern) for known in self.paths for pattern in (path, f"*/{path}"))
        return path in self.paths or any(known.endswith(f"/{path}") for known in self.paths)

    def missing(self, span, beside):
        """Returns the paths and names of a code span that do not exist."""
        found = [word for word in span.split() if self.is_path(word) and not all(self.is_there(path, beside) for path in alternatives(word))]
        name = NAME.fullmatch(span)
        return found + ([name["name"]] if name and self.is_missing(name["name"]) else [])

    def is_there(self, path, beside):
        """Returns whether a path in the text of the file `beside` exists."""
        if "/" not in path and path.endswith(".rs") and beside.endswith(".rs"):
            # In Rust a bare file name is of the same side of the package: src, tests, examples.
            side = "/".join(beside.split("/")[: 3 if beside.startswith("crates/") else 1])
            return any(known.startswith(f"{side}/") and known.endswith(f"/{path}") for known in self.files)
        return self.has_path(path)

    def is_path(self, word):
        if not PATH.fullmatch(word) or word.startswith((*MADE, "-")):
            return False
        # A word of capitals is a placeholder.
        if re.search(r"(?<![a-z])[A-Z]{2,}(?!\w*\.md)", word) and not word.startswith("LICENSE"):
            return False
        named = re.search(rf"[\w*}}-]\.({EXTENSIONS})$", word) is not None
        return named or ("/" in word and word.split("/")[0] in self.top)

    def is_missing(self, name):
        segments = name.split("::")
        if segments[0] in self.foreign:
            return False
        if len(segments) == 1 and not ITEM.fullmatch(name):
            return False
        return any(segment not in self.words for segment in segments if segment not in ("self", "super", "crate"))


def breaches(root, allowed=()):
    """Returns the missing names: file and name, with the lines."""
    sources = Sources(root)
    found = {}
    for path, (source, kind) in sources.read.items():
        for line, span in text.code_spans(source, kind) if kind else ():
            for name in sources.missing(span, path):
                if name not in allowed:
                    found.setdefault((path, name), []).append(line)
    return found
