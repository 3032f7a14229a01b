//! Measures memory policies: each ON against OFF, in child processes, with records and reports.

pub mod run;
