//! The command line of the bench crate.

use std::io::{ErrorKind, Write};
use std::process::ExitCode;

use bench::cli::{Cli, DatasetsVerb, ExperimentArgs, Failure, INTERRUPTED, NOTHING_TO_COMPARE, Verb};
use bench::experiment::{Interrupt, ProcessLauncher, RunEnd, Runner};
use bench::progress::progress;
use bench::verbs::Opened;
use bench::{report, run, verbs};
use clap::Parser;
use tracing_subscriber::EnvFilter;

fn main() -> ExitCode {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    match dispatch(Cli::parse().verb) {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}

fn dispatch(verb: Verb) -> Result<ExitCode, Failure> {
    let text = match verb {
        Verb::Experiment(args) => return experiment(&args),
        Verb::Report(args) => report::terminal(&verbs::rewrite(&args)?, width()),
        Verb::Policies(args) if args.markdown => verbs::policies_markdown(),
        Verb::Policies(_) => verbs::policies_table(width()),
        Verb::Probe(args) => return verbs::probe(args.device),
        Verb::Datasets(DatasetsVerb::List(args)) => verbs::list(&args)?,
        Verb::Datasets(DatasetsVerb::Fetch(args)) => verbs::fetch(&args)?,
        Verb::Run(args) => return verbs::run_child(&args),
        Verb::Environment(args) => return Ok(run::environment_main(args.device)),
        Verb::ProbeChild(args) => return Ok(run::probe(args.device)),
    };
    show(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn experiment(args: &ExperimentArgs) -> Result<ExitCode, Failure> {
    // Parse, validate, schedule: nothing runs and nothing is written before all of it is right.
    let prepared = verbs::prepare(args)?;
    if args.dry_run {
        show(&verbs::describe(&prepared)?)?;
        return Ok(ExitCode::SUCCESS);
    }

    // Run.
    let interrupt = Interrupt::on_ctrl_c().map_err(anyhow::Error::from)?;
    let mut launcher = ProcessLauncher::current().map_err(anyhow::Error::from)?;
    let Opened { output, mut log, done, lock } = prepared.open(command_line())?;
    let mut progress = progress(args.no_progress);
    let end = Runner {
        experiment: &prepared.experiment,
        schedule: &prepared.schedule,
        output: &output,
        launcher: &mut launcher,
        progress: &mut *progress,
        interrupt: &interrupt,
    }
    .run(&done, &mut log);
    drop(progress);
    let go_on = || format!("go on with: cargo xtask experiment --resume {}", output.dir().display());
    let end = end.inspect_err(|_| complain(&format!("{} records are kept; {}", log.kept(), go_on())))?;

    // Compare, export.
    let summary = verbs::export_all(&output)?;
    show(&format!("{}results: {}\n", report::terminal(&summary, width()), output.dir().display()))?;
    if end == RunEnd::Interrupted {
        complain(&format!("interrupted: {} records are kept; {}", log.kept(), go_on()));
        return Ok(ExitCode::from(INTERRUPTED));
    }
    drop(lock);
    let without = summary.sets.iter().filter(|set| set.baseline.completed == 0);
    let without: Vec<String> = without.map(|set| set.set.to_string()).collect();
    if !without.is_empty() {
        complain(&format!("no baseline of {} completed: there is nothing to compare with", without.join(" and ")));
        return Ok(ExitCode::from(NOTHING_TO_COMPARE));
    }
    Ok(ExitCode::SUCCESS)
}

/// A line on standard error, if that can be written.
fn complain(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Prints to standard output, to whoever still listens: `| head` is no failure.
fn show(text: &str) -> Result<(), Failure> {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::Output(anyhow::Error::from(error).context("cannot write to standard output")))
        }
        _ => Ok(()),
    }
}

/// The command as the user would type it again.
fn command_line() -> String {
    let quoted = std::env::args_os().skip(1).map(|argument| {
        let argument = argument.to_string_lossy().into_owned();
        let plain = argument.chars().all(|c| c.is_ascii_alphanumeric() || "-_./=,:+@%".contains(c));
        if plain && !argument.is_empty() { argument } else { format!("'{}'", argument.replace('\'', r"'\''")) }
    });
    // How the program was built is said before the verb, where xtask takes it.
    let build = std::env::var("MEM_POLICY_BUILD").unwrap_or_default();
    let words = ["cargo xtask".to_owned(), build].into_iter().filter(|word| !word.is_empty()).chain(quoted);
    words.collect::<Vec<_>>().join(" ")
}

/// Columns of the terminal; of a page if there is none.
fn width() -> u16 {
    comfy_table::Table::new().width().unwrap_or(160)
}
