"""Tests of comments.py and names.py: python3 -m unittest discover -s scripts/words"""

import pathlib
import subprocess
import tempfile
import unittest

import comments
import names
import text

LONG = "long " * 25


def repository(folder, **files):
    """Makes a repository with these files; in their names `__` stands for `/`, and `_` before the
    extension for a dot."""
    for name, source in files.items():
        path = pathlib.Path(folder, *name.split("__"))
        path = path.with_name(".".join(path.name.rsplit("_", 1)))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)
    subprocess.run(["git", "add", "."], cwd=folder, check=True)
    return pathlib.Path(folder)


class Comments(unittest.TestCase):
    def found(self, source, kind):
        return [source[start:end] for start, end in text.comments(source, kind)]

    def test_text_is_no_comment(self):
        source = """a // one\n"// \\" no" r#"// " no"# '"' /* two\nlines */ <'e> // three"""
        self.assertEqual(self.found(source, "c"), ["// one", "/* two\nlines */", "// three"])

    def test_shell(self):
        self.assertEqual(self.found('#!/bin/sh\n# one\na=${b#c} $# # two\n', "shell"), ["# one", "# two"])

    def test_python(self):
        source = '#!/usr/bin/env python3\n"""One\ntwo."""\na = "# no" # three\ndef f():\n    """Four."""\n'
        self.assertEqual(self.found(source, "python"), ['"""One\ntwo."""', "# three", '"""Four."""'])

    def test_language(self):
        for path, source, kind in [
            ("a.rs", "", "c"), ("a", "#!/usr/bin/env bash\n", "shell"), ("a", "#!/usr/bin/python3\n", "python"),
            ("a.md", "", "markdown"), ("a", "#comment\n", None), ("a.toml", "# bash\n", None),
        ]:
            self.assertEqual(text.language(path, source), kind, (path, source))

    def test_long_lines(self):
        for source, kind, lines in [
            (f"// {LONG}\n//! {LONG}\n", "c", [1, 2]),
            (f"let a = 1; // {LONG}\n", "c", [1]),
            (f'let a = "{LONG}";\n', "c", []),
            (f"/* a\n * {LONG}\n */\n", "c", [2]),
            ("//" + " " * 2 + "x" * 96 + "\n", "c", []),
            (f"// | {LONG} | b |\n// https://a.example/{'b' * 100}\n", "c", []),
            (f"# {LONG}\n{LONG}\n", "shell", [1]),
            (f'"""a\n\n{LONG}\n"""\n', "python", [3]),
        ]:
            self.assertEqual(comments.long_lines(source, kind), lines, source)

    def test_the_columns_that_fit(self):
        words = "// " + "ab " * 32
        self.assertEqual(comments.long_lines(words + "c", "c"), [])
        self.assertEqual(comments.long_lines(words + "cd", "c"), [1])

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            root = repository(folder, a__b_rs=f"// ok\n// {LONG}\n", c_md=LONG, d_py="a = 1\n")
            self.assertEqual(comments.breaches(root), {"a/b.rs": [2]})


class Spans(unittest.TestCase):
    def spans(self, source, kind="c"):
        return list(text.code_spans(source, kind))

    def test_comments_alone(self):
        self.assertEqual(self.spans("/// See `a::b`\nlet c = `d`; // and `e`,\n// `f g\n//  h`"), [(1, "a::b"), (2, "e"), (3, "f g h")])

    def test_fences(self):
        self.assertEqual(self.spans("a `b`\n```rust\n`c`\n```\n`d` ``e ` f``\n", "markdown"), [(1, "b"), (5, "d"), (5, "e ` f")])
        self.assertEqual(self.spans("//! ```\n//! `a`\n//! ```\n//! `b`\n"), [(4, "b")])

    def test_source_files_without_backticks(self):
        self.assertEqual(self.spans("// as in cuda/order.rs: `a.rs`, not a.rs() or a.rst\n"), [(1, "a.rs"), (1, "cuda/order.rs")])


class Names(unittest.TestCase):
    def missing(self, page, **files):
        with tempfile.TemporaryDirectory() as folder:
            root = repository(folder, page_md=page, **files)
            return [name for path, name in names.breaches(root, {"Allowed"})]

    def test_names(self):
        code = "struct Here; fn is_here() {} // gone_too"
        for span, found in [
            ("Here", []), ("is_here()", []), ("Here::is_here(&[u8])", []), ("&Here", []), ("Here<'a>", []),
            ("Gone", ["Gone"]), ("is_gone", ["is_gone"]), ("Here::gone", ["Here::gone"]), ("gone_too", ["gone_too"]),
            ("gone", []), ("Allowed", []), ("std::fs::gone", []), ("a Gone b", []), ("--gone_option", []),
        ]:
            self.assertEqual(self.missing(f"`{span}`", a_rs=code), found, span)

    def test_paths(self):
        files = {"crates__a__src__lib_rs": "", "crates__a__Cargo_toml": ""}
        for span, found in [
            ("crates/a/src", []), ("src/lib.rs", []), ("a/Cargo.toml", []), ("crates/a/", []), ("crates/*/src", []),
            ("crates/a/src/{lib,gone}.rs", ["crates/a/src/{lib,gone}.rs"]), ("gone.rs", ["gone.rs"]),
            ("crates/b", ["crates/b"]), ("cat crates/b/lib.rs", ["crates/b/lib.rs"]), ("and/or", []), ("target/x.rs", []),
            ("BOXES.npy", []), ("GONE.md", ["GONE.md"]),
        ]:
            self.assertEqual(self.missing(f"`{span}`", **files), found, span)

    def test_a_bare_file_is_beside(self):
        files = {"crates__a__src__lib_rs": "// other.rs", "crates__b__src__other_rs": "// lib.rs"}
        self.assertEqual(self.missing("", **files), ["other.rs", "lib.rs"])

    def test_old_names_may_stand_in_the_change_log(self):
        self.assertEqual(self.missing("", CHANGELOG_md="`Gone` and `gone.rs`"), [])


if __name__ == "__main__":
    unittest.main()
