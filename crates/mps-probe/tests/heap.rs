//! The counting allocator as a program's global allocator.
#![allow(clippy::unwrap_used, reason = "tests")]

use mps_probe::{AllocatorProbe, Counter, CountingAllocator, ProbeSet};

#[global_allocator]
static HEAP: CountingAllocator = CountingAllocator::new();

const BLOCK: u64 = 32 << 20;

/// One test, as other tests in the same process would allocate meanwhile.
#[test]
fn the_installed_allocator_sees_a_block_come_and_go_and_keeps_its_peak() {
    let probes = ProbeSet::new().with(AllocatorProbe::new(&HEAP));
    let heap = |counter| probes.read().bytes(counter).unwrap();
    HEAP.reset_peak();
    let before = heap(Counter::HeapInUse);
    let block = std::hint::black_box(vec![0u8; BLOCK as usize]);
    let during = heap(Counter::HeapInUse);
    drop(block);
    let after = heap(Counter::HeapInUse);
    let slack = 64 << 10;
    assert!((BLOCK..BLOCK + slack).contains(&(during - before)), "{before} {during}");
    assert!(after.abs_diff(before) < slack, "{before} {after}");
    let peak = heap(Counter::HeapPeak);
    assert!((before + BLOCK..before + BLOCK + slack).contains(&peak), "{before} {peak}");
    HEAP.reset_peak();
    assert!(heap(Counter::HeapPeak) < before + slack);
}
