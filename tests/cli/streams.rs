//! Tests of `-`, which is stdin and stdout.

use crate::*;

#[test]
fn pairs_and_keys_go_through_pipes() {
    let folder = Folder::new();
    let (boxes, pairs) = (folder.boxes("boxes.npy", &ROW), folder.string("pairs.npy"));
    succeeds(&["pairs", &boxes, "-o", &pairs]);
    let input = fs::read(&boxes).expect("bytes");
    let piped = fed(&["pairs", "-", "-o", "-"], &input);
    assert_eq!(piped.stdout, fs::read(&pairs).expect("bytes"));
    let piped = fed(&["pairs", &boxes, "--between", "-", "--csv"], &input);
    assert_eq!(
        text(&piped.stdout),
        "a,b\n0,0\n0,1\n1,0\n1,1\n1,2\n2,1\n2,2\n3,3\n"
    );

    let (keys, sorted) = (
        folder.array("keys.npy", &[3], &[3_u32, 1, 2]),
        folder.string("sorted.npy"),
    );
    succeeds(&["sort", &keys, "-o", &sorted]);
    let input = fs::read(&keys).expect("bytes");
    let piped = fed(&["sort", "-", "-o", "-"], &input);
    assert_eq!(piped.stdout, fs::read(&sorted).expect("bytes"));
    assert!(text(&piped.stderr).starts_with("3 keys of u32"));
    let index = fed(&["sort", "-", "--index", "-", "--json"], &input);
    let (header, record) = (&index.stdout[..6], text(&index.stderr));
    assert_eq!(header, b"\x93NUMPY");
    assert!(record.starts_with('{'), "{record}");
}

#[test]
fn the_file_dash_is_called_stdin_or_stdout() {
    let folder = Folder::new();
    let boxes = folder.boxes("boxes.npy", &ROW);
    let refused = |args: &[&str], stdin: &[u8], part: &str| {
        let input = folder.bytes("input", stdin);
        let output = command()
            .args(args)
            .stdin(fs::File::open(input).expect("there"))
            .output();
        let message = text(&output.expect("the program starts").stderr);
        assert!(message.starts_with(part), "{message}");
        assert_eq!(message.lines().count(), 1, "{message}");
    };
    refused(
        &["pairs", "-"],
        b"text",
        "error: stdin is not a readable .npy file: ",
    );
    let mut nan = ROW;
    nan[0][0] = f32::NAN;
    let nan = fs::read(folder.boxes("nan.npy", &nan)).expect("bytes");
    refused(&["pairs", "-"], &nan, "error: stdin: box 0 is invalid");
    refuses_naming(
        2,
        &["pairs", "-", "--between", "-"],
        &["stdin can be read only once", "Usage: radsweep pairs"],
    );
    refuses_naming(
        2,
        &["sort", &boxes, "-o", "-", "--index", "-"],
        &["--output and --index name", "Usage: radsweep sort"],
    );
}

#[test]
fn a_reader_that_has_enough_is_no_error() {
    let folder = Folder::new();
    let boxes = folder.boxes("boxes.npy", &vec![ROW[0]; 3000]);
    for more in [&["--csv"][..], &["-o", "-"]] {
        let mut child = command()
            .args(["pairs", &boxes])
            .args(more)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut start = [0; 4];
        let mut stdout = child.stdout.take().expect("a pipe");
        stdout.read_exact(&mut start).expect("some bytes");
        drop(stdout);
        let output = child.wait_with_output().expect("an end");
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert_eq!(text(&output.stderr), "");
    }
}
