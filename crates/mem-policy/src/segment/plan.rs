//! Which segments are run together, and which of them twice.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::Segmented;

/// Neighbouring segments that are run, and go backward, together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// The segments, counted from 0.
    pub segments: Range<usize>,
    /// Whether the graph of the first run is kept, instead of running the group again in the backward pass.
    pub keep: bool,
    /// Slices of the batch in which the group is run, one after the other. 1 runs the batch as a whole.
    pub slices: usize,
}

impl Group {
    /// One group of `segments` that is run again, or, if their graphs are `kept` because running them again saves
    /// nothing, a group for each of them: that takes no more activations, and gradients are handed over one segment at a
    /// time.
    pub(super) fn split(segments: Range<usize>, kept: bool) -> Vec<Self> {
        if kept {
            segments.map(|index| Self { segments: index..index + 1, keep: true, slices: 1 }).collect()
        } else {
            vec![Self { segments, keep: false, slices: 1 }]
        }
    }
}

/// A division of a model's segments into groups.
///
/// The last group goes backward right after it was run, so it is not run again; nor is one in which that would save nothing
/// ([`Segmented::recomputing_saves`]). Such a group is divided further, into its segments: it keeps their graphs anyway, and with an update inside the backward pass the gradients of one segment exist at
/// a time, such as those of one shard of a large layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentPlan {
    groups: Vec<Group>,
}

/// Why segments cannot be grouped that way.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// More groups than segments, or none.
    #[error("{groups} groups of {segments} segments: use 1 to {segments}")]
    Groups {
        /// Groups wanted.
        groups: usize,
        /// Segments of the model.
        segments: usize,
    },
    /// A cut that is not inside the model.
    #[error("a cut before segment {cut} of {segments}: cuts are 1 to {}, in rising order", segments - 1)]
    Cut {
        /// The cut.
        cut: usize,
        /// Segments of the model.
        segments: usize,
    },
    /// Slices of a segment whose samples depend on each other.
    #[error(
        "segment {segment} does not treat samples independently (batch norm), so slices of the batch give other \
         gradients; leave it out of `slices`, or allow it with `batch-norm-per-slice`"
    )]
    DependentSamples {
        /// The segment.
        segment: usize,
    },
}

impl SegmentPlan {
    /// Every segment is a group of its own; those of which running again saves nothing keep their graphs.
    pub fn each<M: Segmented>(model: &M) -> Self {
        let starts: Vec<usize> = (0..model.segments()).collect();
        Self::from_starts(&starts, model)
    }

    /// `groups` groups with as equal numbers of segments as possible, the earlier ones larger.
    ///
    /// # Errors
    ///
    /// [`PlanError::Groups`] unless `groups` is 1 to the number of segments.
    pub fn groups_of<M: Segmented>(model: &M, groups: usize) -> Result<Self, PlanError> {
        let segments = model.segments();
        if !(1..=segments).contains(&groups) {
            return Err(PlanError::Groups { groups, segments });
        }
        let starts: Vec<usize> = (0..groups).map(|group| (group * segments).div_ceil(groups)).collect();
        Ok(Self::from_starts(&starts, model))
    }

    /// Groups that start at segment 0 and at each of `cuts`.
    ///
    /// # Errors
    ///
    /// [`PlanError::Cut`] for a cut that is 0, beyond the last segment, or not larger than the one before.
    pub fn at<M: Segmented>(model: &M, cuts: &[usize]) -> Result<Self, PlanError> {
        let segments = model.segments();
        let mut starts = vec![0];
        for cut in cuts {
            if *cut >= segments || starts.last().is_some_and(|last| cut <= last) {
                return Err(PlanError::Cut { cut: *cut, segments });
            }
            starts.push(*cut);
        }
        Ok(Self::from_starts(&starts, model))
    }

    pub(super) fn of_groups(groups: Vec<Group>) -> Self {
        Self { groups }
    }

    fn from_starts<M: Segmented>(starts: &[usize], model: &M) -> Self {
        let ends = starts.iter().skip(1).copied().chain([model.segments()]);
        let groups = starts.iter().copied().zip(ends).flat_map(|(start, end)| {
            let again = end < model.segments() && (start..end).any(|index| model.recomputing_saves(index));
            Group::split(start..end, !again)
        });
        Self { groups: groups.collect() }
    }

    /// The same plan with every group's graph kept: no segment runs twice. For a model whose gradients shall be applied
    /// group by group, but whose activations fit.
    #[must_use]
    pub fn keeping_all(mut self) -> Self {
        for group in &mut self.groups {
            group.keep = true;
        }
        self
    }

    /// The same plan with the groups that hold any of `segments` run on `slices` slices of the batch.
    ///
    /// A sliced group never keeps its graph. With `dependent_samples`, segments whose samples depend on each other are
    /// sliced too: batch norm then normalises each slice by itself ("ghost" batch norm), which is another objective.
    ///
    /// # Errors
    ///
    /// [`PlanError::DependentSamples`].
    pub fn sliced<M: Segmented>(
        mut self,
        model: &M,
        segments: &Range<usize>,
        slices: usize,
        dependent_samples: bool,
    ) -> Result<Self, PlanError> {
        for group in &mut self.groups {
            if slices < 2 || group.segments.start >= segments.end || segments.start >= group.segments.end {
                continue;
            }
            if let Some(segment) = group.segments.clone().find(|index| !model.independent_samples(*index))
                && !dependent_samples
            {
                return Err(PlanError::DependentSamples { segment });
            }
            group.slices = slices;
            group.keep = false;
        }
        Ok(self)
    }

    /// The groups, in the order of the forward pass.
    #[must_use]
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }
}
