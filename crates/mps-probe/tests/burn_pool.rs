//! Burn's pools, with and without a backend that reports them.
#![allow(clippy::unwrap_used, reason = "tests")]

use burn::tensor::Device;
use mps_probe::{BurnPoolProbe, Counter, ProbeSet};

const POOL_COUNTERS: [Counter; 5] =
    [Counter::PoolInUse, Counter::PoolPadding, Counter::PoolReserved, Counter::PoolPages, Counter::PoolPagesPeak];

#[test]
fn the_cpu_backend_has_no_pools_and_says_so() {
    let probe = BurnPoolProbe::new(Device::flex());
    assert_eq!((probe.pages(), probe.live_allocations()), (None, None));
    let snapshot = ProbeSet::new().with(probe).read();
    assert_eq!(snapshot.absent().map(|absent| absent.counter).collect::<Vec<_>>(), POOL_COUNTERS);
    assert!(snapshot.absent().all(|absent| absent.why.contains("does not report its pools")));
}

/// Needs a wgpu adapter; skipped, with the reason, without one.
#[cfg(feature = "wgpu")]
#[test]
fn a_tensor_shows_in_the_pools_and_in_the_device() {
    use burn::tensor::{Tensor, TensorData};
    use mps_probe::WgpuProbe;

    const ELEMENTS: usize = 4 << 20;
    const BYTES: u64 = ELEMENTS as u64 * 4;

    let (device, setup) = match Device::wgpu_options().init_with_setup() {
        Ok(opened) => opened,
        Err(error) => {
            assert!(std::env::var_os("MPS_PROBE_REQUIRE_DEVICE").is_none(), "a device is required: {error}");
            eprintln!("skipped: no wgpu device: {error}");
            return;
        }
    };
    let probes =
        ProbeSet::new().with(BurnPoolProbe::new(device.clone())).with(WgpuProbe::new(&setup.adapter, &setup.device));
    let before = probes.read();
    let tensor = Tensor::<1>::from_data(TensorData::new(vec![1f32; ELEMENTS], [ELEMENTS]), &device);
    device.sync().unwrap();
    let during = probes.read();
    eprintln!("before\n{}during\n{}", before.table(), during.table());
    let grown = |counter| during.bytes(counter).unwrap() - before.bytes(counter).unwrap();
    assert!((BYTES..BYTES + (1 << 20)).contains(&grown(Counter::PoolInUse)), "{}", grown(Counter::PoolInUse));
    assert!(grown(Counter::PoolReserved) >= BYTES);
    assert!(during.bytes(Counter::PoolReserved) >= during.bytes(Counter::PoolInUse));
    assert!(during.bytes(Counter::PoolPagesPeak) >= during.bytes(Counter::PoolPages));
    assert!(grown(Counter::WgpuInUse) >= BYTES, "the pool's pages are wgpu buffers");
    drop(tensor);
    device.sync().unwrap();
    let after = probes.read();
    assert!(after.bytes(Counter::PoolInUse).unwrap() + BYTES <= during.bytes(Counter::PoolInUse).unwrap());
    assert_eq!(after.bytes(Counter::PoolReserved), during.bytes(Counter::PoolReserved), "pages are kept for reuse");
}
