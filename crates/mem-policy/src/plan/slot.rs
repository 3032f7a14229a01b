//! A field of a plan that remembers who set it and whether it was applied.

use std::fmt::Debug;

use serde::{Deserialize, Serialize};

use crate::error::PolicyError;

/// A value with a default, at most one author, and a mark of whether a mechanism applied it.
#[derive(Debug, Clone)]
pub struct Slot<T> {
    field: &'static str,
    default: T,
    set: Option<(T, &'static str)>,
    applied: bool,
}

impl<T: Clone + PartialEq + Debug> Slot<T> {
    pub(super) fn new(field: &'static str, default: T) -> Self {
        Self { field, default, set: None, applied: false }
    }

    /// Sets the value in the name of the policy `by`. Setting the value that is already set is no conflict.
    ///
    /// # Errors
    ///
    /// [`PolicyError::Conflict`] if another policy set another value.
    pub fn set(&mut self, by: &'static str, value: T) -> Result<(), PolicyError> {
        match &self.set {
            Some((old, first)) if *old != value => Err(PolicyError::Conflict {
                field: self.field,
                first,
                first_value: format!("{old:?}"),
                second: by,
                second_value: format!("{value:?}"),
            }),
            Some(_) => Ok(()),
            None => {
                self.set = Some((value, by));
                Ok(())
            }
        }
    }

    /// The value in force: what a policy set, or the default.
    pub fn get(&self) -> &T {
        self.set.as_ref().map_or(&self.default, |(value, _)| value)
    }

    /// The value before any policy.
    pub fn baseline(&self) -> &T {
        &self.default
    }

    /// The policy that set it.
    pub fn set_by(&self) -> Option<&'static str> {
        self.set.as_ref().map(|(_, by)| *by)
    }

    /// The value in force, for a mechanism that applies it now.
    pub fn apply(&mut self) -> T {
        self.applied = true;
        self.get().clone()
    }
}

/// One field of a plan, for records and people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PlanLine {
    /// The field's name.
    pub field: String,
    /// The value in force, as Rust's `Debug` prints it.
    pub value: String,
    /// The policy that set it, or `None` for the default.
    pub set_by: Option<String>,
}

/// The type-erased view of a slot.
pub(super) trait AnySlot {
    fn line(&self) -> PlanLine;
    fn unapplied(&self) -> Option<PolicyError>;
}

impl<T: Clone + PartialEq + Debug> AnySlot for Slot<T> {
    fn line(&self) -> PlanLine {
        PlanLine {
            field: self.field.to_owned(),
            value: format!("{:?}", self.get()),
            set_by: self.set_by().map(str::to_owned),
        }
    }

    fn unapplied(&self) -> Option<PolicyError> {
        let policy = self.set_by()?;
        (!self.applied).then_some(PolicyError::Unapplied { field: self.field, policy })
    }
}
