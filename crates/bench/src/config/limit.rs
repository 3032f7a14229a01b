//! A number, or `all`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// At most so many, or all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limit(Option<usize>);

impl Limit {
    /// No limit.
    pub const ALL: Self = Self(None);

    /// At most `n`.
    #[must_use]
    pub const fn at_most(n: usize) -> Self {
        Self(Some(n))
    }

    /// The number, or `None` for all.
    #[must_use]
    pub const fn get(self) -> Option<usize> {
        self.0
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(n) => write!(f, "{n}"),
            None => f.write_str("all"),
        }
    }
}

impl FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "all" {
            return Ok(Self::ALL);
        }
        text.parse().map(Self::at_most).map_err(|_| format!("`{text}` is neither a number nor `all`"))
    }
}

impl Serialize for Limit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Some(n) => n.serialize(serializer),
            None => "all".serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Limit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "expected a number or \"all\"")]
        enum Form {
            Number(usize),
            Text(String),
        }
        match Form::deserialize(deserializer)? {
            Form::Number(n) => Ok(Self::at_most(n)),
            Form::Text(text) => text.parse().map_err(serde::de::Error::custom),
        }
    }
}
