//! Queries against the boxes of the last update. [`shape`] is what is looked for and [`probe`] its
//! test; [`tree`] is what it is looked for in, and [`search`] the ways through it; [`labels`] and
//! [`sieve`] leave boxes out by filters and worlds. [`crate::queries`] has the calls.

mod labels;
mod lazy;
mod lookup;
mod node;
mod probe;
#[cfg(cuda)]
mod scan;
mod search;
mod shape;
mod sieve;
mod tree;

pub(crate) use labels::Labels;
pub(crate) use lookup::Lookup;
pub(crate) use probe::Probe;
#[cfg(cuda)]
pub(crate) use scan::{NearBox, Question, hits};
pub(crate) use search::TreeQuery;
pub use shape::{Hit, Shape};
pub(crate) use sieve::Sieve;
pub(crate) use tree::{Tree, threads_for};
