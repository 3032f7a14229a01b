//! The table at the end of an experiment.

use comfy_table::{ContentArrangement, Table as Drawn};

use super::tables::{self, Table};
use super::view::facts;
use crate::stats::Summary;

/// The verdicts as text of at most `width` columns, with the device beneath.
#[must_use]
pub fn terminal(summary: &Summary, width: u16) -> String {
    let mut text = String::new();
    for set in &summary.sets {
        text.push_str(&fitted(tables::verdicts(set), width));
    }
    for line in summary.sets.iter().filter_map(tables::headline) {
        text.push_str(&format!("{line}\n"));
    }
    for note in &summary.notes {
        text.push_str(&format!("note: {note}\n"));
    }
    let facts: Vec<String> =
        facts(&summary.host.found.device).into_iter().map(|(label, value)| format!("{label}: {value}")).collect();
    text.push_str(&format!("{}\n", facts.join(" · ")));
    text
}

/// Columns that may go, in this order, if there is no room for them.
const DISPENSABLE: [&str; 4] = ["accuracy", "ms per image", "peak", "time change"];
/// Notes in fewer columns are unreadable: they go below the table.
const NOTES: usize = 28;
/// A longer name of an arm, a combination's, is wrapped.
const NAME: usize = 24;

/// `table` in `width` columns: whole if it fits, else with its notes below it, and without the columns that do not fit.
fn fitted(mut table: Table, width: u16) -> String {
    let room = usize::from(width);
    let notes = table.headers.len().saturating_sub(1);
    let mut below = String::new();
    if natural(&table, notes) + NOTES > room {
        table.headers.truncate(notes);
        for row in &mut table.rows {
            let note = row.cells.split_off(notes).concat();
            if !note.is_empty() {
                below.push_str(&wrapped(&format!("{}: {note}", row.cells.first().map_or("", String::as_str)), room));
            }
        }
        let mut dropped = Vec::new();
        for name in DISPENSABLE {
            if natural(&table, table.headers.len()) <= room {
                break;
            }
            if let Some(column) = table.headers.iter().position(|header| header.starts_with(name)) {
                dropped.push(table.headers.remove(column));
                for row in &mut table.rows {
                    row.cells.remove(column);
                }
            }
        }
        if !dropped.is_empty() {
            below.push_str(&wrapped(&format!("no room here for: {}; report.md has them", dropped.join(", ")), room));
        }
    }
    let mut drawn = Drawn::new();
    drawn.load_style(comfy_table::presets::NOTHING);
    drawn.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    drawn.set_header(table.headers);
    drawn.add_rows(table.rows.into_iter().map(|row| row.cells));
    format!("{}\n{}\n{below}\n", table.caption, drawn.trim_fmt())
}

/// The columns that the first `count` columns of `table` take, two between each.
fn natural(table: &Table, count: usize) -> usize {
    let column = |index: usize| {
        let cells = table.rows.iter().filter_map(|row| row.cells.get(index)).chain(table.headers.get(index));
        let widest = cells.map(|text| text.chars().count()).max().unwrap_or_default();
        2 + if index == 0 { widest.min(NAME) } else { widest }
    };
    (0..count).map(column).sum()
}

/// `text` in lines of at most `room` columns where words allow it, each further line indented.
fn wrapped(text: &str, room: usize) -> String {
    let mut lines = String::from(" ");
    let mut used = 1;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if used + length + 1 > room && used > 3 {
            lines.push_str("\n  ");
            used = 2;
        }
        lines.push(' ');
        lines.push_str(word);
        used += length + 1;
    }
    lines.push('\n');
    lines
}
