//! Device readings on whatever adapter the machine has, software ones included.
//!
//! Without an adapter a test is skipped and says so; with `MPS_PROBE_REQUIRE_DEVICE` set, that is a failure.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use mps_probe::{Budget, Counter, DeviceFacts, Measurement, ProbeSet, WgpuProbe};

const BLOCK: u64 = 64 << 20;

/// Runs a future of wgpu, which is ready at once on native systems.
fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return output;
        }
        std::thread::yield_now();
    }
}

/// An open device on the first adapter; `None`, after saying why, if there is none.
fn open(test: &str) -> Option<(wgpu::Adapter, wgpu::Device)> {
    let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
    descriptor.backends = wgpu::Backends::VULKAN | wgpu::Backends::METAL | wgpu::Backends::DX12;
    let instance = wgpu::Instance::new(descriptor);
    let adapter = match block_on(instance.request_adapter(&wgpu::RequestAdapterOptions::default())) {
        Ok(adapter) => adapter,
        Err(error) => {
            assert!(std::env::var_os("MPS_PROBE_REQUIRE_DEVICE").is_none(), "a device is required: {error}");
            eprintln!("skipped: {test}: no adapter: {error}");
            return None;
        }
    };
    let (device, _queue) = block_on(adapter.request_device(&wgpu::DeviceDescriptor::default())).unwrap();
    Some((adapter, device))
}

/// A buffer of `BLOCK` bytes that the driver has to back with memory, as the host writes all of it.
fn block(device: &wgpu::Device) -> wgpu::Buffer {
    let buffer = device.create_buffer(&wgpu::BufferDescriptor {
        label: Some("block"),
        size: BLOCK,
        usage: wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST,
        mapped_at_creation: true,
    });
    buffer.slice(..).get_mapped_range_mut().unwrap().slice(..).fill(1);
    buffer.unmap();
    buffer
}

#[test]
fn facts_name_the_device_and_give_its_limits() {
    let Some((adapter, device)) = open("facts") else {
        return;
    };
    let facts = DeviceFacts::of(&adapter, &device);
    eprintln!("{facts:#?}");
    assert!(!facts.name.is_empty());
    let limits = facts.limits.unwrap();
    assert!(limits.max_buffer_size_bytes >= limits.max_storage_buffer_binding_size_bytes);
    assert!(limits.max_compute_workgroups_per_dimension >= 65_535);
    let json = serde_json::to_string(&facts).unwrap();
    assert_eq!(serde_json::from_str::<DeviceFacts>(&json).unwrap(), facts);
}

#[test]
fn a_buffer_shows_in_every_counter_that_is_present() {
    let Some((adapter, device)) = open("buffer") else {
        return;
    };
    let probes = ProbeSet::new().with(WgpuProbe::new(&adapter, &device));
    let before = probes.read();
    let buffer = block(&device);
    let during = probes.read();
    drop(buffer);
    device.poll(wgpu::PollType::wait_indefinitely()).unwrap();
    eprintln!("before\n{}during\n{}after\n{}", before.table(), during.table(), probes.read().table());
    // A software driver's device is the machine: its use moves with all that runs there.
    let whole_machine = DeviceFacts::of(&adapter, &device).device_type == mps_probe::DeviceType::Cpu;
    let mut seen = 0;
    for counter in [Counter::DeviceInUse, Counter::WgpuInUse, Counter::WgpuReserved] {
        match (before.get(counter), during.get(counter)) {
            (Measurement::Present(_), Measurement::Present(_)) if whole_machine && counter == Counter::DeviceInUse => {
                eprintln!("known bad: {counter}: a software driver reports the whole machine's memory");
            }
            (Measurement::Present(before), Measurement::Present(during)) => {
                assert!(during.bytes >= before.bytes + BLOCK, "{before} {during}");
                seen += 1;
            }
            (before, during) => {
                assert_eq!(before, during, "a counter is absent for a reason that stays");
                eprintln!("skipped: {before}");
            }
        }
    }
    assert!(seen > 0, "no counter saw the buffer");
}

#[test]
fn the_budget_of_a_device_is_positive_and_covers_what_is_used() {
    let Some((adapter, device)) = open("budget") else {
        return;
    };
    let snapshot = ProbeSet::new().with(WgpuProbe::new(&adapter, &device)).read();
    match snapshot.get(Counter::DeviceBudget) {
        Measurement::Present(budget) => {
            assert!(budget.bytes > BLOCK, "{budget}");
            let budget = Budget::of_device(&snapshot).unwrap();
            assert!((0.0..1.5).contains(&budget.usage_share()), "{budget:?}");
        }
        Measurement::Absent(absent) => eprintln!("skipped: {absent}"),
    }
}
