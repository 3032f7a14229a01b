//! What a user sees while an experiment runs: a bar on a terminal, one line for each run otherwise.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::experiment::Entry;
use crate::record::Record;

/// Told about each run. Everything goes to standard error, so that standard output holds the result alone.
pub trait Progress {
    /// Before the first run: `done` of `total` are there from before.
    fn begin(&mut self, done: usize, total: usize);
    /// Before a run.
    fn started(&mut self, entry: &Entry);
    /// After a run was recorded.
    fn ended(&mut self, record: &Record);
}

/// The progress that suits where standard error goes; `plain` asks for lines even on a terminal.
#[must_use]
pub fn progress(plain: bool) -> Box<dyn Progress> {
    if plain || !std::io::stderr().is_terminal() {
        Box::new(Lines::new(std::io::stderr()))
    } else {
        Box::new(Bar { bar: ProgressBar::hidden() })
    }
}

/// One line for each run.
#[derive(Debug)]
pub struct Lines<W> {
    out: W,
    total: usize,
}

impl<W: Write> Lines<W> {
    /// Lines to `out`.
    pub fn new(out: W) -> Self {
        Self { out, total: 0 }
    }

    fn line(&mut self, text: &str) {
        // Nobody listens any more; the records are elsewhere.
        let _ = writeln!(self.out, "{text}");
    }
}

impl<W: Write> Progress for Lines<W> {
    fn begin(&mut self, done: usize, total: usize) {
        self.total = total;
        if done > 0 {
            self.line(&format!("{done} of {total} runs are there already"));
        }
    }

    fn started(&mut self, _entry: &Entry) {}

    fn ended(&mut self, record: &Record) {
        let total = self.total;
        self.line(&format!("[{}/{total}] {}", record.position, line(record)));
    }
}

/// A run in one line: what, how long, how it ended.
fn line(record: &Record) -> String {
    let Record { set, arm, repeat, wall_s, outcome, .. } = record;
    format!("{set} {arm} #{repeat}: {outcome} ({wall_s:.1} s)")
}

struct Bar {
    bar: ProgressBar,
}

impl Progress for Bar {
    fn begin(&mut self, done: usize, total: usize) {
        self.bar = ProgressBar::new(total as u64);
        if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos}/{len} [{elapsed_precise}, {eta} left] {msg}") {
            self.bar.set_style(style);
        }
        self.bar.set_position(done as u64);
        self.bar.enable_steady_tick(Duration::from_millis(500));
    }

    fn started(&mut self, entry: &Entry) {
        self.bar.set_message(format!("{} {} #{}", entry.set, entry.arm.id, entry.repeat));
    }

    fn ended(&mut self, record: &Record) {
        if record.outcome != crate::record::Outcome::Completed {
            self.bar.println(line(record));
        }
        self.bar.inc(1);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
