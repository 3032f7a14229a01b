//! Whole runs of a small network on synthetic images. A process per test: the device's settings are per process.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use mem_policy::registry;

use super::spec::{
    DataSpec, DeviceChoice, ErrorKind, ModelSpec, Optimizer, PeakKind, PeakReading, Purpose, RunError, RunResult,
    RunSpec, StepRole, TrainSpec,
};
use super::train;

fn spec(policies: &str) -> RunSpec {
    RunSpec {
        device: DeviceChoice::Cpu,
        data: DataSpec {
            set: data::SetId::Synthetic,
            dir: None,
            image_size: 12,
            channels: 3,
            max_train: Some(40),
            max_test: Some(8),
            on_bad_file: data::OnBadFile::Error,
            cache_bytes: 0,
        },
        model: ModelSpec { widths: vec![4, 6], hidden: 8 },
        train: TrainSpec {
            batch_size: 8,
            epochs: 2,
            max_steps: None,
            optimizer: Optimizer::Sgd,
            learning_rate: 0.05,
            warmup_steps: 2,
            sample_every: 2,
        },
        policies: toml::from_str(policies).unwrap(),
        purpose: Purpose::Measure,
        seed: 5,
        scratch: tempfile::tempdir().unwrap().keep(),
    }
}

/// Everything that was kept, in order, and the error.
fn run_all(spec: &RunSpec) -> (Vec<RunResult>, Option<RunError>) {
    let kept: Arc<Mutex<Vec<RunResult>>> = Arc::default();
    let keep: train::Keep = {
        let kept = Arc::clone(&kept);
        Arc::new(move |result: &RunResult| kept.lock().unwrap().push(result.clone()))
    };
    let error = train::run(spec, Instant::now(), &keep).err().map(|error| RunError::from(&error));
    std::fs::remove_dir_all(&spec.scratch).unwrap();
    let kept = kept.lock().unwrap().clone();
    (kept, error)
}

fn run(spec: &RunSpec) -> RunResult {
    let (mut kept, error) = run_all(spec);
    assert_eq!(error, None);
    kept.pop().unwrap()
}

#[test]
fn a_run_reports_steps_epochs_and_peaks() {
    let result = run(&spec(""));
    assert!(result.complete);
    assert_eq!((result.train_images, result.test_images), (40, 8));
    let roles: Vec<StepRole> = result.steps.iter().map(|step| step.role).collect();
    use StepRole::{Sampled, Timed, Warmup};
    assert_eq!(roles, [Warmup, Warmup, Timed, Sampled, Timed, Sampled, Timed, Sampled, Timed, Sampled]);
    assert!(result.steps.iter().all(|step| step.images == 8 && step.step_ms > 0.0 && step.wait_ms > 0.0));
    assert_eq!(result.epochs.len(), 2);
    for epoch in &result.epochs {
        for share in [epoch.accuracy, epoch.precision, epoch.recall, epoch.f1] {
            assert!(share.is_some_and(|share| (0.0..=1.0).contains(&share)), "{epoch:?}");
        }
        assert!(epoch.train_loss.is_some_and(|loss| loss > 0.0) && epoch.valid_loss.is_some(), "{epoch:?}");
    }
    let PeakReading::Read { bytes, how, .. } = &result.peaks["heap.in_use"] else { panic!("{:?}", result.peaks) };
    // At least the parameters and their gradients.
    assert!(*bytes > 2 * 4 * result.parameters, "{bytes} for {} parameters", result.parameters);
    assert_eq!(*how, PeakKind::Exact);
    assert!(matches!(&result.peaks["pool.reserved"], PeakReading::Absent { why } if !why.is_empty()));
}

#[test]
fn what_is_there_is_kept_before_the_first_step_and_at_each_epochs_end() {
    let (kept, _) = run_all(&spec(""));
    let seen: Vec<_> = kept.iter().map(|result| (result.complete, result.epochs.len(), result.steps.len())).collect();
    assert_eq!(seen, [(false, 0, 0), (false, 1, 5), (false, 2, 10), (true, 2, 10)]);
    assert!(kept.iter().all(|result| result.device.backend == "cpu"));
}

fn same_run(policies: &str) {
    // The seed of the CPU backend is the process's; the second run begins where the first one began.
    let losses = |result: &RunResult| {
        result.epochs.iter().map(|epoch| (epoch.train_loss, epoch.valid_loss, epoch.f1)).collect::<Vec<_>>()
    };
    let (a, b) = (run(&spec(policies)), run(&spec(policies)));
    assert_eq!(losses(&a), losses(&b));
    let other = run(&RunSpec { seed: 6, ..spec(policies) });
    assert_ne!(losses(&a), losses(&other), "another seed is another run");
}

#[test]
fn the_same_seed_is_the_same_run() {
    same_run("");
}

#[test]
fn the_same_seed_is_the_same_run_with_workers() {
    same_run("[loader]\nworkers = 3\nprefetch = 4");
}

#[test]
fn workers_change_no_number_of_a_run() {
    let (plain, workers) = (run(&spec("")), run(&spec("loader = true")));
    assert_eq!(plain.epochs.last().unwrap().train_loss, workers.epochs.last().unwrap().train_loss);
}

#[test]
fn every_policy_runs_or_says_why_not() {
    // Its dtype is the process's from the first run on; it has a test of its own.
    for entry in registry().iter().filter(|entry| entry.spec.id != "half-precision") {
        let id = entry.spec.id;
        let (kept, error) = run_all(&spec(&format!("[{id}]")));
        match error {
            None => assert!(kept.last().unwrap().complete, "{id}"),
            Some(RunError { kind, message }) => {
                assert_eq!(kind, ErrorKind::Unsupported, "{id}: {message}");
                assert!(message.contains(id), "{message}");
            }
        }
    }
}

#[test]
fn sixteen_bits_halve_the_bytes_of_parameters() {
    let result = run(&spec("half-precision = true"));
    assert!(["f16", "bf16"].contains(&result.device.dtype.as_str()), "{}", result.device.dtype);
    assert!(result.epochs.last().unwrap().train_loss.is_some_and(f64::is_finite));
    let PeakReading::Read { bytes, .. } = &result.peaks["heap.in_use"] else { panic!("{:?}", result.peaks) };
    assert!(*bytes > 2 * 2 * result.parameters, "{bytes} for {} parameters", result.parameters);
}

#[test]
fn policies_change_what_they_say_they_change() {
    let baseline = run(&spec(""));
    let halved = run(&spec("batch-size = true"));
    assert_eq!((halved.steps[0].images, halved.steps.len()), (4, 2 * baseline.steps.len()));
    let accumulated = run(&spec("[gradient-accumulation]\nsteps = 4"));
    assert_eq!(accumulated.steps[0].images, 2);
    let narrow = run(&spec("model-scale = true"));
    assert!(narrow.parameters < baseline.parameters / 2);
    let subset = run(&spec("[subset]\nn = 12"));
    // test_n = floor(12 * 8 / 40) = 2, train_n = 10.
    assert_eq!((subset.train_images, subset.test_images), (10, 2));
    let monitored = run(&spec("monitor = true"));
    assert_eq!(monitored.events.len(), 2, "one reading an epoch: {:?}", monitored.events);
}

#[test]
fn a_planned_optimizer_takes_the_place_of_the_experiments() {
    let loss = |policies: &str, optimizer| {
        let plain = spec(policies);
        let train = TrainSpec { optimizer, ..plain.train };
        run(&RunSpec { train, ..plain }).epochs.last().unwrap().train_loss.unwrap()
    };
    let (sgd, adam) = (loss("", Optimizer::Sgd), loss("", Optimizer::Adam));
    assert_ne!(sgd, adam);
    assert_eq!(loss("[optimizer-state]\nkind = \"adam\"", Optimizer::Sgd), adam);
    assert_eq!(loss("[optimizer-state]\nkind = \"sgd\"", Optimizer::Adam), sgd);
    let small = loss("optimizer-state = true", Optimizer::Sgd);
    assert!((small / adam - 1.0).abs() < 0.02, "{small} with 8-bit states, {adam} with f32 ones");
}

#[test]
fn the_first_steps_limit_is_counted_in_images() {
    let mut limited = spec("batch-size = true");
    limited.train.max_steps = Some(3);
    let result = run(&limited);
    assert_eq!(result.train_images, 24, "3 steps of the baseline's 8 images, whatever a policy makes of them");
}

#[test]
fn a_memory_limit_stops_the_run_with_its_error_and_keeps_what_there_was() {
    let (kept, error) = run_all(&spec("[memory-limit]\nsoft = 0.0001\nhard = 0.0001"));
    let error = error.unwrap();
    assert_eq!(error.kind, ErrorKind::Policy);
    assert!(error.message.contains("memory-limit") && error.message.contains("hard limit"), "{}", error.message);
    let last = kept.last().unwrap();
    assert!(!last.complete);
    assert_eq!(last.error.as_ref(), Some(&error));
    assert_eq!(last.events.len(), 2, "{:?}", last.events);
}

#[test]
fn errors_name_their_kind() {
    let missing = RunSpec {
        data: DataSpec { set: data::SetId::Mnist, dir: Some("/does/not/exist".into()), ..spec("").data },
        ..spec("")
    };
    let too_deep = RunSpec { model: ModelSpec { widths: vec![4; 9], hidden: 8 }, ..spec("") };
    let odd = spec("[gradient-accumulation]\nsteps = 3");
    let elsewhere =
        RunSpec { device: if cfg!(windows) { DeviceChoice::Metal } else { DeviceChoice::Dx12 }, ..spec("") };
    let cases = [
        (missing, ErrorKind::Data, "/does/not/exist"),
        (too_deep, ErrorKind::Device, "used up by block"),
        (odd, ErrorKind::Unsupported, "3 equal micro-batches"),
        (elsewhere, ErrorKind::Device, "exists only on"),
    ];
    for (spec, kind, words) in cases {
        let (kept, error) = run_all(&spec);
        let error = error.unwrap();
        assert_eq!(error.kind, kind, "{}", error.message);
        assert!(error.message.contains(words), "{}", error.message);
        assert!(kept.is_empty());
    }
}

#[test]
fn what_drivers_say_of_memory_is_understood() {
    let cases = [
        ("wgpu error: Out of Memory", ErrorKind::OutOfMemory),
        ("ERROR_OUT_OF_DEVICE_MEMORY", ErrorKind::OutOfMemory),
        ("memory allocation of 8589934592 bytes failed", ErrorKind::OutOfMemory),
        ("Dataset error: bad file", ErrorKind::Data),
        ("the device was lost", ErrorKind::Device),
    ];
    for (message, kind) in cases {
        assert_eq!(train::kind_of_message(message), kind, "{message}");
    }
}

#[test]
fn software_vulkan_reports_pools_and_device() {
    // Skipped where there is no Vulkan; known bad with SPIR-V kernels, which crash in Mesa's software Vulkan.
    if cfg!(feature = "vulkan") {
        eprintln!("known bad: SPIR-V kernels crash in software Vulkan");
        return;
    }
    let mut spec = spec("[empty-cache]\nevery = 2");
    spec.device = DeviceChoice::Vulkan;
    spec.train.epochs = 1;
    spec.data.max_train = Some(24);
    let (kept, error) = run_all(&spec);
    if let Some(error) = error {
        assert!(error.message.contains("no Vulkan device can be opened"), "{}", error.message);
        eprintln!("skipped: {}", error.message);
        return;
    }
    let result = kept.last().unwrap();
    assert!(result.complete);
    assert_eq!(result.device.backend, "vulkan");
    let bytes = |key: &str| match &result.peaks[key] {
        PeakReading::Read { bytes, .. } => *bytes,
        PeakReading::Absent { why } => panic!("{key}: {why}"),
    };
    assert!(bytes("pool.in_use") >= 4 * result.parameters);
    assert!(bytes("pool.reserved") >= bytes("pool.in_use"));
    assert!(!result.events.is_empty());
}

/// Almost all parameters in the first linear layer, as in the network this project is about, and few images.
fn parameter_heavy(policies: &str) -> RunSpec {
    let mut spec = spec(policies);
    spec.model = ModelSpec { widths: vec![8, 16], hidden: 1024 };
    spec.data.max_train = Some(8);
    spec.train = TrainSpec { batch_size: 2, epochs: 1, warmup_steps: 1, sample_every: 1, ..spec.train };
    spec
}

fn heap_peak(result: &RunResult) -> u64 {
    match result.peaks["heap.in_use"] {
        PeakReading::Read { bytes, .. } => bytes,
        PeakReading::Absent { .. } => panic!("{:?}", result.peaks),
    }
}

#[test]
fn the_update_inside_the_backward_pass_saves_the_gradients() {
    let peak = |policies: &str| {
        let result = run(&parameter_heavy(policies));
        #[expect(clippy::cast_precision_loss, reason = "a few megabytes")]
        let parameters = heap_peak(&result) as f64 / (4.0 * result.parameters as f64);
        parameters
    };
    let sharded = peak("[shard-linear]\nshards = 16");
    let fused = peak("fused-optimizer = true\n[shard-linear]\nshards = 16");
    // In both, the CPU's matrix products have buffers besides, and with these small images the shards' outputs take a tenth of
    // the parameters; the gradients of all shards exist in one of them only.
    assert!(fused < sharded - 0.6, "{fused} and {sharded} times the parameters");
}

#[test]
fn a_clone_of_the_model_that_somebody_keeps_doubles_the_parameters() {
    use burn::optim::SgdConfig;
    use burn::tensor::{Device, Distribution, Int, Tensor};
    use mem_policy::segment::{SegmentPlan, SegmentedBackward, SegmentedStep};
    use models::{ClassificationBatch, ConvNetConfig};

    let config = ConvNetConfig {
        input: [3, 12, 12],
        widths: vec![8, 16],
        hidden: 1024,
        classes: 4,
        shards: 16,
        ..Default::default()
    };
    let device = Device::flex().autodiff();
    let peak = |keep_a_clone: bool| {
        let model = config.init(&device).unwrap();
        let mut optimizer = SgdConfig::new().init();
        let mut backward = SegmentedBackward::new(SegmentPlan::each(&model));
        let mut step = |model: models::ConvNet| {
            let batch = ClassificationBatch {
                images: Tensor::random([2, 3, 12, 12], Distribution::Default, &device),
                targets: Tensor::<1, Int>::from_data([0, 1], &device),
            };
            let input = model.enter(&batch);
            let update = |model, gradients| optimizer.step(0.1, model, gradients);
            backward.run(model, input, |model, output| (model.leave(output, batch).0, ()), update).0
        };
        let model = step(model);
        let kept = keep_a_clone.then(|| model.clone());
        super::heap::reset_peak();
        let model = step(model);
        drop((model, kept));
        let snapshot = mps_probe::ProbeSet::new().with(super::heap::probe()).read();
        snapshot.bytes(mps_probe::Counter::HeapPeak).unwrap()
    };
    let (alone, shared) = (peak(false), peak(true));
    let parameters = 4 * config.summary().unwrap().parameters();
    assert!(shared > alone + parameters * 6 / 10, "{shared} and {alone}, parameters {parameters}");
}

#[test]
fn recomputing_segments_saves_activations() {
    let mut wide = spec("");
    wide.data.image_size = 32;
    wide.data.max_train = Some(64);
    wide.train = TrainSpec { batch_size: 32, epochs: 1, ..wide.train };
    wide.model = ModelSpec { widths: vec![8; 8], hidden: 4 };
    let checkpointed = RunSpec {
        policies: toml::from_str("[segment-checkpointing]\ncuts = [3, 6, 9, 12, 15, 18, 21, 24]").unwrap(),
        scratch: tempfile::tempdir().unwrap().keep(),
        ..wide.clone()
    };
    let (plain, checkpointed) = (run(&wide), run(&checkpointed));
    let (plain, checkpointed) = (heap_peak(&plain), heap_peak(&checkpointed));
    assert!(checkpointed * 10 < plain * 7, "{checkpointed} and {plain}");
}

#[test]
fn exact_policies_change_no_number_of_a_run() {
    let plain = run(&spec(""));
    let last = |result: &RunResult| result.epochs.last().map(|epoch| (epoch.train_loss, epoch.valid_loss));
    for policies in [
        "update-in-place = true",
        "segment-checkpointing = true",
        "fused-optimizer = true",
        "fused-optimizer = true\n[segment-checkpointing]\ncuts = [3, 6]",
        "[segment-checkpointing]\nbudget = \"100 KiB\"",
    ] {
        assert_eq!(last(&run(&spec(policies))), last(&plain), "{policies}");
    }
}
