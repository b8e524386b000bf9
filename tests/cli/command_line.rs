//! Tests of the help, of bad arguments, and of the choice of the backend.

use crate::*;

#[test]
fn every_command_has_help_and_the_program_a_version() {
    for command in [
        "view",
        "run",
        "pairs",
        "sort",
        "bench",
        "calibrate",
        "info",
        "completions",
        "man",
    ] {
        let help = succeeds(&[command, "--help"]);
        assert!(help.contains(&format!("radsweep {command}")), "{help}");
    }
    assert!(succeeds(&["--help"]).contains("short for"));
    assert!(succeeds(&["view", "--help"]).contains("[default: falling-chairs]"));
    assert_eq!(
        succeeds(&["--version"]),
        concat!("radsweep ", env!("CARGO_PKG_VERSION"), "\n")
    );
}

#[test]
fn unknown_commands_options_and_names_are_errors() {
    let folder = Folder::new();
    let boxes = folder.boxes("boxes.npy", &ROW);
    refuses_naming(
        2,
        &["dance"],
        &[
            "dance",
            "the commands are view, run,",
            "the scenes are falling-chairs,",
        ],
    );
    let tip = "tip: `radsweep pairs boxes.npy` finds the pairs";
    refuses_naming(
        2,
        &["boxes.npy"],
        &["is neither a command nor a scene", tip],
    );
    refuses_naming(2, &["man", "dance"], &["known are view, run,"]);
    for (given, similar) in [
        ("pair", "pairs"),
        ("PAIRS", "pairs"),
        ("stak", "stack"),
        ("falling-chair", "falling-chairs"),
    ] {
        let is = format!("`{given}` is neither a command nor a scene");
        let tip = format!("a similar name exists: '{similar}'");
        let usage = "Usage: radsweep [OPTIONS] <COMMAND>";
        refuses_naming(2, &[given], &[&is, &tip, "the scenes are", usage]);
    }
    for (args, similar) in [
        (["help", "pare"], "pairs"),
        (["bench", "sor"], "sort"),
        (["man", "pare"], "pairs"),
    ] {
        let message = refuses(2, &args);
        let tip = format!("a similar name exists: '{similar}'");
        assert!(message.contains(&tip), "{message}");
        assert!(!message.contains("the scenes are"), "{message}");
    }
    let args = ["bench", "sap", "--scenes", "unifrm"];
    refuses_naming(
        2,
        &args,
        &["'uniform'", "falling-chairs, particles", "FILE.npy"],
    );
    let message = refuses(2, &["bench", "dance"]);
    assert!(message.contains("the commands are sort, sap, paper") && !message.contains("scenes"));
    let message = refuses(2, &["view", "--json"]);
    assert!(message.contains("tip: `radsweep run` prints JSON") && !message.contains("-- --json"));
    refuses_naming(2, &["view", "lava"], &["lava", "falling-chairs, particles"]);
    refuses_naming(2, &["--dance"], &["--dance"]);
    refuses_naming(2, &["pairs"], &["BOXES.npy"]);
    refuses_naming(
        2,
        &["pairs", &boxes, "--strategy", "guess"],
        &["guess", "endpoints", "sweep", "subdivided", "auto"],
    );
    refuses_naming(
        2,
        &["pairs", &boxes, "--sort", "bogo"],
        &["bogo", "onesweep", "auto"],
    );
    refuses_naming(
        2,
        &["pairs", &boxes, "--backend", "tpu"],
        &["tpu", "auto", "cpu", "cuda"],
    );
    refuses_naming(
        2,
        &["sort", &boxes, "--sort", "bogo"],
        &["bogo", "onesweep", "auto"],
    );
    refuses_naming(
        2,
        &["sort", &boxes, "--backend", "tpu"],
        &["tpu", "[possible values: auto, cpu, cuda]"],
    );
    let message = refuses(2, &["sort", &boxes, "--backend", "wgpu"]);
    assert!(
        message.contains("`sort` and `bench` do not run on `wgpu`") && !message.contains("tip"),
        "{message}"
    );
}

#[test]
fn errors_of_the_command_line_suggest_and_show_the_usage() {
    let message = refuses(2, &["run", "uniform", "--strategy", "swep"]);
    for part in [
        "[possible values: endpoints, sweep, subdivided, auto]",
        "tip: a similar value exists: 'sweep'",
    ] {
        assert!(message.contains(part), "{message}");
    }
    let message = refuses(2, &["run", "uniform", "--strtegy", "sweep"]);
    for part in ["'--strategy'", "Usage: radsweep run"] {
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn numbers_are_read_as_people_write_them_and_have_ranges() {
    for bodies in ["2000", "2k", "2_000", "2e3", "0.002M"] {
        let args = [
            "run", "uniform", "--frames", "1", "--bodies", bodies, "--json",
        ];
        assert_eq!(json(&args)["n"], 2000, "{bodies}");
    }
    for (option, range) in [
        ("--bodies", "1 and 4294967295"),
        ("--frames", "1 and 4294967295"),
        ("--seed", "0 and 18446744073709551615"),
        ("--threads", "1 and 1024"),
    ] {
        let message = format!("`-3` is not between {range}");
        refuses_naming(2, &["run", "uniform", option, "-3"], &[option, &message]);
    }
    for (density, message) in [
        ("2k", "`2k` is not a number such as"),
        ("1e9", "`1e9` is not between 0.001 and 1000"),
        ("nan", "`nan` is not between"),
    ] {
        refuses_naming(2, &["run", "uniform", "--density", density], &[message]);
    }
}

#[test]
fn values_that_the_work_refuses_are_errors_of_the_command_line() {
    for (args, part) in [
        (
            &["run", "stack", "--bodies", "4e9"][..],
            "4000000000 bodies",
        ),
        (&["run", "galaxy", "--bodies", "1e8"], "100000000 bodies"),
        (&["view", "galaxy", "--bodies", "1e8"], "100000000 bodies"),
        (
            &[
                "bench",
                "sap",
                "--no-peers",
                "--scenes=galaxy",
                "--sizes=1e8",
            ],
            "100000000 bodies",
        ),
    ] {
        refuses_naming(2, args, &[part, "Usage: radsweep"]);
    }
    let info: Value = serde_json::from_str(&succeeds(&["info", "--json"])).expect("JSON");
    if info["adapters"]
        .as_array()
        .is_some_and(|all| !all.is_empty())
    {
        let args = [
            "run",
            "stack",
            "--strategy",
            "endpoints",
            "--backend",
            "wgpu",
        ];
        refuses_naming(
            2,
            &args,
            &["`wgpu` does not support the strategy `endpoints`"],
        );
    }
    if cfg!(feature = "viewer") {
        let args = ["stack", "--screenshot", "no.png", "--size", "0x10"];
        refuses_naming(2, &args, &["`0x10` has a side of 0 pixels"]);
    }
}

#[test]
fn the_variable_of_wgpu_chooses_the_graphics_apis() {
    let mut command = by_itself();
    let command = command.args(["info", "--json"]).env("WGPU_BACKEND", "gl");
    let output = command.output().expect("the program starts");
    let info: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let of_vulkan = |name: &Value| name.as_str().is_some_and(|name| name.contains("Vulkan"));
    let adapters = info["adapters"].as_array().expect("a list");
    assert!(!adapters.iter().any(of_vulkan), "{adapters:?}");
}

#[test]
fn options_without_effect_are_noted() {
    let run = |more: &[&str]| {
        let args = [
            "run",
            "stack",
            "--bodies",
            "9",
            "--frames",
            "1",
            "--backend",
            "cpu",
        ];
        let output = run(&[&args[..], more].concat());
        assert!(output.status.success());
        text(&output.stderr)
    };
    assert_eq!(run(&["--sort", "auto"]), "");
    assert_eq!(
        run(&["--density", "1"]),
        "note: --density has no effect on stack\n"
    );
    let note = "note: --sort bucket has no effect: cpu has one sort\n";
    assert_eq!(run(&["--sort", "bucket"]), note);
    // Without a display, as a table.
    let mut view = command();
    view.args(["view", "stack", "--bodies", "9", "--frames", "1"]);
    view.args(["--backend", "cpu", "--sort", "bucket"]);
    view.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY");
    let noted = text(&view.output().expect("the program starts").stderr);
    assert_eq!(noted.matches(note).count(), 1, "{noted}");
    let folder = Folder::new();
    let boxes = folder.boxes("boxes.npy", &ROW);
    let keys = folder.array("keys.npy", &[1], &[3_u32]);
    for (command, file) in [("pairs", &boxes), ("sort", &keys)] {
        let args = [command, file, "--sort", "bucket", "--backend", "cpu"];
        assert_eq!(text(&crate::run(&args).stderr), note);
    }
}

#[test]
fn help_says_what_options_and_columns_mean() {
    let help = |args: &[&str]| {
        let help = succeeds(&[args, &["--help"]].concat());
        help.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    for (args, part) in [
        (
            &["sort"][..],
            "NaNs with the sign bit set are below all numbers",
        ),
        (&["run"], "`hash` is one number for all pairs"),
        (&["run"], "- galaxy: Two galaxies that meet"),
        (&["pairs"], "`hash` is one number for all of them"),
        (&["bench"], "(sap: sweep and prune)"),
        (&["bench", "sap"], "(sap: sweep and prune)"),
        (&["bench", "sap"], "need a build with `--features peers`"),
        (&["run"], "Not with --sort"),
        (&["pairs"], "Not with --sort or --between"),
        (&["info"], "[env: RAYON_NUM_THREADS]"),
        (&["info"], "[env: NO_COLOR]"),
        (&["info"], "[alias: --color]"),
        (&["run"], "mixed-sizes, 0.001 to 1000"),
        (&["run"], "No effect elsewhere"),
        (&["calibrate"], "`radsweep/sort-DEVICE.txt`"),
    ] {
        assert!(help(args).contains(part), "{args:?} {}", help(args));
    }
    // Every option that a variable replaces names it, in the same form.
    for args in [
        &["view"][..],
        &["run"],
        &["pairs"],
        &["sort"],
        &["bench", "sort"],
        &["bench", "sap"],
        &["bench", "paper"],
    ] {
        let part = "[env: RADSWEEP_BACKEND]";
        assert!(help(args).contains(part), "{args:?} {}", help(args));
    }
    assert!(!help(&["run"]).contains("window runs"));
    if cfg!(feature = "viewer") {
        let view = help(&["view"]);
        let (before, after) = view
            .split_once("Picture options (with --screenshot)")
            .expect("a heading");
        assert!(
            after.contains("--every <K>") && before.contains("--frames <N>"),
            "{view}"
        );
        assert!(
            before.contains("A window runs until it is closed"),
            "{view}"
        );
    } else {
        let view = help(&["view"]);
        assert!(
            view.contains("no feature `viewer`") && !view.contains("--screenshot"),
            "{view}"
        );
    }
}

#[test]
fn colours_are_used_where_they_are_asked_for() {
    for (args, has) in [
        (["--color", "always", "info", "--dance"].as_slice(), true),
        (&["pairs", "no.npy", "--color=always"], true),
        (&["pairs", "no.npy", "--colour=always"], true),
        (&["--color", "never", "info", "--dance"], false),
        (&["--color", "always", "dance"], true),
        (&["dance"], false),
        (&["info", "--dance"], false),
        (&["pairs", "no.npy"], false),
    ] {
        let message = text(&run(args).stderr);
        assert_eq!(message.contains("\u{1b}["), has, "{args:?}: {message}");
    }
    refuses_naming(2, &["info", "--color", "loud"], &["loud", "always"]);
}

#[test]
fn shells_get_completions_and_man_gets_pages() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = succeeds(&["completions", shell]);
        for name in ["radsweep", "pairs", "skip-invalid", "subdivided"] {
            assert!(script.contains(name), "{name} is missing for {shell}");
        }
    }
    // A scene in the place of a command completes too, with the options of `view`.
    let script = succeeds(&["completions", "bash"]);
    assert!(script.contains("radsweep,falling-chairs)"), "{script}");
    let fish = succeeds(&["completions", "fish"]);
    for part in [
        "-a \"stack\"",
        "__fish_radsweep_using_subcommand stack\" -l bodies",
    ] {
        assert!(fish.contains(part), "{part}: {fish}");
    }
    refuses_naming(2, &["completions", "basic"], &["basic", "zsh"]);
    let page = succeeds(&["man"]);
    assert!(page.contains(".TH radsweep 1"), "{page}");
    let synopsis = "\n\\fBradsweep pairs\\fR [OPTIONS] <BOXES.npy>\n";
    assert!(succeeds(&["man", "pairs"]).contains(synopsis));
    let page = succeeds(&["man", "bench", "sap"]);
    assert!(
        page.contains(".TH radsweep-bench-sap 1  \"radsweep 0") && page.contains("\\-\\-motion"),
        "{page}"
    );
    for (path, known) in [
        (&["dance"][..], "known are view, run,"),
        (&["bench", "dance"], "known are sort, sap, paper"),
        (&["pairs", "dance"], "`pairs` has no commands"),
    ] {
        let message = refuses(2, &[&["man"], path].concat());
        assert!(message.contains(known), "{message}");
        assert!(message.contains("Usage: radsweep man"), "{message}");
    }
}

#[test]
fn a_picture_that_cannot_be_written_is_refused_before_the_work() {
    if cfg!(feature = "viewer") {
        let args = ["stack", "--bodies", "1M", "--screenshot", "picture.jpg"];
        refuses_naming(2, &args, &["picture.jpg", "only .png files can be written"]);
        let args = ["stack", "--screenshot", "-", "--every", "2"];
        refuses_naming(
            2,
            &args,
            &[
                "--every needs a --screenshot with a name",
                "Usage: radsweep view",
            ],
        );
    }
}

#[test]
fn missing_cuda_is_an_error_that_says_what_was_looked_for() {
    let folder = Folder::new();
    let boxes = folder.boxes("boxes.npy", &ROW);
    let keys = folder.array("keys.npy", &[1], &[3_u32]);
    for args in [["run", "uniform"], ["pairs", &boxes], ["sort", &keys]] {
        // Hides the device, if there is one.
        let output = command()
            .args(args)
            .args(["--backend", "cuda"])
            .env("CUDA_VISIBLE_DEVICES", "")
            .output();
        let output = output.expect("the program starts");
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{message}");
        assert_eq!(text(&output.stdout), "");
        assert_eq!(message.lines().count(), 1, "{message}");
        assert!(message.starts_with("error: no CUDA backend: "), "{message}");
    }
}

#[test]
fn the_environment_decides_the_backend() {
    let with = |value: &str, args: &[&str]| {
        let mut command = by_itself();
        command
            .env("RADSWEEP_BACKEND", value)
            .env("CUDA_VISIBLE_DEVICES", "");
        command.args(args).output().expect("the program starts")
    };
    let folder = Folder::new();
    let boxes = folder.boxes("boxes.npy", &ROW);
    let keys = folder.array("keys.npy", &[1], &[3_u32]);
    for args in [
        ["pairs", &boxes].as_slice(),
        &["sort", &keys],
        &["run", "stack", "--bodies", "9"],
    ] {
        assert!(with("cpu", args).status.success(), "{args:?}");
        assert!(with("", args).status.success(), "{args:?}");
        for (value, part) in [
            ("cuda", "no CUDA backend"),
            (
                "tpu",
                "unknown value of RADSWEEP_BACKEND `tpu`: known are auto, cpu, cuda, wgpu",
            ),
        ] {
            let output = with(value, args);
            let message = text(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{args:?} {message}");
            assert!(
                message.contains(part) && message.lines().count() == 1,
                "{args:?} {message}"
            );
        }
    }
    let sorted = with("wgpu", &["sort", &keys]);
    let message = "error: RADSWEEP_BACKEND asks for wgpu, but `sort` and `bench` do not run on \
                   `wgpu`: use the backend cpu or cuda\n";
    assert_eq!(text(&sorted.stderr), message);
    // A backend that is missing is no reason for `info` to fail.
    for (value, part) in [
        ("cpu", "\nbackend  cpu: requested by RADSWEEP_BACKEND\n"),
        ("cuda", "\nbackend  none: no CUDA backend: "),
        (
            "tpu",
            "\nbackend  none: unknown value of RADSWEEP_BACKEND `tpu`",
        ),
    ] {
        let output = with(value, &["info"]);
        let printed = text(&output.stdout);
        assert!(
            output.status.success() && printed.contains(part),
            "{printed}"
        );
    }
    let info = with("cuda", &["info", "--json"]).stdout;
    let info: Value = serde_json::from_slice(&info).expect("one JSON object");
    assert_eq!(info["backend"], Value::Null);
    // The command line takes precedence.
    assert!(
        with("cuda", &["pairs", &boxes, "--backend", "cpu"])
            .status
            .success()
    );
}

#[test]
fn info_says_which_backend_and_why() {
    let said = |args: &[&str]| {
        let output = by_itself().args(args).output().expect("the program starts");
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let info: Value = serde_json::from_str(&said(&["info", "--json"])).expect("one JSON object");
    assert_eq!(info["version"], env!("CARGO_PKG_VERSION"));
    assert!(
        ["cpu", "cuda"].contains(&info["backend"].as_str().expect("text")),
        "{info}"
    );
    assert!(!info["why"].as_str().expect("text").is_empty());
    let devices = info["cuda"]["devices"].as_array().expect("a list");
    assert_eq!(info["backend"] == "cuda", !devices.is_empty(), "{info}");
    let adapters = info["adapters"].as_array().expect("a list");
    let is_real = |one: &Value| one.as_str().is_some_and(|one| !one.ends_with("(software)"));
    if info["backend"] == "cpu" && !adapters.is_empty() && !adapters.iter().any(is_real) {
        let why = info["why"].as_str().expect("text");
        assert!(
            why.ends_with("auto does not use software drivers of wgpu"),
            "{why}"
        );
    }
    let printed = said(&["info"]);
    assert!(printed.contains("\nbackend "), "{printed}");
    let single = said(&["info", "--threads", "1"]);
    assert!(single.contains("\ncpu      1 thread\n"), "{single}");
}

#[test]
fn a_file_name_with_line_breaks_prints_one_line() {
    refuses_naming(1, &["pairs", "no\nsuch\nfile.npy"], &["no such file.npy"]);
}
