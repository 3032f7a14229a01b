//! What a device cannot do in one piece.

use super::ShardAxis;

/// The limits of a device that decide whether a layer can be trained in one piece. `None` is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeviceLimits {
    /// Workgroups per dimension of a dispatch (`maxComputeWorkgroupsPerDimension`).
    pub workgroups_per_dimension: Option<u64>,
    /// Bytes of one buffer (`maxBufferSize`).
    pub buffer_bytes: Option<u64>,
    /// Bytes of one storage binding (`maxStorageBufferBindingSize`).
    pub binding_bytes: Option<u64>,
}

/// A limit that a layer passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitExceeded {
    /// The limit's name.
    pub what: &'static str,
    /// What the layer needs.
    pub needed: u64,
    /// What the device allows.
    pub limit: u64,
}

/// Rows of a matrix that one workgroup of Burn's matrix product covers along the first dimension. Read off the failing
/// launch: the weight gradient of `Linear(3612672, 512)` asks for 112,896 workgroups, one for 32 rows.
const ROWS_PER_WORKGROUP: u64 = 32;

impl DeviceLimits {
    /// No limits: a CPU.
    #[must_use]
    pub const fn none() -> Self {
        Self { workgroups_per_dimension: None, buffer_bytes: None, binding_bytes: None }
    }

    /// The first limit that training a linear layer of `inputs` x `outputs` weights of `element_bytes` bytes each passes.
    #[must_use]
    pub fn exceeded_by(&self, inputs: usize, outputs: usize, element_bytes: usize) -> Option<LimitExceeded> {
        let bytes = (inputs as u128 * outputs as u128).saturating_mul(element_bytes as u128);
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let rows = (inputs.max(outputs) as u64).div_ceil(ROWS_PER_WORKGROUP);
        let needs = [
            ("workgroups per dimension", rows, self.workgroups_per_dimension),
            ("bytes in one buffer", bytes, self.buffer_bytes),
            ("bytes in one storage binding", bytes, self.binding_bytes),
        ];
        needs.into_iter().find_map(|(what, needed, limit)| {
            let limit = limit.filter(|limit| needed > *limit)?;
            Some(LimitExceeded { what, needed, limit })
        })
    }

    /// The least number of shards along `axis` with which the layer passes no limit; one shard for each feature if not
    /// even that is enough.
    pub(super) fn shards(&self, inputs: usize, outputs: usize, axis: ShardAxis, element_bytes: usize) -> usize {
        let fits = |shards: usize| {
            let (inputs, outputs) = match axis {
                ShardAxis::Input => (inputs.div_ceil(shards), outputs),
                ShardAxis::Output => (inputs, outputs.div_ceil(shards)),
            };
            self.exceeded_by(inputs, outputs, element_bytes).is_none()
        };
        let most = match axis {
            ShardAxis::Input => inputs,
            ShardAxis::Output => outputs,
        }
        .max(1);
        // More shards never need more of anything.
        let (mut low, mut high) = (1, most);
        while low < high {
            let middle = low + (high - low) / 2;
            if fits(middle) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low
    }
}
