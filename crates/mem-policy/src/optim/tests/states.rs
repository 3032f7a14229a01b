//! What a state takes, and that it survives a record.

use burn::optim::{GradientsParams, ModuleOptimizer, Optimizer, RecordState, StateSink};
use burn::tensor::{DType, Device, Distribution, FloatDType, Tensor};

use super::training::{Network, batches};
use crate::optim::{Adam8bitConfig, Adam8bitState, BlockSize, BlockwiseAdam, StateCode};

/// A state after two steps of a parameter with `shape`, and the parameter.
fn two_steps<const D: usize>(
    optimizer: &BlockwiseAdam,
    shape: [usize; D],
    dtype: FloatDType,
) -> (Tensor<D>, Adam8bitState) {
    let device = Device::flex();
    device.seed(1);
    let mut parameter = Tensor::<D>::random(shape, Distribution::Default, &device).cast(dtype);
    let mut state = None;
    for _ in 0..2 {
        let grad = Tensor::<D>::random(shape, Distribution::Normal(0.0, 1.0), &device).cast(dtype);
        (parameter, state) = optimizer.step(1e-2, parameter, grad, state);
    }
    (parameter, state.unwrap())
}

fn bytes_of_record(state: &Adam8bitState) -> usize {
    let mut sink = StateSink::default();
    state.state_flatten("p", &mut sink);
    sink.tensors.iter().map(|(_, data)| data.as_bytes().len()).sum()
}

#[test]
fn a_large_state_takes_at_most_1_1_bytes_per_element_and_moment() {
    let elements = 300 * 1000 + 7;
    for block in [256, 512, 1024, 2048] {
        let optimizer = Adam8bitConfig::new().with_block(BlockSize::new(block).unwrap()).build();
        let (_, state) = two_steps(&optimizer, [elements], FloatDType::F32);
        assert!(state.is_quantized());
        assert_eq!(state.bytes(), bytes_of_record(&state));
        let per_moment = state.bytes() as f64 / (2 * elements) as f64;
        eprintln!("blocks of {block}: {per_moment:.4} bytes");
        assert!(per_moment <= 1.1, "{block}: {per_moment}");
    }
}

#[test]
fn a_small_state_stays_f32() {
    for (elements, quantized) in [(4095, false), (4096, true)] {
        let (_, state) = two_steps(&Adam8bitConfig::new().build(), [elements], FloatDType::F32);
        assert_eq!(state.is_quantized(), quantized, "{elements}");
        assert_eq!(state.bytes(), bytes_of_record(&state));
        assert!(quantized || state.bytes() == 8 * elements);
    }
}

#[test]
fn chunks_change_nothing() {
    let whole = two_steps(&Adam8bitConfig::new().build(), [70, 100], FloatDType::F32);
    let parts = two_steps(&Adam8bitConfig::new().with_chunk_elements(1000).build(), [70, 100], FloatDType::F32);
    assert_eq!(whole.1.bytes(), parts.1.bytes());
    whole.0.into_data().assert_eq(&parts.0.into_data(), true);
}

#[test]
fn a_16_bit_parameter_stays_16_bit_and_its_arithmetic_is_f32() {
    for dtype in [FloatDType::F16, FloatDType::BF16] {
        for elements in [100, 5000] {
            let (parameter, state) = two_steps(&Adam8bitConfig::new().build(), [elements], dtype);
            assert_eq!(parameter.dtype(), DType::from(dtype));
            assert_eq!(state.bytes(), bytes_of_record(&state));
            let device = Device::flex();
            // f16 would square this gradient to zero.
            let grad = Tensor::<1>::full([elements], 1e-4, &device).cast(dtype);
            let zeros = Tensor::<1>::zeros([elements], &device).cast(dtype);
            let config = Adam8bitConfig::new().with_epsilon(1e-9);
            let (parameter, _) = config.build().step(1e-2, zeros, grad, None);
            for value in parameter.cast(FloatDType::F32).into_data().try_to_vec::<f32>().unwrap() {
                assert!((value + 1e-2).abs() < 1e-4, "{dtype:?} {value}");
            }
        }
    }
}

#[test]
fn a_gradient_that_is_not_finite_spoils_its_own_element_only() {
    let device = Device::flex();
    let optimizer = Adam8bitConfig::new().build();
    let parameter = Tensor::<1>::ones([5000], &device);
    let grad = Tensor::<1>::ones([5000], &device).slice_assign(17..18, Tensor::full([1], f32::NAN, &device));
    let (parameter, state) = optimizer.step(1e-2, parameter, grad, None);
    let (parameter, _) = optimizer.step(1e-2, parameter, Tensor::ones([5000], &device), state);
    let values = parameter.into_data().try_to_vec::<f32>().unwrap();
    assert!(values[17].is_nan());
    assert!(values.iter().enumerate().all(|(i, value)| i == 17 || (value - 0.98).abs() < 1e-4));
}

#[test]
fn a_state_of_another_shape_is_not_used() {
    let optimizer = Adam8bitConfig::new().build();
    let (_, state) = two_steps(&optimizer, [5000], FloatDType::F32);
    let device = Device::flex();
    let (_, state) =
        optimizer.step(1e-2, Tensor::<1>::ones([6000], &device), Tensor::ones([6000], &device), Some(state));
    assert_eq!(state.unwrap().time(), 1);
}

/// Trains for `batches`.
fn train(
    mut network: Network,
    optimizer: &mut ModuleOptimizer,
    batches: &[(Tensor<2>, Tensor<1, burn::tensor::Int>)],
) -> Network {
    for (images, classes) in batches {
        let grads = GradientsParams::from_grads(network.loss(images, classes).backward(), &network);
        network = optimizer.step(1e-3, network, grads);
    }
    network
}

#[test]
fn a_run_resumes_from_a_record_bit_for_bit() {
    let device = Device::flex().autodiff();
    let data = batches(&device, 10);
    for code in [StateCode::Linear, StateCode::Dynamic] {
        let config = Adam8bitConfig::new().with_code(code).with_chunk_elements(5000);
        let mut optimizer = config.init();
        let network = train(Network::new(&device), &mut optimizer, &data[..5]);
        let bytes = optimizer.into_bytes().unwrap();
        let on = train(network.clone(), &mut optimizer, &data[5..]).weights();
        let mut resumed = config.init().from_bytes(bytes).unwrap();
        assert_eq!(on, train(network.clone(), &mut resumed, &data[5..]).weights(), "{code:?}");
        assert_ne!(on, train(network, &mut config.init(), &data[5..]).weights(), "the state matters");
    }
}

#[test]
fn a_state_says_its_code_so_that_another_can_go_on() {
    let linear = Adam8bitConfig::new().with_code(StateCode::Linear).build();
    let dynamic = Adam8bitConfig::new().with_code(StateCode::Dynamic).build();
    let device = Device::flex();
    let (parameter, state) = two_steps(&linear, [5000], FloatDType::F32);
    let grad = Tensor::zeros([5000], &device);
    let by = |optimizer: &BlockwiseAdam| {
        optimizer.step(1e-2, parameter.clone(), grad.clone(), Some(state.clone())).0.into_data()
    };
    by(&linear).assert_eq(&by(&dynamic), true);
}

#[test]
fn gradients_are_clipped_when_asked() {
    let clip = burn::grad_clipping::GradientClippingConfig::Norm(1.0);
    assert!(Adam8bitConfig::new().with_grad_clipping(Some(clip)).init().has_gradient_clipping());
    assert!(!Adam8bitConfig::new().init().has_gradient_clipping());
}
