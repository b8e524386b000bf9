//! What finds the pairs: the sweep along one axis, from the minima of boxes or from their endpoints; cells of several sizes; and a
//! tree, where either would test far more than it finds.

pub(crate) mod attempt;
pub(crate) mod bound;
pub(crate) mod cut;
pub(crate) mod endpoints;
pub(crate) mod grid;
pub(crate) mod plan;
pub(crate) mod sweep;
pub(crate) mod tree;
