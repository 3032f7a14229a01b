//! From records to statements: what an arm takes, how it compares with the baseline, and the verdict.
//!
//! `docs/measuring.md` says why each number is what it is.

mod arm;
mod caveats;
mod change;
mod counters;
mod describe;
mod interval;
mod run;
mod summary;
mod verdict;

pub use change::{Change, Side, Unit};
pub use counters::{MemoryChange, primary_counter};
pub use describe::{Spread, median};
pub use interval::{Interval, LEVEL, METHOD, mean_interval};
pub use run::RunStats;
pub use summary::{ArmSummary, OutcomeCount, Quality, SUMMARY_VERSION, SetSummary, Summary, summarise};
pub use verdict::{Judgement, Verdict, rules};

#[cfg(test)]
mod tests;
