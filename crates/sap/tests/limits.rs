//! Limits on the memory of a process. With the default configuration, more pairs than they allow
//! are an error with the exact count, are found in bounded memory and can be delivered in chunks.
//! Nothing ends the process.
//!
//! Each case is a process with its own limit.

#![allow(clippy::unwrap_used, missing_docs)]

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("skipped: limits are set as Linux has them");
}

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    linux::main()
}

#[cfg(target_os = "linux")]
mod linux {
    use sap::{Aabb, Backend, BroadPhase, Config, Error, Pair};
    use std::path::{Path, PathBuf};
    use std::process::{Command, ExitCode, ExitStatus};
    use std::{env, fs};

    /// Names the case that a child runs.
    const CHILD: &str = "RADSWEEP_TEST_LIMITS";
    /// The memory of each case in bytes.
    const LIMIT: u64 = 600 << 20;

    const CASES: &[(&str, fn())] = &[("crowd", crowd), ("moving_groups", moving_groups)];

    pub fn main() -> ExitCode {
        if let Ok(which) = env::var(CHILD) {
            CASES.iter().find(|(name, _)| *name == which).unwrap().1();
            return ExitCode::SUCCESS;
        }
        if env::args().any(|argument| argument == "--list") {
            println!("limits: test"); // a harness of one test
            return ExitCode::SUCCESS;
        }
        let group = Group::new();
        let kib = LIMIT / 1024;
        let mut good = true;
        for (name, _) in CASES {
            let mut run = |limit: &str, command: &str| {
                let status = under(command, name);
                println!("{name}, {limit}: {status}");
                good &= status.success();
            };
            run("address space", &format!("ulimit -v {kib}"));
            run("data", &format!("ulimit -d {kib}"));
            match &group {
                Ok(group) => {
                    let procs = group.0.join("cgroup.procs");
                    run("control group", &format!("echo $$ > {}", procs.display()));
                }
                Err(reason) => println!("{name}, control group: skipped, {reason}"),
            }
        }
        if good {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }

    /// Runs a case in a shell that has set its own limit.
    fn under(limit: &str, case: &str) -> ExitStatus {
        // Two threads, because each takes address space for its stack and its allocator.
        Command::new("sh")
            .args(["-c", &format!("{limit} && exec \"$0\"")])
            .arg(env::current_exe().unwrap())
            .env(CHILD, case)
            .env("RAYON_NUM_THREADS", "2")
            .status()
            .unwrap()
    }

    /// Runs a case in a control group of version 2 with the limit.
    struct Group(PathBuf);

    impl Group {
        fn new() -> Result<Self, String> {
            let root = Path::new("/sys/fs/cgroup");
            let said = |error| format!("no control group of version 2 can be made: {error}");
            let controllers = fs::read_to_string(root.join("cgroup.subtree_control"));
            if !controllers
                .map_err(said)?
                .split_whitespace()
                .any(|name| name == "memory")
            {
                return Err("control groups of version 2 do not limit memory here".to_owned());
            }
            let group = Self(root.join(format!("radsweep-test-{}", std::process::id())));
            fs::create_dir(&group.0).map_err(said)?;
            let set = |name, value: &str| fs::write(group.0.join(name), value).map_err(said);
            set("memory.max", &LIMIT.to_string())?;
            // No swap, so that too much memory ends the process.
            let _ = set("memory.swap.max", "0");
            Ok(group)
        }
    }

    impl Drop for Group {
        fn drop(&mut self) {
            // At worst an empty group is left.
            let _ = fs::remove_dir(&self.0);
        }
    }

    fn engine() -> BroadPhase {
        let config = Config {
            backend: Backend::Cpu,
            ..Config::default()
        };
        BroadPhase::new(config).unwrap()
    }

    /// Returns the peak of the resident memory of this process.
    fn filled() -> u64 {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.unwrap().trim().strip_suffix("kB").unwrap().trim();
        kib.parse::<u64>().unwrap() << 10
    }

    /// All boxes overlap, so there are far more pairs than the limit holds.
    fn crowd() {
        let n = 20_000_u64;
        let boxes = vec![Aabb::new([0.0; 3], [1.0; 3]); n as usize];
        let mut broad_phase = engine();
        let before = filled();
        let Err(Error::TooManyPairs { count, limit }) = broad_phase.update(&boxes) else {
            panic!("all pairs in {LIMIT} bytes")
        };
        assert_eq!(count, n * (n - 1) / 2);
        assert!((1 << 20..LIMIT / 8 / 2).contains(&limit), "{limit}");
        let more = filled() - before;
        assert!(more < LIMIT / 8, "{more} bytes filled to count");

        let (mut last, mut sorted) = (Pair::default(), true);
        let hand = |pairs: &[Pair]| {
            sorted &= last < pairs[0] && pairs.is_sorted();
            last = pairs[pairs.len() - 1];
        };
        let report = broad_phase
            .for_each_pair_chunk(&boxes, 1 << 16, hand)
            .unwrap();
        assert!(sorted);
        assert_eq!(report.pairs, count);
        assert!(filled() < LIMIT / 2);
        // The engine still works.
        broad_phase.update(&boxes[..1000]).unwrap();
        assert_eq!(broad_phase.pairs().len(), 499_500);
    }

    /// Each frame has other groups of overlapping boxes, so that all pairs end and as many start.
    /// Their number grows.
    fn moving_groups() {
        const SIZE: u64 = 100;
        let mut broad_phase = engine();
        let (mut fitted, mut refused) = (0, 0);
        for million in [1, 2, 4, 6, 8, 12, 16, 24] {
            let groups = million * 1_000_000 / (SIZE * (SIZE - 1) / 2);
            for frame in 0..3 {
                // The groups get other members after each frame.
                let one = |i: u64| {
                    let group = if frame % 2 == 0 { i / SIZE } else { i % groups };
                    let x = 2.0 * group as f32;
                    Aabb::new([x, 0.0, 0.0], [x + 1.0, 1.0, 1.0])
                };
                let boxes: Vec<Aabb> = (0..groups * SIZE).map(one).collect();
                let expected = groups * SIZE * (SIZE - 1) / 2;
                match broad_phase.update(&boxes) {
                    Ok(report) => {
                        assert_eq!(report.pairs, expected);
                        fitted = fitted.max(expected);
                    }
                    Err(Error::TooManyPairs { count, limit }) => {
                        assert_eq!(count, expected);
                        assert!(limit < count);
                        refused += 1;
                    }
                    Err(error) => panic!("{expected} pairs: {error}"),
                }
            }
        }
        assert!(fitted >= 3_000_000 && refused > 0, "{fitted}, {refused}");
    }
}
