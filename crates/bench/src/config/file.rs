//! Settings from a TOML file: the same keys as the flags, and every problem at once.

use std::path::Path;

use clap::ValueEnum;
use mem_policy::Problem;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::set::SetParam;
use super::settings::{DatasetChoice, Settings};

impl Settings {
    /// Reads `path`.
    ///
    /// # Errors
    ///
    /// Every unknown key and every value of a wrong type, by name, together; or that the file cannot be read, or is
    /// not TOML.
    pub fn from_file(path: &Path) -> Result<Self, Vec<Problem>> {
        let place = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|error| vec![Problem::new(&place, format!("cannot be read: {error}"))])?;
        Self::from_toml(&text).map_err(|problems| {
            problems
                .into_iter()
                .map(|problem| Problem::new(format!("{place}: {}", problem.place), problem.message))
                .collect()
        })
    }

    /// Reads settings from the text of a file.
    ///
    /// # Errors
    ///
    /// See [`from_file`](Self::from_file).
    pub fn from_toml(text: &str) -> Result<Self, Vec<Problem>> {
        let table: toml::Table =
            text.parse().map_err(|error: toml::de::Error| vec![Problem::new("TOML", error.to_string().trim())])?;
        let mut keys = Keys { table, known: Vec::new(), problems: Vec::new() };
        let settings = Self {
            dataset: keys.take("dataset").map(|names| datasets(names, &mut keys.problems)),
            preset: keys.take("preset"),
            policies: keys.take("policies").map(OneOrMany::into_vec),
            always: keys.take("always").map(OneOrMany::into_vec),
            set: keys.take("set").map(|table| params(table, &mut keys.problems)),
            repeats: keys.take("repeats"),
            seed: keys.take("seed"),
            data_dir: keys.take("data-dir"),
            max_train: keys.take("max-train"),
            max_test: keys.take("max-test"),
            image_size: keys.take("image-size"),
            channels: keys.take("channels"),
            cache_bytes: keys.take("cache-bytes"),
            device: keys.take("device"),
            epochs: keys.take("epochs"),
            max_steps: keys.take("max-steps"),
            batch_size: keys.take("batch-size"),
            widths: keys.take("widths"),
            hidden: keys.take("hidden"),
            optimizer: keys.take("optimizer"),
            learning_rate: keys.take("learning-rate"),
            warmup_steps: keys.take("warmup-steps"),
            sample_every: keys.take("sample-every"),
            timeout: keys.take("timeout"),
        };
        keys.finish().map(|()| settings)
    }
}

/// The keys of a table, taken one by one, so that one bad value does not hide another.
struct Keys {
    table: toml::Table,
    known: Vec<&'static str>,
    problems: Vec<Problem>,
}

impl Keys {
    fn take<T: DeserializeOwned>(&mut self, key: &'static str) -> Option<T> {
        self.known.push(key);
        let value = self.table.remove(key)?;
        let shown = value.to_string();
        match value.try_into() {
            Ok(value) => Some(value),
            Err(error) => {
                let message = format!("{shown} is not accepted: {}", error.message().trim());
                self.problems.push(Problem::new(key, message));
                None
            }
        }
    }

    fn finish(mut self) -> Result<(), Vec<Problem>> {
        for key in self.table.keys() {
            let message = format!("unknown key; known: {}", self.known.join(", "));
            self.problems.push(Problem::new(key.clone(), message));
        }
        if self.problems.is_empty() { Ok(()) } else { Err(self.problems) }
    }
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a name or a list of names")]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl OneOrMany {
    fn into_vec(self) -> Vec<String> {
        match self {
            Self::One(one) => vec![one],
            Self::Many(many) => many,
        }
    }
}

fn datasets(names: OneOrMany, problems: &mut Vec<Problem>) -> Vec<DatasetChoice> {
    let mut sets = Vec::new();
    for name in names.into_vec() {
        match DatasetChoice::from_str(&name, false) {
            Ok(set) => sets.push(set),
            Err(_) => problems.push(Problem::new(
                "dataset",
                format!("unknown data set `{name}`; known: mnist, caltech101, synthetic, all"),
            )),
        }
    }
    sets
}

fn params(table: toml::Table, problems: &mut Vec<Problem>) -> Vec<SetParam> {
    let mut params = Vec::new();
    for (policy, value) in table {
        match value {
            toml::Value::Table(inner) => {
                params.extend(inner.into_iter().map(|(param, value)| SetParam { policy: policy.clone(), param, value }))
            }
            other => problems.push(Problem::new(
                format!("set.{policy}"),
                format!("{other} is not accepted: write a table of parameters"),
            )),
        }
    }
    params
}
