//! The workspace's commands: `cargo xtask VERB`. Builds and starts `bench`, and runs the checks; links neither Burn nor
//! anything of the workspace, so that it builds in seconds.

mod bench;
mod checks;
mod command;
mod tests;

use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

/// Measure what each memory policy saves and costs, and check the workspace.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(flatten)]
    build: Build,
    #[command(subcommand)]
    verb: Verb,
}

/// How `bench` is built. These come before the verb.
#[derive(Debug, Args)]
pub(crate) struct Build {
    /// Build everything optimised: slower to build, for timing a GPU.
    #[arg(long)]
    release: bool,
    /// Features of `bench`, comma-separated: `vulkan` (kernels in SPIR-V), `metal` (kernels in MSL; on by itself on
    /// macOS), `autotune` (kernels chosen by measuring). All are for real GPUs.
    #[arg(long, value_delimiter = ',', value_name = "FEATURES")]
    features: Vec<String>,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Measure policies, each ON against OFF, on real images [see `experiment --help`]
    #[command(disable_help_flag = true)]
    Experiment(Rest),
    /// Make the report of a finished or running experiment anew
    #[command(disable_help_flag = true)]
    Report(Rest),
    /// List the policies and their parameters
    #[command(disable_help_flag = true)]
    Policies(Rest),
    /// Show the device's, the process's and the system's memory now
    #[command(disable_help_flag = true)]
    Probe(Rest),
    /// List the data sets, or download one
    #[command(disable_help_flag = true)]
    Datasets(Rest),
    /// Run all tests: on the CPU, and on software Vulkan where it is installed
    Test(TestArgs),
    /// Check format, lints, documentation and generated pages, cheapest first
    Check,
    /// Write the generated pages anew (docs/policies.md)
    Generate,
}

/// Passed on as it is.
#[derive(Debug, Args)]
struct Rest {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    arguments: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct TestArgs {
    /// Passed on to the test runner: a part of a test's name, or `-p CRATE`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

fn main() -> ExitCode {
    let Cli { build, verb } = Cli::parse();
    let done = match verb {
        Verb::Experiment(rest) => bench::start(&build, "experiment", &rest.arguments),
        Verb::Report(rest) => bench::start(&build, "report", &rest.arguments),
        Verb::Policies(rest) => bench::start(&build, "policies", &rest.arguments),
        Verb::Probe(rest) => bench::start(&build, "probe", &rest.arguments),
        Verb::Datasets(rest) => bench::start(&build, "datasets", &rest.arguments),
        Verb::Test(args) => tests::run(&args),
        Verb::Check => checks::run(),
        Verb::Generate => checks::generate(),
    };
    done.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}
