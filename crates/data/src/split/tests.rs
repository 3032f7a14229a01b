use super::*;
use crate::config::SyntheticConfig;
use crate::sample::Sample;
use burn::data::dataset::Dataset;
use std::collections::{BTreeMap, HashSet};

fn synthetic(config: SyntheticConfig, seed: u64) -> Split {
    open(&DataConfig { synthetic: Some(config), seed, ..DataConfig::new(SetId::Synthetic) }).unwrap()
}

fn samples(data: &Arc<dyn LabelledDataset>) -> Vec<Sample> {
    (0..data.len()).map(|index| data.get(index).unwrap()).collect()
}

/// The mean image of each class.
fn means(samples: &[Sample]) -> BTreeMap<usize, Vec<f64>> {
    let mut sums: BTreeMap<usize, (usize, Vec<f64>)> = BTreeMap::new();
    for sample in samples {
        let (count, sum) = sums.entry(sample.label).or_insert_with(|| (0, vec![0.0; sample.pixels.len()]));
        *count += 1;
        for (total, pixel) in sum.iter_mut().zip(sample.pixels.iter()) {
            *total += f64::from(*pixel);
        }
    }
    let mean = |(count, sum): (usize, Vec<f64>)| sum.into_iter().map(|total| total / count as f64).collect();
    sums.into_iter().map(|(class, sum)| (class, mean(sum))).collect()
}

#[test]
fn the_classes_of_synthetic_data_can_be_learned() {
    let split = synthetic(SyntheticConfig::default(), 3);
    let means = means(&samples(&split.train));
    let test = samples(&split.test);
    let right = test.iter().filter(|sample| {
        let distance = |mean: &[f64]| -> f64 {
            mean.iter().zip(sample.pixels.iter()).map(|(m, p)| (m - f64::from(*p)).powi(2)).sum()
        };
        let nearest = means.iter().min_by(|a, b| distance(a.1).total_cmp(&distance(b.1)));
        nearest.is_some_and(|(class, _)| *class == sample.label)
    });
    let right = right.count();
    assert!(right * 100 >= test.len() * 95, "{right} of {} test images are nearest to their class", test.len());
}

#[test]
fn synthetic_data_repeats_with_its_seed_and_differs_with_another() {
    let small = || SyntheticConfig { train: 20, test: 10, classes: 3 };
    let (a, b, other) = (synthetic(small(), 1), synthetic(small(), 1), synthetic(small(), 2));
    assert_eq!(samples(&a.train), samples(&b.train));
    assert_ne!(samples(&a.train), samples(&other.train));
    let train: HashSet<_> = samples(&a.train).into_iter().map(|sample| sample.pixels).collect();
    assert_eq!(train.len(), 20, "images repeat");
    assert!(samples(&a.test).iter().all(|sample| !train.contains(&sample.pixels)), "test images are trained on");
}

#[test]
fn synthetic_data_has_any_shape() {
    for (channels, size) in [(1, [1, 1]), (3, [5, 7]), (1, [96, 2]), (3, [2, 3])] {
        let split =
            open(&DataConfig { size: Some(size), channels: Some(channels), ..DataConfig::new(SetId::Synthetic) })
                .unwrap();
        assert_eq!(split.shape, ImageShape::new(channels, size[0], size[1]));
        assert_eq!(split.train.get(7).unwrap().pixels.len(), split.shape.elements());
    }
}

#[test]
fn cached_images_are_the_same_images() {
    let with = |cache_bytes| {
        let config = DataConfig { cache_bytes, ..DataConfig::new(SetId::Synthetic) };
        let split = open(&config).unwrap();
        [samples(&split.train), samples(&split.train), samples(&split.test)]
    };
    let plain = with(ByteSize(0));
    assert_eq!(with(ByteSize::mib(64)), plain);
    assert_eq!(with(ByteSize::kib(40)), plain);
}

#[test]
fn labels_are_those_of_the_images() {
    let split = synthetic(SyntheticConfig::default(), 3).subset(200, Sampling::Random { seed: 8 }).unwrap();
    for data in [&split.train, &split.test] {
        let labels: Vec<_> = samples(data).iter().map(|sample| sample.label).collect();
        assert_eq!(data.labels(), labels);
    }
}

#[test]
fn a_subset_has_the_stated_sizes_and_shares_the_count_of_skipped_files() {
    let whole = synthetic(SyntheticConfig::default(), 3);
    let part = whole.subset(100, Sampling::FirstN).unwrap();
    assert_eq!((part.train.len(), part.test.len()), (75, 25));
    assert_eq!(samples(&part.train)[..], samples(&whole.train)[..75]);
    whole.skipped.record("x".into(), &DataError::AllSkipped(0));
    assert_eq!(part.skipped.count(), 1);
    assert!(matches!(whole.subset(0, Sampling::FirstN), Err(DataError::Subset(_))));
}

#[test]
fn a_stratified_split_keeps_every_class_on_both_sides() {
    // Classes of 1, 2, 3, ... 40 images.
    let labels: Vec<usize> = (0..40).flat_map(|class| vec![class; class + 1]).collect();
    for fraction in [0.01, 0.2, 0.5, 0.99] {
        let (train, test) = stratified(&labels, fraction, 6);
        let all: HashSet<_> = train.iter().chain(&test).collect();
        assert_eq!(all.len(), labels.len(), "an image is lost or on both sides");
        assert_eq!(train.len() + test.len(), labels.len());
        for class in 0..40 {
            let count = |part: &[usize]| part.iter().filter(|&&index| labels[index] == class).count();
            let expected = ((class + 1) as f64 * fraction).round().max(1.0).min(class as f64) as usize;
            assert_eq!(count(&test), expected, "class {class} at {fraction}");
            assert!(count(&train) > 0);
        }
    }
    assert_eq!(stratified(&labels, 0.2, 6), stratified(&labels, 0.2, 6));
    assert_ne!(stratified(&labels, 0.2, 6), stratified(&labels, 0.2, 7));
}

#[test]
fn a_split_feeds_burns_own_data_sets() {
    let split = synthetic(SyntheticConfig::default(), 3);
    let plain: Arc<dyn Dataset<Sample>> = split.train.clone();
    assert_eq!(plain.len(), 512);
}
