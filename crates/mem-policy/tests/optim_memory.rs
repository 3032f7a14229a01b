//! What a step of an 8-bit optimizer allocates, counted on the CPU backend, where every operation makes a tensor.
#![allow(clippy::unwrap_used, reason = "tests")]

use burn::optim::{AdamConfig, Optimizer};
use burn::tensor::{Device, Distribution, Tensor};
use mem_policy::optim::{Adam8bitConfig, StateCode};
use mps_probe::CountingAllocator;

#[global_allocator]
static HEAP: CountingAllocator = CountingAllocator::new();

const CHUNK: usize = 1 << 18;
const CHUNKS: usize = 16;

/// Bytes that the states of `optimizer` keep, and that a step takes while it runs, for `CHUNKS * CHUNK` elements.
fn step_bytes<O: Optimizer>(optimizer: &O) -> (u64, u64) {
    let device = Device::flex();
    let random = || Tensor::<1>::random([CHUNKS * CHUNK], Distribution::Normal(0.0, 1.0), &device);
    let (parameter, grad) = (random(), random());
    let (parameter, state) = optimizer.step(1e-3, parameter, grad, None);
    let grad = random();
    let before = HEAP.stats().in_use_bytes;
    HEAP.reset_peak();
    let (parameter, state) = optimizer.step(1e-3, parameter, grad, state);
    let transient = HEAP.stats().peak_bytes - before;
    let with = HEAP.stats().in_use_bytes;
    drop(state);
    let kept = with - HEAP.stats().in_use_bytes;
    drop(parameter);
    (kept, transient)
}

// One test: the counts are of the whole process.
#[test]
fn a_step_takes_24_bytes_per_element_of_a_chunk_and_not_of_the_parameter() {
    let elements = (CHUNKS * CHUNK) as u64;
    let (kept, transient) = step_bytes(&AdamConfig::new().build());
    eprintln!("Adam: keeps {kept} bytes, takes {transient} in a step, of {elements} elements");
    for code in [StateCode::Linear, StateCode::Dynamic] {
        let config = Adam8bitConfig::new().with_code(code).with_chunk_elements(CHUNK);
        let (kept, transient) = step_bytes(&config.build());
        let per_element = transient as f64 / CHUNK as f64;
        eprintln!("{code:?}: keeps {kept} bytes, takes {transient}: {per_element:.1} per element of a chunk");
        assert!(kept < elements * 22 / 10, "{code:?} keeps {kept}");
        assert!(per_element < 24.5, "{code:?} takes {per_element}");
    }
}
