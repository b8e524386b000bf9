//! Pairs on their way out: put in order without a sort where their rows are short.

pub(crate) mod rows;
