//! Prints every reading that needs no GPU.
//!
//! `cargo run -p mps-probe --example readings`

use mps_probe::{AllocatorProbe, Budget, CountingAllocator, DeviceFacts, ProbeSet, children_peak_resident};

#[global_allocator]
static HEAP: CountingAllocator = CountingAllocator::new();

fn main() {
    let probes = ProbeSet::host().with(AllocatorProbe::new(&HEAP));
    let snapshot = probes.read();
    println!("device: {}\n", DeviceFacts::cpu("host").name);
    print!("{}", snapshot.table());
    println!("\n{}", children_peak_resident());
    match Budget::of(&snapshot) {
        Ok(budget) => println!("{:.1} % of {}", 100.0 * budget.usage_share(), budget.limit),
        Err(error) => println!("no budget: {error}"),
    }
    println!("read in {} us", snapshot.took_ns / 1000);
}
