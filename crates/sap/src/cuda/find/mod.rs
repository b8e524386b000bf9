//! The stages `keys`, `sort` and `sweep`: a finder arranges the boxes and searches them for pairs.
//! There is the sweep along one axis, by the minima of boxes or by their endpoints; cells of
//! several sizes; and a tree, for scenes where these would test far more than they find.

pub(crate) mod attempt;
pub(crate) mod bound;
mod cut;
mod endpoints;
mod forecast;
pub(crate) mod grid;
mod high;
mod levels;
pub(crate) mod plan;
mod regions;
pub(crate) mod sample;
pub(crate) mod search;
pub(crate) mod sweep;
pub(crate) mod tree;
mod width;
