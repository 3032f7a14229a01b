//! Everything between the flags and the first run: settings, checks, the folder, the records that are there.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use data::SetId;
use jiff::Timestamp;
use mem_policy::{Baseline, Environment, PolicySet, Problem};

use super::ask_environment;
use crate::cli::{ExperimentArgs, Failure};
use crate::config::{Experiment, Settings, resolve};
use crate::experiment::{Arm, Host, Lock, Output, Schedule, arms};
use crate::record::{FileSink, Record, RecordLog};
use crate::run;
use crate::run::spec::EnvironmentReport;
use crate::run::subset_problem;

/// An experiment that is ready to run.
#[derive(Debug)]
pub struct Prepared {
    /// The settings.
    pub experiment: Experiment,
    /// The runs.
    pub schedule: Schedule,
    /// The device.
    pub found: EnvironmentReport,
    folder: PathBuf,
    resumed: bool,
}

/// Reads the settings, asks for the device, and checks everything.
///
/// # Errors
///
/// [`Failure::Input`] with every problem.
pub fn prepare(args: &ExperimentArgs) -> Result<Prepared, Failure> {
    let mut problems = Vec::new();
    let mut read = |path: &Path| match Settings::from_file(path) {
        Ok(settings) => settings,
        Err(found) => {
            problems.extend(found);
            Settings::default()
        }
    };
    let file = args.config.as_deref().map(&mut read).unwrap_or_default();
    if let Some(dir) = args.resume.as_deref().filter(|dir| !Output::open(dir).experiment().is_file()) {
        let message = format!("{} holds no experiment.toml, so no experiment was started there", dir.display());
        return Err(Failure::input("resume", message));
    }
    let stored = args.resume.as_deref().map(|dir| read(&Output::open(dir).experiment()));
    let asked = args.settings.clone().over(file);
    let settings = asked.over(stored.clone().unwrap_or_default());

    let found = match ask_environment(settings.device.unwrap_or_default()) {
        Ok(found) => found,
        // The other problems are reported with this one, but for those that depend on the device.
        Err(Failure::Input(device)) => {
            problems.extend(device);
            problems.extend(resolve(settings, &Environment::cpu()).err().unwrap_or_default());
            return Err(problems.into());
        }
        Err(other) => return Err(other),
    };
    let resolved = resolve(settings, &found.environment);
    let folder = match (&args.resume, &args.out) {
        (Some(dir), _) | (None, Some(dir)) => dir.clone(),
        (None, None) => default_folder(resolved.as_ref().ok()),
    };
    if args.resume.is_none() {
        problems.extend(occupied(&folder));
    }
    let experiment = match resolved {
        Ok(experiment) => experiment,
        Err(found) => {
            problems.extend(found);
            return Err(problems.into());
        }
    };
    if let (Some(dir), Some(stored)) = (&args.resume, stored) {
        problems.extend(resumable(&experiment, stored, dir, &found));
    }
    problems.extend(unreadable(&experiment));
    if !problems.is_empty() {
        return Err(problems.into());
    }
    let arms: Vec<Arm> = arms(&experiment, &found.environment)?;
    let problems = subset_problems(&experiment, &arms, &found.environment);
    if !problems.is_empty() {
        return Err(problems.into());
    }
    let schedule = Schedule::new(&experiment, &arms);
    Ok(Prepared { experiment, schedule, found, folder, resumed: args.resume.is_some() })
}

/// Why a new experiment must not write to `folder`: there is something in it already.
fn occupied(folder: &Path) -> Option<Problem> {
    let records = Output::open(folder).records();
    let message = if records.exists() {
        format!("{} exists: go on with --resume, or choose another folder", records.display())
    } else {
        let mut entries = std::fs::read_dir(folder).ok()?;
        let first = entries.next()?.ok()?;
        let name = first.file_name();
        format!(
            "{} is not empty (it holds {}), and its files might be overwritten: choose another folder",
            folder.display(),
            name.to_string_lossy()
        )
    };
    Some(Problem::new("out", message))
}

/// What is wrong with the images, found by opening every set as a run would.
fn unreadable(experiment: &Experiment) -> Vec<Problem> {
    let spec = |set: &SetId| experiment.run_spec(*set, &toml::Table::new(), experiment.seed, PathBuf::new());
    let check = |set: &SetId| {
        let error = run::check_data(&spec(set)).err()?;
        let fetch = match set {
            SetId::Synthetic => String::new(),
            set => format!("; `cargo xtask datasets fetch {set}` downloads the full set"),
        };
        Some(Problem::new(format!("dataset {set}"), format!("{error}{fetch}")))
    };
    experiment.dataset.iter().filter_map(check).collect()
}

/// Subsets that the images there are, within the limits on their number, cannot give.
fn subset_problems(experiment: &Experiment, arms: &[Arm], environment: &Environment) -> Vec<Problem> {
    let mut problems = Vec::new();
    for arm in arms.iter().filter(|arm| arm.unsupported.is_none()) {
        let plan = PolicySet::from_table(&arm.policies)
            .ok()
            .and_then(|set| set.plan(&Baseline::new(experiment.batch_size), environment).ok());
        let Some(subset) = plan.and_then(|plan| *plan.subset.get()) else { continue };
        for set in &experiment.dataset {
            let spec = experiment.run_spec(*set, &arm.policies, experiment.seed, PathBuf::new());
            if let Some(why) = subset_problem(&spec, subset) {
                let limits = "change `subset.n`, --max-train, --max-steps or --max-test";
                problems.push(Problem::new(format!("arm `{}` on {set}", arm.id), format!("{why}; {limits}")));
            }
        }
    }
    problems
}

/// What keeps the records in `dir` from being continued: other settings, another device.
fn resumable(experiment: &Experiment, stored: Settings, dir: &Path, found: &EnvironmentReport) -> Vec<Problem> {
    let mut problems = match resolve(stored, &found.environment) {
        Ok(stored) => experiment.differences(&stored),
        Err(problems) => problems,
    };
    match Output::open(dir).read_host() {
        Ok(host) => problems.extend(host.differences(found)),
        Err(error) => problems.push(Problem::new("resume", error.to_string())),
    }
    problems
}

/// `./results/TIME-NAME`.
fn default_folder(experiment: Option<&Experiment>) -> PathBuf {
    let name = experiment.map_or_else(String::new, |experiment| {
        let sets: Vec<&str> = experiment.dataset.iter().map(|set| set.name()).collect();
        format!("-{}", sets.join("-"))
    });
    PathBuf::from("results").join(format!("{}{name}", Timestamp::now().strftime("%Y%m%dT%H%M%SZ")))
}

/// An output folder at work.
#[derive(Debug)]
pub struct Opened {
    /// The folder.
    pub output: Output,
    /// Its records.
    pub log: RecordLog<FileSink>,
    /// The runs that are done.
    pub done: BTreeSet<String>,
    /// Keeps other processes out.
    pub lock: Lock,
}

impl Prepared {
    /// Opens the output folder and the records, and says which runs are done.
    ///
    /// # Errors
    ///
    /// [`Failure::Output`] if the folder cannot be written.
    pub fn open(&self, command: String) -> Result<Opened, Failure> {
        let output = Output::create(&self.folder)?;
        let lock = output.lock()?;
        let Self { experiment, found, resumed, .. } = self;
        if *resumed {
            let mut host = output.read_host()?;
            host.commands.push(command);
            let records = output.records();
            if !records.exists() {
                output.write_host(&host)?;
                let log = RecordLog::create(&records)?;
                return Ok(Opened { output, log, done: BTreeSet::new(), lock });
            }
            let (log, contents) = RecordLog::resume(&records)?;
            let foreign = foreign(&contents.records, &self.schedule, experiment);
            if !foreign.is_empty() {
                return Err(foreign.into());
            }
            if let Some(cut) = &contents.truncated {
                tracing::warn!(
                    "line {} of the records was cut off while it was written; its run is done again",
                    cut.line
                );
            }
            output.write_host(&host)?;
            let finished = contents.latest().into_values().filter(|record| record.outcome.is_final());
            let done = finished.map(|record| record.id.clone()).collect();
            return Ok(Opened { output, log, done, lock });
        }
        output.write("experiment.toml", experiment.to_toml().map_err(|problem| vec![problem])?.as_bytes())?;
        let host = Host { commands: vec![command], started_at: Timestamp::now(), found: found.clone() };
        output.write_host(&host)?;
        let log = RecordLog::create(&output.records()).map_err(|error| Failure::Output(error.into()))?;
        Ok(Opened { output, log, done: BTreeSet::new(), lock })
    }
}

/// Records that are not of this schedule, or were made with other settings than the file beside them says.
fn foreign(records: &[Record], schedule: &Schedule, experiment: &Experiment) -> Vec<Problem> {
    let problem = |record: &Record, why: &str| {
        let message = format!("{} {why}; these records do not belong to this experiment.toml", record.id);
        Problem::new("records.jsonl", message)
    };
    let check = |record: &Record| {
        let Some(entry) = schedule.entries.iter().find(|entry| entry.id == record.id) else {
            return Some(problem(record, "is no run of this experiment"));
        };
        let scratch = record.spec.scratch.clone();
        let spec = experiment.run_spec(entry.set, &entry.arm.policies, entry.seed, scratch);
        (spec != record.spec).then(|| problem(record, "was made with other settings"))
    };
    records.iter().filter_map(check).collect()
}

/// The settings and the schedule, for `--dry-run`.
///
/// # Errors
///
/// [`Failure::Input`] if the settings have no TOML form.
pub fn describe(prepared: &Prepared) -> Result<String, Failure> {
    let Prepared { experiment, schedule, found, .. } = prepared;
    let mut text = experiment.to_toml().map_err(|problem| vec![problem])?;
    text.push_str(&format!(
        "\n# on {} ({}); {} runs:\n",
        found.device.name,
        found.device.backend,
        schedule.entries.len()
    ));
    for entry in &schedule.entries {
        let why = entry.arm.unsupported.as_ref().map_or_else(String::new, |why| format!(", not run: {why}"));
        text.push_str(&format!("# {}. {} (seed {}){why}\n", entry.position, entry.id, entry.seed));
    }
    Ok(text)
}
