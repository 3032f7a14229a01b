//! `datasets list` and `datasets fetch`.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use data::SetId;
use data::fetch::{Event, Fetch, FetchError};
use data::manifest::Manifest;
use indicatif::{ProgressBar, ProgressStyle};

use crate::cli::{DatasetsDir, Failure, FetchArgs};
use crate::defaults;

/// The data sets, and what of them is in the folder, as text.
///
/// # Errors
///
/// [`Failure::Internal`] if the manifest does not parse.
pub fn list(args: &DatasetsDir) -> Result<String, Failure> {
    let manifest = Manifest::shipped().context("the manifest of the data sets is broken")?;
    let dir = args.dir.clone().unwrap_or_else(defaults::data_dir);
    let mut text = format!("in {}:\n", dir.display());
    for set in &manifest.sets {
        let bytes: u64 = set.full.iter().filter_map(|file| file.bytes).sum();
        let size = if bytes == 0 { "size unknown".to_owned() } else { bytesize::ByteSize(bytes).to_string() };
        let there = if dir.join(&set.name).is_dir() { "there" } else { "not there" };
        text.push_str(&format!(
            "\n{name}: {there}\n  full set: {size}; `cargo xtask datasets fetch {name}`\n  licence:  {}\n  \
             credit:   {}\n  home:     {}\n",
            set.licence,
            set.attribution,
            set.home,
            name = set.name,
        ));
    }
    text.push_str("\nsynthetic: always there, generated from a seed\n");
    Ok(text)
}

/// Downloads a full data set, and says where it is.
///
/// # Errors
///
/// [`Failure::Output`] if a file cannot be written, [`Failure::Input`] if another file is in the way,
/// [`Failure::Internal`] if no source delivers.
pub fn fetch(args: &FetchArgs) -> Result<String, Failure> {
    let manifest = Manifest::shipped().context("the manifest of the data sets is broken")?;
    let set = SetId::from(args.set);
    let dir = args.dir.clone().unwrap_or_else(full_dir);
    let bar = ProgressBar::new(0);
    let style = "{msg} {bar:24} {bytes}/{total_bytes} [{bytes_per_sec}, {eta} left]";
    if let Ok(style) = ProgressStyle::with_template(style) {
        bar.set_style(style);
    }
    let fetched = Fetch::new(&manifest, set, &dir).and_then(|fetch| fetch.run(&mut |event| show(&event, &bar)));
    bar.finish_and_clear();
    if fetched.is_err() {
        // Goes if nothing was downloaded, and stays with what was.
        let _ = std::fs::remove_dir(dir.join(set.name()));
    }
    fetched.map_err(|error| match error {
        FetchError::Io { .. } => Failure::Output(error.into()),
        FetchError::Differs { .. } => Failure::input("dir", error),
        error => Failure::Internal(error.into()),
    })?;
    Ok(format!("{set} is in {dir}; use it with --data-dir {dir}\n", dir = dir.display()))
}

/// Beside the sample that ships, which must stay as it is.
fn full_dir() -> PathBuf {
    defaults::data_dir().join("full")
}

fn show(event: &Event<'_>, bar: &ProgressBar) {
    let name = |path: &Path| path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let line = |text: String| {
        if bar.is_hidden() {
            // Whether somebody reads it does not matter to the download.
            let _ = writeln!(std::io::stderr(), "{text}");
        } else {
            bar.println(text);
        }
    };
    match event {
        Event::Present { path } => line(format!("{}: already there", name(path))),
        Event::Started { path, url, resumed_from } => {
            bar.set_message(name(path));
            bar.set_position(*resumed_from);
            line(format!("{}: from {url}", name(path)));
        }
        Event::Progress { done, total, .. } => {
            if let Some(total) = total {
                bar.set_length(*total);
            }
            bar.set_position(*done);
        }
        Event::Retrying { path, error, pause } => {
            line(format!("{}: {error}; again in {:.0} s", name(path), pause.as_secs_f64()));
        }
        Event::Done { path } => line(format!("{}: done", name(path))),
        _ => {}
    }
}
