use std::fmt;

use serde::{Deserialize, Serialize};

/// Elements that share one scale: 256, 512, 1024 or 2048.
///
/// A smaller block follows the values more closely, a larger one stores fewer scales (4 bytes each).
///
/// ```
/// use mem_policy::optim::BlockSize;
///
/// assert_eq!(BlockSize::new(512)?.elements(), 512);
/// assert_eq!(BlockSize::default().elements(), 256);
/// assert!(BlockSize::new(300).is_err());
/// # Ok::<(), mem_policy::optim::BlockSizeError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "usize", into = "usize")]
pub struct BlockSize(usize);

/// A number of elements that is no [`BlockSize`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} elements are no block: use 256, 512, 1024 or 2048")]
pub struct BlockSizeError(pub usize);

impl BlockSize {
    /// The smallest block, and the default, as in bitsandbytes.
    pub const SMALLEST: Self = Self(256);

    /// A block of `elements`.
    ///
    /// # Errors
    ///
    /// [`BlockSizeError`] if `elements` is not a power of two from 256 to 2048.
    pub const fn new(elements: usize) -> Result<Self, BlockSizeError> {
        if matches!(elements, 256 | 512 | 1024 | 2048) { Ok(Self(elements)) } else { Err(BlockSizeError(elements)) }
    }

    /// The number of elements.
    #[must_use]
    pub const fn elements(self) -> usize {
        self.0
    }
}

impl Default for BlockSize {
    fn default() -> Self {
        Self::SMALLEST
    }
}

impl TryFrom<usize> for BlockSize {
    type Error = BlockSizeError;

    fn try_from(elements: usize) -> Result<Self, BlockSizeError> {
        Self::new(elements)
    }
}

impl From<BlockSize> for usize {
    fn from(block: BlockSize) -> Self {
        block.0
    }
}

impl fmt::Display for BlockSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
