//! Numbers with units, as text.

use bytesize::ByteSize;

use crate::run::spec::PeakKind;
use crate::stats::{Change, Interval, Spread};

/// What stands for a value that is not there.
pub(super) const ABSENT: &str = "-";

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bytes are not negative and below 2^53")]
pub(super) fn bytes(value: f64) -> String {
    ByteSize(value.max(0.0).round() as u64).to_string()
}

/// `+12.3 %`, or in more digits what would be `+0.0 %`.
pub(super) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    // A plain zero, never `-0.0 %`.
    if percent.abs() < 0.05 { "0.0 %".to_owned() } else { format!("{percent:+.1} %") }
}

/// Half the width of an interval, which lies evenly around its mean.
fn half(interval: Interval) -> f64 {
    (interval.high - interval.low) / 2.0
}

/// A change as a share of the baseline, with its interval if it has one: `-12.3 % ±0.4`.
pub(super) fn relative(change: Option<&Change>) -> String {
    let Some((change, relative)) = change.and_then(|change| Some((change, change.relative?))) else {
        return ABSENT.to_owned();
    };
    let ends = change.relative_interval.map(|ends| format!(" ±{:.1}", half(ends) * 100.0));
    format!("{}{}", percent(relative), ends.unwrap_or_default())
}

/// A change of a share, in percentage points.
pub(super) fn points(change: Option<&Change>) -> String {
    let Some(change) = change else { return ABSENT.to_owned() };
    let points = change.difference * 100.0;
    let points = if points.abs() < 0.05 { "0.0".to_owned() } else { format!("{points:+.1}") };
    let ends = change.difference_interval.map(|ends| format!(" ±{:.1}", half(ends) * 100.0));
    format!("{points} pp{}", ends.unwrap_or_default())
}

pub(super) fn optional(value: Option<f64>, digits: usize, unit: &str) -> String {
    value.map_or_else(|| ABSENT.to_owned(), |value| format!("{value:.digits$}{unit}"))
}

pub(super) fn share(value: Option<f64>) -> String {
    value.map_or_else(|| ABSENT.to_owned(), |value| format!("{:.1} %", value * 100.0))
}

pub(super) fn spread(value: Option<&Spread>) -> String {
    value.map_or_else(
        || ABSENT.to_owned(),
        |Spread { n, median, q1, q3 }| format!("{median:.2} [{q1:.2}, {q3:.2}] ms, n = {n}"),
    )
}

pub(super) fn kind(how: PeakKind) -> &'static str {
    match how {
        PeakKind::Exact => "exact",
        PeakKind::Sampled => "sampled: the true peak may be higher",
    }
}

/// 1234567 as `1,234,567`.
pub(super) fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
