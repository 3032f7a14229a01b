//! A reading, its absence, and how far it can be trusted.

use std::borrow::Cow;
use std::fmt;

use bytesize::ByteSize;
use serde::{Deserialize, Serialize};

use crate::Counter;

/// How far a figure can be trusted, and what it can miss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Quality {
    /// The counter's own value at the moment of reading.
    Exact,
    /// The source itself calls the value an estimate, or updates it lazily.
    Estimate,
    /// A maximum kept by the source itself: no moment was missed.
    HighWater,
    /// The largest of several readings: what happened between two of them was missed.
    SampledPeak,
    /// At least the true value, possibly more.
    UpperBound,
    /// A capacity or limit: how much there is, not how much is used.
    Limit,
}

impl Quality {
    /// A word or two for people.
    pub fn label(self) -> &'static str {
        match self {
            Quality::Exact => "exact",
            Quality::Estimate => "estimate",
            Quality::HighWater => "high-water mark",
            Quality::SampledPeak => "sampled peak",
            Quality::UpperBound => "upper bound",
            Quality::Limit => "limit",
        }
    }
}

impl fmt::Display for Quality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.label())
    }
}

/// One figure: how many bytes, of what, according to whom, and how well known.
///
/// `Display` gives binary units (`1.5 GiB`); everything else is in bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Reading {
    /// What is counted.
    pub counter: Counter,
    /// The value in bytes.
    pub bytes: u64,
    /// The call, file or field that gave the value.
    pub source: Cow<'static, str>,
    /// How far the value can be trusted.
    pub quality: Quality,
}

impl Reading {
    /// A reading of `bytes` bytes.
    pub fn new(counter: Counter, bytes: u64, source: impl Into<Cow<'static, str>>, quality: Quality) -> Self {
        Self { counter, bytes, source: source.into(), quality }
    }
}

impl fmt::Display for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {} ({}, {})", self.counter, ByteSize::b(self.bytes), self.quality, self.source)
    }
}

/// A counter that could not be read, and why. Never replaced by a zero.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Absent {
    /// What would have been counted.
    pub counter: Counter,
    /// Why there is no value, as a lower-case fragment.
    pub why: Cow<'static, str>,
}

impl Absent {
    /// No value for `counter`, because of `why`.
    pub fn new(counter: Counter, why: impl Into<Cow<'static, str>>) -> Self {
        Self { counter, why: why.into() }
    }
}

impl fmt::Display for Absent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is absent: {}", self.counter, self.why)
    }
}

/// What a probe says about one counter: a value, or why there is none.
///
/// Serialises with a `state` of `present` or `absent` beside the fields of [`Reading`] or [`Absent`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Measurement {
    /// A value.
    Present(Reading),
    /// No value.
    Absent(Absent),
}

impl Measurement {
    /// A value: see [`Reading::new`].
    pub fn present(counter: Counter, bytes: u64, source: impl Into<Cow<'static, str>>, quality: Quality) -> Self {
        Self::Present(Reading::new(counter, bytes, source, quality))
    }

    /// No value: see [`Absent::new`].
    pub fn absent(counter: Counter, why: impl Into<Cow<'static, str>>) -> Self {
        Self::Absent(Absent::new(counter, why))
    }

    /// A value, or the reason in the error.
    pub(crate) fn from_result(
        counter: Counter,
        quality: Quality,
        source: &'static str,
        value: Result<u64, impl fmt::Display>,
    ) -> Self {
        match value {
            Ok(bytes) => Self::present(counter, bytes, source, quality),
            Err(why) => Self::absent(counter, why.to_string()),
        }
    }

    /// What is, or would be, counted.
    pub fn counter(&self) -> Counter {
        match self {
            Self::Present(reading) => reading.counter,
            Self::Absent(absent) => absent.counter,
        }
    }

    /// The value in bytes, if there is one.
    pub fn bytes(&self) -> Option<u64> {
        self.reading().map(|reading| reading.bytes)
    }

    /// The reading, if there is one.
    pub fn reading(&self) -> Option<&Reading> {
        match self {
            Self::Present(reading) => Some(reading),
            Self::Absent(_) => None,
        }
    }
}

impl From<Reading> for Measurement {
    fn from(reading: Reading) -> Self {
        Self::Present(reading)
    }
}

impl From<Absent> for Measurement {
    fn from(absent: Absent) -> Self {
        Self::Absent(absent)
    }
}

impl fmt::Display for Measurement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Present(reading) => reading.fmt(f),
            Self::Absent(absent) => absent.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_keeps_integer_bytes_in_json_and_shows_units_to_people() {
        let bytes = 3 * 1024 * 1024 * 1024 / 2;
        let present =
            Measurement::present(Counter::DeviceInUse, bytes, "MTLDevice.currentAllocatedSize", Quality::Exact);
        assert_eq!(present.to_string(), "device_in_use = 1.5 GiB (exact, MTLDevice.currentAllocatedSize)");
        insta::assert_json_snapshot!(present, @r#"
        {
          "state": "present",
          "counter": "device_in_use",
          "bytes": 1610612736,
          "source": "MTLDevice.currentAllocatedSize",
          "quality": "exact"
        }
        "#);
    }

    #[test]
    fn an_absent_reading_has_a_reason_and_no_number() {
        let absent = Measurement::absent(Counter::DeviceBudget, "the driver does not report a budget");
        assert_eq!(absent.bytes(), None);
        assert_eq!(absent.to_string(), "device_budget is absent: the driver does not report a budget");
        let json = serde_json::to_value(&absent).unwrap();
        assert_eq!(json["state"], "absent");
        assert!(json.get("bytes").is_none());
    }

    #[test]
    fn measurements_survive_json() {
        let all = [
            Measurement::present(Counter::HeapPeak, u64::MAX, "CountingAllocator", Quality::HighWater),
            Measurement::absent(Counter::PoolInUse, "no pools"),
        ];
        let json = serde_json::to_string(&all).unwrap();
        assert_eq!(serde_json::from_str::<[Measurement; 2]>(&json).unwrap(), all);
    }
}
