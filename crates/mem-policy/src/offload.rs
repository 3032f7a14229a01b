//! Activations kept in host memory between the forward and the backward pass.
//!
//! A discrete GPU has memory of its own, and the host's is larger. [`Offload`] copies what flows between groups of
//! segments to the host, and back when its turn comes. It is double-buffered: the newest one stays on the device until
//! the next one comes, so that the copy waits for work that is already done while newer work is queued, and the copy back
//! of the next one is started before the present group's backward pass. On unified memory both are the same memory, and
//! nothing is gained.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use burn::tensor::Device;

use crate::segment::{Activations, HostActivation};

/// Copies activations to the host and back.
#[derive(Debug, Clone, Default)]
pub struct Offload {
    newest: Arc<Mutex<Option<Offloaded>>>,
}

/// Activations that are, or will be, in host memory.
#[derive(Debug, Clone)]
pub(crate) struct Offloaded(Arc<Mutex<Place>>);

#[derive(Debug)]
enum Place {
    Device(Activations),
    Host(Vec<HostActivation>),
}

impl Offload {
    /// Nothing offloaded yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes `activations`; the ones taken before go to the host now.
    pub(crate) fn store(&self, activations: Activations) -> Offloaded {
        let offloaded = Offloaded(Arc::new(Mutex::new(Place::Device(activations))));
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = newest.replace(offloaded.clone()) {
            before.to_host();
        }
        offloaded
    }
}

impl Offloaded {
    fn place(&self) -> MutexGuard<'_, Place> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn to_host(&self) {
        // Only the forward pass's own handle is left when the backward pass has taken it already.
        if Arc::strong_count(&self.0) < 2 {
            return;
        }
        let mut place = self.place();
        if let Place::Device(activations) = &mut *place {
            let host = std::mem::take(activations).into_iter().map(HostActivation::read).collect();
            *place = Place::Host(host);
        }
    }

    /// Starts the copy to `device`, if it is in host memory.
    pub(crate) fn prefetch(&self, device: &Device) {
        let mut place = self.place();
        if let Place::Host(host) = &mut *place {
            let back = std::mem::take(host).into_iter().map(|activation| activation.write(device)).collect();
            *place = Place::Device(back);
        }
    }

    /// The activations, on `device`.
    pub(crate) fn fetch(self, device: &Device) -> Activations {
        self.prefetch(device);
        match &mut *self.place() {
            Place::Device(activations) => std::mem::take(activations),
            Place::Host(_) => Activations::default(),
        }
    }
}
