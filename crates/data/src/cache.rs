//! Decoded images in memory, bounded in bytes.

use bytesize::ByteSize;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use std::sync::Arc;

/// Decoded pixels by index, at most so many bytes of them. Safe to use from every loader thread.
#[derive(Debug)]
pub(crate) struct PixelCache(Cache<usize, Arc<[u8]>, ByBytes>);

#[derive(Debug, Clone)]
struct ByBytes;

impl Weighter<usize, Arc<[u8]>> for ByBytes {
    fn weight(&self, _index: &usize, pixels: &Arc<[u8]>) -> u64 {
        pixels.len() as u64
    }
}

impl PixelCache {
    /// Room for `bytes` of pixels, in images of `image_bytes`. `None` if not even one image fits; room for one or two
    /// may keep none, since the cache reserves a part for newcomers.
    pub(crate) fn new(bytes: ByteSize, image_bytes: usize) -> Option<Self> {
        let image_bytes = image_bytes.max(1) as u64;
        let images = usize::try_from(bytes.as_u64() / image_bytes).unwrap_or(usize::MAX);
        (images > 0).then(|| Self(Cache::with_weighter(images, bytes.as_u64(), ByBytes)))
    }

    pub(crate) fn get(&self, index: usize) -> Option<Arc<[u8]>> {
        self.0.get(&index)
    }

    pub(crate) fn insert(&self, index: usize, pixels: Arc<[u8]>) {
        self.0.insert(index, pixels);
    }

    #[cfg(test)]
    fn bytes(&self) -> u64 {
        self.0.weight()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_never_holds_more_bytes_than_it_was_given() {
        for (room, image) in [(1000, 10), (1000, 333), (100_000, 27_648), (6400, 64)] {
            let cache = PixelCache::new(ByteSize(room), image).unwrap();
            for index in 0..500 {
                cache.insert(index, vec![0; image].into());
                assert!(cache.bytes() <= room, "{} of {room} bytes", cache.bytes());
            }
            assert!(cache.bytes() > 0, "nothing was kept in {room} bytes");
        }
    }

    #[test]
    fn a_cache_smaller_than_one_image_is_no_cache() {
        assert!(PixelCache::new(ByteSize(99), 100).is_none());
        assert!(PixelCache::new(ByteSize(0), 100).is_none());
    }
}
