use super::*;
use crate::config::OnBadFile;
use crate::sample::{ImageShape, Normalisation, Sample};
use burn::data::dataloader::Progress;
use burn::data::dataset::{Dataset, DatasetError};
use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;
use std::thread;
use std::time::{Duration, Instant};

/// Labelled by position; some positions are bad, one panics, and all take time.
#[derive(Debug)]
struct Fake {
    labels: Vec<usize>,
    normalisation: Normalisation,
    bad: HashSet<usize>,
    panics_at: Option<usize>,
    on_bad_file: OnBadFile,
    pause: fn(usize) -> Duration,
    loaded: AtomicUsize,
    /// Batches of this size are counted in `most_ahead` against those that `consumed` says were taken.
    batch_size: usize,
    consumed: AtomicUsize,
    most_ahead: AtomicUsize,
    threads: Mutex<HashSet<thread::ThreadId>>,
}

impl Fake {
    fn new(len: usize) -> Self {
        Self {
            labels: (0..len).collect(),
            normalisation: Normalisation::uniform((0.0, 1.0), 1),
            bad: HashSet::new(),
            panics_at: None,
            on_bad_file: OnBadFile::Error,
            pause: |_| Duration::ZERO,
            loaded: AtomicUsize::new(0),
            batch_size: usize::MAX,
            consumed: AtomicUsize::new(0),
            most_ahead: AtomicUsize::new(0),
            threads: Mutex::default(),
        }
    }
}

impl Dataset<Sample> for Fake {
    fn get(&self, index: usize) -> Result<Sample, DatasetError> {
        self.threads.lock().unwrap().insert(thread::current().id());
        let ahead = (index / self.batch_size + 1).saturating_sub(self.consumed.load(Ordering::SeqCst));
        self.most_ahead.fetch_max(ahead, Ordering::SeqCst);
        thread::sleep((self.pause)(index));
        self.loaded.fetch_add(1, Ordering::SeqCst);
        assert_ne!(self.panics_at, Some(index), "index {index} panics");
        if self.bad.contains(&index) {
            return Err(DatasetError::new(DataError::Image {
                path: format!("image_{index}.jpg").into(),
                problem: "bad".to_owned(),
            }));
        }
        Ok(Sample { pixels: vec![index as u8; 4].into(), label: index })
    }

    fn len(&self) -> usize {
        self.labels.len()
    }
}

impl LabelledDataset for Fake {
    fn labels(&self) -> &[usize] {
        &self.labels
    }

    fn shape(&self) -> ImageShape {
        ImageShape::new(1, 2, 2)
    }

    fn normalisation(&self) -> &Normalisation {
        &self.normalisation
    }

    fn on_bad_file(&self) -> OnBadFile {
        self.on_bad_file
    }

    fn load(&self, index: usize) -> Result<Option<Sample>, DatasetError> {
        match self.get(index) {
            Err(_) if self.on_bad_file == OnBadFile::Skip => Ok(None),
            other => other.map(Some),
        }
    }
}

/// Later images of a batch of 8 are faster, so that threads finish out of order.
fn uneven(index: usize) -> Duration {
    Duration::from_micros(100 * (index as u64 * 7919 % 8))
}

fn config(batch_size: usize, workers: usize, prefetch: usize) -> LoaderConfig {
    LoaderConfig { batch_size, workers, prefetch, ..LoaderConfig::default() }
}

fn loader(data: Fake, config: LoaderConfig) -> (Arc<Fake>, Loader<Vec<i64>>) {
    let data = Arc::new(data);
    let seen = Arc::clone(&data);
    let loader = Loader::new(data.clone(), config, &Device::flex(), move |batch| {
        seen.consumed.fetch_add(1, Ordering::SeqCst);
        let targets = batch.targets.into_data().convert::<i64>();
        let images = batch.images.into_data().convert::<f32>();
        let targets = targets.as_slice::<i64>().unwrap().to_vec();
        for (image, target) in images.as_slice::<f32>().unwrap().chunks(4).zip(&targets) {
            let expected = *target as u8 as f32 / 255.0;
            assert!(image.iter().all(|pixel| (pixel - expected).abs() < 1e-6), "image and target parted");
        }
        targets
    });
    (data, loader.unwrap())
}

/// Everything an epoch gives: each batch or error, and the progress after it.
fn epoch(loader: &dyn DataLoader<Vec<i64>>) -> Vec<(Result<Vec<i64>, String>, Progress)> {
    let mut iter = loader.iter();
    let mut all = Vec::new();
    while let Some(batch) = iter.next() {
        all.push((batch.map_err(|error| error.to_string()), iter.progress()));
    }
    all
}

fn batches(loader: &dyn DataLoader<Vec<i64>>) -> Vec<Vec<i64>> {
    epoch(loader).into_iter().map(|(batch, _)| batch.unwrap()).collect()
}

#[test]
fn the_order_depends_on_the_seed_alone_and_not_on_the_workers() {
    let run = |workers, prefetch, seed| {
        let data = Fake { pause: uneven, ..Fake::new(43) };
        let config = LoaderConfig { shuffle: Some(seed), ..config(4, workers, prefetch) };
        let (_, loader) = loader(data, config);
        [batches(&loader), batches(&loader), batches(&loader)]
    };
    let expected = run(0, 1, 11);
    for (workers, prefetch) in [(1, 1), (1, 4), (2, 1), (3, 3), (4, 8), (8, 2)] {
        assert_eq!(run(workers, prefetch, 11), expected, "{workers} workers, {prefetch} ahead");
    }
    assert_ne!(run(0, 1, 12), expected);
    assert_ne!(expected[0], expected[1], "two epochs in the same order");
    assert_ne!(expected[1], expected[2], "two epochs in the same order");
}

#[test]
fn every_epoch_gives_every_image_once() {
    for (workers, shuffle) in [(0, None), (0, Some(1)), (3, None), (3, Some(1))] {
        let (_, loader) = loader(Fake::new(50), LoaderConfig { shuffle, ..config(8, workers, 2) });
        for _ in 0..3 {
            let mut seen = batches(&loader).concat();
            if shuffle.is_none() {
                assert!(seen.is_sorted());
            }
            seen.sort_unstable();
            assert_eq!(seen, (0..50).collect::<Vec<i64>>());
        }
    }
}

#[test]
fn progress_is_complete_exactly_at_the_last_batch() {
    for workers in [0, 2] {
        for on_bad_file in [OnBadFile::Error, OnBadFile::Skip] {
            for drop_last in [false, true] {
                for len in 1..20 {
                    let data = Fake { on_bad_file, ..Fake::new(len) };
                    let (_, loader) = loader(data, LoaderConfig { drop_last, ..config(4, workers, 2) });
                    let all = epoch(&loader);
                    assert_eq!(all.len(), if drop_last { len / 4 } else { len.div_ceil(4) });
                    assert_eq!(all.len(), loader.batches());
                    for (number, (_, progress)) in all.iter().enumerate() {
                        assert_eq!(progress.is_completed(), number + 1 == all.len(), "{len}: {progress:?}");
                        assert_eq!(progress.items_total, loader.num_items());
                    }
                }
            }
        }
    }
}

#[test]
fn progress_is_complete_at_the_last_batch_that_is_left_when_files_are_skipped() {
    // The images of the second batch, of the last two, and one of the first, are bad.
    let bad = HashSet::from([1, 4, 5, 6, 7, 12, 13, 14, 15, 16, 17]);
    for workers in [0, 1, 3] {
        let data = Fake { bad: bad.clone(), on_bad_file: OnBadFile::Skip, ..Fake::new(18) };
        let (_, loader) = loader(data, config(4, workers, 1));
        let all = epoch(&loader);
        let given: Vec<_> =
            all.iter().map(|(batch, progress)| (batch.clone().unwrap(), progress.is_completed())).collect();
        assert_eq!(given, [(vec![0, 2, 3], false), (vec![8, 9, 10, 11], true)]);
    }
}

#[test]
fn skipping_everything_is_an_error() {
    let data = Fake { bad: (0..9).collect(), on_bad_file: OnBadFile::Skip, ..Fake::new(9) };
    let (_, loader) = loader(data, config(4, 2, 2));
    let all = epoch(&loader);
    assert_eq!(all.len(), 1);
    assert!(all[0].0.as_ref().unwrap_err().contains("all 9 images"), "{all:?}");
}

#[test]
fn an_error_comes_in_its_place_and_ends_the_epoch() {
    for workers in [0, 1, 4] {
        let data = Fake { bad: HashSet::from([9]), pause: uneven, ..Fake::new(40) };
        let (_, loader) = loader(data, config(4, workers, 4));
        for _epoch in 0..2 {
            let all = epoch(&loader);
            let given: Vec<_> = all.iter().map(|(batch, _)| batch.clone().ok()).collect();
            assert_eq!(given, [Some(vec![0, 1, 2, 3]), Some(vec![4, 5, 6, 7]), None]);
            let (error, progress) = &all[2];
            assert!(error.as_ref().unwrap_err().contains("image_9.jpg"), "{error:?}");
            assert!(!progress.is_completed());
        }
    }
}

#[test]
fn a_panic_is_an_error_in_its_place_and_the_threads_survive_it() {
    for workers in [0, 1, 3] {
        for on_bad_file in [OnBadFile::Error, OnBadFile::Skip] {
            let data = Fake { panics_at: Some(6), on_bad_file, ..Fake::new(20) };
            let (_, loader) = loader(data, config(4, workers, 2));
            for _epoch in 0..2 {
                let all = epoch(&loader);
                assert_eq!(all.len(), 2, "{all:?}");
                assert_eq!(all[0].0, Ok(vec![0, 1, 2, 3]));
                let error = all[1].0.as_ref().unwrap_err();
                assert!(error.contains("batch 1") && error.contains("index 6 panics"), "{error}");
            }
        }
    }
}

#[test]
fn never_more_batches_are_ahead_than_were_asked_for() {
    for on_bad_file in [OnBadFile::Error, OnBadFile::Skip] {
        for (workers, prefetch) in [(1, 1), (1, 3), (2, 2), (4, 1), (4, 6)] {
            let data = Fake { batch_size: 2, on_bad_file, ..Fake::new(60) };
            let (data, loader) = loader(data, config(2, workers, prefetch));
            let mut iter = loader.iter();
            let deadline = Instant::now() + Duration::from_secs(10);
            while data.most_ahead.load(Ordering::SeqCst) < prefetch && Instant::now() < deadline {
                thread::yield_now();
            }
            assert_eq!(data.most_ahead.load(Ordering::SeqCst), prefetch, "before the first batch is asked for");
            while iter.next().is_some() {
                // Time for the threads to run too far ahead, if they could.
                thread::sleep(Duration::from_millis(2));
            }
            let most = data.most_ahead.load(Ordering::SeqCst);
            // With skipping, one batch is held until it is known whether another follows.
            let held = usize::from(on_bad_file == OnBadFile::Skip);
            assert!(most <= prefetch + held, "{most} batches for {prefetch} ahead, {workers} workers");
            assert!(most <= prefetch + workers);
        }
    }
}

#[test]
fn dropping_an_iterator_stops_the_work_promptly() {
    let slow = |_| Duration::from_millis(20);
    let data = Fake { pause: slow, ..Fake::new(4000) };
    let (data, loader) = loader(data, config(1000, 2, 4));
    let before = Instant::now();
    drop(loader.iter());
    drop(loader);
    // Each of four batches would take 20 seconds.
    assert!(before.elapsed() < Duration::from_secs(5), "{:?}", before.elapsed());
    assert!(data.loaded.load(Ordering::SeqCst) < 100);
    assert_eq!(Arc::strong_count(&data), 1, "a thread still holds the data set");
}

#[test]
fn an_epoch_after_a_dropped_one_is_whole() {
    let data = Fake { pause: uneven, ..Fake::new(40) };
    let (_, loader) = loader(data, config(4, 3, 4));
    let mut first = loader.iter();
    first.next().unwrap().unwrap();
    drop(first);
    assert_eq!(batches(&loader).concat(), (0..40).collect::<Vec<i64>>());
}

#[test]
fn two_iterators_of_one_loader_do_not_mix() {
    let (_, loader) = loader(Fake::new(24), config(4, 2, 2));
    let (mut a, mut b) = (loader.iter(), loader.iter());
    for _ in 0..6 {
        assert_eq!(a.next().unwrap().unwrap(), b.next().unwrap().unwrap());
    }
    assert!(a.next().is_none() && b.next().is_none());
}

#[test]
fn all_epochs_run_in_the_same_threads() {
    let (data, loader) = loader(Fake::new(40), config(4, 2, 4));
    for _ in 0..5 {
        batches(&loader);
    }
    let threads = data.threads.lock().unwrap();
    assert!(threads.len() <= 2, "{} threads", threads.len());
    assert!(!threads.contains(&thread::current().id()), "decoded in the thread that trains");
}

#[test]
fn without_workers_the_calling_thread_decodes_when_asked() {
    let (data, loader) = loader(Fake::new(40), config(4, 0, 4));
    let mut iter = loader.iter();
    assert_eq!(data.loaded.load(Ordering::SeqCst), 0);
    iter.next().unwrap().unwrap();
    assert_eq!(data.loaded.load(Ordering::SeqCst), 4);
    assert_eq!(*data.threads.lock().unwrap(), HashSet::from([thread::current().id()]));
}

#[test]
fn slices_together_give_the_whole() {
    let (_, loader) = loader(Fake::new(23), LoaderConfig { shuffle: Some(4), ..config(4, 2, 2) });
    let mut seen = Vec::new();
    for (start, end, len) in [(0, 10, 10), (10, 20, 10), (20, 99, 3), (99, 120, 0)] {
        let slice = loader.slice(start, end);
        assert_eq!(slice.num_items(), len);
        seen.extend(batches(&*slice).concat());
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..23).collect::<Vec<i64>>());
}

#[test]
fn a_loader_moved_to_a_device_or_resumed_goes_on_with_its_next_epoch() {
    let make = || loader(Fake::new(23), LoaderConfig { shuffle: Some(4), ..config(4, 1, 2) }).1;
    let whole = make();
    let epochs = [batches(&whole), batches(&whole), batches(&whole)];
    let moved = make();
    batches(&moved);
    assert_eq!(batches(&*moved.to_device(&Device::flex())), epochs[1]);
    assert_eq!(batches(&make().from_epoch(2)), epochs[2]);
}

#[test]
fn staging_changes_no_value() {
    let values = |staging| batches(&loader(Fake::new(20), LoaderConfig { staging, ..config(4, 2, 2) }).1);
    assert_eq!(values(true), values(false));
}

#[test]
fn an_empty_data_set_gives_no_batch_and_is_complete() {
    let (_, loader) = loader(Fake::new(0), config(4, 2, 2));
    let mut iter = loader.iter();
    assert!(iter.next().is_none());
    assert!(iter.progress().is_completed());
}

#[test]
fn a_configuration_that_cannot_work_is_refused_with_all_its_problems() {
    let message = config(0, 2, 0).validate().unwrap_err().to_string();
    assert!(message.contains("batch_size = 0") && message.contains("prefetch = 0"), "{message}");
    let error = serde_json::from_str::<LoaderConfig>(r#"{"pinned": true}"#).unwrap_err();
    assert!(error.to_string().contains("pinned"), "{error}");
}
