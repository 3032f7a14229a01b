use std::collections::BTreeSet;

use mem_policy::{Backend, Environment, Precision};

use crate::config::resolve;
use crate::experiment::{Arm, Schedule, arms, reference_policies};
use crate::fixture::{experiment, settings};
use crate::record::BASELINE;

fn schedule(toml: &str) -> Schedule {
    let experiment = experiment(toml);
    Schedule::new(&experiment, &arms(&experiment, &Environment::cpu()).unwrap())
}

fn order(schedule: &Schedule, repeat: usize) -> Vec<String> {
    schedule.entries.iter().filter(|entry| entry.repeat == repeat).map(|entry| entry.arm.id.clone()).collect()
}

const SUPPORTED: &str = "policies = ['batch-size', 'model-scale', 'gradient-accumulation', 'subset', 'monitor']";

#[test]
fn the_order_is_shuffled_for_each_repeat_and_follows_from_the_seed() {
    let schedule_of = |seed: u64| schedule(&format!("repeats = 4\nseed = {seed}\n{SUPPORTED}"));
    let one = schedule_of(1);
    assert_eq!(one, schedule_of(1));
    assert_ne!(one, schedule_of(2));
    let orders: BTreeSet<Vec<String>> = (1..=4).map(|repeat| order(&one, repeat)).collect();
    assert!(orders.len() > 1, "every repeat has the same order: {orders:?}");
    assert!(orders.iter().any(|order| order[0] != BASELINE), "the baseline is always first");
}

#[test]
fn the_order_of_a_seed_never_changes() {
    // Records say which place a run had; a seed must mean the same order in another version.
    let order = order(&schedule(&format!("repeats = 1\nseed = 42\n{SUPPORTED}")), 1);
    insta::assert_snapshot!(order.join("\n"));
}

#[test]
fn every_repeat_has_every_arm_once_with_one_seed_and_ids_are_unique() {
    let schedule = schedule(&format!("repeats = 3\nseed = 5\n{SUPPORTED}"));
    for repeat in 1..=3 {
        let mut arms = order(&schedule, repeat);
        arms.sort();
        assert_eq!(arms, ["baseline", "batch-size", "gradient-accumulation", "model-scale", "monitor", "subset"]);
        let seeds: BTreeSet<u64> =
            schedule.entries.iter().filter(|entry| entry.repeat == repeat).map(|entry| entry.seed).collect();
        assert_eq!(seeds, BTreeSet::from([4 + repeat as u64]));
    }
    let ids: BTreeSet<&str> = schedule.entries.iter().map(|entry| entry.id.as_str()).collect();
    assert_eq!(ids.len(), schedule.entries.len());
    assert!(schedule.entries.iter().enumerate().all(|(index, entry)| entry.position == index + 1));
}

#[test]
fn an_unsupported_policy_is_an_arm_that_says_why_and_is_not_repeated() {
    let schedule = schedule("repeats = 3\npolicies = ['allocator-pages']");
    let entries: Vec<_> = schedule.entries.iter().filter(|entry| entry.arm.id == "allocator-pages").collect();
    assert_eq!(entries.len(), 1);
    assert!(entries[0].arm.unsupported.is_some());
}

fn reference(environment: &Environment) -> Vec<Arm> {
    let experiment = resolve(settings("preset = 'reference'"), environment).unwrap();
    arms(&experiment, environment).unwrap()
}

#[test]
fn the_reference_comparison_has_each_measure_alone_and_all_together() {
    let mut gpu = Environment::new(Backend::Vulkan, "a gpu");
    gpu.precisions.push(Precision::F16);
    let arms = reference(&gpu);
    let together = reference_policies().join("+");
    let expected: Vec<&str> =
        std::iter::once(BASELINE).chain(reference_policies()).chain([together.as_str()]).collect();
    assert_eq!(arms.iter().map(|arm| arm.id.as_str()).collect::<Vec<_>>(), expected);
    let all = arms.last().unwrap();
    assert_eq!((all.policies.len(), all.left_out.len(), &all.unsupported), (5, 0, &None));
    assert_eq!(all.policies["subset"]["fraction"].as_float(), Some(0.2));
    assert_eq!(all.policies["loader"]["staging"].as_bool(), Some(true));
}

#[test]
fn a_combination_goes_without_what_the_device_does_not_support_and_says_so() {
    let arms = reference(&Environment::cpu());
    let unsupported: Vec<&str> =
        arms.iter().filter(|arm| arm.unsupported.is_some()).map(|arm| arm.id.as_str()).collect();
    assert!(unsupported.contains(&"mixed-precision"), "{unsupported:?}");
    let all = arms.last().unwrap();
    assert_eq!(all.left_out.keys().map(String::as_str).collect::<BTreeSet<_>>(), unsupported.into_iter().collect());
    assert_eq!(all.policies.len() + all.left_out.len(), 5);
}
