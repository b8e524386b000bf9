"""Tests of rooms.py: python3 -m unittest discover -s scripts/rooms"""

import pathlib
import tempfile
import unittest

import rooms


def functions(source):
    return list(rooms.functions(rooms.code(source)))


def package(**files):
    """Returns the graph of a package whose files are given by name, `__` for a folder."""
    with tempfile.TemporaryDirectory() as folder:
        for name, source in files.items():
            file = pathlib.Path(folder, *name.split("__")).with_suffix(".rs")
            file.parent.mkdir(exist_ok=True)
            file.write_text(source)
        graph = rooms.Package(pathlib.Path(folder)).edges()
    join = "::".join
    return {join(module): {join(target) for target in targets} for module, targets in graph.items() if targets}


class Text(unittest.TestCase):
    def test_text_is_no_code(self):
        source = """a // fn b() {
            "crate::c \\" {" r#"d " { "# '{' '\\'' b'{' /* { */ <'e> 'f: loop"""
        blank = rooms.without_text(source)
        self.assertEqual([len(line) for line in blank.splitlines()], [len(line) for line in source.splitlines()])
        self.assertEqual(blank.split(), ["a", "<'e>", "'f:", "loop"])

    def test_tests_are_left_out(self):
        source = "#[cfg(test)]\nmod tests { fn a() { {} } }\n#[cfg(all(test, cuda))] use b; fn c() {}\n#[cfg(cuda)] fn d() {}"
        self.assertEqual([name for name, _, _ in functions(source)], ["c", "d"])


class Functions(unittest.TestCase):
    def test_arguments(self):
        for source, count in [
            ("fn f() {}", 0),
            ("fn f(&self) {}", 0),
            ("fn f(&'a mut self, x: u32,) {}", 1),
            ("fn f(mut self: Box<Self>) {}", 0),
            ("fn f<T: Fn(u32, u32) -> Vec<T>, const N: usize>(a: &mut T, b: [T; N], selfish: u8) {}", 3),
            ("fn f(a: HashMap<u8, (u8, u8)>, (b, c): (u8, u8), d: impl Fn(u8, u8) -> u8) -> u8 where u8: Copy {}", 3),
        ]:
            self.assertEqual([found[2] for found in functions(source)], [count], source)

    def test_only_those_with_a_body(self):
        self.assertEqual(functions("trait T { fn f(&self); } type F = fn(u8); extern { fn g(a: u8) -> [u8; 2]; }"), [])

    def test_lines_of_code(self):
        source = "fn f(\n    a: u8,\n) {\n    // why\n\n    b();\n    {\n        c()\n    }\n}\n\nfn g() {}\n"
        self.assertEqual(functions(source), [("f", 8, 1), ("g", 1, 0)])


class Uses(unittest.TestCase):
    def test_trees(self):
        tree = "a::{b, c as d, e::{self, f}, g::*}"
        self.assertEqual(
            list(rooms.uses(tree)),
            [(["a", "b"], "b"), (["a", "c"], "d"), (["a", "e"], "e"), (["a", "e", "f"], "f"), (["a", "g", "*"], "*")],
        )

    def test_paths_from_everywhere(self):
        graph = package(
            lib="mod a; mod b; mod c; mod d; mod e;",
            a="use crate::b::B;",
            b="fn f() { super::c::f() }",
            c__mod="mod inner; use inner::X; use std::fmt;",
            c__inner="pub(in crate::a) struct X; // crate::d\n#[cfg(test)] mod tests { use crate::a; }",
            d="mod sealed { use super::super::e; }",
            e="use gpu::e::a;",
        )
        self.assertEqual(graph, {"a": {"b"}, "b": {"c"}, "c": {"c::inner"}, "d": {"e"}})

    def test_what_is_passed_on_is_where_it_comes_from(self):
        graph = package(lib="mod a; mod b; pub use b::B;", a="use crate::B;", b="struct B;")
        self.assertEqual(graph, {"": {"b"}, "a": {"b"}})

    def test_circles(self):
        graph = {"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": set(), "e": {"a"}}
        self.assertEqual(rooms.way(graph, "b", "b"), ["b", "c", "a", "b"])
        self.assertIsNone(rooms.way(graph, "d", "d"))
        self.assertIsNone(rooms.way(graph, "e", "e"))


class Breaches(unittest.TestCase):
    def test_each_rule(self):
        with tempfile.TemporaryDirectory() as name:
            root = pathlib.Path(name)
            folder = root / "crates/x/src"
            folder.mkdir(parents=True)
            (folder / "lib.rs").write_text("mod a; mod b;")
            (folder / "a.rs").write_text("use crate::b; fn f(a: A, b: A, c: A, d: A, e: A, f: A, g: A) {}")
            example = root / "crates/x/examples/e.rs"
            example.parent.mkdir()
            example.write_text("fn main() {" + "\n    a();" * 80 + "\n}")
            (folder / "b.rs").write_text("use crate::a; fn f() {" + "\n    a();" * 80 + "\n}")
            for crate, system in [("x", "linux"), ("y", "windows"), ("z", "linux")]:
                (root / "crates" / crate).mkdir(exist_ok=True)
                script = f'fn main() {{\n    let has_driver = target == "{system}";\n}}'
                (root / "crates" / crate / "build.rs").write_text(script)
            found = rooms.breaches(root)
        place = "crates/x/src"
        self.assertEqual(
            sorted(found),
            [
                f"arguments {place}/a.rs f 7",
                f"circle {place}/a.rs",
                f"circle {place}/b.rs",
                "lines crates/x/examples/e.rs main 82",
                f"lines {place}/b.rs f 82",
                "targets crates/y/build.rs",
            ],
        )


if __name__ == "__main__":
    unittest.main()
