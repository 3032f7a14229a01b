//! The IDX format of MNIST: a magic number, big-endian sizes, and bytes.
//!
//! The magic number is two zero bytes, the type of the values (`0x08`, unsigned byte, is the only one read here) and the
//! number of dimensions; then one 32-bit size for each dimension, and the values, last dimension fastest. Source: the
//! description on the MNIST database's home page, "The IDX file format".

use crate::error::DataError;
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

/// The contents of an IDX file of unsigned bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Idx {
    /// The size of each dimension, slowest first.
    pub dims: Vec<usize>,
    /// The values; as many as the product of `dims`.
    pub values: Vec<u8>,
}

const UNSIGNED_BYTE: u8 = 0x08;
/// No file of this format needs more than images, rows and columns.
const MAX_DIMS: u8 = 3;

impl Idx {
    /// Reads `path`, gzip-compressed if it ends in `.gz`.
    ///
    /// # Errors
    ///
    /// [`DataError::Io`] if the file cannot be read, and [`DataError::Idx`] if its magic number, sizes or length
    /// are wrong, or its compressed data is damaged. Both carry the path.
    pub fn read(path: &Path) -> Result<Self, DataError> {
        let file = BufReader::new(File::open(path).map_err(DataError::io(path))?);
        let mut bytes = Vec::new();
        if path.extension().is_some_and(|ext| ext == "gz") {
            MultiGzDecoder::new(file)
                .read_to_end(&mut bytes)
                .map_err(|error| invalid(path, format!("its gzip data is damaged: {error}")))?;
        } else {
            let mut file = file;
            file.read_to_end(&mut bytes).map_err(DataError::io(path))?;
        }
        Self::parse(bytes).map_err(|problem| invalid(path, problem))
    }

    /// Reads `path` and requires `ndims` dimensions.
    pub(crate) fn read_with_dims(path: &Path, ndims: usize) -> Result<Self, DataError> {
        let idx = Self::read(path)?;
        if idx.dims.len() == ndims {
            return Ok(idx);
        }
        Err(invalid(path, format!("it has {} dimensions, expected {ndims}", idx.dims.len())))
    }

    fn parse(mut bytes: Vec<u8>) -> Result<Self, String> {
        let &[zero0, zero1, kind, ndims] = bytes
            .first_chunk::<4>()
            .ok_or_else(|| format!("it has {} bytes, too few for a magic number", bytes.len()))?;
        if zero0 != 0 || zero1 != 0 || kind != UNSIGNED_BYTE || !(1..=MAX_DIMS).contains(&ndims) {
            return Err(format!(
                "its magic number is {zero0:02x}{zero1:02x}{kind:02x}{ndims:02x}, expected 000008 and 1 to {MAX_DIMS} dimensions"
            ));
        }
        let header = 4 + 4 * usize::from(ndims);
        let sizes = bytes
            .get(4..header)
            .ok_or_else(|| format!("it ends after {} bytes, within its header of {header}", bytes.len()))?;
        let dims: Vec<usize> = sizes.as_chunks::<4>().0.iter().map(|size| u32::from_be_bytes(*size) as usize).collect();
        let expected = dims
            .iter()
            .try_fold(1usize, |product, &size| product.checked_mul(size))
            .ok_or_else(|| format!("its sizes {dims:?} overflow"))?;
        let found = bytes.len() - header;
        if found != expected {
            return Err(format!("its header announces {expected} values ({dims:?}), but {found} follow"));
        }
        bytes.drain(..header);
        Ok(Self { dims, values: bytes })
    }
}

pub(crate) fn invalid(path: &Path, problem: String) -> DataError {
    DataError::Idx { path: path.to_owned(), problem }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(dims: &[u32], values: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0, 0, 8, dims.len() as u8];
        bytes.extend(dims.iter().flat_map(|size| size.to_be_bytes()));
        bytes.extend(values);
        bytes
    }

    #[test]
    fn a_well_formed_file_gives_its_sizes_and_values() {
        let idx = Idx::parse(file(&[2, 1, 3], &[1, 2, 3, 4, 5, 6])).unwrap();
        assert_eq!((idx.dims, idx.values), (vec![2, 1, 3], vec![1, 2, 3, 4, 5, 6]));
    }

    #[test]
    fn each_malformed_file_is_refused_with_the_values_found() {
        let cases: [(&str, Vec<u8>, &str); 8] = [
            ("empty", vec![], "0 bytes"),
            ("floats", vec![0, 0, 0x0d, 1, 0, 0, 0, 0], "00000d01"),
            ("not IDX", b"\x89PNG....".to_vec(), "89504e47"),
            ("no dimensions", vec![0, 0, 8, 0], "00000800"),
            ("four dimensions", file(&[1, 1, 1, 1], &[1]), "00000804"),
            ("header cut", file(&[1, 1], &[])[..9].to_vec(), "9 bytes"),
            ("values cut", file(&[2, 2], &[1, 2, 3]), "announces 4 values ([2, 2]), but 3 follow"),
            ("trailing bytes", file(&[1], &[1, 2]), "announces 1 values ([1]), but 2 follow"),
        ];
        for (what, bytes, expected) in cases {
            let problem = Idx::parse(bytes).unwrap_err();
            assert!(problem.contains(expected), "{what}: {problem}");
        }
    }

    #[test]
    fn sizes_that_overflow_are_refused_before_any_allocation() {
        let problem = Idx::parse(file(&[u32::MAX, u32::MAX, u32::MAX], &[])).unwrap_err();
        assert!(problem.contains("overflow"), "{problem}");
    }
}
