//! Tests of `radsweep bench` and `radsweep calibrate`.

use crate::*;

#[test]
fn rates_of_the_cpu_as_json() {
    let record = json(&[
        "bench",
        "sort",
        "--backend",
        "cpu",
        "--sizes",
        "1000,2^12",
        "--types",
        "u32,f64",
        "--payload",
        "keys,u64,index,records-16",
        "--distributions",
        "uniform,and-entropy-5",
        "--runs",
        "3",
        "--json",
    ]);
    assert_eq!(
        (&record["bench"], &record["backend"]),
        (&"sort".into(), &"cpu".into())
    );
    assert!(record["copy_gb_per_s"].as_f64() > Some(0.0), "{record}");
    let results = record["results"].as_array().expect("a list");
    assert_eq!(results.len(), 2 * 2 * 4 * 2);
    for result in results {
        let number = |key: &str| result[key].as_f64().unwrap_or(-1.0);
        assert_eq!(result["algorithm"], "cpu");
        assert!(
            result["ran"]
                .as_str()
                .is_some_and(|ran| ran.starts_with("cpu-")),
            "{result}"
        );
        assert!(
            number("min_ms") <= number("ms") && number("ms") <= number("max_ms"),
            "{result}"
        );
        let rate = number("n") / number("ms") / 1e6;
        assert!(
            (number("gelements_per_s") / rate - 1.0).abs() < 1e-3,
            "{result}"
        );
        assert_eq!((number("runs"), &result["error"]), (3.0, &Value::Null));
    }
    // By type, payload and distribution, then by size.
    let first: Vec<_> = results[..4]
        .iter()
        .map(|one| (one["distribution"].clone(), one["n"].clone()))
        .collect();
    let expected = [
        ("uniform", 1000),
        ("uniform", 4096),
        ("and-entropy-5", 1000),
        ("and-entropy-5", 4096),
    ];
    assert_eq!(first, expected.map(|(name, n)| (name.into(), n.into())));
}

#[test]
fn rates_as_a_table_as_csv_and_as_a_plot() {
    let folder = Folder::new();
    let plot = folder.string("rates.svg");
    let common = [
        "bench",
        "sort",
        "--backend",
        "cpu",
        "--sizes",
        "2^10,2^11",
        "--runs",
        "1",
    ];
    let table = succeeds(&[&common[..], &["--plot", &plot]].concat());
    assert!(
        table.starts_with("cpu: ") && table.contains("\nu32, keys, uniform\n"),
        "{table}"
    );
    assert!(
        fs::read_to_string(&plot).is_ok_and(|svg| svg.starts_with("<svg") && svg.contains("2^11"))
    );
    let csv = succeeds(&[&common[..], &["--csv"]].concat());
    let lines: Vec<_> = csv.lines().map(|line| line.split(',').count()).collect();
    assert_eq!(lines, [14; 5], "{csv}");
    assert!(
        csv.starts_with("algorithm,type,payload,distribution,n,ran,ms,"),
        "{csv}"
    );
}

#[test]
fn boxes_of_a_file_or_of_stdin_are_measured_and_a_plot_goes_to_stdout() {
    let folder = Folder::new();
    let exact: Vec<f64> = ROW.as_flattened().iter().map(|&x| x.into()).collect();
    let boxes = folder.array("boxes.npy", &[4, 6], &exact);
    let args = |from| {
        [
            "bench",
            "sap",
            "--backend",
            "cpu",
            "--runs",
            "3",
            "--scenes",
            from,
        ]
    };
    let table = succeeds(&[&args(&boxes)[..], &["--strategy", "auto", "--no-peers"]].concat());
    assert!(
        table.contains("boxes of 4 boxes, moving, 2 pairs"),
        "{table}"
    );
    let bytes = fs::read(&boxes).expect("bytes");
    let drawn = fed(&[&args("-")[..], &["--plot", "-"]].concat(), &bytes);
    assert!(text(&drawn.stdout).starts_with("<svg"));
    let table = text(&drawn.stderr);
    assert!(table.contains("stdin of 4 boxes"), "{table}");
    for column in [
        "spread: of the middle",
        "tests/pair: pairs of boxes tested",
        "limit: the time",
    ] {
        assert!(table.contains(column), "{column}: {table}");
    }
    let mut nan = ROW;
    nan[1][0] = f32::NAN;
    let nan = folder.boxes("nan.npy", &nan);
    let bad = [&args(&nan)[..], &["--no-peers"]].concat();
    refuses_naming(1, &bad, &["nan.npy: box 1 is invalid"]);
    let sized = run(&[&args(&boxes)[..], &["--no-peers", "--sizes", "9"]].concat());
    let note = "note: --sizes has no effect on files of boxes\n";
    assert!(
        text(&sized.stderr).starts_with(note),
        "{}",
        text(&sized.stderr)
    );
    let twice = [&args("-")[..], &["--motion", "moving,still"]].concat();
    refuses_naming(
        2,
        &twice,
        &["stdin can be read only once", "Usage: radsweep bench sap"],
    );
}

#[test]
fn the_cpu_notes_that_it_has_one_sort() {
    let output = run(&[
        "bench",
        "sort",
        "--backend",
        "cpu",
        "--sizes",
        "100",
        "--runs",
        "1",
        "--sort",
        "quicksort,bucket",
        "--json",
    ]);
    assert!(output.status.success());
    assert!(
        text(&output.stderr)
            .starts_with("note: --sort quicksort,bucket has no effect: cpu has one sort\n"),
        "{}",
        text(&output.stderr)
    );
    let record: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let names = record["results"].as_array().expect("a list").iter();
    assert!(
        names.map(|one| &one["algorithm"]).all(|name| name == "cpu"),
        "{record}"
    );
}

#[test]
fn figures_of_the_papers_on_the_cpu() {
    let folder = Folder::new();
    let drawings = folder.string("drawings");
    let output = run(&[
        "bench",
        "paper",
        "--backend",
        "cpu",
        "--figure",
        "satish-key-bits,dehne-steps",
        "--json",
        "--plot",
        &drawings,
    ]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let notes = text(&output.stderr);
    assert!(
        notes.starts_with("note: the CPU has one sort: it is measured in place of each\n")
            && notes.contains("note: dehne-steps needs a GPU and is left out"),
        "{notes}"
    );
    let record: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let figures = record["figures"].as_array().expect("a list");
    // The figure of a GPU sort's steps is left out.
    assert_eq!(figures.len(), 1, "{record}");
    assert_eq!(figures[0]["name"], "satish-key-bits");
    let points = figures[0]["points"].as_array().expect("a list");
    assert_eq!(points.len(), 2 * 4);
    assert!(
        points
            .iter()
            .all(|point| point["column"] == "cpu" && point["value"].as_f64() > Some(0.0))
    );
    assert!(
        folder
            .path("drawings")
            .join("satish-key-bits.svg")
            .is_file()
    );
}

#[test]
fn unknown_names_are_errors_that_list_the_known() {
    for (args, parts) in [
        (["sort", "--sizes", "2^40"], ["2^40", "4294967295"]),
        (["sort", "--sizes", "many"], ["many", "2^20"]),
        (["sort", "--types", "u8"], ["u8", "f64"]),
        (["sort", "--payload", "u16"], ["u16", "records"]),
        (["sort", "--distributions", "pareto"], ["pareto", "zipf"]),
        (["sort", "--sort", "bogo"], ["bogo", "onesweep"]),
        (["sort", "--runs", "0"], ["`0`", "between 1 and"]),
        (["sap", "--runs", "-3"], ["`-3`", "between 1 and"]),
        (["sort", "--plot", "rates.png"], ["rates.png", ".svg"]),
        (["sap", "--scenes", "cubes"], ["cubes", ".npy"]),
        (
            ["sap", "--motion", "mving"],
            ["mving", "similar value exists: 'moving'"],
        ),
        (["paper", "--figure", "fig. 1"], ["fig. 1", "dehne-steps"]),
        (["paper", "--sizes", "huge"], ["huge", "small"]),
    ] {
        refuses_naming(2, &[&["bench"], &args[..]].concat(), &parts);
    }
    refuses_naming(2, &["bench"], &["sort", "paper"]);
    refuses_naming(
        2,
        &["bench", "sort", "--json", "--csv"],
        &["--json", "--csv"],
    );
    refuses_naming(2, &["calibrate", "--sizes", "x"], &["x"]);
    let folder = Folder::new();
    let nowhere = folder.path("no").join("plot.svg").display().to_string();
    for what in ["sort", "sap"] {
        refuses_naming(
            1,
            &["bench", what, "--backend", "cpu", "--plot", &nowhere],
            &[&format!("cannot write {nowhere}: ")],
        );
    }
}

#[test]
fn without_a_gpu_there_is_nothing_to_calibrate() {
    let folder = Folder::new();
    let output = command()
        .arg("calibrate")
        .env("CUDA_VISIBLE_DEVICES", "")
        .env("XDG_CONFIG_HOME", folder.path("config"))
        .output()
        .expect("the program starts");
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert_eq!(
        (text(&output.stdout), message.lines().count()),
        (String::new(), 1)
    );
    assert!(
        message.starts_with("error: nothing to calibrate: "),
        "{message}"
    );
    assert_eq!(folder.names(), [""; 0]);
}
