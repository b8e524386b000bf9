//! Tests of `radsweep run`.

use crate::*;

fn frames(args: &[&str]) -> Vec<Value> {
    let printed = succeeds(&[&["run"], args, &["--json"]].concat());
    printed
        .lines()
        .map(|line| serde_json::from_str(line).expect("one JSON object a line"))
        .collect()
}

fn hashes(args: &[&str]) -> Vec<String> {
    frames(args)
        .iter()
        .map(|frame| frame["hash"].as_str().expect("text").to_owned())
        .collect()
}

#[test]
fn every_scene_prints_a_record_per_frame_with_events_that_add_up() {
    for (scene, bodies, boxes) in [
        ("falling-chairs", "20", 181),
        ("particles", "3000", 3000),
        ("galaxy", "3000", 3000),
        ("uniform", "3000", 3000),
        ("clustered", "3000", 3000),
        ("mixed-sizes", "3000", 3000),
        ("stack", "3000", 3001),
    ] {
        let frames = frames(&[scene, "--bodies", bodies, "--frames", "4"]);
        assert!(
            frames
                .iter()
                .all(|frame| !frame.to_string().contains("-0.0"))
        );
        assert_eq!(frames.len(), 4, "{scene}");
        let mut before = 0;
        for (number, frame) in (1..).zip(&frames) {
            assert_eq!(
                (&frame["frame"], &frame["n"]),
                (&Value::from(number), &boxes.into()),
                "{frame}"
            );
            let count = |key: &str| frame[key].as_i64().expect("a number");
            assert_eq!(
                count("pairs"),
                before + count("started") - count("ended"),
                "{frame}"
            );
            before = count("pairs");
            assert_eq!(frame["hash"].as_str().map(str::len), Some(16), "{frame}");
            let stages = [
                "place", "upload", "bounds", "keys", "sort", "sweep", "order", "events",
                "download", "total",
            ];
            for stage in stages {
                assert!(frame["ms"][stage].is_number(), "{stage} in {frame}");
            }
        }
        assert!(
            ["falling-chairs", "galaxy", "particles"].contains(&scene) || before > 1000,
            "{scene}: {before} pairs"
        );
    }
}

#[test]
fn results_do_not_depend_on_threads_or_strategy() {
    for scene in [
        "falling-chairs",
        "particles",
        "galaxy",
        "clustered",
        "stack",
    ] {
        let (bodies, frames) = if scene == "falling-chairs" {
            ("30", "60")
        } else {
            ("2000", "5")
        };
        let args = [scene, "--bodies", bodies, "--frames", frames];
        let expected = hashes(&args);
        for more in [
            ["--threads", "1"],
            ["--threads", "5"],
            ["--strategy", "endpoints"],
            ["--strategy", "subdivided"],
        ] {
            assert_eq!(
                hashes(&[&args[..], &more].concat()),
                expected,
                "{scene} {more:?}"
            );
        }
    }
}

#[test]
fn the_seed_decides_the_arrangement() {
    let args = ["uniform", "--bodies", "500", "--frames", "1", "--seed"];
    let with = |seed| hashes(&[&args[..], &[seed]].concat());
    assert_eq!(with("7"), with("7"));
    assert_ne!(with("7"), with("8"));
}

#[test]
fn density_scales_the_pairs() {
    let pairs = |density| {
        let args = [
            "uniform",
            "--bodies",
            "20000",
            "--frames",
            "1",
            "--density",
            density,
        ];
        frames(&args)[0]["pairs"].as_f64().expect("a number")
    };
    let ratio = pairs("4") / pairs("1");
    assert!((3.3..4.3).contains(&ratio), "{ratio}");
}

#[test]
fn text_output_has_a_row_per_frame_and_a_table_of_times() {
    let printed = succeeds(&[
        "run",
        "falling-chairs",
        "--bodies",
        "5",
        "--frames",
        "3",
        "--backend",
        "cpu",
    ]);
    let lines: Vec<&str> = printed.lines().collect();
    assert!(
        lines[0].contains("pairs") && lines[0].contains("started"),
        "{printed}"
    );
    assert_eq!(lines[1].split_whitespace().next(), Some("1"), "{printed}");
    assert_eq!(lines[3].split_whitespace().next(), Some("3"), "{printed}");
    for stage in [
        "place", "sort", "sweep", "events", "contacts", "solve", "frame",
    ] {
        assert!(
            lines[4..].iter().any(|line| line.starts_with(stage)),
            "{stage} in {printed}"
        );
    }
    let last = lines.last().expect("a line");
    assert!(
        last.contains("pairs per frame, planned as ") && last.contains(" on cpu (3 frames)"),
        "{last}"
    );
}

#[test]
fn several_devices_find_pairs_on_cuda_and_without_a_window() {
    let scene = ["run", "particles", "--devices", "all"];
    for more in [
        ["--backend", "cpu"],
        ["--backend", "wgpu"],
        ["--sort", "onesweep"],
    ] {
        let args = [&scene[..], &more].concat();
        refuses_naming(2, &args, &["--devices", more[0]]);
    }
    for count in ["0", "-1", "both"] {
        refuses_naming(2, &["run", "particles", "--devices", count], &["--devices"]);
    }
    for scene in [&["view", "particles"][..], &["particles"]] {
        let args = [scene, &["--devices", "2"]].concat();
        let message = refuses(2, &args);
        assert!(message.contains("'--devices'"), "{message}");
        assert!(
            message.contains("tip: `radsweep run` finds pairs on several devices"),
            "{message}"
        );
        assert!(!message.contains("similar"), "{message}");
    }
}

#[test]
fn bad_arguments_are_errors() {
    let known = "falling-chairs, particles, galaxy, uniform, clustered, mixed-sizes, stack";
    refuses_naming(2, &["run", "lava"], &["lava", known]);
    refuses_naming(2, &["run", "uniform", "--frames", "0"], &["--frames"]);
    refuses_naming(
        2,
        &["run", "uniform", "--bodies", "many"],
        &["--bodies", "many"],
    );
    refuses_naming(2, &["run", "uniform", "--threads", "0"], &["--threads"]);
    for bodies in ["0", "18446744073709551615", "1e400"] {
        let range = format!("`{bodies}` is not between 1 and 4294967295");
        refuses_naming(2, &["run", "uniform", "--bodies", bodies], &[&range]);
    }
    for density in ["0", "-1", "nan", "inf", "1e30"] {
        let args = ["run", "uniform", "--density", density];
        let range = format!("`{density}` is not between 0.001 and 1000");
        refuses_naming(2, &args, &["--density", &range]);
    }
}
