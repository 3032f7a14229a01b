//! A share of a data set: how many images, and which.
//!
//! A subset of `n` images keeps the proportion of the whole between training and testing: `test_n = floor(n * |test| /
//! |train|)` and `train_n = n - test_n`.

use crate::dataset::{LabelledDataset, View};
use crate::random;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use thiserror::Error;

/// Which images a subset takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Sampling {
    /// The first ones, in the split's order. Caltech101's split is shuffled by its seed, so these are a random sample
    /// there; MNIST's and the synthetic set's orders are theirs.
    #[default]
    FirstN,
    /// A seeded random choice, without repetition.
    Random {
        /// Decides the choice.
        seed: u64,
    },
    /// A seeded random choice that keeps each class's share, to less than one image (largest remainder).
    Stratified {
        /// Decides the choice within each class.
        seed: u64,
    },
}

/// Why a subset was refused.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum SubsetError {
    /// No image was asked for.
    #[error("a subset of 0 images trains nothing: ask for at least 1")]
    Zero,
    /// The set has fewer images than were asked for.
    #[error("a subset of {n} needs {needed} {part} images, and there are {available}: ask for at most {largest}")]
    TooLarge {
        /// The size that was asked for.
        n: usize,
        /// `training` or `test`.
        part: &'static str,
        /// Images of that part that `n` needs.
        needed: usize,
        /// Images of that part that exist.
        available: usize,
        /// The largest size that works.
        largest: usize,
    },
    /// Rounding leaves no image to test on, or none to train on.
    #[error(
        "a subset of {n} from {train_len} training and {test_len} test images has no {part} image: ask for at least {smallest}"
    )]
    Empty {
        /// The size that was asked for.
        n: usize,
        /// Training images that exist.
        train_len: usize,
        /// Test images that exist.
        test_len: usize,
        /// `training` or `test`.
        part: &'static str,
        /// The smallest size that works.
        smallest: usize,
    },
    /// A share that is none.
    #[error("a fraction of {0} is out of range: use a share above 0 and at most 1")]
    Fraction(f64),
    /// Whatever is asked for, the proportion of the whole leaves nothing to train on.
    #[error(
        "`n` counts training and test images together, in the proportion of the {train_len} training and {test_len} \
         test images there are, which leaves nothing to train on: allow more training images than test images \
         (training images may be limited by a number of images or of steps), or give a `fraction` of the training images"
    )]
    NoTraining {
        /// Training images that exist.
        train_len: usize,
        /// Test images that exist.
        test_len: usize,
    },
}

/// Splits `n` images into `(train_n, test_n)` in the proportion of the whole set:
/// `test_n = floor(n * test_len / train_len)`, `train_n = n - test_n`.
///
/// ```
/// # fn main() -> Result<(), data::subset::SubsetError> {
/// // A fifth of MNIST.
/// assert_eq!(data::subset_counts(12_000, 60_000, 10_000)?, (10_000, 2_000));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`SubsetError`] if `n` is 0 or more than the set has, or if either part would be empty (a set without test
/// images has no test part).
pub fn subset_counts(n: usize, train_len: usize, test_len: usize) -> Result<(usize, usize), SubsetError> {
    if n == 0 {
        return Err(SubsetError::Zero);
    }
    if train_len == 0 || test_len >= train_len {
        return Err(SubsetError::NoTraining { train_len, test_len });
    }
    // 128 bits, since the product of two lengths may not fit in 64.
    let test_of = |n: usize| (n as u128 * test_len as u128 / train_len as u128) as usize;
    let (train_n, test_n) = (n - test_of(n), test_of(n));
    if train_n > train_len || test_n > test_len {
        let (part, needed, available) =
            if train_n > train_len { ("training", train_n, train_len) } else { ("test", test_n, test_len) };
        let largest = largest(train_len, test_len);
        return Err(SubsetError::TooLarge { n, part, needed, available, largest });
    }
    if test_n == 0 && test_len > 0 {
        let smallest = train_len.div_ceil(test_len);
        return Err(SubsetError::Empty { n, train_len, test_len, part: "test", smallest });
    }
    Ok((train_n, test_n))
}

/// `(train_n, test_n)` of a share of the training images: `train_n = round(share * train_len)`, and of the test images the
/// same part, `test_n = floor(train_n * test_len / train_len)`; at least one image of either part that has any.
///
/// ```
/// # fn main() -> Result<(), data::subset::SubsetError> {
/// // A fifth of MNIST.
/// assert_eq!(data::subset::fraction_counts(0.2, 60_000, 10_000)?, (12_000, 2_000));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`SubsetError::Fraction`] if `share` is not above 0 and at most 1, [`SubsetError::NoTraining`] if there is no training
/// image.
pub fn fraction_counts(share: f64, train_len: usize, test_len: usize) -> Result<(usize, usize), SubsetError> {
    if !(share > 0.0 && share <= 1.0) {
        return Err(SubsetError::Fraction(share));
    }
    if train_len == 0 {
        return Err(SubsetError::NoTraining { train_len, test_len });
    }
    let train_n = ((train_len as f64 * share).round() as usize).clamp(1, train_len);
    let test_n = (train_n as u128 * test_len as u128 / train_len as u128) as usize;
    Ok((train_n, test_n.max(1).min(test_len)))
}

/// The largest `n` with both parts available. `test_n <= test_len` needs `n * test_len < (test_len + 1) * train_len`,
/// the tighter bound of the two, since a test part is smaller than its training part.
fn largest(train_len: usize, test_len: usize) -> usize {
    if test_len == 0 {
        return train_len;
    }
    let (train, test) = (train_len as u128, test_len as u128);
    let by_test = ((test + 1) * train - 1) / test;
    // `n - floor(n * test / train)` never falls as `n` grows, so walk down from the bound by the test part.
    let train_n = |n: u128| n - n * test / train;
    let mut n = by_test;
    if train_n(n) > train {
        let (mut low, mut high) = (train, n);
        while high - low > 1 {
            let middle = low.midpoint(high);
            if train_n(middle) > train { high = middle } else { low = middle }
        }
        n = low;
    }
    usize::try_from(n).unwrap_or(usize::MAX)
}

/// The places of `n` of the images with these labels, ascending.
///
/// # Panics
///
/// If `n` is more than there are labels; [`subset_counts`] refuses that.
pub fn choose(labels: &[usize], n: usize, sampling: Sampling) -> Vec<usize> {
    assert!(n <= labels.len(), "{n} of {} images", labels.len());
    let mut chosen = match sampling {
        Sampling::FirstN => (0..n).collect(),
        Sampling::Random { seed } => {
            let mut all: Vec<usize> = (0..labels.len()).collect();
            random::shuffle(&mut all, seed);
            all.truncate(n);
            all
        }
        Sampling::Stratified { seed } => {
            let classes = by_class(labels);
            let sizes: Vec<usize> = classes.iter().map(Vec::len).collect();
            let mut chosen = Vec::with_capacity(n);
            for (class, (mut members, quota)) in classes.into_iter().zip(quotas(&sizes, n)).enumerate() {
                random::shuffle(&mut members, random::mix(seed, class as u64));
                chosen.extend_from_slice(&members[..quota]);
            }
            chosen
        }
    };
    chosen.sort_unstable();
    chosen
}

/// `data` reduced to `n` images.
pub(crate) fn take(data: &Arc<dyn LabelledDataset>, n: usize, sampling: Sampling) -> Arc<dyn LabelledDataset> {
    Arc::new(View::new(Arc::clone(data), choose(data.labels(), n, sampling)))
}

/// The places of each class's images, in order.
pub(crate) fn by_class(labels: &[usize]) -> Vec<Vec<usize>> {
    let mut classes = vec![Vec::new(); labels.iter().max().map_or(0, |last| last + 1)];
    for (index, &label) in labels.iter().enumerate() {
        classes[label].push(index);
    }
    classes
}

/// Shares `n` out in proportion to `sizes` by the largest remainder; of equal remainders the first wins.
fn quotas(sizes: &[usize], n: usize) -> Vec<usize> {
    let total = sizes.iter().sum::<usize>().max(1) as u128;
    let exact = |size: usize| n as u128 * size as u128;
    let mut quotas: Vec<usize> = sizes.iter().map(|&size| (exact(size) / total) as usize).collect();
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by_key(|&class| std::cmp::Reverse(exact(sizes[class]) % total));
    let missing = n - quotas.iter().sum::<usize>();
    for &class in order.iter().take(missing) {
        quotas[class] += 1;
    }
    quotas
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_follow_the_formula() {
        for (n, train, test, expected) in [
            (60_000, 60_000, 10_000, (50_000, 10_000)),
            (12_000, 60_000, 10_000, (10_000, 2_000)),
            (1_388, 6_941, 1_736, (1_041, 347)),
            (6, 6, 1, (5, 1)),
            (7, 10, 0, (7, 0)),
        ] {
            assert_eq!(subset_counts(n, train, test), Ok(expected), "{n} of {train} + {test}");
        }
    }

    #[test]
    fn counts_add_up_and_never_exceed_what_is_there() {
        for train in 1..40usize {
            for test in 0..train {
                let mut accepted = Vec::new();
                for n in 1..200 {
                    match subset_counts(n, train, test) {
                        Ok((train_n, test_n)) => {
                            assert_eq!(train_n + test_n, n);
                            assert_eq!(test_n, n * test / train);
                            assert!(train_n <= train && test_n <= test && train_n > 0);
                            accepted.push(n);
                        }
                        Err(SubsetError::TooLarge { largest, .. }) => {
                            assert_eq!(accepted.last(), Some(&largest), "{n} of {train} + {test}");
                        }
                        Err(SubsetError::Empty { smallest, .. }) => {
                            assert!(n < smallest && subset_counts(smallest, train, test).is_ok());
                        }
                        Err(other) => panic!("{n} of {train} + {test}: {other}"),
                    }
                }
            }
        }
    }

    #[test]
    fn sizes_that_cannot_work_are_refused() {
        assert_eq!(subset_counts(0, 10, 2), Err(SubsetError::Zero));
        assert!(matches!(subset_counts(5, 0, 0), Err(SubsetError::NoTraining { .. })));
        assert!(matches!(subset_counts(5, 4, 4), Err(SubsetError::NoTraining { .. })));
        assert!(matches!(subset_counts(usize::MAX, 60_000, 10_000), Err(SubsetError::TooLarge { .. })));
    }

    #[test]
    fn a_fraction_is_of_the_training_images_and_the_test_images_keep_their_proportion() {
        for (share, train, test, expected) in [
            (0.2, 60_000, 10_000, (12_000, 2_000)),
            (0.2, 200, 96, (40, 19)),
            (1.0, 200, 96, (200, 96)),
            // More test images than training images leave something to train on.
            (0.5, 32, 96, (16, 48)),
            (0.001, 10, 3, (1, 1)),
            (0.5, 10, 0, (5, 0)),
        ] {
            assert_eq!(fraction_counts(share, train, test), Ok(expected), "{share} of {train} + {test}");
        }
        for share in [0.0, -0.1, 1.1, f64::NAN, f64::INFINITY] {
            assert!(matches!(fraction_counts(share, 10, 2), Err(SubsetError::Fraction(_))), "{share}");
        }
    }

    #[test]
    fn a_proportion_that_leaves_nothing_to_train_on_says_what_n_covers_and_what_to_change() {
        let message = subset_counts(20, 32, 96).unwrap_err().to_string();
        for part in ["training and test images together", "32 training", "96 test", "`fraction`"] {
            assert!(message.contains(part), "{part} is not in: {message}");
        }
    }

    /// Labels with very different class sizes: 0 once, 1 twice, 2 four times, ...
    fn uneven(classes: usize) -> Vec<usize> {
        let mut labels: Vec<usize> = (0..classes).flat_map(|class| vec![class; 1 << class]).collect();
        random::shuffle(&mut labels, 3);
        labels
    }

    #[test]
    fn every_sampling_takes_n_different_images_and_repeats_itself() {
        let labels = uneven(7);
        for sampling in [Sampling::FirstN, Sampling::Random { seed: 5 }, Sampling::Stratified { seed: 5 }] {
            for n in 0..=labels.len() {
                let chosen = choose(&labels, n, sampling);
                assert_eq!(chosen.len(), n);
                assert!(chosen.windows(2).all(|pair| pair[0] < pair[1]), "{sampling:?}: {chosen:?}");
                assert_eq!(chosen, choose(&labels, n, sampling));
            }
        }
    }

    #[test]
    fn another_seed_makes_another_choice() {
        let labels = uneven(7);
        for (a, b) in [
            (Sampling::Random { seed: 1 }, Sampling::Random { seed: 2 }),
            (Sampling::Stratified { seed: 1 }, Sampling::Stratified { seed: 2 }),
        ] {
            assert_ne!(choose(&labels, 30, a), choose(&labels, 30, b));
        }
    }

    #[test]
    fn stratified_keeps_every_class_within_one_image_of_its_share() {
        let labels = uneven(7);
        for n in 0..=labels.len() {
            let chosen = choose(&labels, n, Sampling::Stratified { seed: 9 });
            for class in 0..7 {
                let got = chosen.iter().filter(|&&index| labels[index] == class).count();
                let share = n as f64 * f64::from(1 << class) / labels.len() as f64;
                assert!((got as f64 - share).abs() < 1.0, "{n}: class {class} has {got}, its share is {share}");
            }
        }
    }
}
