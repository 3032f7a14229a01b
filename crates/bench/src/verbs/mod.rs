//! What each verb does besides the experiment itself, which `main` spells out.

mod child;
mod datasets;
mod environment;
mod policies;
mod prepare;
mod report;

pub use child::run_child;
pub use datasets::{fetch, list};
pub use environment::{ask_environment, probe};
pub use policies::{policies_markdown, policies_table};
pub use prepare::{Opened, Prepared, describe, prepare};
pub use report::{export_all, rewrite};
