"""Parses Rust sources for scripts/check-rooms: which file uses which, and sizes of functions."""

import pathlib
import re

MAX_LINES = 80
MAX_ARGUMENTS = 6

# Longest first: what stands in them is no code. A lone quote is a lifetime.
OPAQUE = re.compile(
    r"""//[^\n]*|/\*.*?\*/|b?r(?P<hashes>\#*)".*?"(?P=hashes)|[bc]?"(?:\\.|[^"\\])*"|b?'(?:\\.[^'\n]*|[^'\\\n])'""",
    re.S,
)
CLOSING = {"{": "}", "(": ")", "[": "]"}


def without_text(source):
    """Blanks comments, strings and characters; positions and lines are unchanged."""
    return OPAQUE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), source)


def end_of(source, start):
    """Returns the position behind the bracket that closes the one at `start`."""
    opening, closing, depth = source[start], CLOSING[source[start]], 0
    for at in range(start, len(source)):
        depth += (source[at] == opening) - (source[at] == closing)
        if depth == 0:
            return at + 1
    return len(source)


def without_tests(source):
    """Blanks items under `#[cfg(test)]` and `#[test]` (`source` is without text)."""
    while found := re.search(r"#\[(?:cfg\((?:test|all\(test\b[^\]]*)\)|test)\]", source):
        end = re.compile(r"[;{]").search(source, found.end())
        end = len(source) if not end else end.end() if end[0] == ";" else end_of(source, end.start())
        source = source[: found.start()] + re.sub(r"[^\n]", " ", source[found.start() : end]) + source[end:]
    return source


def code(source):
    """Returns the code that the rules apply to. `pub(in a::b)` is no use of `b`."""
    return re.sub(r"\bpub\(in [^)]*\)", "pub", without_tests(without_text(source)))


def parts(text):
    """Splits at the commas outside all brackets; a trailing comma begins no part."""
    found, depth, start = [], 0, 0
    text = text.replace("->", "  ").replace("=>", "  ")
    for at, letter in enumerate(text):
        depth += (letter in "([{<") - (letter in ")]}>")
        if letter == "," and depth == 0:
            found.append(text[start:at].strip())
            start = at + 1
    return [part for part in [*found, text[start:].strip()] if part]


def functions(source):
    """Yields name, lines of code and arguments (besides `self`) of each function with a body."""
    for found in re.finditer(r"\bfn\s+(\w+)\s*", source):
        at = found.end()
        if source[at : at + 1] == "<":
            depth, arrows = 0, source.replace("->", "  ")
            while at < len(source):
                depth += (arrows[at] == "<") - (arrows[at] == ">")
                at += 1
                if depth == 0:
                    break
            at += len(source[at:]) - len(source[at:].lstrip())
        if source[at : at + 1] != "(":
            continue  # a pointer to a function, or the pattern of a macro
        close = end_of(source, at)
        arguments = [part for part in parts(source[at + 1 : close - 1]) if not re.search(r"^(&\s*)?('\w+\s+)?(mut\s+)?self\b", part)]
        body = re.compile(r"[;{]").search(source, close)
        if not body or body[0] == ";":
            continue
        lines = source[found.start() : end_of(source, body.start())].splitlines()
        yield found[1], sum(1 for line in lines if line.strip()), len(arguments)


def uses(tree):
    """Expands the tree of a `use` into paths and their names: `a::{b, c as d}` into a::b as b and
    a::c as d."""
    tree = tree.strip()
    brace = tree.find("{")
    if brace >= 0:
        head = tree[:brace].strip().removesuffix("::")
        for part in parts(tree[brace + 1 : end_of(tree, brace) - 1]):
            for path, name in uses(part):
                path = path[path[0] == "self" :] if head else path
                path = [*head.split("::"), *path] if head else path
                yield path, path[-1] if name == "self" else name
        return
    path, _, name = tree.partition(" as ")
    path = [segment.strip() for segment in path.split("::") if segment.strip()]
    if path:
        yield path, name.strip() or path[-1]


class Package:
    """The files of one source folder as modules."""

    def __init__(self, folder):
        self.files = {}
        # A program beside a library is a module with its own name.
        roots = ["lib.rs", "main.rs"] if not (folder / "lib.rs").exists() else ["lib.rs"]
        for file in sorted(folder.rglob("*.rs")):
            path = file.relative_to(folder).with_suffix("").parts
            if file.name == "mod.rs" or str(file.relative_to(folder)) in roots:
                path = path[:-1]
            self.files[path] = (file, code(file.read_text()))
        self.names = {module: self._imports(module) for module in self.files}

    def _imports(self, module):
        """Returns the paths of each name that `module` imports."""
        names = {}
        for inner, tree in self._statements(module):
            for path, name in uses(tree):
                if target := self._absolute(module + inner, path):
                    names[name] = target
        return names

    def _statements(self, module):
        source = self.files[module][1]
        for found in re.finditer(r"\buse\s+([^;]+);", source):
            yield self._inner(source, found.start()), " ".join(found[1].split())

    @staticmethod
    def _inner(source, at):
        """Returns the names of the `mod name { … }` around a position."""
        around = re.finditer(r"\bmod\s+(\w+)\s*\{", source[:at])
        return tuple(found[1] for found in around if end_of(source, found.end() - 1) > at)

    def _absolute(self, module, path):
        """Returns a path from the package's root, or None where it leads out of the package."""
        path = list(path)
        if path[0] in ("crate", "$crate"):
            return tuple(path[1:])
        base = module
        if path[0] in ("self", "super"):
            while path and path[0] in ("self", "super"):
                base = base[:-1] if path[0] == "super" else base
                path = path[1:]
            return base + tuple(path)
        return base + tuple(path) if base + (path[0],) in self.files else None

    def file_of(self, path, seen=()):
        """Returns the module whose file defines the path; re-exports are followed."""
        module = ()
        for depth, segment in enumerate(path):
            if module + (segment,) in self.files:
                module += (segment,)
                continue
            target = self.names.get(module, {}).get(segment)
            if target is not None and target not in seen:
                return self.file_of(target + tuple(path[depth + 1 :]), (*seen, target))
            break
        return module

    def edges(self):
        """Returns the modules that each one uses."""
        graph = {}
        for module, (_, source) in self.files.items():
            paths = [(inner, path) for inner, tree in self._statements(module) for path, _ in uses(tree)]
            outside = re.sub(r"\buse\s+[^;]+;", lambda found: re.sub(r"[^\n]", " ", found[0]), source)
            for found in re.finditer(r"(?<![\w:])\w+(?:::\w+)+", outside):
                paths.append((self._inner(outside, found.start()), found[0].split("::")))
            targets = set()
            for inner, path in paths:
                if path[-1] == "*":
                    path = path[:-1] or ["self"]
                if absolute := self._absolute(module + inner, path):
                    targets.add(self.file_of(absolute))
            graph[module] = targets - {module}
        return graph


def way(graph, start, end):
    """Returns a shortest way from a node to another, both included, or None."""
    before, left = {}, [start]
    for node in left:
        for target in sorted(graph.get(node, ())):
            if target not in before:
                before[target] = node
                left.append(target)
    if end not in before:
        return None
    found = [end]
    while len(found) == 1 or found[-1] != start:
        found.append(before[found[-1]])
    return found[::-1]


def breaches(root):
    """Returns the violations of the rules: a line for each, and the reason."""
    found = {}
    for file in programs(root):
        _add_sizes(found, str(file.relative_to(root)), code(file.read_text()))
    for folder in sorted([root / "src", *root.glob("*/src"), *root.glob("crates/*/src")]):
        if not folder.is_dir():
            continue
        package = Package(folder)
        name = {module: str(file.relative_to(root)) for module, (file, _) in package.files.items()}
        graph = package.edges()
        for module in graph:
            if circle := way(graph, module, module):
                short = [str(pathlib.Path(name[node]).relative_to(folder.relative_to(root))) for node in circle]
                found[f"circle {name[module]}"] = " -> ".join(short)
        for module, (_, source) in package.files.items():
            _add_sizes(found, name[module], source)
    _add_twins(found, root)
    return found


def _add_twins(found, root):
    """Adds the build scripts that say otherwise where a CUDA driver can be. Packages share no
    files, so each has a copy of these statements."""
    model = None
    for file in [root / "build.rs", *sorted(root.glob("crates/*/build.rs"))]:
        copy = re.findall(r"^ *let (?:target|has_driver) =[^;]*;", file.read_text(), re.M) if file.exists() else []
        model = model or copy
        if copy != model and copy:
            found[f"targets {file.relative_to(root)}"] = "not those of the other build scripts"


def programs(root):
    """Returns the examples, benchmarks, fuzz targets and build scripts."""
    packages = [root, root / "kernels", root / "fuzz", root / "mpi", *root.glob("crates/*")]
    folders = ["benches", "examples", "fuzz_targets"]
    files = [file for package in packages for folder in folders for file in (package / folder).rglob("*.rs")]
    return sorted([*files, *(package / "build.rs" for package in packages if (package / "build.rs").exists())])


def _add_sizes(found, name, source):
    """Adds the functions of a file that are too large, or have too many arguments."""
    for function, lines, arguments in functions(source):
        if lines > MAX_LINES:
            found[f"lines {name} {function} {lines}"] = f"more than {MAX_LINES} lines of code"
        if arguments > MAX_ARGUMENTS:
            found[f"arguments {name} {function} {arguments}"] = f"more than {MAX_ARGUMENTS}"
