//! Queries the memory that this process may still allocate: the min of what the machine, its
//! control groups and the limits on the process leave.

/// Returns the bytes available without swapping; None where the system does not report them.
pub(super) fn available() -> Option<u64> {
    #[cfg(test)]
    if tests::IS_EXHAUSTED.load(std::sync::atomic::Ordering::Relaxed) {
        return Some(0);
    }
    system::available()
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::atomic::AtomicBool;

    /// While it is set, no memory is available. Frames of up to `UNCHECKED_PAIRS` pairs do not ask.
    pub(in crate::cpu) static IS_EXHAUSTED: AtomicBool = AtomicBool::new(false);
}

#[cfg(any(target_os = "linux", target_os = "android"))]
mod system {
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::sync::OnceLock;

    pub(super) fn available() -> Option<u64> {
        let read = |name| fs::read_to_string(Path::new("/proc").join(name)).ok();
        let machine = read("meminfo").and_then(|text| of_machine(&text));
        // Where control groups are mounted does not change.
        static MOUNTS: OnceLock<Vec<Mount>> = OnceLock::new();
        let mounts = MOUNTS.get_or_init(|| mounts(&read("self/mountinfo").unwrap_or_default()));
        let groups = read("self/cgroup").map(|text| groups(&text, mounts));
        let groups = groups.iter().flatten().filter_map(of_group).min();
        let limits = read("self/limits").filter(|text| is_limited(text));
        let space = limits.and_then(|limits| of_address_space(&limits, &read("self/status")?));
        [machine, groups, space].into_iter().flatten().min()
    }

    /// Returns `MemAvailable` of `/proc/meminfo`.
    fn of_machine(meminfo: &str) -> Option<u64> {
        field(meminfo, "MemAvailable:").and_then(kib)
    }

    /// The mount of a hierarchy of control groups that limits memory.
    #[derive(Debug, PartialEq)]
    struct Mount {
        version: Version,
        /// The group at the mount point.
        root: String,
        point: PathBuf,
    }

    #[derive(Debug, Clone, Copy, PartialEq)]
    enum Version {
        One,
        Two,
    }

    /// Returns the mounts of `/proc/self/mountinfo` whose control groups limit memory.
    fn mounts(mountinfo: &str) -> Vec<Mount> {
        let mount = |line: &str| {
            let (left, right) = line.split_once(" - ")?;
            let (mut left, mut right) = (left.split(' ').skip(3), right.split(' '));
            let (root, point) = (left.next()?, left.next()?);
            let version = match right.next()? {
                "cgroup2" => Version::Two,
                "cgroup" if right.nth(1)?.split(',').any(|option| option == "memory") => {
                    Version::One
                }
                _ => return None,
            };
            Some(Mount {
                version,
                root: unescaped(root),
                point: unescaped(point).into(),
            })
        };
        mountinfo.lines().filter_map(mount).collect()
    }

    /// Replaces the octal escapes of `mountinfo`.
    fn unescaped(text: &str) -> String {
        [
            ("\\040", " "),
            ("\\011", "\t"),
            ("\\012", "\n"),
            ("\\134", "\\"),
        ]
        .iter()
        .fold(text.to_owned(), |text, (code, plain)| {
            text.replace(code, plain)
        })
    }

    /// Returns the folders of the groups in `/proc/self/cgroup` and of all groups above them, as
    /// far as they are mounted.
    fn groups(cgroup: &str, mounts: &[Mount]) -> Vec<(Version, PathBuf)> {
        let mut all = Vec::new();
        for line in cgroup.lines() {
            let mut parts = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
                continue;
            };
            let version = match controllers {
                "" => Version::Two,
                _ if controllers.split(',').any(|name| name == "memory") => Version::One,
                _ => continue,
            };
            for mount in mounts.iter().filter(|mount| mount.version == version) {
                let below = below(path, &mount.root);
                let group = mount.point.join(below);
                let depth = Path::new(below).components().count() + 1;
                let groups = group.ancestors().take(depth);
                all.extend(groups.map(|group| (version, group.to_owned())));
            }
        }
        all
    }

    /// Returns the path of a group relative to the root of a mount. It is empty, for the mount
    /// point itself, if the group is not below that root.
    fn below<'a>(path: &'a str, root: &str) -> &'a str {
        let below = path.strip_prefix(root.trim_end_matches('/')).unwrap_or("");
        let is_below = below.is_empty() || below.starts_with('/');
        if !is_below || below.split('/').any(|part| part == "..") {
            return "";
        }
        below.trim_start_matches('/')
    }

    /// Returns the bytes that the limits of a group leave; None if it has no limit.
    fn of_group((version, group): &(Version, PathBuf)) -> Option<u64> {
        let read = |name| fs::read_to_string(group.join(name)).ok();
        let number = |name| read(name)?.trim().parse().ok();
        // `max`, which means no limit, does not parse.
        let (limit, used, cache) = match version {
            Version::One => {
                let limit = number("memory.limit_in_bytes").filter(|&limit| limit < NO_LIMIT)?;
                let cache = ["total_inactive_file ", "total_active_file "];
                (limit, number("memory.usage_in_bytes")?, cache)
            }
            Version::Two => {
                let limits = [number("memory.max"), number("memory.high")];
                let limit = limits.into_iter().flatten().min()?;
                let cache = ["inactive_file ", "active_file "];
                (limit, number("memory.current")?, cache)
            }
        };
        let stat = read("memory.stat").unwrap_or_default();
        let cache = cache
            .iter()
            .filter_map(|name| field(&stat, name)?.parse::<u64>().ok());
        Some(left(limit, used, cache.sum()))
    }

    /// Limits of version one from here on mean no limit.
    const NO_LIMIT: u64 = 1 << 60;

    /// Returns the bytes that a limit leaves. The file cache counts as free.
    fn left(limit: u64, used: u64, cache: u64) -> u64 {
        limit.saturating_sub(used.saturating_sub(cache))
    }

    /// The limits on the size of a process in `/proc/self/limits`, each with its usage in
    /// `/proc/self/status`.
    const SIZES: [(&str, &str); 2] = [
        ("Max address space ", "VmSize:"),
        ("Max data size ", "VmData:"),
    ];

    /// Tells whether `/proc/self/limits` limits the size of a process.
    fn is_limited(limits: &str) -> bool {
        SIZES
            .iter()
            .any(|(limit, _)| soft_limit(limits, limit).is_some())
    }

    fn soft_limit(limits: &str, name: &str) -> Option<u64> {
        field(limits, name)?.split_whitespace().next()?.parse().ok()
    }

    /// Returns the bytes that the limits on the size of a process leave.
    fn of_address_space(limits: &str, status: &str) -> Option<u64> {
        let left = |(limit, used): &(&str, &str)| {
            let used = field(status, used).and_then(kib)?;
            Some(soft_limit(limits, limit)?.saturating_sub(used))
        };
        SIZES.iter().filter_map(left).min()
    }

    /// Returns the rest of the line that begins with a name.
    fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.trim())
    }

    /// Parses a number of kB into bytes.
    fn kib(text: &str) -> Option<u64> {
        let kib: u64 = text.strip_suffix("kB")?.trim().parse().ok()?;
        kib.checked_mul(1024)
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        fn paths(cgroup: &str, mountinfo: &str) -> Vec<(Version, PathBuf)> {
            groups(cgroup, &mounts(mountinfo))
        }

        fn of(version: Version, groups: &[&str]) -> Vec<(Version, PathBuf)> {
            groups.iter().map(|group| (version, group.into())).collect()
        }

        const UNIFIED: &str = "\
22 27 0:21 / /proc rw,relatime - proc proc rw
35 25 0:30 / /sys/fs/cgroup rw,nosuid,nodev shared:9 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot
";

        const SEPARATE: &str = "\
31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:12 master:3 - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
";

        #[test]
        fn groups_of_version_two_are_looked_at_up_to_the_root() {
            let cgroup = "0::/user.slice/user-1000.slice/my job.scope\n";
            let expected = [
                "/sys/fs/cgroup/user.slice/user-1000.slice/my job.scope",
                "/sys/fs/cgroup/user.slice/user-1000.slice",
                "/sys/fs/cgroup/user.slice",
                "/sys/fs/cgroup",
            ];
            assert_eq!(paths(cgroup, UNIFIED), of(Version::Two, &expected));
            // A container with its cgroup namespace.
            let root = of(Version::Two, &["/sys/fs/cgroup"]);
            assert_eq!(paths("0::/\n", UNIFIED), root);
            // A group outside of the namespace.
            assert_eq!(paths("0::/../other\n", UNIFIED), root);
        }

        #[test]
        fn groups_of_version_one_are_those_of_the_memory_controller() {
            let cgroup = "5:cpu,cpuacct:/a\n4:memory:/a/b\n1:name=systemd:/c\n";
            let memory = [
                "/sys/fs/cgroup/memory/a/b",
                "/sys/fs/cgroup/memory/a",
                "/sys/fs/cgroup/memory",
            ];
            assert_eq!(paths(cgroup, SEPARATE), of(Version::One, &memory));
            // Both versions at once.
            let mut hybrid = of(Version::One, &memory);
            hybrid.extend(of(
                Version::Two,
                &["/sys/fs/cgroup/unified/d", "/sys/fs/cgroup/unified"],
            ));
            assert_eq!(paths(&format!("{cgroup}0::/d\n"), SEPARATE), hybrid);
            // A container that sees its host's names, but only its cgroup groups.
            let bound =
                "9 8 0:32 /docker/f00 /sys/fs/cgroup/mem\\040ory ro - cgroup cgroup rw,memory\n";
            let point = "/sys/fs/cgroup/mem ory";
            let inner = format!("{point}/inner");
            for (path, expected) in [
                ("/docker/f00", &[point][..]),
                ("/docker/f00/inner", &[&inner, point]),
                ("/docker/f000", &[point]),
                ("/elsewhere", &[point]),
            ] {
                let cgroup = format!("4:memory:{path}\n");
                assert_eq!(paths(&cgroup, bound), of(Version::One, expected), "{path}");
            }
        }

        #[test]
        fn damaged_texts_are_no_groups() {
            for text in [
                "",
                "\n",
                "4",
                "4:memory",
                "a b c - d",
                " - ",
                "1 2 3 / - cgroup2",
            ] {
                assert_eq!(paths(text, UNIFIED), []);
                assert_eq!(paths("0::/\n4:memory:/\n", text), [], "{text}");
            }
        }

        #[test]
        fn limits_of_a_group_are_read() {
            let folder =
                std::env::temp_dir().join(format!("radsweep-group-{}", std::process::id()));
            let left = |version, files: &[(&str, &str)]| {
                // The last call may have left files, or there was none.
                let _ = fs::remove_dir_all(&folder);
                fs::create_dir_all(&folder).expect("a folder");
                for (name, text) in files {
                    fs::write(folder.join(name), text).expect("a file");
                }
                of_group(&(version, folder.clone()))
            };
            let stat = "anon 5\nfile 70\ninactive_file 30\nactive_file 40\ntotal_inactive_file 300\ntotal_active_file 1\n";
            let two = |max, high| {
                let files = [
                    ("memory.max", max),
                    ("memory.high", high),
                    ("memory.current", "500\n"),
                    ("memory.stat", stat),
                ];
                left(Version::Two, &files)
            };
            assert_eq!(two("max\n", "max\n"), None);
            assert_eq!(two("1000\n", "max\n"), Some(1000 - 500 + 70));
            assert_eq!(two("1000\n", "900\n"), Some(900 - 500 + 70));
            assert_eq!(two("max\n", "100\n"), Some(0));
            let one = |limit| {
                let files = [
                    ("memory.limit_in_bytes", limit),
                    ("memory.usage_in_bytes", "500\n"),
                    ("memory.stat", stat),
                ];
                left(Version::One, &files)
            };
            assert_eq!(one("9223372036854771712\n"), None);
            assert_eq!(one("1000\n"), Some(1000 - 500 + 301));
            // The root has no limit, and files may be missing.
            assert_eq!(left(Version::Two, &[("memory.stat", stat)]), None);
            assert_eq!(
                left(Version::One, &[("memory.limit_in_bytes", "7\n")]),
                None
            );
            fs::remove_dir_all(&folder).expect("the folder");
            assert_eq!(of_group(&(Version::Two, folder.clone())), None);
        }

        #[test]
        fn sizes_of_the_process_and_the_machine_are_read() {
            let limits = |space: &str, data: &str| {
                format!(
                    "Limit                     Soft Limit           Hard Limit           Units     \n\
                     Max data size             {data:20} unlimited            bytes     \n\
                     Max address space         {space:20} unlimited            bytes     \n"
                )
            };
            let status = "VmPeak:\t  900 kB\nVmSize:\t  300 kB\nVmData:\t  100 kB\n";
            let left = |space, data| of_address_space(&limits(space, data), status);
            assert!(!is_limited(&limits("unlimited", "unlimited")));
            assert_eq!(left("unlimited", "unlimited"), None);
            assert!(is_limited(&limits("409600", "unlimited")));
            assert_eq!(left("409600", "unlimited"), Some(100 << 10));
            assert!(is_limited(&limits("unlimited", "112640")));
            assert_eq!(left("unlimited", "112640"), Some(10 << 10));
            assert_eq!(left("409600", "112640"), Some(10 << 10));
            assert_eq!(left("1", "unlimited"), Some(0));
            let meminfo =
                "MemTotal:       24684084 kB\nMemFree:        1 kB\nMemAvailable:   23996032 kB\n";
            assert_eq!(of_machine(meminfo), Some(23_996_032 << 10));
            assert_eq!(of_machine("MemTotal: 1 kB\n"), None);
            assert!(available().is_some());
        }
    }
}

#[cfg(target_vendor = "apple")]
mod system {
    unsafe extern "C" {
        safe fn mach_host_self() -> u32;
        fn host_page_size(host: u32, size: *mut usize) -> i32;
        fn host_statistics64(host: u32, flavor: i32, words: *mut u32, count: *mut u32) -> i32;
    }

    /// The flavor of `vm_statistics64`, and its size in words of four bytes.
    const HOST_VM_INFO64: i32 = 4;
    const WORDS: usize = 38;

    /// The words of the structure, with its alignment.
    #[repr(C, align(8))]
    struct Statistics([u32; WORDS]);

    pub(super) fn available() -> Option<u64> {
        let (mut statistics, mut count, mut page) = (Statistics([0; WORDS]), WORDS as u32, 0);
        let host = mach_host_self();
        // SAFETY: at most `count` words are written, which is the length of the array, and one
        // `usize`.
        let done = unsafe {
            [
                host_statistics64(host, HOST_VM_INFO64, statistics.0.as_mut_ptr(), &mut count),
                host_page_size(host, &mut page),
            ]
        };
        // The structure begins with the free, the active and the inactive pages.
        let [free, _, inactive, ..] = statistics.0.map(u64::from);
        (done == [0; 2]).then_some((free + inactive) * page as u64)
    }
}

#[cfg(windows)]
mod system {
    /// `MEMORYSTATUSEX`.
    #[repr(C)]
    #[derive(Default)]
    struct Status {
        length: u32,
        load: u32,
        total_physical: u64,
        available_physical: u64,
        total_page_file: u64,
        available_page_file: u64,
        total_virtual: u64,
        available_virtual: u64,
        available_extended_virtual: u64,
    }

    #[link(name = "kernel32")]
    unsafe extern "system" {
        fn GlobalMemoryStatusEx(status: *mut Status) -> i32;
    }

    /// Returns the min of the physical, committable and virtual memory that is available. The page
    /// file's figure is the min of what the system and the job of this process can commit.
    pub(super) fn available() -> Option<u64> {
        let mut status = Status {
            length: size_of::<Status>() as u32,
            ..Status::default()
        };
        // SAFETY: `length` is the size of the structure.
        let done = unsafe { GlobalMemoryStatusEx(&mut status) } != 0;
        let all = [
            status.available_physical,
            status.available_page_file,
            status.available_virtual,
        ];
        all.into_iter().min().filter(|_| done)
    }
}

#[cfg(not(any(
    target_os = "linux",
    target_os = "android",
    target_vendor = "apple",
    windows
)))]
mod system {
    pub(super) const fn available() -> Option<u64> {
        None
    }
}
