//! The contract every registry entry keeps, and the behaviour of the policies that act while training runs.

use std::sync::Mutex;

use burn::tensor::Device;

use super::*;
use crate::{
    Backend, Baseline, ConfiguredPolicy, Environment, EventKind, MemoryPolicy, MemorySource, MemoryUsage, PolicyError,
    PolicyEvent, PolicySet, Precision, StepCx, Support, TrainPlan, Verdict, registry,
};

/// A GPU that can do everything.
fn rich() -> Environment {
    let mut env = Environment::new(Backend::Vulkan, "test GPU");
    env.precisions.extend([Precision::F16, Precision::Bf16]);
    env.memory_budget = Some(8 << 30);
    env.autotune = true;
    env
}

#[test]
fn ids_are_unique_kebab_case_words() {
    let mut ids: Vec<&str> = registry().iter().map(|entry| entry.spec.id).collect();
    for id in &ids {
        assert!(id.chars().all(|c| c.is_ascii_lowercase() || c == '-') && !id.is_empty(), "{id}");
    }
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), registry().len());
}

#[test]
fn every_policy_is_documented() {
    for entry in registry() {
        let spec = entry.spec;
        assert!(!spec.title.is_empty() && spec.summary.len() > 20, "{}", spec.id);
        for param in spec.params {
            assert!(!param.kind.is_empty() && !param.default.is_empty() && param.help.len() > 10, "{}", param.name);
        }
    }
}

#[test]
fn every_policy_builds_from_nothing_and_says_who_it_is() {
    for entry in registry() {
        let policy = entry.build(&toml::Table::new()).unwrap();
        assert_eq!(policy.spec(), entry.spec);
    }
}

#[test]
fn documented_defaults_are_the_defaults_in_force() {
    for entry in registry() {
        let defaults = entry.defaults();
        let named: Vec<&str> = entry.spec.params.iter().map(|param| param.name).collect();
        for key in defaults.keys() {
            assert!(named.contains(&key.as_str()), "{}.{key} is not documented", entry.spec.id);
        }
        for param in entry.spec.params {
            match defaults.get(param.name) {
                Some(value) => {
                    let documented: toml::Table = toml::from_str(&format!("x = {}", param.default)).unwrap();
                    assert_eq!(&documented["x"], value, "{}.{}", entry.spec.id, param.name);
                }
                None => assert!(param.default.starts_with('['), "{}.{}", entry.spec.id, param.name),
            }
        }
        let again = entry.build(&defaults).unwrap();
        let once = entry.build(&toml::Table::new()).unwrap();
        assert_eq!(format!("{again:?}"), format!("{once:?}"));
    }
}

#[test]
fn every_policy_refuses_an_unknown_key_by_name() {
    for entry in registry() {
        let problems = entry.build(&toml::Table::from_iter([("nonsense".to_owned(), 1.into())])).unwrap_err();
        assert_eq!(problems[0].place, format!("policies.{}.nonsense", entry.spec.id));
    }
}

#[test]
fn planning_says_the_same_twice_and_only_in_its_own_name() {
    for entry in registry() {
        let policy = entry.build(&toml::Table::new()).unwrap();
        let mut plan = TrainPlan::new(&Baseline::new(16), &rich());
        policy.plan(&mut plan).unwrap();
        let once = plan.lines();
        policy.plan(&mut plan).unwrap();
        assert_eq!(once, plan.lines());
        for line in once {
            assert!(line.set_by.as_deref().is_none_or(|by| by == entry.spec.id), "{line:?}");
        }
    }
}

#[test]
fn all_policies_together_have_no_conflict() {
    let all = registry().iter().map(|entry| (entry.spec.id.to_owned(), toml::Value::Boolean(true)));
    // Gradients that are applied inside the backward pass cannot be added up over several.
    let all: toml::Table = all.filter(|(id, _)| id != "fused-optimizer").collect();
    let set = PolicySet::from_table(&all).unwrap();
    assert_eq!(set.len(), registry().len() - 1);
    let plan = set.plan(&Baseline::new(16), &rich()).unwrap();
    assert_eq!((*plan.batch_size.get(), *plan.accumulation.get(), plan.micro_batch()), (8, 4, 2));
}

#[test]
fn the_update_in_the_backward_pass_conflicts_with_accumulation_by_name() {
    let set = PolicySet::new().with(FusedOptimizer::default()).with(GradientAccumulation { steps: 2 });
    let errors = set.plan(&Baseline::new(16), &rich()).unwrap_err();
    let message = errors[0].to_string();
    for word in ["`fused-optimizer`", "`gradient-accumulation`", "`segment-slices`"] {
        assert!(message.contains(word), "{message}");
    }
}

#[test]
fn a_policy_that_a_device_cannot_run_says_why() {
    let cases = [
        ("mixed-precision", "computes in no"),
        ("half-precision", "computes in no"),
        ("activation-offload", "same memory"),
        ("empty-cache", "no cache"),
        ("allocator-pages", "no memory pools"),
        ("pool-slack", "no memory pools"),
        ("warm-autotune", "not chosen by measuring"),
        ("memory-limit", "nothing says how much"),
    ];
    for entry in registry() {
        let policy = entry.build(&toml::Table::new()).unwrap();
        assert_eq!(policy.support(&rich()), Support::Yes, "{}", entry.spec.id);
        let expected = cases.iter().find(|(id, _)| *id == entry.spec.id);
        match (policy.support(&Environment::cpu()), expected) {
            (Support::No(why), Some((_, words))) => assert!(why.contains(words), "{why}"),
            (Support::Yes, None) => {}
            (said, expected) => panic!("{}: {said:?}, expected {expected:?}", entry.spec.id),
        }
    }
}

/// The problems of a configuration, one a line.
fn problems(config: &str) -> String {
    let table = toml::from_str(config).unwrap();
    let problems = PolicySet::from_table(&table).unwrap_err();
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn all_problems_of_a_configuration_are_listed_together() {
    insta::assert_snapshot!(problems(
        "
        no-such-policy = {}
        empty-cache = 3
        [batch-size]
        size = 0
        divide_by = -2
        [mixed-precision]
        dtype = \"f8\"
        [model-scale]
        width = 0.0
        hidden = nan
        depth = 0
        [loader]
        workers = 0
        prefetch = 5000
        [gradient-accumulation]
        steps = 0
        [memory-limit]
        soft = 0.9
        hard = 0.5
        every = 0
        [subset]
        n = 0
        fraction = 1.5
        sampling = \"last\"
        [monitor]
        every = 1
        [allocator-pages]
        layout = \"none\"
        [optimizer-state]
        kind = \"sgdd\"
        block = -1
        "
    ));
}

#[test]
fn values_that_are_out_of_range_are_refused_by_name() {
    let cases = [
        ("[batch-size]\nsize = 0", "policies.batch-size.size: 0 is out of range"),
        ("[subset]\nn = 10\nfraction = 0.5", "policies.subset.fraction: 0.5 together with `n`"),
        ("[subset]\nfraction = 0.0", "policies.subset.fraction: 0 is out of range"),
        ("[memory-limit]\nsoft = 0.99", "policies.memory-limit.soft: 0.99 is above `hard` (0.95)"),
        ("[memory-limit]\nhard = 3.0\nsoft = -1.0", "policies.memory-limit.hard: 3 is out of range"),
        ("[loader]\nworkers = 0", "policies.loader.prefetch: 2 needs a worker"),
        ("[loader]\nworkers = 1000", "policies.loader.workers: 1000 is out of range"),
        ("[model-scale]\nwidth = 17.0", "policies.model-scale.width: 17 is out of range"),
        ("[optimizer-state]\nblock = 300", "policies.optimizer-state.block: 300 elements are no block"),
        ("[empty-cache]\nevery = 0", "policies.empty-cache.every: 0 is out of range"),
        ("[gradient-accumulation]\nsteps = 0", "policies.gradient-accumulation.steps: 0 is out of range"),
    ];
    for (config, expected) in cases {
        let found = problems(config);
        assert!(found.contains(expected), "{config}:\n{found}");
    }
}

#[test]
fn false_turns_a_policy_off() {
    let table = toml::from_str("monitor = true\nempty-cache = false").unwrap();
    let set = PolicySet::from_table(&table).unwrap();
    assert_eq!(set.iter().map(|policy| policy.spec().id).collect::<Vec<_>>(), ["monitor"]);
}

#[test]
fn accumulation_that_does_not_divide_the_batch_is_refused_with_both_numbers() {
    let set = PolicySet::new().with(GradientAccumulation { steps: 3 });
    let error = set.plan(&Baseline::new(32), &Environment::cpu()).unwrap_err().remove(0).to_string();
    assert!(error.contains("32 samples") && error.contains("3 equal micro-batches"), "{error}");
}

#[test]
fn sixteen_bits_prefer_bf16_and_takes_what_it_is_told() {
    let only_f16 = Environment { precisions: vec![Precision::F32, Precision::F16], ..rich() };
    let cases = [
        (Dtype::Auto, rich(), Some(Precision::Bf16)),
        (Dtype::Auto, only_f16.clone(), Some(Precision::F16)),
        (Dtype::F16, rich(), Some(Precision::F16)),
        (Dtype::Bf16, only_f16, None),
    ];
    for (dtype, env, expected) in cases {
        let half = PolicySet::new().with(HalfPrecision { dtype }).plan(&Baseline::new(8), &env);
        assert_eq!(half.ok().map(|plan| *plan.precision.get()), expected, "{dtype:?}");
        let mixed = MixedPrecision { dtype, ..MixedPrecision::default() };
        let mixed = PolicySet::new().with(mixed).plan(&Baseline::new(8), &env);
        let compute = mixed.ok().and_then(|plan| *plan.compute.get());
        assert_eq!(compute.map(|compute| compute.dtype), expected, "{dtype:?}");
        // The range of bf16 is that of f32.
        let scaled = compute.map(|compute| compute.scaler.is_some());
        assert_eq!(scaled, expected.map(|precision| precision == Precision::F16), "{dtype:?}");
    }
}

#[test]
fn the_modes_of_mixed_precision_say_what_is_16_bit() {
    for (mode, inputs, compute, scaled) in
        [(Mode::Input, true, false, false), (Mode::Compute, false, true, true), (Mode::Full, true, true, true)]
    {
        let policy = MixedPrecision { mode, dtype: Dtype::F16, ..MixedPrecision::default() };
        let plan = PolicySet::new().with(policy).plan(&Baseline::new(8), &rich()).unwrap();
        let found = plan.compute.get().unwrap();
        assert_eq!((found.inputs, found.compute, found.scaler.is_some()), (inputs, compute, scaled), "{mode:?}");
        assert_eq!(*plan.precision.get(), Precision::F32, "weights stay in 32 bits");
    }
}

#[test]
fn the_optimizer_that_is_planned_is_the_one_that_is_named() {
    let cases = [
        ("", "Adam8bit { block: BlockSize(256), code: Dynamic }"),
        ("block = 2048\ncode = \"linear\"", "Adam8bit { block: BlockSize(2048), code: Linear }"),
        ("kind = \"sgd\"", "Sgd"),
        ("kind = \"momentum\"", "Momentum"),
        ("kind = \"adam\"", "Adam"),
        ("kind = \"adafactor\"", "Adafactor"),
        ("kind = \"lion\"", "Lion"),
    ];
    for (parameters, expected) in cases {
        let table = toml::from_str(&format!("[optimizer-state]\n{parameters}")).unwrap();
        let plan = PolicySet::from_table(&table).unwrap().plan(&Baseline::new(8), &Environment::cpu()).unwrap();
        assert_eq!(format!("{:?}", plan.optimizer.get().unwrap()), expected);
        assert_eq!(plan.optimizer.set_by(), Some("optimizer-state"));
    }
}

/// Answers one scripted usage after the other, and the last one for ever.
struct Script(Mutex<Vec<u64>>);

impl Script {
    fn new(used: &[u64]) -> Self {
        Self(Mutex::new(used.iter().rev().copied().collect()))
    }
}

impl MemorySource for Script {
    fn usage(&self) -> Option<MemoryUsage> {
        let mut used = self.0.lock().unwrap();
        let now = if used.len() > 1 { used.pop().unwrap() } else { used[0] };
        Some(MemoryUsage::new(now, "script").of(100, "script total"))
    }
}

/// Runs `policy` after `steps` backward passes over `memory`; the events, and the error that ended it.
fn run(
    policy: &mut dyn MemoryPolicy,
    steps: usize,
    memory: &dyn MemorySource,
) -> (Vec<PolicyEvent>, Result<(), PolicyError>) {
    let device = Device::flex();
    let mut events = Vec::new();
    for step in 1..=steps {
        let mut cx = StepCx::new(&device, 1, step, memory, &mut events);
        if let Err(error) = policy.after_backward(&mut cx) {
            return (events, Err(error));
        }
    }
    (events, Ok(()))
}

fn kinds(events: &[PolicyEvent]) -> Vec<(usize, EventKind)> {
    events.iter().map(|event| (event.step, event.kind)).collect()
}

#[test]
fn below_the_soft_limit_nothing_happens() {
    let (events, result) = run(&mut MemoryLimit::default(), 3, &Script::new(&[80]));
    assert_eq!((events, result), (vec![], Ok(())));
}

#[test]
fn the_soft_limit_warns_once_per_crossing() {
    // Two readings for each check above the limit: before and after cleaning up.
    let memory = Script::new(&[85, 85, 85, 85, 10, 90, 90]);
    let (events, result) = run(&mut MemoryLimit::default(), 4, &memory);
    result.unwrap();
    assert_eq!(kinds(&events), [(1, EventKind::Warning), (4, EventKind::Warning)]);
}

#[test]
fn the_hard_limit_stops_with_the_numbers() {
    let (events, result) = run(&mut MemoryLimit::default(), 3, &Script::new(&[50, 97]));
    let error = result.unwrap_err();
    assert_eq!(
        error,
        PolicyError::MemoryLimit {
            step: 2,
            used: 97,
            limit: 95,
            total: 100,
            share: 0.95,
            counter: "script".to_owned()
        }
    );
    assert_eq!(kinds(&events), [(2, EventKind::Warning), (2, EventKind::Stop)]);
    insta::assert_snapshot!(error);
}

#[test]
fn what_cleaning_up_frees_does_not_stop_a_run() {
    let (events, result) = run(&mut MemoryLimit::default(), 1, &Script::new(&[97, 60]));
    result.unwrap();
    assert_eq!(kinds(&events), [(1, EventKind::Warning)]);
}

#[test]
fn a_limit_that_cannot_read_says_so_once() {
    let (events, result) = run(&mut MemoryLimit::default(), 3, &crate::NoMemorySource);
    result.unwrap();
    assert_eq!(kinds(&events), [(1, EventKind::Warning)]);
}

#[test]
fn the_limit_is_checked_every_nth_step() {
    let mut limit = MemoryLimit::default();
    limit.every = 3;
    let (events, result) = run(&mut limit, 5, &Script::new(&[99]));
    assert!(result.is_err());
    assert_eq!(events[0].step, 3);
}

#[test]
fn the_cache_is_emptied_every_nth_step() {
    let (events, result) = run(&mut EmptyCache { every: 2 }, 5, &crate::NoMemorySource);
    result.unwrap();
    assert_eq!(kinds(&events), [(2, EventKind::Cleanup), (4, EventKind::Cleanup)]);
}

#[test]
fn the_order_of_two_policies_is_the_order_of_their_callbacks() {
    let orders = [
        (PolicySet::new().with(EmptyCache { every: 1 }).with(MemoryLimit::default()), ["empty-cache", "memory-limit"]),
        (PolicySet::new().with(MemoryLimit::default()).with(EmptyCache { every: 1 }), ["memory-limit", "empty-cache"]),
    ];
    for (mut set, expected) in orders {
        let (device, memory, mut events) = (Device::flex(), Script::new(&[85]), Vec::new());
        set.after_backward(&mut StepCx::new(&device, 1, 1, &memory, &mut events)).unwrap();
        assert_eq!(events.iter().map(|event| event.policy.as_str()).collect::<Vec<_>>(), expected);
    }
}

#[test]
fn the_monitor_reports_bytes_total_and_share_and_never_a_zero_for_unknown() {
    let cases: [(&dyn MemorySource, &str); 2] = [
        (&Script::new(&[42]), "42 B in use (script) of 100 B (script total): 42.0 %"),
        (&crate::NoMemorySource, "memory in use: unknown"),
    ];
    for (memory, expected) in cases {
        let (device, mut events) = (Device::flex(), Vec::new());
        let verdict = Monitor::default().after_epoch(&mut StepCx::new(&device, 2, 9, memory, &mut events)).unwrap();
        assert_eq!(verdict, Verdict::Continue);
        assert_eq!((events[0].epoch, events[0].kind, events[0].message.as_str()), (2, EventKind::Reading, expected));
    }
}

#[test]
fn a_configured_policy_and_its_registry_line_have_one_specification() {
    assert!(registry().iter().any(|entry| *entry.spec == MemoryLimit::SPEC));
}

#[test]
fn a_small_share_of_a_memory_limit_is_not_shown_as_0() {
    let shown =
        [(0.95, "95"), (0.8, "80"), (0.0001, "0.01"), (0.000_012_34, "0.00123"), (1.5, "150"), (0.123_45, "12.3")];
    for (share, expected) in shown {
        assert_eq!(crate::error::percent(share), expected);
    }
}

#[test]
fn only_a_soft_limit_that_was_given_is_held_against_the_hard_one() {
    let limit = |text: &str| PolicySet::from_table(&toml::from_str(text).unwrap()).map(|_| ());
    limit("memory-limit.hard = 0.5").unwrap();
    limit("memory-limit.hard = 0.0001").unwrap();
    let problems = limit("memory-limit = { soft = 0.9, hard = 0.5 }").unwrap_err();
    assert_eq!(problems[0].place, "policies.memory-limit.soft");
    assert_eq!(limit("memory-limit.hard = -1.0").unwrap_err().len(), 1);
}

#[test]
fn a_subset_that_can_never_work_is_refused_when_configured_and_when_planned() {
    for bad in ["n = 0", "n = 1", "fraction = 0.0", "fraction = -0.5", "fraction = 1.01", "fraction = nan"] {
        let table = toml::from_str(&format!("[subset]\n{bad}")).unwrap();
        assert!(PolicySet::from_table(&table).is_err(), "{bad} was accepted");
    }
    let mut plan = TrainPlan::new(&Baseline::new(4), &Environment::cpu());
    let error = Subset { n: Some(1), ..Subset::default() }.plan(&mut plan).unwrap_err().to_string();
    assert!(error.contains("use at least 2"), "{error}");
}
