//! Checksums that say which kind they are: `sha256:…` or `md5:…`.

use md5::Md5;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::str::FromStr;
use thiserror::Error;

/// A checksum of a file's bytes.
///
/// MD5 is read because CaltechDATA publishes no other; it guards against damage, not against an attacker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Checksum {
    kind: Kind,
    /// Lower-case hexadecimal.
    hex: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Sha256,
    Md5,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Sha256 => "sha256",
            Self::Md5 => "md5",
        }
    }

    const fn hex_digits(self) -> usize {
        match self {
            Self::Sha256 => 64,
            Self::Md5 => 32,
        }
    }
}

/// A text is no checksum.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0:?} is no checksum: write sha256: and 64, or md5: and 32, hexadecimal digits")]
pub struct ChecksumError(String);

impl Checksum {
    /// The checksum, of this one's kind, of all that `reader` gives.
    ///
    /// # Errors
    ///
    /// The reader's.
    pub fn same_kind_of(&self, reader: impl Read) -> io::Result<Self> {
        let hex = match self.kind {
            Kind::Sha256 => digest::<Sha256>(reader)?,
            Kind::Md5 => digest::<Md5>(reader)?,
        };
        Ok(Self { kind: self.kind, hex })
    }

    /// The checksum, of this one's kind, of a file.
    ///
    /// # Errors
    ///
    /// The system's, if the file cannot be read.
    pub fn same_kind_of_file(&self, path: &Path) -> io::Result<Self> {
        self.same_kind_of(File::open(path)?)
    }

    /// The SHA-256 of a file.
    ///
    /// # Errors
    ///
    /// The system's, if the file cannot be read.
    pub fn sha256_of_file(path: &Path) -> io::Result<Self> {
        Ok(Self { kind: Kind::Sha256, hex: digest::<Sha256>(File::open(path)?)? })
    }

    pub(crate) fn of_sha256(sum: Sha256) -> Self {
        Self { kind: Kind::Sha256, hex: hex(&sum.finalize()) }
    }
}

fn digest<D: Digest>(mut reader: impl Read) -> io::Result<String> {
    let mut digest = D::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match reader.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => digest.update(&buffer[..n]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(hex(&digest.finalize()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind.name(), self.hex)
    }
}

impl FromStr for Checksum {
    type Err = ChecksumError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refused = || ChecksumError(text.to_owned());
        let (name, hex) = text.split_once(':').ok_or_else(refused)?;
        let kind = [Kind::Sha256, Kind::Md5].into_iter().find(|kind| kind.name() == name).ok_or_else(refused)?;
        if hex.len() != kind.hex_digits() || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(refused());
        }
        Ok(Self { kind, hex: hex.to_ascii_lowercase() })
    }
}

impl TryFrom<String> for Checksum {
    type Error = ChecksumError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Checksum> for String {
    fn from(checksum: Checksum) -> Self {
        checksum.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_the_standards_test_vectors() {
        for expected in [
            "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            "md5:900150983cd24fb0d6963f7d28e17f72",
        ] {
            let expected: Checksum = expected.parse().unwrap();
            assert_eq!(expected.same_kind_of(&b"abc"[..]).unwrap(), expected);
            assert_ne!(expected.same_kind_of(&b"abd"[..]).unwrap(), expected);
        }
    }

    #[test]
    fn a_text_that_is_no_checksum_is_refused() {
        for text in [
            "",
            "abc",
            "sha256:",
            "sha256:12",
            "sha1:900150983cd24fb0d6963f7d28e17f72",
            "md5:900150983cd24fb0d6963f7d28e17fzz",
        ] {
            assert!(text.parse::<Checksum>().is_err(), "{text} was accepted");
        }
    }
}
