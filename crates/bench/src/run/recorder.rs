//! Times of the steps, and when memory is sampled.
//!
//! A step is either timed or sampled, never both: sampling makes the device's command channel wait, and would be part
//! of the time. In a sampled step the device is waited for after each part, so that the part's time and memory are its own.
//! Every step ends with a wait for the device, so that its work is in its own time and a sampled step leaves
//! nothing behind for the next one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use burn::tensor::Device;
use burn::train::metric::store::{Aggregate, EventStoreClient, Split};
use mem_policy::{Mark, StepObserver};
use mps_probe::{Counter, ProbeSet, Snapshot};

use super::heap;
use super::memory::Peaks;
use super::spec::{EpochSample, PhaseSample, StepPhase, StepRole, StepSample};

/// The names under which Burn's metrics of a run are found.
#[derive(Debug, Clone)]
pub(super) struct MetricNames {
    pub(super) loss: String,
    pub(super) accuracy: String,
    pub(super) precision: String,
    pub(super) recall: String,
    pub(super) f1: String,
}

/// What a recorder has seen.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) steps: Vec<StepSample>,
    pub(super) epochs: Vec<EpochSample>,
    pub(super) phases: Vec<PhaseSample>,
    pub(super) peaks: Peaks,
    /// The first error of the device while waiting for it.
    pub(super) device_error: Option<String>,
    clock: Clock,
}

#[derive(Debug, Default)]
struct Clock {
    epoch: usize,
    step: usize,
    role: Option<StepRole>,
    epoch_start: Option<Instant>,
    step_start: Option<Instant>,
    data_ready: Option<Instant>,
    /// When the part of a sampled step began whose end comes next.
    phase_start: Option<Instant>,
    train_s: f64,
}

/// Called at each epoch's end with everything seen so far, to keep it should the process die.
pub(super) type Keep = dyn Fn(&Seen) + Send + Sync;

/// Times steps and samples memory.
pub(super) struct Recorder {
    device: Device,
    probes: Arc<ProbeSet>,
    names: MetricNames,
    warmup_steps: usize,
    sample_every: usize,
    keep: Box<Keep>,
    seen: Mutex<Seen>,
}

impl Recorder {
    pub(super) fn new(
        device: &Device,
        probes: Arc<ProbeSet>,
        names: MetricNames,
        (warmup_steps, sample_every): (usize, usize),
        keep: Box<Keep>,
    ) -> Self {
        let device = device.clone().without_autodiff();
        Self { device, probes, names, warmup_steps, sample_every, keep, seen: Mutex::default() }
    }

    /// Reads memory once more, now, and gives out what was seen.
    pub(super) fn finish(&self) -> MutexGuard<'_, Seen> {
        let snapshot = self.probes.read();
        let mut seen = self.lock();
        seen.peaks.observe(&snapshot);
        seen
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn role(&self, step: usize) -> StepRole {
        // Warm-up steps are sampled too: the pools grow most in them, and they are not timed anyway.
        match step.checked_sub(self.warmup_steps.saturating_add(1)) {
            None => StepRole::Warmup,
            // The last of so many, so that a run of few steps has one that is timed.
            Some(after) if self.sample_every > 0 && (after + 1) % self.sample_every == 0 => StepRole::Sampled,
            Some(_) => StepRole::Timed,
        }
    }

    fn wait_for_device(&self, seen: &mut Seen) {
        if let Err(error) = self.device.sync()
            && seen.device_error.is_none()
        {
            seen.device_error = Some(error.to_string());
        }
    }

    fn phase_ends(&self, seen: &mut Seen, phase: StepPhase, group: Option<usize>) {
        if seen.clock.role == Some(StepRole::Sampled) {
            // Work that is still queued belongs to the part that asked for it.
            self.wait_for_device(seen);
        }
        let ms = seen.clock.phase_start.take().map(|start| start.elapsed().as_secs_f64() * 1e3);
        let memory = self.sample(seen);
        if let (Some(StepRole::Sampled), Some(ms), Some(memory)) = (seen.clock.role, ms, memory) {
            seen.phases.push(PhaseSample {
                step: seen.clock.step,
                phase,
                group,
                ms,
                pool_in_use: memory.bytes(Counter::PoolInUse),
                pool_reserved: memory.bytes(Counter::PoolReserved),
            });
        }
        seen.clock.phase_start = Some(Instant::now());
    }

    fn sample(&self, seen: &mut Seen) -> Option<Snapshot> {
        let sampling = match seen.clock.role {
            Some(StepRole::Sampled) => true,
            Some(StepRole::Warmup) => self.sample_every > 0,
            Some(StepRole::Timed) | None => false,
        };
        sampling.then(|| {
            let snapshot = self.probes.read();
            seen.peaks.observe(&snapshot);
            snapshot
        })
    }
}

impl StepObserver for Recorder {
    fn mark(&self, mark: Mark) {
        let mut guard = self.lock();
        let seen = &mut *guard;
        match mark {
            Mark::EpochStart { epoch } => {
                seen.clock.epoch = epoch;
                seen.clock.epoch_start = Some(Instant::now());
            }
            Mark::StepStart { step } => {
                if step == 1 {
                    heap::reset_peak();
                }
                seen.clock.step = step;
                seen.clock.role = Some(self.role(step));
                seen.clock.step_start = Some(Instant::now());
            }
            Mark::DataReady => {
                let now = Instant::now();
                seen.clock.data_ready = Some(now);
                seen.clock.phase_start = Some(now);
            }
            Mark::ForwardDone => self.phase_ends(seen, StepPhase::Forward, None),
            Mark::SegmentDone { group } => self.phase_ends(seen, StepPhase::Segment, Some(group)),
            Mark::BackwardDone => self.phase_ends(seen, StepPhase::Backward, None),
            Mark::UpdateDone => self.phase_ends(seen, StepPhase::Update, None),
            Mark::StepEnd { samples } => {
                self.wait_for_device(seen);
                let (start, ready) = (seen.clock.step_start.take(), seen.clock.data_ready.take());
                if let (Some(start), Some(ready), Some(role)) = (start, ready, seen.clock.role) {
                    seen.steps.push(StepSample {
                        epoch: seen.clock.epoch,
                        images: samples,
                        wait_ms: (ready - start).as_secs_f64() * 1e3,
                        step_ms: ready.elapsed().as_secs_f64() * 1e3,
                        role,
                    });
                }
                self.sample(seen);
            }
            Mark::TrainEnd { .. } => {
                seen.clock.train_s = seen.clock.epoch_start.take().map_or(0.0, |start| start.elapsed().as_secs_f64());
            }
            _ => {}
        }
    }

    fn epoch_end(&self, epoch: usize, metrics: &EventStoreClient) {
        let read = |name: &str, split: Split| {
            metrics.find_metric(name, epoch, Aggregate::Mean, &split).filter(|value| value.is_finite())
        };
        // Burn's classification metrics are percentages.
        let share = |name: &str| read(name, Split::Valid).map(|percent| percent / 100.0);
        let names = &self.names;
        let mut seen = self.lock();
        let sample = EpochSample {
            epoch,
            train_s: seen.clock.train_s,
            train_loss: read(&names.loss, Split::Train),
            valid_loss: read(&names.loss, Split::Valid),
            accuracy: share(&names.accuracy),
            precision: share(&names.precision),
            recall: share(&names.recall),
            f1: share(&names.f1),
        };
        seen.epochs.push(sample);
        (self.keep)(&seen);
    }
}
