//! What a state loses by being stored in 8 bits.

use burn::tensor::{Device, Tensor, TensorData};

use crate::optim::code::{Levels, StateCode};
use crate::optim::packed::{Kind, Packed};
use crate::optim::rounding::{Dither, Rounding};

const CODES: [StateCode; 2] = [StateCode::Linear, StateCode::Dynamic];
const BLOCK: usize = 256;

fn matrix(values: &[f32]) -> Tensor<2> {
    let rows = values.len() / BLOCK;
    Tensor::from_data(TensorData::new(values.to_vec(), [rows, BLOCK]), &Device::flex())
}

fn vec(tensor: Tensor<2>) -> Vec<f32> {
    tensor.into_data().try_to_vec().unwrap()
}

fn round_trip(values: &[f32], kind: Kind, code: StateCode, rounding: Rounding, time: usize) -> Vec<f32> {
    let dither = Dither::new(rounding, BLOCK, time, 0.0, &Device::flex());
    vec(Packed::encode(matrix(values), kind, code, &dither).decode(kind, code))
}

/// Magnitudes spread evenly over the logarithms from 1e-5 to 1, with both signs.
fn spread() -> Vec<f32> {
    (0..BLOCK)
        .map(|i| {
            let magnitude = 10f32.powf(-5.0 * (BLOCK - 1 - i) as f32 / (BLOCK - 1) as f32);
            if i % 2 == 0 { -magnitude } else { magnitude }
        })
        .collect()
}

#[test]
fn every_code_decodes_to_what_encodes_to_it() {
    for code in CODES {
        for levels in [Levels::signed(code), Levels::unsigned(code)] {
            let all: Vec<f32> = (0..=255).map(|level: u8| f32::from(level).min(levels.top() as f32)).collect();
            let again = vec(levels.of(levels.values(matrix(&all))));
            for (level, again) in all.iter().zip(again) {
                assert!((level - again).abs() < 1e-3, "{levels:?}: {level} became {again}");
            }
        }
    }
}

#[test]
fn values_rise_with_their_level_from_zero_to_one() {
    for code in CODES {
        let levels = Levels::unsigned(code);
        let all: Vec<f32> = (0..=255).map(|level: u8| f32::from(level)).collect();
        let values = vec(levels.values(matrix(&all)));
        assert_eq!(values[0], 0.0);
        assert!((values[255] - 1.0).abs() < 1e-5, "{code:?}");
        assert!(values.windows(2).all(|pair| pair[0] < pair[1]), "{code:?}: {values:?}");
    }
}

#[test]
fn the_linear_code_is_off_by_at_most_half_a_step_of_the_largest() {
    let values = spread();
    for (kind, half) in [(Kind::Signed, 0.5 / 127.0), (Kind::Positive, 0.5 / 255.0)] {
        for (value, again) in values.iter().zip(round_trip(&values, kind, StateCode::Linear, Rounding::Nearest, 1)) {
            let value = if kind == Kind::Positive { value.abs().max(1.0 / 255.0) } else { *value };
            assert!((value - again).abs() <= half + 1e-5, "{kind:?}: {value} became {again}");
        }
    }
}

#[test]
fn the_dynamic_code_keeps_the_order_of_small_values_too() {
    let values = spread();
    for (kind, most) in [(Kind::Signed, 0.5), (Kind::Positive, 0.28)] {
        let again = round_trip(&values, kind, StateCode::Dynamic, Rounding::Nearest, 1);
        for (value, again) in values.iter().zip(again) {
            let value = if kind == Kind::Positive { value.abs() } else { *value };
            // A step of the decade that ends at `10^-e` is `0.9 / 2^(6 - e)` of it (signed).
            let error = ((value - again) / value).abs();
            let bound = if value.abs() > 0.1 {
                0.08
            } else if value.abs() > 0.01 {
                0.15
            } else {
                most * 10.0
            };
            assert!(error <= bound, "{kind:?}: {value} became {again}");
        }
    }
}

#[test]
fn the_largest_value_of_a_block_comes_back_exactly() {
    for code in CODES {
        for rounding in [Rounding::Nearest, Rounding::Dithered] {
            for time in 1..20 {
                let again = round_trip(&spread(), Kind::Signed, code, rounding, time);
                assert!((again[BLOCK - 1] - 1.0).abs() < 1e-5, "{code:?} {rounding:?} {}", again[BLOCK - 1]);
            }
        }
    }
}

#[test]
fn dithering_is_right_on_average() {
    let values = spread();
    for code in CODES {
        let times = 200;
        let mut mean = vec![0.0; BLOCK];
        for time in 1..=times {
            let again = round_trip(&values, Kind::Signed, code, Rounding::Dithered, time);
            mean.iter_mut().zip(again).for_each(|(mean, again)| *mean += again / times as f32);
        }
        for (value, mean) in values.iter().zip(mean) {
            // A step of the linear code, over the number of roundings.
            assert!((value - mean).abs() < 2.0 / 127.0 / times as f32 * 3.0 + 1e-5, "{code:?}: {value} and {mean}");
        }
    }
}

#[test]
fn a_block_of_zeros_comes_back_as_nothing() {
    for code in CODES {
        let zeros = [0.0; 2 * BLOCK];
        assert_eq!(round_trip(&zeros, Kind::Signed, code, Rounding::Dithered, 3), zeros);
        for value in round_trip(&zeros, Kind::Positive, code, Rounding::Dithered, 3) {
            assert!((0.0..=1e-30).contains(&value), "{code:?}: {value}");
        }
    }
}

#[test]
fn a_huge_block_does_not_touch_its_neighbour_and_what_is_not_finite_stays_out() {
    let mut values = vec![0.0; 2 * BLOCK];
    values[..BLOCK].fill(1e-3);
    values[BLOCK..].fill(1e18);
    values[7] = f32::NAN;
    values[BLOCK + 7] = f32::INFINITY;
    for code in CODES {
        let again = round_trip(&values, Kind::Signed, code, Rounding::Nearest, 1);
        assert_eq!(again[7], 0.0);
        assert!((again[0] - 1e-3).abs() < 1e-8, "{code:?}: {}", again[0]);
        assert!(again.iter().all(|value| value.is_finite()));
        assert!((again[BLOCK + 7] / 1e19 - 1.0).abs() < 1e-5, "{code:?}: {}", again[BLOCK + 7]);
        assert!((again[BLOCK] / 1e18 - 1.0).abs() < 0.05, "{code:?}: {}", again[BLOCK]);
    }
}

#[test]
fn a_root_is_never_rounded_to_zero() {
    let mut values = vec![0.0; BLOCK];
    values[0] = 1.0;
    for code in CODES {
        for time in 1..10 {
            let again = round_trip(&values, Kind::Positive, code, Rounding::Dithered, time);
            assert!(again.iter().all(|root| *root > 0.0), "{code:?}");
        }
    }
}

/// The root of a second moment that starts at 1 and gets gradients of 0.1, next to one that stays at 1.
fn decayed(code: StateCode, rounding: Rounding) -> f32 {
    let mut roots = vec![1.0; BLOCK];
    for time in 1..=4000 {
        let next = |(i, root): (usize, &f32)| {
            let square = if i == 0 { 1.0 } else { 0.01 };
            (0.999 * root * root + 0.001 * square).sqrt()
        };
        let next: Vec<f32> = roots.iter().enumerate().map(next).collect();
        roots = round_trip(&next, Kind::Positive, code, rounding, time);
    }
    roots[1..].iter().sum::<f32>() / (BLOCK - 1) as f32
}

#[test]
fn changes_below_half_a_step_add_up_when_dithered_and_are_lost_when_rounded_to_nearest() {
    // In f32: the root of 0.01 and what 4000 steps left of 1.
    let exact = (0.01 + 0.99 * 0.999f32.powi(4000)).sqrt();
    for code in [StateCode::Linear, StateCode::Dynamic] {
        let (dithered, nearest) = (decayed(code, Rounding::Dithered), decayed(code, Rounding::Nearest));
        eprintln!("{code:?}: f32 {exact}, dithered {dithered}, nearest {nearest}");
        assert!((dithered / exact - 1.0).abs() < 0.05, "{code:?}: {dithered} instead of {exact}");
        assert!(nearest > 0.9, "{code:?}: {nearest}");
    }
}
