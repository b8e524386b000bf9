//! Tests of `radsweep pairs`.

use crate::*;

#[test]
fn json_has_the_documented_keys_and_the_file_has_the_pairs() {
    let folder = Folder::new();
    let (boxes, output) = (folder.boxes("boxes.npy", &ROW), folder.string("pairs.npy"));
    for strategy in STRATEGIES {
        let args = [
            "pairs",
            &boxes,
            "-o",
            &output,
            "--strategy",
            strategy,
            "--backend",
            "cpu",
            "--json",
        ];
        let record = json(&args);
        assert_eq!(record["n"], 4);
        assert_eq!(record["pairs"], 2);
        assert_eq!(record["hash"], fnv(&[0, 1, 1, 2]));
        assert_eq!(record["backend"], "cpu");
        assert!(record["strategy"].is_string());
        // A sort of 4 boxes and of 2 pairs. Auto tests so few boxes all against all.
        let keys = if strategy == "auto" { 0 } else { 6 };
        assert!(record["sorts"]["keys"].as_u64() >= Some(keys), "{record}");
        for stage in [
            "upload", "bounds", "keys", "sort", "sweep", "order", "events", "download", "total",
        ] {
            assert!(record["ms"][stage].is_number(), "{stage} in {record}");
        }
        assert_eq!(
            array(Path::new(&output)),
            (vec![2, 2], vec![0_u32, 1, 1, 2])
        );
    }
    assert_eq!(folder.names(), ["boxes.npy", "pairs.npy"]);
}

#[test]
fn text_output_has_counts_and_a_table_of_times() {
    let folder = Folder::new();
    let printed = succeeds(&["pairs", &folder.boxes("boxes.npy", &ROW)]);
    assert!(printed.starts_with("4 boxes, 2 pairs, hash "), "{printed}");
    assert!(
        printed.contains("mean ms") || printed.contains(" ms "),
        "{printed}"
    );
    assert!(printed.contains("\ntotal "), "{printed}");
}

#[test]
fn touching_boxes_do_not_pair_with_open() {
    let folder = Folder::new();
    let record = json(&[
        "pairs",
        &folder.boxes("boxes.npy", &ROW),
        "--open",
        "--json",
    ]);
    assert_eq!(
        (&record["pairs"], &record["rule"]),
        (&0.into(), &"open".into())
    );
    assert_eq!(record["hash"], fnv(&[]));
}

#[test]
fn boxes_are_not_overwritten_by_their_pairs() {
    let folder = Folder::new();
    let (one, two) = (folder.boxes("one.npy", &ROW), folder.boxes("two.npy", &ROW));
    let before = fs::read(&one).expect("bytes");
    let other_name = folder.path(".").join("one.npy").display().to_string();
    for args in [
        &["pairs", &one, "-o", &one][..],
        &["pairs", &one, "-o", &other_name],
        &["pairs", &two, "--between", &one, "-o", &one],
    ] {
        refuses_naming(
            2,
            args,
            &["--output names ", "one.npy, a file of boxes to read"],
        );
        assert_eq!(fs::read(&one).expect("still there"), before);
    }
    succeeds(&["pairs", &one, "-o", "/dev/null"]);
}

#[test]
fn one_pair_is_not_called_pairs() {
    let folder = Folder::new();
    let printed = succeeds(&["pairs", &folder.boxes("boxes.npy", &ROW[..2])]);
    assert!(printed.starts_with("2 boxes, 1 pair, hash "), "{printed}");
    let printed = succeeds(&["pairs", &folder.boxes("boxes.npy", &ROW[..1])]);
    assert!(printed.starts_with("1 box, 0 pairs, hash "), "{printed}");
}

#[test]
fn no_boxes_are_no_pairs() {
    let folder = Folder::new();
    let (boxes, output) = (folder.boxes("boxes.npy", &[]), folder.string("pairs.npy"));
    let record = json(&["pairs", &boxes, "-o", &output, "--json"]);
    assert_eq!((&record["n"], &record["pairs"]), (&0.into(), &0.into()));
    assert_eq!(array::<u32>(Path::new(&output)), (vec![0, 2], vec![]));
}

#[test]
fn pairs_between_two_files_have_an_index_of_each() {
    let folder = Folder::new();
    let one = folder.boxes("one.npy", &ROW[..1]);
    let all = folder.boxes("all.npy", &ROW);
    let output = folder.string("pairs.npy");
    let record = json(&["pairs", &all, "--between", &one, "-o", &output, "--json"]);
    assert_eq!(
        (&record["n"], &record["n_other"], &record["pairs"]),
        (&4.into(), &1.into(), &2.into())
    );
    assert_eq!(record["hash"], fnv(&[0, 0, 1, 0]));
    // Two sets have no report that names the strategy.
    assert_eq!(record["strategy"], Value::Null);
    let printed = succeeds(&["pairs", &all, "--between", &one, "--backend", "cpu"]);
    assert!(printed.contains("\nfound on cpu\n"), "{printed}");
    assert_eq!(
        array(Path::new(&output)),
        (vec![2, 2], vec![0_u32, 0, 1, 0])
    );
}

#[test]
fn an_invalid_box_is_reported_and_nothing_is_written() {
    let folder = Folder::new();
    let output = folder.bytes("pairs.npy", b"precious");
    let mut nan = ROW;
    nan[2][4] = f32::NAN;
    let mut inverted = ROW;
    inverted[1][0] = 2.5;
    let nan = folder.boxes("nan.npy", &nan);
    let inverted = folder.boxes("inverted.npy", &inverted);
    refuses_naming(
        1,
        &["pairs", &nan, "-o", &output],
        &["nan.npy", "box 2", "max y is NaN"],
    );
    refuses_naming(
        1,
        &["pairs", &inverted, "-o", &output],
        &["inverted.npy", "box 1", "min x = 2.5 is above max x = 2"],
    );
    assert_eq!(fs::read(&output).expect("still there"), b"precious");
    assert_eq!(folder.names(), ["inverted.npy", "nan.npy", "pairs.npy"]);
}

#[test]
fn several_devices_find_pairs_within_a_file_on_cuda_only() {
    let folder = Folder::new();
    let boxes = folder.boxes("boxes.npy", &ROW);
    for (more, part) in [
        (&["--between", &boxes][..], "--between"),
        (&["--sort", "onesweep"], "--sort"),
        (&["--backend", "cpu"], "--backend cpu"),
        (&["--backend", "wgpu"], "--backend wgpu"),
    ] {
        refuses_naming(
            2,
            &[&["pairs", &boxes, "--devices", "all"], more].concat(),
            &["--devices", part],
        );
    }
    for count in ["0", "-1", "both"] {
        let args = ["pairs", &boxes, "--devices", count];
        refuses_naming(2, &args, &["--devices", "nor `all`"]);
    }
    // Without the feature `cuda` or without a device it fails before.
    let there = &json(&["info", "--json"])["cuda"]["devices"];
    let is_there = there.as_array().is_some_and(|list| !list.is_empty());
    let wide = folder.array(
        "wide.npy",
        &[4, 6],
        &ROW.as_flattened()
            .iter()
            .map(|&x| f64::from(x))
            .collect::<Vec<_>>(),
    );
    for (file, count, part) in [
        (&boxes, "1024", "--devices 1024: this machine has"),
        (&wide, "all", "wide.npy are float64"),
    ] {
        let args = ["pairs", file, "--devices", count];
        match is_there {
            true => refuses_naming(2, &args, &[part]),
            false => assert!(refuses(1, &args).to_lowercase().contains("cuda")),
        }
    }
}

#[test]
fn an_invalid_box_between_two_files_is_reported_with_its_file() {
    let folder = Folder::new();
    let good = folder.boxes("good.npy", &ROW);
    let mut nan = ROW;
    nan[3][0] = f32::NAN;
    let bad = folder.boxes("bad.npy", &nan);
    for args in [[&good, &bad], [&bad, &good]] {
        refuses_naming(
            1,
            &["pairs", args[0], "--between", args[1]],
            &["bad.npy", "box 3", "min x is NaN"],
        );
    }
}

#[test]
fn skip_invalid_pairs_the_others_and_reports_the_skipped() {
    let folder = Folder::new();
    let mut boxes = ROW;
    boxes[3] = [f32::NAN; 6];
    let boxes = folder.boxes("boxes.npy", &boxes);
    let record = json(&["pairs", &boxes, "--skip-invalid", "--json"]);
    assert_eq!(record["pairs"], 2);
    assert_eq!(
        (&record["invalid"]["count"], &record["invalid"]["first"]),
        (&1.into(), &3.into())
    );
    let human = run(&["pairs", &boxes, "--skip-invalid"]);
    assert!(human.status.success());
    let note = text(&human.stderr);
    assert!(
        note.contains("skipped 1 invalid box; the first is box 3 of ")
            && note.contains("boxes.npy: "),
        "{note}"
    );
}

#[test]
fn skipped_boxes_between_two_files_are_counted() {
    let folder = Folder::new();
    let mut boxes = ROW;
    boxes[3] = [f32::NAN; 6];
    let (good, bad) = (
        folder.boxes("good.npy", &ROW),
        folder.boxes("bad.npy", &boxes),
    );
    let args = ["pairs", &good, "--between", &bad, "--skip-invalid"];
    let note = text(&run(&args).stderr);
    let end = "bad.npy: min x is NaN\n";
    assert!(
        note.contains("skipped 1 invalid box; the first is box 3 of ") && note.ends_with(end),
        "{note}"
    );
    let record = json(&[&args[..], &["--json"]].concat());
    assert_eq!(record["pairs"], 7); // 3 with themselves, 2 with each neighbour
    let invalid = |file: &str, count| serde_json::json!({"count": count, "file": file, "first": 3, "reason": "min x is NaN"});
    assert_eq!(record["invalid"], invalid(&bad, 1));
    // Those of both files count; the first is in the first file that has one.
    let args = ["pairs", &bad, "--between", &bad, "--skip-invalid", "--json"];
    assert_eq!(json(&args)["invalid"], invalid(&bad, 2));
    let args = [
        "pairs",
        &good,
        "--between",
        &good,
        "--skip-invalid",
        "--json",
    ];
    assert_eq!(json(&args)["invalid"], Value::Null);
}

#[test]
fn names_and_formats_of_the_output_agree() {
    let folder = Folder::new();
    let boxes = folder.boxes("boxes.npy", &ROW);
    let (npy, txt) = (folder.string("p.npy"), folder.string("p.txt"));
    let named = "ends in .npy: leave out --csv, or name a .csv file";
    refuses_naming(
        2,
        &["pairs", &boxes, "--csv", "-o", &npy],
        &[named, "Usage: radsweep pairs"],
    );
    refuses_naming(
        2,
        &["pairs", &boxes, "-o", &txt],
        &["to write text to", "add --csv"],
    );
    assert!(!Path::new(&npy).exists() && !Path::new(&txt).exists());
    succeeds(&["pairs", &boxes, "--csv", "-o", &txt]);
    assert!(
        fs::read_to_string(&txt)
            .expect("written")
            .starts_with("a,b\n")
    );
    refuses_naming(2, &["sort", &boxes, "-o", &txt], &["`sort` writes no text"]);
}

#[test]
fn infinite_and_empty_boxes_are_legal() {
    let folder = Folder::new();
    let (inf, mut boxes) = (f32::INFINITY, ROW);
    boxes[3] = [-inf, -inf, -inf, inf, 0.0, inf];
    assert_eq!(
        json(&["pairs", &folder.boxes("a.npy", &boxes), "--json"])["pairs"],
        5
    );
    boxes[3] = [inf, inf, inf, -inf, -inf, -inf];
    assert_eq!(
        json(&["pairs", &folder.boxes("b.npy", &boxes), "--json"])["pairs"],
        2
    );
}

#[test]
fn every_header_version_is_read() {
    let folder = Folder::new();
    let dict = "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 6), }\n";
    for version in 1..=3 {
        let boxes = folder.raw("boxes.npy", version, dict, bytemuck::cast_slice(&ROW));
        assert_eq!(
            json(&["pairs", &boxes, "--json"])["pairs"],
            2,
            "version {version}"
        );
    }
}

#[test]
fn both_orders_and_both_shapes_are_read() {
    let folder = Folder::new();
    let numbers = ROW.as_flattened();
    let columns: Vec<f32> = (0..24).map(|i| numbers[i % 4 * 6 + i / 4]).collect();
    let corners: Vec<f32> = (0..24)
        .map(|i| numbers[i % 4 * 6 + i / 4 % 2 * 3 + i / 8])
        .collect();
    for (order, shape, data) in [
        ("False", "(4, 2, 3)", numbers),
        ("True", "(4, 6)", &columns),
        ("True", "(4, 2, 3)", &corners),
    ] {
        let dict = format!("{{'descr': '<f4', 'fortran_order': {order}, 'shape': {shape}, }}\n");
        let boxes = folder.raw("boxes.npy", 1, &dict, bytemuck::cast_slice(data));
        let record = json(&["pairs", &boxes, "--json"]);
        assert_eq!(record["hash"], fnv(&[0, 1, 1, 2]), "{order} {shape}");
    }
}

#[test]
fn boxes_of_float64_are_tested_exactly() {
    let folder = Folder::new();
    // As float32, or rounded outward to it, the boxes touch.
    let apart = [
        [0.0, 0.0, 0.0, 1.0, 1.0, 1.0],
        [1.0 + 1e-12, 0.0, 0.0, 2.0, 1.0, 1.0_f64],
    ];
    let apart = folder.array("apart.npy", &[2, 6], apart.as_flattened());
    let touching = folder.boxes("touching.npy", &ROW[..2]);
    for strategy in STRATEGIES {
        let pairs = |more: &[&str]| {
            let args = ["pairs", &apart, "--json", "--strategy", strategy];
            json(&[&args[..], more].concat())["pairs"].clone()
        };
        assert_eq!(pairs(&[]), 0);
        assert_eq!(pairs(&["--between", &apart]), 2);
        // Each touches the second box of `touching`, the first one alone its first.
        assert_eq!(pairs(&["--between", &touching]), 3);
    }
    let mut nan = [0.0_f64; 12];
    nan[7] = f64::NAN;
    let nan = folder.array("nan.npy", &[2, 6], &nan);
    refuses_naming(1, &["pairs", &nan], &["nan.npy", "box 1", "min y is NaN"]);
}

/// Returns a file of boxes that all overlap.
fn equal(folder: &Folder, n: usize) -> String {
    folder.boxes("equal.npy", &vec![ROW[0]; n])
}

#[test]
fn the_first_pairs_are_shown_and_all_are_listed_as_csv() {
    let folder = Folder::new();
    let boxes = equal(&folder, 7);
    let printed = succeeds(&["pairs", &boxes]);
    let rows: Vec<Vec<&str>> = printed
        .lines()
        .map(|row| row.split_whitespace().collect())
        .collect();
    let first = rows
        .iter()
        .position(|row| row[..] == ["0", "1"])
        .expect("the first pair");
    assert_eq!(rows[first + 9], ["1", "5"]);
    assert!(
        printed.contains("\n… and 11 more: --csv prints all"),
        "{printed}"
    );

    let mut csv = "a,b\n".to_owned();
    (0..7).for_each(|a| (a + 1..7).for_each(|b| csv += &format!("{a},{b}\n")));
    assert_eq!(succeeds(&["pairs", &boxes, "--csv"]), csv);
    assert_eq!(succeeds(&["pairs", &boxes, "--csv", "-o", "-"]), csv);
    // The ending of the name decides, or the option.
    for (name, option) in [("all.csv", &[][..]), ("all.txt", &["--csv"])] {
        let output = folder.string(name);
        let report = succeeds(&[&["pairs", &boxes, "-o", &output], option].concat());
        assert!(report.contains("\n… and 11 more\n"), "{report}");
        assert_eq!(fs::read_to_string(&output).expect("written"), csv);
    }
    let missing = folder.string("missing/pairs.csv");
    refuses_naming(
        1,
        &["pairs", &boxes, "-o", &missing],
        &["cannot write", &missing],
    );
}

/// 40 million pairs are more than are held in memory at once.
#[test]
fn many_pairs_are_announced_and_found_in_chunks() {
    let folder = Folder::new();
    let boxes = equal(&folder, 9000);
    let output = run(&["pairs", &boxes, "--json"]);
    let note = text(&output.stderr);
    assert!(output.status.success(), "{note}");
    assert!(
        note.starts_with("note: 40495500 pairs exceed 256 MiB: "),
        "{note}"
    );
    let record: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(record["pairs"], 40_495_500);
    assert_eq!(record["strategy"], Value::Null);
}

#[test]
fn files_that_are_not_boxes_are_errors() {
    let folder = Folder::new();
    let data = bytemuck::cast_slice(&ROW);
    let dict = |descr: &str, order: &str, shape: &str| {
        format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n")
    };
    let good = dict("'<f4'", "False", "(4, 6)");
    let raw = |name: &str, dict: &str, data: &[u8]| folder.raw(name, 1, dict, data);
    let structured = "[('min', '<f4', (3,)), ('max', '<f4', (3,))]";
    for (path, part) in [
        (folder.string("missing.npy"), "No such file"),
        (folder.0.path().display().to_string(), "is a folder"),
        (folder.bytes("empty.npy", b""), "ends within its header"),
        (
            folder.bytes("cut.npy", b"\x93NUMPY\x01\x00\x80\x00{'descr"),
            "ends within its header",
        ),
        (
            folder.bytes("text.npy", b"x,y,z and so on"),
            "does not start with the .npy magic",
        ),
        (
            folder.bytes("short_text.npy", b"a,b\n"),
            "does not start with the .npy magic",
        ),
        (
            folder.bytes("version.npy", b"\x93NUMPY\x09\x00\x10\x00{}"),
            "version 9.0",
        ),
        (
            raw("dict.npy", "{'descr': '<f4'}\n", data),
            "header is malformed",
        ),
        (
            raw("short.npy", &good, &data[..95]),
            "has 95 bytes of data, but its shape (4, 6) of <f4 takes 96",
        ),
        (raw("long.npy", &good, &[0; 97]), "has 97 bytes"),
        (
            raw(
                "huge.npy",
                &dict("'<f4'", "False", "(900000000000000000, 6)"),
                data,
            ),
            "takes more than 2^64",
        ),
        (
            raw(
                "large.npy",
                &dict("'<f4'", "False", "(100000000000000000, 6)"),
                data,
            ),
            "takes 2400000000000000000",
        ),
        (
            raw(
                "overflow.npy",
                &dict("'<f4'", "False", "(9223372036854775808, 6)"),
                data,
            ),
            "more than 2^64",
        ),
        (
            raw("big.npy", &dict("'>f4'", "False", "(4, 6)"), data),
            "type >f4, expected <f4 or <f8",
        ),
        (
            raw("half.npy", &dict("'<f2'", "False", "(8, 6)"), data),
            "type <f2, expected <f4 or <f8",
        ),
        (
            raw("struct.npy", &dict(structured, "False", "(4,)"), data),
            "expected <f4",
        ),
        (
            raw("object.npy", &dict("'|O'", "False", "(4, 6)"), data),
            "type |O",
        ),
        (
            raw("scalar.npy", &dict("'<f4'", "False", "()"), &data[..4]),
            "shape (), expected (n, 6) or (n, 2, 3)",
        ),
        (
            raw("flat.npy", &dict("'<f4'", "False", "(24,)"), data),
            "shape (24,), expected (n, 6)",
        ),
        (
            raw("five.npy", &dict("'<f4'", "False", "(4, 5)"), &data[..80]),
            "shape (4, 5), expected (n, 6)",
        ),
        (
            raw("three.npy", &dict("'<f4'", "False", "(4, 3, 2)"), data),
            "shape (4, 3, 2), expected (n, 6)",
        ),
    ] {
        let name = Path::new(&path)
            .file_name()
            .and_then(OsStr::to_str)
            .expect("a name")
            .to_owned();
        refuses_naming(1, &["pairs", &path], &[&name, part]);
    }
}

#[test]
fn a_pipe_shorter_than_its_header_claims_is_an_error() {
    let folder = Folder::new();
    let dict = "{'descr': '<f4', 'fortran_order': False, 'shape': (100000000000000000, 6), }\n";
    let boxes = folder.raw("boxes.npy", 1, dict, bytemuck::cast_slice(&ROW));
    let mut cat = Command::new("cat")
        .arg(&boxes)
        .stdout(Stdio::piped())
        .spawn()
        .expect("cat");
    let stdin = cat.stdout.take().expect("a pipe");
    let output = command()
        .args(["pairs", "/dev/stdin"])
        .stdin(stdin)
        .output()
        .expect("the program starts");
    cat.wait().expect("an end");
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stderr).contains("/dev/stdin"),
        "{}",
        text(&output.stderr)
    );
}
