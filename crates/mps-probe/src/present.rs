//! Readings as rows of text. Nothing here measures.

use std::fmt;

use bytesize::ByteSize;

use crate::snapshot::Measured;
use crate::{Measurement, Snapshot};

/// One reading as text, ready for a table.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Row {
    /// Who read it.
    pub probe: String,
    /// The counter's identifier, as in records.
    pub counter: &'static str,
    /// The counter's name for people.
    pub label: &'static str,
    /// The value in binary units, or `-` if it is absent.
    pub value: String,
    /// The quality, or `absent`.
    pub quality: &'static str,
    /// The source of the value, or why there is none.
    pub note: String,
}

impl Row {
    /// The headings that belong to [`cells`](Self::cells).
    pub const HEADINGS: [&'static str; 5] = ["probe", "counter", "value", "quality", "source, or why absent"];

    /// The row's cells in the order of [`HEADINGS`](Self::HEADINGS).
    pub fn cells(&self) -> [&str; 5] {
        [&self.probe, self.counter, &self.value, self.quality, &self.note]
    }
}

impl From<&Measured> for Row {
    fn from(measured: &Measured) -> Self {
        let counter = measured.measurement.counter();
        let (value, quality, note) = match &measured.measurement {
            Measurement::Present(reading) => {
                (ByteSize::b(reading.bytes).to_string(), reading.quality.label(), reading.source.to_string())
            }
            Measurement::Absent(absent) => ("-".to_owned(), "absent", absent.why.to_string()),
        };
        Self { probe: measured.probe.to_string(), counter: counter.id(), label: counter.label(), value, quality, note }
    }
}

impl Snapshot {
    /// One row for each reading, in reading order.
    pub fn rows(&self) -> Vec<Row> {
        self.measurements.iter().map(Row::from).collect()
    }

    /// The rows as aligned plain text.
    pub fn table(&self) -> Table {
        Table { rows: self.rows() }
    }
}

/// Rows as aligned plain text, one line each, with a line of headings.
#[derive(Debug, Clone)]
pub struct Table {
    rows: Vec<Row>,
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<[&str; 5]> = std::iter::once(Row::HEADINGS).chain(self.rows.iter().map(Row::cells)).collect();
        let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
        let [probe, counter, value, quality] = [width(0), width(1), width(2), width(3)];
        for [p, c, v, q, note] in lines {
            writeln!(f, "{p:<probe$}  {c:<counter$}  {v:>value$}  {q:<quality$}  {note}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::{Counter, FakeProbe, Measurement, ProbeSet, Quality};

    #[test]
    fn absent_readings_are_shown_with_their_reason_and_never_as_zero() {
        let set = ProbeSet::new().with(FakeProbe::new("device").then([
            Measurement::present(Counter::DeviceInUse, 5 << 20, "vkGet", Quality::Estimate),
            Measurement::present(Counter::PoolInUse, 0, "pools", Quality::Exact),
            Measurement::absent(Counter::DeviceBudget, "no extension"),
        ]));
        insta::assert_snapshot!(set.read().table(), @r"
        probe   counter          value  quality   source, or why absent
        device  device_in_use  5.0 MiB  estimate  vkGet
        device  pool_in_use        0 B  exact     pools
        device  device_budget        -  absent    no extension
        ");
    }
}
