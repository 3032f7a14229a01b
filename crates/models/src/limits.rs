//! What a device cannot do in one piece.

use crate::convnet::ModelError;

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

/// Rows of a matrix that one workgroup of Burn's matrix product covers along the first dimension. Read off the failing
/// launch: the weight gradient of `Linear(3612672, 512)` asks for 112,896 workgroups, one for 32 rows.
const ROWS_PER_WORKGROUP: u64 = 32;

impl DeviceLimits {
    /// No limits: a CPU.
    #[must_use]
    pub const fn none() -> Self {
        Self { workgroups_per_dimension: None, buffer_bytes: None, binding_bytes: None }
    }

    /// Checks a linear layer of `inputs` x `outputs` weights of `element_bytes` bytes each.
    ///
    /// # Errors
    ///
    /// [`ModelError::TooLargeInOnePiece`], naming the first limit that is passed.
    pub fn check_linear(&self, inputs: usize, outputs: usize, element_bytes: usize) -> Result<(), ModelError> {
        let weight_bytes = (inputs as u64).saturating_mul(outputs as u64).saturating_mul(element_bytes as u64);
        let needs = [
            ("workgroups per dimension", (inputs as u64).div_ceil(ROWS_PER_WORKGROUP), self.workgroups_per_dimension),
            ("bytes in one buffer", weight_bytes, self.buffer_bytes),
            ("bytes in one storage binding", weight_bytes, self.binding_bytes),
        ];
        for (what, needed, limit) in needs {
            if let Some(limit) = limit
                && needed > limit
            {
                return Err(ModelError::TooLargeInOnePiece { inputs, outputs, what, needed, limit });
            }
        }
        Ok(())
    }
}
