//! The command line of the bench crate.

fn main() {}
