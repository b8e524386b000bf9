//! Writes files atomically: each is either unchanged or complete, whatever ends the process.
//!
//! On Linux the data goes into a file without a name (`O_TMPFILE`), which the kernel removes with
//! the process: even `SIGKILL` leaves nothing. On other systems it goes into a temporary file
//! beside the target. A program that has called [`remove_on_signals`] removes that file when a
//! signal ends it.

use std::fs::{self, File};
use std::io::{self, Stdout, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use tempfile::{Builder, NamedTempFile};

/// A file that appears at its target when [`Output::finish`] is called.
///
/// Dropped before that, it leaves nothing. Stdout (`-`), or a target that is not a regular file,
/// such as `/dev/null` or a pipe, is written directly.
#[derive(Debug)]
pub struct Output(Kind);

#[derive(Debug)]
enum Kind {
    #[cfg(target_os = "linux")]
    Nameless {
        file: File,
        target: PathBuf,
    },
    Named {
        file: NamedTempFile,
        target: PathBuf,
    },
    Direct(File),
    Stdout(Stdout),
}

/// Tells whether a path is `-`: stdin where a file is read, stdout where one is written.
#[must_use]
pub fn is_dash(path: &Path) -> bool {
    path == Path::new("-")
}

/// Tells whether the name of a file ends in one of these extensions, in any case.
#[must_use]
pub fn has_ending(path: &Path, endings: &[&str]) -> bool {
    let of_path = path.extension();
    let is = |ending: &&str| of_path.is_some_and(|own| own.eq_ignore_ascii_case(ending));
    endings.iter().any(is)
}

/// Tells whether the name of a file is that of a text.
#[must_use]
pub fn is_text(path: &Path) -> bool {
    has_ending(path, &["csv", "json", "tsv", "txt"])
}

/// Tells whether two paths lead to one regular file.
#[must_use]
pub fn is_same(a: &Path, b: &Path) -> bool {
    let file = |path: &Path| {
        let path = fs::canonicalize(path).ok()?;
        path.is_file().then_some(path)
    };
    !is_dash(a) && !is_dash(b) && file(a).is_some_and(|a| file(b) == Some(a))
}

/// Returns the name of a file in messages: `standard` for `-`.
#[must_use]
pub fn name<'a>(path: &'a Path, standard: &'a str) -> &'a Path {
    if is_dash(path) {
        Path::new(standard)
    } else {
        path
    }
}

/// Returns stdout, or stderr where one of these files is stdout: what is printed beside a file.
#[must_use]
pub fn beside<'a>(files: impl IntoIterator<Item = Option<&'a Path>>) -> Box<dyn Write> {
    if files.into_iter().flatten().any(is_dash) {
        Box::new(io::stderr().lock())
    } else {
        Box::new(io::stdout().lock())
    }
}

impl Output {
    /// Opens a new output, and checks that `path` can be written without changing it.
    ///
    /// A symbolic link stays a link: its target is written, even where that does not exist yet.
    ///
    /// # Errors
    ///
    /// The error of the system; [`io::ErrorKind::IsADirectory`] for a folder.
    pub fn create(path: &Path) -> io::Result<Self> {
        if is_dash(path) {
            return Ok(Self(Kind::Stdout(io::stdout())));
        }
        let existing = match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(metadata) if !metadata.is_file() => {
                let file = File::options().write(true).open(path)?;
                return Ok(Self(Kind::Direct(file)));
            }
            Ok(metadata) => {
                File::options().write(true).open(path)?;
                Some(metadata)
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Err(_) if ends_in_separator(path) => return Err(io::ErrorKind::IsADirectory.into()),
            Err(_) => None,
        };
        let target = match existing {
            Some(_) => fs::canonicalize(path)?,
            None => behind_links(path),
        };
        #[cfg(target_os = "linux")]
        if let Ok(file) = nameless(folder(&target)) {
            keep_permissions(&file, existing)?;
            return Ok(Self(Kind::Nameless { file, target }));
        }
        let file = named(folder(&target))?;
        keep_permissions(file.as_file(), existing)?;
        Ok(Self(Kind::Named { file, target }))
    }

    /// Publishes the file at its target.
    ///
    /// # Errors
    ///
    /// The error of the system; the target is then unchanged.
    pub fn finish(self) -> io::Result<()> {
        match self.0 {
            #[cfg(target_os = "linux")]
            Kind::Nameless { file, target } => publish(&file, &target),
            Kind::Named { file, target } => file.persist(target).map(drop).map_err(io::Error::from),
            Kind::Direct(mut file) => file.flush(),
            Kind::Stdout(mut stdout) => stdout.flush(),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            #[cfg(target_os = "linux")]
            Kind::Nameless { file, .. } => file.write(bytes),
            // `NamedTempFile`'s own `write` adds the temporary file's name to its errors.
            Kind::Named { file, .. } => file.as_file_mut().write(bytes),
            Kind::Direct(file) => file.write(bytes),
            Kind::Stdout(stdout) => stdout.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(()) // Nothing is buffered.
    }
}

/// Checks that a file can be written later. It does not open a device or a pipe, whose reader would
/// see an end of file.
///
/// # Errors
///
/// As [`Output::create`].
pub fn check(path: &Path) -> io::Result<()> {
    let is_special = |metadata: fs::Metadata| !metadata.is_file() && !metadata.is_dir();
    if fs::metadata(path).is_ok_and(is_special) {
        return Ok(());
    }
    Output::create(path).map(drop)
}

/// Writes a file completely or not at all.
///
/// # Errors
///
/// As [`Output`].
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut output = Output::create(path)?;
    output.write_all(bytes)?;
    output.finish()
}

/// Follows symbolic links to a file that does not exist, for which `canonicalize` fails.
fn behind_links(path: &Path) -> PathBuf {
    let mut target = path.to_owned();
    // This ends: `metadata` has failed before where links form a circle.
    while let Ok(link) = fs::read_link(&target) {
        target = folder(&target).join(link);
    }
    target
}

fn ends_in_separator(path: &Path) -> bool {
    let last = path.as_os_str().as_encoded_bytes().last();
    last.is_some_and(|&byte| std::path::is_separator(byte.into()))
}

fn folder(path: &Path) -> &Path {
    let parent = path.parent();
    parent
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

/// Gives a file the permissions of the one that it will replace. Without one, the process's mask
/// decides.
fn keep_permissions(file: &File, existing: Option<fs::Metadata>) -> io::Result<()> {
    existing.map_or(Ok(()), |metadata| {
        file.set_permissions(metadata.permissions())
    })
}

/// Opens an empty file without a name in this folder.
#[cfg(target_os = "linux")]
fn nameless(folder: &Path) -> io::Result<File> {
    use rustix::fs::OFlags;
    use std::os::unix::fs::OpenOptionsExt;
    let flags = OFlags::TMPFILE.bits().cast_signed();
    let file = File::options()
        .write(true)
        .mode(0o666)
        .custom_flags(flags)
        .open(folder)?;
    // `publish` gives it its name through this path.
    fs::metadata(descriptor(&file))?;
    Ok(file)
}

#[cfg(target_os = "linux")]
fn descriptor(file: &File) -> String {
    use std::os::fd::AsRawFd;
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// Gives a nameless file its name. A link cannot replace a file, so an existing one is replaced by
/// renaming a second link.
#[cfg(target_os = "linux")]
fn publish(file: &File, target: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD, linkat};
    let descriptor = descriptor(file);
    let link = |name: &Path| -> io::Result<()> {
        let linked = linkat(CWD, &*descriptor, CWD, name, AtFlags::SYMLINK_FOLLOW);
        linked.map_err(io::Error::from)
    };
    match link(target) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let _list = delay_signals();
            let second = names().make_in(folder(target), link)?;
            Ok(second.persist(target).map(drop)?)
        }
        done => done,
    }
}

fn names<'a>() -> Builder<'a, 'a> {
    let mut names = Builder::new();
    names.prefix(".radsweep-").suffix(".tmp");
    // `tempfile` would make the file private.
    #[cfg(unix)]
    names.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    names
}

/// Every named temporary file so far. Files that no longer exist may stay in the list.
static NAMED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
static REMOVE_ON_SIGNALS: AtomicBool = AtomicBool::new(false);

/// Makes signals that end the process first remove its named temporary files.
///
/// The process then ends by the same signal. A signal that it was started to ignore stays ignored.
/// The handlers are installed with the first named file. From this call on, a write beyond the
/// process's file size limit is an error instead of a fatal signal.
pub fn remove_on_signals() {
    REMOVE_ON_SIGNALS.store(true, Ordering::Relaxed);
    // Any handler will do. If the system refuses it, the limit ends the process, as by default.
    #[cfg(unix)]
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, std::sync::Arc::default());
}

/// Installs the handlers of signals, and locks the list that they read: no signal ends the process
/// until it is released.
fn delay_signals() -> MutexGuard<'static, Vec<PathBuf>> {
    static INSTALL: Once = Once::new();
    if REMOVE_ON_SIGNALS.load(Ordering::Relaxed) {
        // Without handlers a signal leaves a file behind, which is better than no output.
        INSTALL.call_once(|| _ = install());
    }
    NAMED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Creates an empty temporary file with a name in this folder.
fn named(folder: &Path) -> io::Result<NamedTempFile> {
    let mut list = delay_signals();
    let file = names().tempfile_in(folder).map_err(without_path)?;
    list.push(file.path().to_owned());
    Ok(file)
}

/// Removes " at path" and the temporary file's name, which `tempfile` adds and the user does not
/// know.
fn without_path(error: io::Error) -> io::Error {
    match error.to_string().rsplit_once(" at path ") {
        Some((what, _)) => io::Error::new(error.kind(), what),
        None => error,
    }
}

/// Removes the files in [`NAMED`] and ends the process before another is made.
fn remove_and(end: impl FnOnce()) {
    let list = NAMED.lock().unwrap_or_else(PoisonError::into_inner);
    for path in list.iter() {
        // The process ends: a file that cannot be removed stays.
        let _ = fs::remove_file(path);
    }
    end();
}

#[cfg(unix)]
fn install() -> io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    use signal_hook::{iterator::Signals, low_level::emulate_default_handler};
    let heeded = [SIGHUP, SIGINT, SIGQUIT, SIGTERM].map(|signal| (signal, is_ignored(signal)));
    let heeded = heeded.into_iter().filter(|signal| !signal.1);
    let mut signals = Signals::new(heeded.map(|signal| signal.0))?;
    let wait = move || {
        if let Some(signal) = signals.forever().next() {
            remove_and(|| _ = emulate_default_handler(signal));
        }
    };
    let thread = std::thread::Builder::new().name("signals".into());
    thread.spawn(wait).map(drop)
}

/// Tells whether the process was started to ignore a signal, as by `nohup`.
#[cfg(unix)]
fn is_ignored(signal: libc::c_int) -> bool {
    // SAFETY: all zeros is a value of this C struct.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: the call only reads the current action, into a struct of the right type.
    let asked = unsafe { libc::sigaction(signal, std::ptr::null(), &mut action) };
    asked == 0 && action.sa_sigaction == libc::SIG_IGN
}

#[cfg(windows)]
fn install() -> Result<(), ctrlc::Error> {
    /// `STATUS_CONTROL_C_EXIT`, by which Windows ends a process at Ctrl-C.
    const ENDED: u32 = 0xC000_013A;
    ctrlc::set_handler(|| remove_and(|| std::process::exit(ENDED.cast_signed())))
}

#[cfg(not(any(unix, windows)))]
fn install() -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names_in(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("a folder");
        let names = entries.map(|entry| entry.expect("an entry").file_name());
        let mut names: Vec<_> = names
            .map(|name| name.into_string().expect("text"))
            .collect();
        names.sort();
        names
    }

    /// Creates an output as on a system without nameless files.
    fn create_named(target: &Path) -> Output {
        Output(Kind::Named {
            file: named(folder(target)).expect("a temporary file"),
            target: target.into(),
        })
    }

    #[test]
    fn a_file_is_there_as_a_whole_or_not_at_all() {
        type Create = fn(&Path) -> Output;
        let creates: [Create; 2] = [|path| Output::create(path).expect("writable"), create_named];
        for create in creates {
            let place = tempfile::tempdir().expect("a folder");
            let path = place.path().join("out");
            for text in ["new", "newer"] {
                let before = names_in(place.path());
                let mut output = create(&path);
                output.write_all(b"half").expect("written");
                drop(output);
                assert_eq!(names_in(place.path()), before);
                let mut output = create(&path);
                output.write_all(text.as_bytes()).expect("written");
                output.finish().expect("published");
                assert_eq!(fs::read_to_string(&path).expect("there"), text);
                assert_eq!(names_in(place.path()), ["out"]);
                let usual = tempfile::tempdir().expect("a folder");
                fs::write(usual.path().join("out"), text).expect("written");
                let permissions = [usual.path().join("out"), path.clone()]
                    .map(|path| fs::metadata(path).expect("there").permissions());
                assert_eq!(permissions[0], permissions[1]);
            }
        }
    }

    /// A child process writes a named file and is ended by a signal. An ignored signal stays
    /// ignored.
    #[cfg(unix)]
    #[test]
    fn signals_remove_a_temporary_file_that_has_a_name() {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        use std::os::unix::process::{CommandExt, ExitStatusExt};
        use std::process::Command;
        const CHILD: &str = "RADSWEEP_TEST_OUTPUT_CHILD";
        if let Ok(order) = std::env::var(CHILD) {
            let mut order = order.split(' ');
            let place = PathBuf::from(order.next().expect("a folder"));
            remove_on_signals();
            let mut output = create_named(&place.join("out"));
            output.write_all(b"half").expect("written");
            assert_eq!(names_in(&place).len(), 1);
            for signal in order {
                signal_hook::low_level::raise(signal.parse().expect("a number")).expect("raised");
            }
            std::thread::sleep(std::time::Duration::from_secs(60));
            std::process::exit(0);
        }
        let died = |signals: &[libc::c_int], hangups: libc::sighandler_t| {
            let place = tempfile::tempdir().expect("a folder");
            let mut order = place.path().display().to_string();
            signals
                .iter()
                .for_each(|signal| order += &format!(" {signal}"));
            let mut command = Command::new(std::env::current_exe().expect("this program"));
            let name = "output::tests::signals_remove_a_temporary_file_that_has_a_name";
            command.env(CHILD, order).args(["--exact", name]);
            let prepare = move || {
                // SAFETY: both are handlers that any process may set for these signals.
                unsafe { libc::signal(SIGHUP, hangups) };
                // SAFETY: as above.
                unsafe { libc::signal(SIGINT, libc::SIG_DFL) };
                Ok(())
            };
            // SAFETY: `signal` may be called between fork and exec.
            unsafe { command.pre_exec(prepare) };
            let status = command.output().expect("it starts").status;
            assert_eq!(names_in(place.path()), [""; 0]);
            status.signal()
        };
        for signal in [SIGHUP, SIGINT, SIGTERM] {
            assert_eq!(died(&[signal], libc::SIG_DFL), Some(signal));
        }
        assert_eq!(died(&[SIGHUP, SIGTERM], libc::SIG_IGN), Some(SIGTERM));
    }
}
