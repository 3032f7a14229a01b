//! Measures memory policies: each ON against OFF, in child processes, with records and reports.
//!
//! Deciding, doing and showing are apart:
//!
//! | module | |
//! |---|---|
//! | [`cli`] | flags as data |
//! | [`config`] | flags over a file over [`defaults`], checked as a whole before anything runs |
//! | [`experiment`] | arms, schedule, and the loop that starts one child process for each run |
//! | [`run`] | the child: the only module that opens a device |
//! | [`record`] | the raw samples of each run, as they are kept |
//! | [`stats`] | what follows from them: medians, intervals, verdicts |
//! | [`report`] | table, pages and figure |
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking"))]

pub mod cli;
pub mod config;
pub mod defaults;
pub mod experiment;
#[cfg(test)]
mod fixture;
pub mod progress;
pub mod record;
pub mod report;
pub mod run;
pub mod stats;
pub mod verbs;
