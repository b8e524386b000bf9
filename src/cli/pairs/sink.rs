//! Where the pairs go: nowhere, into an `.npy` file, or into comma-separated values.

use super::super::args::Pairs;
use radsweep::Pair;
use radsweep_common::npy::{Result, Writer, write_error};
use radsweep_common::output::{self, Output, has_ending};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// A file of pairs, which appears when it is complete.
pub(super) enum Sink {
    None,
    Npy(Writer),
    Csv(Csv),
}

/// A file of comma-separated values.
pub(super) struct Csv {
    path: PathBuf,
    output: BufWriter<Output>,
}

/// Returns the file that all pairs are written to.
pub(super) fn file(args: &Pairs) -> Option<&Path> {
    let stdout = args.csv.then_some(Path::new("-"));
    args.output.as_deref().or(stdout)
}

/// Returns whether the name of a file asks for comma-separated values.
pub(super) fn is_csv(path: &Path) -> bool {
    has_ending(path, &["csv"])
}

impl Sink {
    /// Opens the output, and checks that it can be written without changing it.
    pub fn create(args: &Pairs) -> Result<Self> {
        let Some(path) = file(args) else {
            return Ok(Self::None);
        };
        if args.csv || is_csv(path) {
            return Csv::create(path).map(Self::Csv);
        }
        Writer::create(path).map(Self::Npy)
    }

    /// Starts a list of this many pairs.
    pub fn begin(&mut self, count: u64) -> Result<()> {
        match self {
            Self::None => Ok(()),
            Self::Npy(writer) => writer.header::<u32>(&[count, 2]),
            Self::Csv(csv) => csv.write(|output| writeln!(output, "a,b")),
        }
    }

    pub fn append(&mut self, pairs: &[Pair]) -> Result<()> {
        match self {
            Self::None => Ok(()),
            Self::Npy(writer) => writer.append::<u32>(bytemuck::cast_slice(pairs)),
            Self::Csv(csv) => csv.write(|output| {
                let mut pairs = pairs.iter();
                pairs.try_for_each(|pair| writeln!(output, "{},{}", pair.a, pair.b))
            }),
        }
    }

    /// Publishes the file.
    pub fn finish(self) -> Result<()> {
        match self {
            Self::None => Ok(()),
            Self::Npy(writer) => writer.finish(),
            Self::Csv(csv) => csv.finish(),
        }
    }
}

impl Csv {
    fn create(path: &Path) -> Result<Self> {
        let output = Output::create(path);
        let path = output::name(path, "stdout");
        let output = output.map_err(|source| write_error(path, source))?;
        Ok(Self {
            path: path.into(),
            output: BufWriter::with_capacity(1 << 16, output),
        })
    }

    fn write(&mut self, work: impl FnOnce(&mut BufWriter<Output>) -> io::Result<()>) -> Result<()> {
        work(&mut self.output).map_err(|source| write_error(&self.path, source))
    }

    fn finish(self) -> Result<()> {
        let output = self.output.into_inner().map_err(io::Error::from);
        let done = output.and_then(Output::finish);
        done.map_err(|source| write_error(&self.path, source))
    }
}
