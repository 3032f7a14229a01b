//! A run that only chooses kernels.

use std::sync::{Arc, Weak};
use std::time::Duration;

use bytesize::ByteSize;
use data::{LabelledDataset, Split, View};
use mem_policy::policies::WarmAutotune;
use mem_policy::{ConfiguredPolicy, EventKind, PolicyEvent};
use mps_probe::{Counter, ProbeSet};

use super::runtime::{self, Choices};
use super::spec::Purpose;

/// How often the device's memory is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// Warm-up steps, and of how many steps the last is sampled, so that [`TRAIN_BATCHES`] hold steps of each role: what is
/// queued at once, and fused, differs between them, and kernels are chosen for each.
pub(super) const ROLES: (usize, usize) = (1, 2);

/// Batches of training.
const TRAIN_BATCHES: usize = 6;

/// What chooses all kernels of a run: a few full batches, and the smaller one that is left over, of each set.
pub(super) fn shortened(split: Split, batch: usize) -> Split {
    let short = |images: Arc<dyn LabelledDataset>, batches: usize| -> Arc<dyn LabelledDataset> {
        let kept = batches * batch.max(1) + images.len() % batch.max(1);
        if kept < images.len() { Arc::new(View::new(images, (0..kept).collect())) } else { images }
    };
    Split { train: short(split.train, TRAIN_BATCHES), test: short(split.test, 1), ..split }
}

/// Calls `over` once with the bytes in use on the device, as its driver counts them, when they are more than `cap`. Ends
/// when `probes` is gone. What comes and goes between two looks is missed.
pub(super) fn watch(cap: u64, probes: &Arc<ProbeSet>, over: impl FnOnce(u64) + Send + 'static) {
    let probes: Weak<ProbeSet> = Arc::downgrade(probes);
    std::thread::spawn(move || {
        while let Some(probes) = probes.upgrade() {
            let used = probes.read().bytes(Counter::DeviceInUse).filter(|used| *used > cap);
            drop(probes);
            if let Some(used) = used {
                over(used);
                return;
            }
            std::thread::sleep(LOOK);
        }
    });
}

/// Why a process that chooses kernels ended itself.
pub(super) fn over_cap(used: u64, cap: u64) -> String {
    format!(
        "choosing kernels took {} on the device, over the cap of {}; what was chosen until then is kept, and the run \
         chooses the rest; raise `cap`, or use `level = \"minimal\"`",
        ByteSize(used),
        ByteSize(cap)
    )
}

/// What to tell of the kernels at the end of a run.
pub(super) fn event(choices: &Choices, purpose: Purpose) -> PolicyEvent {
    let (chosen, file) = (choices.count(), runtime::cache_file());
    let list = file.with_extension("kernels.jsonl");
    let message = if purpose == Purpose::Tune {
        if let Err(error) = choices.append_to(&list) {
            tracing::warn!("cannot list the chosen kernels in {}: {error}", list.display());
        }
        format!("chose {chosen} kernels, kept in {} and listed in {}", file.display(), list.display())
    } else {
        format!(
            "{chosen} kernels were chosen in this run; all others came from {}, which {} lists",
            file.display(),
            list.display()
        )
    };
    PolicyEvent::new(WarmAutotune::SPEC.id, EventKind::Reading, message)
}
