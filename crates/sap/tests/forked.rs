//! Forked processes. A child has only the thread that forked, so it must not wait for threads of
//! the parent's pool. Small frames need no pool at all.
//!
//! Each case is a process of its own, so that only the case starts threads.

#![allow(clippy::unwrap_used, missing_docs)]

#[cfg(not(unix))]
fn main() {
    println!("skipped: this system has no fork");
}

#[cfg(unix)]
mod common;

#[cfg(unix)]
fn main() -> std::process::ExitCode {
    unix::main()
}

#[cfg(unix)]
mod unix {
    use super::common::scenes::uniform;
    use gpusort::SortOptions;
    use sap::{
        Aabb, Aabb64, Backend, BroadPhase, Config, Filter, Frame, Pair, Strategy, aabbs_from_mesh,
    };
    use std::num::NonZero;
    use std::process::{Command, ExitCode};
    use std::time::{Duration, Instant};
    use std::{env, thread};

    /// Names the case that a child runs.
    const CHILD: &str = "RADSWEEP_TEST_FORKED";
    /// The max time of a forked process, about a hundred times what it needs.
    const DEADLINE: Duration = Duration::from_secs(60);

    const CASES: &[(&str, fn())] = &[
        (
            "small_frames_start_no_threads",
            small_frames_start_no_threads,
        ),
        ("after_a_large_frame", after_a_large_frame),
        ("before_any_frame", before_any_frame),
        ("after_threads_of_others", after_threads_of_others),
        ("a_child_of_a_child", a_child_of_a_child),
        ("threads_of_its_own", threads_of_its_own),
        ("within_a_pool_of_the_caller", within_a_pool_of_the_caller),
    ];

    pub fn main() -> ExitCode {
        if let Ok(which) = env::var(CHILD) {
            CASES.iter().find(|(name, _)| *name == which).unwrap().1();
            return ExitCode::SUCCESS;
        }
        if env::args().any(|argument| argument == "--list") {
            println!("forked: test"); // a harness of one test
            return ExitCode::SUCCESS;
        }
        let start = |(name, _): &(&'static str, fn())| {
            let mut command = Command::new(env::current_exe().unwrap());
            (*name, command.env(CHILD, name).spawn().unwrap())
        };
        let children: Vec<_> = CASES.iter().map(start).collect();
        let mut good = true;
        for (name, mut child) in children {
            let status = child.wait().unwrap();
            println!("{name}: {status}");
            good &= status.success();
        }
        if good {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }

    fn engine(strategy: Strategy) -> BroadPhase {
        let config = Config {
            backend: Backend::Cpu,
            strategy,
            ..Config::default()
        };
        BroadPhase::new(config).unwrap()
    }

    /// The results of all calls that may use threads.
    #[derive(PartialEq)]
    struct Results {
        pairs: Vec<Vec<Pair>>,
        found: Vec<Vec<u32>>,
        index: Vec<u32>,
        meshes: Vec<Aabb>,
    }

    /// Makes each call once.
    fn results(broad_phase: &mut BroadPhase) -> Results {
        let mut pairs = Vec::new();
        let mut found = Vec::new();
        for n in [3, 999, 100_000] {
            let all = uniform(n, 1);
            broad_phase.update(&all).unwrap();
            pairs.push(broad_phase.pairs().to_vec());
            found.push(
                broad_phase
                    .query_box(&Aabb::new([1.0; 3], [4.0; 3]))
                    .unwrap(),
            );
            pairs.push(broad_phase.overlaps_between(&all, &uniform(n, 2)).unwrap());
            let mut chunks = Vec::new();
            let hand = |some: &[Pair]| chunks.extend_from_slice(some);
            broad_phase.for_each_pair_chunk(&all, 1000, hand).unwrap();
            pairs.push(chunks);
        }
        // Few changes in a row, first compared, then listed.
        let mut all = uniform(100_000, 1);
        for round in 0..6 {
            let changed: Vec<u32> = (0..2000).map(|i| i * 40 + round).collect();
            for &i in &changed {
                all[i as usize].max[0] += 0.5;
            }
            let frame = Frame::boxes(&all);
            let frame = if round < 3 {
                frame
            } else {
                frame.changed(&changed)
            };
            broad_phase.update(frame).unwrap();
            pairs.push(broad_phase.pairs().to_vec());
            pairs.push(broad_phase.started().to_vec());
        }
        for strategy in [Strategy::Endpoints, Strategy::Sweep, Strategy::Subdivided] {
            let mut other = engine(strategy);
            other.update(&uniform(50_000, 3)).unwrap();
            pairs.push(other.pairs().to_vec());
            other.update(&uniform(50, 3)).unwrap();
            pairs.push(other.pairs().to_vec());
        }
        // Few boxes with many pairs.
        let crowd = vec![Aabb::new([0.0; 3], [1.0; 3]); 900];
        broad_phase.update(&crowd).unwrap();
        pairs.push(broad_phase.pairs().to_vec());
        let keys: Vec<u32> = (0..1 << 20)
            .map(|i: u32| i.wrapping_mul(0x9e37_79b9))
            .collect();
        let mut index = vec![0; keys.len()];
        gpusort::cpu::sort_index(&keys, &mut index, &SortOptions::default()).unwrap();
        assert!(!gpusort::cpu::is_sorted(&keys, &SortOptions::default()).unwrap());
        let corner = |i: u32| [i as f32, (i % 7) as f32, (i % 3) as f32];
        let vertices: Vec<[f32; 3]> = (0..100_000).map(corner).collect();
        let triangles: Vec<[u32; 3]> = (0..99_998).map(|i| [i, i + 1, i + 2]).collect();
        let meshes = aabbs_from_mesh(&vertices, &triangles).unwrap();
        Results {
            pairs,
            found,
            index,
            meshes,
        }
    }

    /// Runs `f` in a fork of this process, which must end.
    fn in_fork(f: impl FnOnce()) {
        // SAFETY: the child uses its own memory and threads, which the C library allows after a
        // fork, and ends here.
        let child = unsafe { libc::fork() };
        assert!(child >= 0, "no fork");
        if child == 0 {
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(f));
            // SAFETY: this ends the process.
            unsafe { libc::_exit(i32::from(done.is_err())) }
        }
        let (start, mut status) = (Instant::now(), 0);
        loop {
            // SAFETY: this is a child of this process, and `status` is valid.
            let ended = unsafe { libc::waitpid(child, &mut status, libc::WNOHANG) };
            if ended == child {
                break;
            }
            if start.elapsed() > DEADLINE {
                // SAFETY: nobody has waited for the child, so the id is still its own.
                unsafe { libc::kill(child, libc::SIGKILL) };
                panic!("the forked process hangs");
            }
            thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(status, 0, "the forked process failed");
    }

    #[cfg(target_os = "linux")]
    fn threads() -> usize {
        std::fs::read_dir("/proc/self/task").unwrap().count()
    }

    #[cfg(not(target_os = "linux"))]
    fn threads() -> usize {
        1
    }

    /// A broad phase with a number of threads starts so many, when it needs them first, and its
    /// results are the same. A child starts them anew.
    fn threads_of_its_own() {
        let calls = |broad_phase: &mut BroadPhase| {
            let mut pairs = Vec::new();
            for n in [20_000, 300, 30_000] {
                let all = uniform(n, 1);
                broad_phase.update(&all).unwrap();
                pairs.push(broad_phase.pairs().to_vec());
                let corner = Aabb::new([0.0; 3], [9.0; 3]);
                assert!(!broad_phase.query_box(&corner).unwrap().is_empty());
                pairs.push(broad_phase.overlaps_between(&all, &uniform(n, 2)).unwrap());
                let mut chunks = Vec::new();
                let hand = |some: &[Pair]| chunks.extend_from_slice(some);
                broad_phase.for_each_pair_chunk(&all, 1000, hand).unwrap();
                pairs.push(chunks);
            }
            pairs
        };
        let with = |threads| {
            BroadPhase::new(Config {
                threads: NonZero::new(threads),
                ..engine(Strategy::Auto).config().clone()
            })
            .unwrap()
        };
        let mut own = [with(1), with(3)];
        let mut found = Vec::new();
        let mut before = threads();
        for (broad_phase, count) in own.iter_mut().zip([1, 3]) {
            broad_phase.update(&uniform(900, 1)).unwrap();
            assert_eq!(threads(), before, "a small frame needs none");
            found.push(calls(broad_phase));
            before += if cfg!(target_os = "linux") { count } else { 0 };
            assert_eq!(threads(), before);
        }
        assert!(found[0] == found[1]);
        in_fork(|| assert!(calls(&mut own[1]) == found[0]));
        assert!(calls(&mut engine(Strategy::Auto)) == found[0]);
    }

    fn small_frames_start_no_threads() {
        assert_eq!(threads(), 1);
        for strategy in [Strategy::Auto, Strategy::Sweep] {
            for margin in [0.0, 0.1] {
                let mut broad_phase = BroadPhase::new(Config {
                    margin,
                    ..engine(strategy).config().clone()
                })
                .unwrap();
                for (seed, n) in (0..).zip([0, 1, 3, 10, 100, 1000, 1000, 30]) {
                    let all = uniform(n, seed);
                    let filters: Vec<Filter> = (0..n as u32)
                        .map(|i| Filter {
                            group: i % 5,
                            ..Filter::default()
                        })
                        .collect();
                    let exact: Vec<Aabb64> = all
                        .iter()
                        .map(|b| Aabb64::new(b.min.map(f64::from), b.max.map(f64::from)))
                        .collect();
                    let changed: Vec<u32> = (0..n as u32).collect();
                    broad_phase.update(&all).unwrap();
                    let plain = broad_phase.pairs().to_vec();
                    broad_phase.update(Frame::exact(&exact)).unwrap();
                    assert!(margin > 0.0 || broad_phase.pairs() == plain);
                    broad_phase
                        .update(Frame::boxes(&all).filters(&filters))
                        .unwrap();
                    broad_phase.update(Frame::swept(&all, &all)).unwrap();
                    broad_phase
                        .update(Frame::boxes(&all).changed(&changed))
                        .unwrap();
                    broad_phase
                        .update(Frame::boxes(&all).excluded(&plain))
                        .unwrap();
                    assert!(margin > 0.0 || broad_phase.pairs().is_empty());
                }
            }
        }
        assert_eq!(threads(), 1, "a small frame has started threads");
    }

    fn after_a_large_frame() {
        let mut broad_phase = engine(Strategy::Auto);
        let expected = results(&mut broad_phase);
        in_fork(|| assert!(results(&mut broad_phase) == expected));
        in_fork(|| assert!(results(&mut engine(Strategy::Auto)) == expected));
        // The parent still has its threads.
        assert!(results(&mut broad_phase) == expected);
    }

    fn before_any_frame() {
        in_fork(|| drop(results(&mut engine(Strategy::Auto))));
        drop(results(&mut engine(Strategy::Auto)));
    }

    fn after_threads_of_others() {
        rayon::join(|| (), || ());
        in_fork(|| drop(results(&mut engine(Strategy::Auto))));
        drop(results(&mut engine(Strategy::Auto)));
    }

    fn a_child_of_a_child() {
        let expected = results(&mut engine(Strategy::Auto));
        in_fork(|| {
            assert!(results(&mut engine(Strategy::Auto)) == expected);
            in_fork(|| assert!(results(&mut engine(Strategy::Auto)) == expected));
        });
    }

    fn within_a_pool_of_the_caller() {
        let expected = results(&mut engine(Strategy::Auto));
        in_fork(|| {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(3)
                .build()
                .unwrap();
            pool.install(|| {
                assert!(results(&mut engine(Strategy::Auto)) == expected);
                #[cfg(target_os = "linux")]
                assert_eq!(threads(), 4, "another pool beside the caller's");
            });
        });
    }
}
