//! The command line: verbs and flags as data. What they do is in [`crate::verbs`].

mod exit;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use data::SetId;

use crate::config::Settings;
use crate::run::spec::DeviceChoice;

pub use exit::{Failure, INTERRUPTED, NOTHING_TO_COMPARE};

const EXIT_CODES: &str = "\
Exit codes:
  0    every arm has an outcome, and every data set a baseline that completed
  1    an internal failure: a child could not be started, a report could not be drawn
  2    bad input: every problem is listed, and nothing ran
  3    the output cannot be written: what was recorded is kept
  4    no baseline of a data set completed: the table says why each run ended
  130  interrupted: what was recorded is kept, and how to go on is printed";

const EXPERIMENT_HELP: &str = "\
Sizes that are not given follow the device: minutes on two CPU cores, more to do on a GPU. `--dry-run` prints them,
and DIR/experiment.toml records them. Reports name the counter behind each figure; docs/measuring.md explains them.

Exit codes:
  0    every arm has an outcome, and every data set a baseline that completed
  1    an internal failure: a child could not be started, a report could not be drawn
  2    bad input: every problem is listed, and nothing ran
  3    the output cannot be written: what was recorded is kept
  4    no baseline of a data set completed: the table says why each run ended
  130  interrupted: what was recorded is kept, and how to go on is printed";

/// Measures what each memory policy saves and costs, on real images and on this machine
#[derive(Debug, Parser)]
#[command(name = "bench", bin_name = "cargo xtask", version, after_help = EXIT_CODES, max_term_width = 110)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Measure every policy ON against OFF, each run in a process of its own
    #[command(after_help = EXPERIMENT_HELP)]
    Experiment(Box<ExperimentArgs>),
    /// Write the summary, the pages and the figure again from the records of an experiment
    Report(ReportArgs),
    /// Print the policies and their parameters
    Policies(PoliciesArgs),
    /// Print how much memory the device and this system have, and what is in use
    Probe(ProbeArgs),
    /// List the data sets, or download a full one
    #[command(subcommand)]
    Datasets(DatasetsVerb),
    /// One measured run (a child of `experiment`)
    #[command(name = "__run", hide = true)]
    Run(RunArgs),
    /// What a child finds when it opens the device, as JSON (a child of `experiment`)
    #[command(name = "__environment", hide = true)]
    Environment(ProbeArgs),
    /// The device's memory (a child of `probe`)
    #[command(name = "__probe", hide = true)]
    ProbeChild(ProbeArgs),
}

/// `experiment`.
#[derive(Debug, Args)]
pub struct ExperimentArgs {
    /// The settings, all optional.
    #[command(flatten)]
    pub settings: Settings,
    /// A file of settings: the keys are the flags' names, parameters of policies stand in `[set.POLICY]`; flags win
    #[arg(long, value_name = "FILE.toml", help_heading = "Files")]
    pub config: Option<PathBuf>,
    /// The folder to write, which must hold no records yet [default: ./results/TIME-NAME]
    #[arg(long, value_name = "DIR", conflicts_with = "resume", help_heading = "Files")]
    pub out: Option<PathBuf>,
    /// Go on with an experiment that was interrupted; its settings are those of DIR/experiment.toml
    #[arg(long, value_name = "DIR", help_heading = "Files")]
    pub resume: Option<PathBuf>,
    /// Print the settings and the schedule, and run nothing
    #[arg(long, help_heading = "Files")]
    pub dry_run: bool,
    /// Print a line for each run even on a terminal
    #[arg(long, help_heading = "Files")]
    pub no_progress: bool,
}

/// `report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// The output folder of an experiment
    pub dir: PathBuf,
}

/// `policies`.
#[derive(Debug, Args)]
pub struct PoliciesArgs {
    /// Print the page docs/policies.md instead of a table
    #[arg(long)]
    pub markdown: bool,
}

/// `probe`, and the children that open a device.
#[derive(Debug, Args)]
pub struct ProbeArgs {
    /// Which device
    #[arg(long, value_enum, default_value_t, value_name = "DEVICE")]
    pub device: DeviceChoice,
}

/// `datasets`.
#[derive(Debug, Subcommand)]
pub enum DatasetsVerb {
    /// List the data sets: size, licence, origin, and whether they are there
    List(DatasetsDir),
    /// Download a full data set; a download that broke off is resumed, and checksums are verified
    Fetch(FetchArgs),
}

/// Where data sets are.
#[derive(Debug, Args)]
pub struct DatasetsDir {
    /// The folder that holds `mnist/` and `caltech101/` [default: the sample that ships]
    #[arg(long, env = "MEM_POLICY_DATA", hide_env_values = true, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// `datasets fetch`.
#[derive(Debug, Args)]
pub struct FetchArgs {
    /// Which one
    #[arg(value_enum, value_name = "SET")]
    pub set: FetchSet,
    /// The folder to download to [default: `full` beside the sample that ships]
    #[arg(long, env = "MEM_POLICY_DATA", hide_env_values = true, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// The sets that can be downloaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum FetchSet {
    /// Handwritten digits, 11 MB
    Mnist,
    /// Photographs of objects in 101 classes, 132 MB
    Caltech101,
}

impl From<FetchSet> for SetId {
    fn from(set: FetchSet) -> Self {
        match set {
            FetchSet::Mnist => Self::Mnist,
            FetchSet::Caltech101 => Self::Caltech101,
        }
    }
}

/// `__run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// The specification, as JSON
    #[arg(long, value_name = "FILE")]
    pub spec: PathBuf,
    /// Where to write the result, as JSON
    #[arg(long, value_name = "FILE")]
    pub result: PathBuf,
    /// End when standard input closes, which it does when the parent is gone
    #[arg(long)]
    pub parent_pipe: bool,
}

#[cfg(test)]
mod tests;
