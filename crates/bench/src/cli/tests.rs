use clap::{CommandFactory, Parser};

use super::*;

/// The help of a verb, as on a terminal of 100 columns.
fn help(verb: &[&str]) -> String {
    let mut command = Cli::command().term_width(100);
    command.build();
    let mut command = &mut command;
    for name in verb {
        command = command.find_subcommand_mut(name).unwrap();
    }
    command.render_long_help().to_string()
}

#[test]
fn the_command_line_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn help_looks_like_this() {
    let verbs: [&[&str]; 8] = [
        &[],
        &["experiment"],
        &["report"],
        &["policies"],
        &["probe"],
        &["datasets"],
        &["datasets", "list"],
        &["datasets", "fetch"],
    ];
    for verb in verbs {
        let name = if verb.is_empty() { "help".to_owned() } else { format!("help_{}", verb.join("_")) };
        insta::assert_snapshot!(name, help(verb));
    }
}

#[test]
fn every_flag_of_the_settings_is_a_key_of_the_file() {
    let command = Cli::command();
    let experiment = command.find_subcommand("experiment").unwrap();
    let files = ["config", "out", "resume", "dry-run", "no-progress", "help", "version"];
    let flags: Vec<&str> =
        experiment.get_arguments().filter_map(|flag| flag.get_long()).filter(|flag| !files.contains(flag)).collect();
    let unknown = Settings::from_toml("no-such-key = 1").unwrap_err()[0].to_string();
    let (_, keys) = unknown.split_once("known: ").unwrap();
    let keys: Vec<&str> = keys.split(", ").collect();
    for flag in &flags {
        assert!(keys.contains(flag), "{flag} is not a key");
    }
    assert_eq!(flags.len(), keys.len());
}

#[test]
fn flags_arrive() {
    let line = "bench experiment --dataset mnist,synthetic --policies a,b --set a.x=1 --set b.y=z --max-train all \
                --widths 4,8 --device cpu --no-progress";
    let Verb::Experiment(args) = Cli::try_parse_from(line.split_whitespace()).unwrap().verb else { panic!() };
    let settings = &args.settings;
    assert_eq!(settings.policies, Some(vec!["a".to_owned(), "b".to_owned()]));
    assert_eq!(settings.widths, Some(vec![4, 8]));
    assert_eq!(settings.max_train, Some(crate::config::Limit::ALL));
    assert_eq!(settings.set.as_ref().unwrap().len(), 2);
    assert!(args.no_progress && !args.dry_run);
}

#[test]
fn failures_have_the_documented_exit_codes() {
    use crate::experiment::{ExperimentError, LaunchError, OutputError};
    use crate::record::RecordError;
    let io = || std::io::Error::from(std::io::ErrorKind::StorageFull);
    let write = || RecordError::Write { path: "r".into(), kept: 1, source: io() };
    let cases: [(Failure, u8); 6] = [
        (Failure::input("a", "b"), 2),
        (write().into(), 3),
        (ExperimentError::from(write()).into(), 3),
        (ExperimentError::from(LaunchError::Write { path: "s".into(), source: io() }).into(), 3),
        (ExperimentError::from(LaunchError::Run { program: "p".into(), source: io() }).into(), 1),
        (OutputError::Write { path: "o".into(), source: io() }.into(), 3),
    ];
    for (failure, code) in cases {
        assert_eq!(failure.code(), code, "{failure}");
    }
}

#[test]
fn a_failure_says_each_cause_once() {
    use crate::experiment::OutputError;
    let source = std::io::Error::from(std::io::ErrorKind::StorageFull);
    let said = source.to_string();
    let failure = Failure::from(OutputError::Write { path: "o".into(), source });
    assert_eq!(failure.to_string(), format!("error: cannot write o: {said}\n"));
    let failure = Failure::Internal(anyhow::anyhow!("the cause").context("what failed"));
    assert_eq!(failure.to_string(), "error: what failed: the cause\n");
}
