//! A global allocator that counts, and the probe that reads it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use serde::{Deserialize, Serialize};

use crate::{Counter, Measurement, Probe, Quality};

/// A global allocator that counts the bytes the program asks for, and passes every call on.
///
/// Install it in the binary; a library cannot:
///
/// ```
/// use mps_probe::CountingAllocator;
///
/// #[global_allocator]
/// static HEAP: CountingAllocator = CountingAllocator::new();
///
/// let before = HEAP.stats();
/// HEAP.reset_peak();
/// drop(vec![0u8; 1 << 20]);
/// assert!(HEAP.stats().peak_bytes >= before.in_use_bytes + (1 << 20));
/// ```
///
/// # What it counts
///
/// *In use*: the sum of the sizes in the [`Layout`]s that were allocated and not freed. *Peak*: the largest value of that
/// sum since the program started or since [`reset_peak`](Self::reset_peak). *Allocations*: successful calls that gave a
/// block (`alloc`, `alloc_zeroed`, and `realloc`), since the program started; it only grows.
///
/// The numbers are exact, but for calls in flight: a block counts from just after it was obtained until just before it
/// is given back. A `realloc` counts as a change of size, although the inner allocator may hold both blocks while it
/// copies.
///
/// # What it does not see
///
/// Memory that does not come from Rust's global allocator: C libraries and drivers, `mmap`, thread stacks, device
/// memory; the inner allocator's own overhead and free lists; whether a page was ever touched. It says what the program
/// asked for; [`ProcessProbe`](crate::ProcessProbe) says what the system gave.
///
/// # How it perturbs
///
/// Each call adds two relaxed atomic additions (three when it sets a new peak) to two cache lines that all threads
/// share, so programs that allocate small blocks from many threads at once are slowed down; training steps, which
/// allocate few and large blocks, hardly are. It allocates nothing itself. Its counts take part in no synchronisation:
/// a number read on one thread may lag behind another thread's latest calls.
pub struct CountingAllocator<A = System> {
    inner: A,
    in_use: AtomicU64,
    peak: AtomicU64,
    allocations: AtomicU64,
}

/// The counts of a [`CountingAllocator`] at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AllocatorStats {
    /// Bytes allocated and not freed.
    pub in_use_bytes: u64,
    /// The largest `in_use_bytes` since the last reset.
    pub peak_bytes: u64,
    /// Blocks obtained since the program started.
    pub allocations: u64,
}

impl CountingAllocator<System> {
    /// Counts in front of the system's allocator.
    pub const fn new() -> Self {
        Self::around(System)
    }
}

impl Default for CountingAllocator<System> {
    fn default() -> Self {
        Self::new()
    }
}

impl<A> CountingAllocator<A> {
    /// Counts in front of another allocator.
    pub const fn around(inner: A) -> Self {
        Self { inner, in_use: AtomicU64::new(0), peak: AtomicU64::new(0), allocations: AtomicU64::new(0) }
    }

    /// The counts now.
    pub fn stats(&self) -> AllocatorStats {
        let in_use_bytes = self.in_use.load(Relaxed);
        AllocatorStats {
            in_use_bytes,
            // A peak read before another thread has raised it must not be below what is in use.
            peak_bytes: self.peak.load(Relaxed).max(in_use_bytes),
            allocations: self.allocations.load(Relaxed),
        }
    }

    /// Starts a new peak at what is in use now.
    ///
    /// An allocation on another thread at the same moment may be missed by the new peak; call it where the program is
    /// quiet, such as between two steps.
    pub fn reset_peak(&self) {
        self.peak.store(self.in_use.load(Relaxed), Relaxed);
    }

    fn add(&self, bytes: usize) {
        let bytes = bytes as u64;
        let now = self.in_use.fetch_add(bytes, Relaxed).wrapping_add(bytes);
        // Most calls set no new peak: a load is cheaper for the other threads than a write.
        if now > self.peak.load(Relaxed) {
            self.peak.fetch_max(now, Relaxed);
        }
    }

    fn obtained(&self, block: *mut u8, bytes: usize) -> *mut u8 {
        if !block.is_null() {
            self.allocations.fetch_add(1, Relaxed);
            self.add(bytes);
        }
        block
    }

    fn sub(&self, bytes: usize) {
        self.in_use.fetch_sub(bytes as u64, Relaxed);
    }
}

impl<A> fmt::Debug for CountingAllocator<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CountingAllocator").field(&self.stats()).finish()
    }
}

// SAFETY: every call is passed on unchanged to `A`, which upholds the contract; counting neither allocates, panics nor
// unwinds.
unsafe impl<A: GlobalAlloc> GlobalAlloc for CountingAllocator<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller upholds the contract of `GlobalAlloc::alloc`.
        self.obtained(unsafe { self.inner.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller upholds the contract of `GlobalAlloc::alloc_zeroed`.
        self.obtained(unsafe { self.inner.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        self.sub(layout.size());
        // SAFETY: the caller upholds the contract of `GlobalAlloc::dealloc`.
        unsafe { self.inner.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller upholds the contract of `GlobalAlloc::realloc`.
        let moved = unsafe { self.inner.realloc(block, layout, new_size) };
        if !moved.is_null() {
            self.allocations.fetch_add(1, Relaxed);
            match new_size.checked_sub(layout.size()) {
                Some(grown) => self.add(grown),
                None => self.sub(layout.size() - new_size),
            }
        }
        moved
    }
}

/// Reads [`Counter::HeapInUse`] and [`Counter::HeapPeak`] from the program's [`CountingAllocator`].
///
/// See there for what is counted and what is not. Reading itself allocates a little, and so appears in its own next
/// reading. Absent if the allocator was never called: then it is not the program's global allocator.
pub struct AllocatorProbe<A: 'static = System> {
    heap: &'static CountingAllocator<A>,
}

impl<A> fmt::Debug for AllocatorProbe<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AllocatorProbe").field("heap", self.heap).finish()
    }
}

impl<A> AllocatorProbe<A> {
    /// Reads `heap`, which should be the program's `#[global_allocator]`.
    pub fn new(heap: &'static CountingAllocator<A>) -> Self {
        Self { heap }
    }
}

impl<A: Send + Sync> Probe for AllocatorProbe<A> {
    fn id(&self) -> &'static str {
        "heap"
    }

    fn read(&self) -> Vec<Measurement> {
        let stats = self.heap.stats();
        let counters = [
            (Counter::HeapInUse, stats.in_use_bytes, Quality::Exact),
            (Counter::HeapPeak, stats.peak_bytes, Quality::HighWater),
        ];
        let read = |(counter, bytes, quality)| match stats.allocations {
            0 => Measurement::absent(counter, "the counting allocator is not the program's global allocator"),
            _ => Measurement::present(counter, bytes, "CountingAllocator", quality),
        };
        counters.into_iter().map(read).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(size: usize) -> Layout {
        Layout::from_size_align(size, 16).unwrap()
    }

    fn stats(in_use_bytes: u64, peak_bytes: u64, allocations: u64) -> AllocatorStats {
        AllocatorStats { in_use_bytes, peak_bytes, allocations }
    }

    #[test]
    fn bytes_peak_and_count_are_exact_through_every_call() {
        let heap = CountingAllocator::new();
        // SAFETY: each block is used with the layout it has, and freed once.
        unsafe {
            let a = heap.alloc(layout(100));
            assert_eq!(heap.stats(), stats(100, 100, 1));
            let b = heap.alloc_zeroed(layout(50));
            assert_eq!(*b, 0);
            assert_eq!(heap.stats(), stats(150, 150, 2));
            let a = heap.realloc(a, layout(100), 300);
            assert_eq!(heap.stats(), stats(350, 350, 3));
            let a = heap.realloc(a, layout(300), 10);
            assert_eq!(heap.stats(), stats(60, 350, 4));
            heap.dealloc(b, layout(50));
            assert_eq!(heap.stats(), stats(10, 350, 4));
            heap.reset_peak();
            assert_eq!(heap.stats(), stats(10, 10, 4));
            heap.dealloc(a, layout(10));
            assert_eq!(heap.stats(), stats(0, 10, 4));
        }
    }

    /// Refuses everything.
    struct Full;

    // SAFETY: returning null is always allowed.
    unsafe impl GlobalAlloc for Full {
        unsafe fn alloc(&self, _: Layout) -> *mut u8 {
            std::ptr::null_mut()
        }
        unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
    }

    #[test]
    fn a_refused_allocation_counts_as_nothing() {
        let heap = CountingAllocator::around(Full);
        // SAFETY: nothing is obtained, so nothing is used or freed.
        unsafe {
            assert!(heap.alloc(layout(100)).is_null());
            assert!(heap.alloc_zeroed(layout(100)).is_null());
            let mut block = [0u8; 16];
            assert!(heap.realloc(block.as_mut_ptr(), layout(16), 32).is_null());
        }
        assert_eq!(heap.stats(), stats(0, 0, 0));
    }

    #[test]
    fn threads_lose_no_bytes_and_the_peak_covers_them_all() {
        static HEAP: CountingAllocator = CountingAllocator::new();
        const THREADS: usize = 4;
        let all_hold = std::sync::Barrier::new(THREADS);
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    // SAFETY: each block is freed once with its layout.
                    unsafe {
                        for _ in 0..1000 {
                            HEAP.dealloc(HEAP.alloc(layout(64)), layout(64));
                        }
                        let kept = HEAP.alloc(layout(1 << 16));
                        all_hold.wait();
                        HEAP.dealloc(kept, layout(1 << 16));
                    }
                });
            }
        });
        let stats = HEAP.stats();
        assert_eq!((stats.in_use_bytes, stats.allocations), (0, THREADS as u64 * 1001));
        let held = THREADS as u64 * (1 << 16);
        assert!((held..=held + THREADS as u64 * 64).contains(&stats.peak_bytes), "{stats:?}");
    }

    #[test]
    fn an_allocator_that_is_not_installed_reads_as_absent() {
        static UNUSED: CountingAllocator = CountingAllocator::new();
        let read = AllocatorProbe::new(&UNUSED).read();
        assert_eq!(read.len(), 2);
        assert!(read.iter().all(|m| m.bytes().is_none()), "{read:?}");
    }
}
