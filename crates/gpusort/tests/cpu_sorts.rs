//! The sorts on the CPU. One binary, because building the sorts of six key types takes most of its
//! time.

#[macro_use]
mod common;

mod cpu {
    mod edge_cases;
    mod sorts;
}
