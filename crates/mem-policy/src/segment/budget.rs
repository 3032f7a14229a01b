//! Grouping segments so that the activations stay within a number of bytes.

use super::plan::{Group, SegmentPlan};

/// What running one segment takes, computed from shapes or measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SegmentCost {
    /// Bytes of the segment's input: what is kept to run it again.
    pub input_bytes: u64,
    /// Bytes that its graph keeps until its backward pass, its input included, its parameters not.
    pub graph_bytes: u64,
    /// The time, or operations, of running it once, in any one unit.
    pub work: f64,
}

/// No grouping stays within the budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "no grouping of the segments keeps the activations within {budget} bytes; the least is {least} bytes: \
     use a larger budget, a smaller batch, or slices"
)]
pub struct BudgetTooSmall {
    /// The budget, in bytes.
    pub budget: u64,
    /// The least that any grouping needs, in bytes.
    pub least: u64,
}

/// A way to group the segments up to some point.
#[derive(Clone)]
struct Partial {
    /// Bytes that stay until the backward pass comes by.
    stored: u64,
    /// The most that is alive at once in the backward pass of any group so far.
    peak: u64,
    /// Work that is done twice.
    again: f64,
    groups: Vec<Group>,
}

impl SegmentPlan {
    /// The grouping that does the least work twice and keeps the activations within `budget` bytes at every moment of
    /// the backward pass: what all groups before keep, and the whole graph of the group whose turn it is.
    ///
    /// Solved by dynamic programming over the segments, keeping the combinations of stored bytes, peak and repeated work
    /// that no other one beats in all three. Gradients and the parameters' memory are not counted, nor workspace inside
    /// an operation.
    ///
    /// # Errors
    ///
    /// [`BudgetTooSmall`] with the least that would do.
    pub fn within_budget(costs: &[SegmentCost], budget: u64) -> Result<Self, BudgetTooSmall> {
        let all = frontier(costs, budget);
        match all.into_iter().min_by(|a, b| a.again.total_cmp(&b.again).then(a.peak.cmp(&b.peak))) {
            Some(best) => Ok(Self::of_groups(
                best.groups.into_iter().flat_map(|group| Group::split(group.segments, group.keep)).collect(),
            )),
            None => {
                let least = frontier(costs, u64::MAX).iter().map(|partial| partial.peak).min().unwrap_or(0);
                Err(BudgetTooSmall { budget, least })
            }
        }
    }
}

fn frontier(costs: &[SegmentCost], budget: u64) -> Vec<Partial> {
    let start = Partial { stored: 0, peak: 0, again: 0.0, groups: Vec::new() };
    let mut at: Vec<Vec<Partial>> = vec![vec![start]];
    for end in 1..=costs.len() {
        let mut here: Vec<Partial> = Vec::new();
        for start in 0..end {
            let group = &costs[start..end];
            let graph = group.iter().fold(0_u64, |sum, cost| sum.saturating_add(cost.graph_bytes));
            let work: f64 = group.iter().map(|cost| cost.work).sum();
            for before in &at[start] {
                let peak = before.peak.max(before.stored.saturating_add(graph));
                if peak > budget {
                    continue;
                }
                // The last group goes backward right away: its graph is there anyway.
                let last = end == costs.len();
                for keep in [true, false] {
                    if !keep && last {
                        continue;
                    }
                    let stays = if keep { graph } else { group[0].input_bytes };
                    let mut groups = before.groups.clone();
                    groups.push(Group { segments: start..end, keep, slices: 1 });
                    insert(
                        &mut here,
                        Partial {
                            stored: before.stored.saturating_add(stays),
                            peak,
                            again: before.again + if keep { 0.0 } else { work },
                            groups,
                        },
                    );
                }
            }
        }
        at.push(here);
    }
    at.pop().unwrap_or_default()
}

/// Adds `new` unless another one is at least as good in everything, and drops those it is at least as good as.
fn insert(partials: &mut Vec<Partial>, new: Partial) {
    let beats = |a: &Partial, b: &Partial| a.stored <= b.stored && a.peak <= b.peak && a.again <= b.again;
    if partials.iter().any(|old| beats(old, &new)) {
        return;
    }
    partials.retain(|old| !beats(&new, old));
    partials.push(new);
}
