//! The table at the end of an experiment.

use comfy_table::{ContentArrangement, Table as Drawn};

use super::tables;
use super::view::facts;
use crate::stats::Summary;

/// The verdicts as text of at most `width` columns, with the device beneath.
#[must_use]
pub fn terminal(summary: &Summary, width: u16) -> String {
    let mut text = String::new();
    for set in &summary.sets {
        let table = tables::verdicts(set);
        let mut drawn = Drawn::new();
        drawn.load_style(comfy_table::presets::NOTHING);
        drawn.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
        drawn.set_header(table.headers);
        drawn.add_rows(table.rows.into_iter().map(|row| row.cells));
        text.push_str(&format!("{}\n{}\n\n", table.caption, drawn.trim_fmt()));
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
