//! The 8-bit optimizer on whatever adapter the machine has, software ones included, against the CPU backend.
//!
//! Without an adapter the test is skipped and says so; with `MPS_PROBE_REQUIRE_DEVICE` set, that is a failure.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use burn::optim::Optimizer;
use burn::tensor::{Device, Tensor};
use mem_policy::optim::{Adam8bitConfig, Rounding, StateCode};

const ELEMENTS: usize = 5 * 1000;

/// Gradients from 1e-6 to 1 with both signs, zeros among them, that change from step to step.
fn gradient(step: usize, device: &Device) -> Tensor<1> {
    let values: Vec<f32> = (0..ELEMENTS)
        .map(|i| {
            let place = ((i * 37 + step * 11) % 97) as f32 / 97.0;
            if i % 10 == 0 { 0.0 } else { (place - 0.4) * 10f32.powi(-((i / 256 % 7) as i32)) }
        })
        .collect();
    Tensor::from_floats(values.as_slice(), device)
}

/// The parameter after `steps` steps from zero.
fn steps(config: &Adam8bitConfig, steps: usize, device: &Device) -> Vec<f32> {
    let optimizer = config.build();
    let (mut parameter, mut state) = (Tensor::<1>::zeros([ELEMENTS], device), None);
    for step in 0..steps {
        (parameter, state) = optimizer.step(1e-2, parameter, gradient(step, device), state);
    }
    parameter.into_data().try_to_vec().unwrap()
}

#[test]
fn steps_on_the_device_are_those_on_the_cpu_to_rounding() {
    let Some(device) = common::open("8-bit steps") else {
        return;
    };
    eprintln!("{device:?}");
    assert_ne!(device, Device::flex());
    for code in [StateCode::Linear, StateCode::Dynamic] {
        for rounding in [Rounding::Nearest, Rounding::Dithered] {
            // Several chunks, and a block that is padded.
            let config = Adam8bitConfig::new().with_code(code).with_rounding(rounding).with_chunk_elements(2048);
            for count in [1, 2, 5] {
                let (gpu, cpu) = (steps(&config, count, &device), steps(&config, count, &Device::flex()));
                let off: Vec<f32> = gpu.iter().zip(&cpu).map(|(gpu, cpu)| (gpu - cpu).abs()).collect();
                let far = off.iter().filter(|off| **off > 1e-5).count();
                let most = off.iter().copied().fold(0.0, f32::max);
                eprintln!("{code:?} {rounding:?}, {count} steps: at most {most:e} off; {far} of {ELEMENTS} above 1e-5");
                // A value on the border of two codes may fall to either side; a step is 1e-2 long.
                assert!(far * 500 <= ELEMENTS, "{code:?} {rounding:?}: {far} elements differ");
                assert!(most < 1e-2, "{code:?} {rounding:?}: {most}");
            }
        }
    }
}
