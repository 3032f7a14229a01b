use super::*;

#[derive(Debug)]
struct Wants(&'static str, usize);

impl MemoryPolicy for Wants {
    fn spec(&self) -> &'static crate::PolicySpec {
        const SPEC: crate::PolicySpec = crate::PolicySpec::new(
            "wants",
            "Wants",
            "sets a batch size",
            crate::Stage::Data,
            crate::Fidelity::DifferentRun,
        );
        &SPEC
    }
    fn plan(&self, plan: &mut TrainPlan) -> Result<(), PolicyError> {
        plan.batch_size.set(self.0, self.1)
    }
}

fn build(policies: &[Wants]) -> Result<TrainPlan, Vec<PolicyError>> {
    TrainPlan::build(&Baseline::new(8), &Environment::cpu(), policies.iter().map(|policy| policy as &dyn MemoryPolicy))
}

#[test]
fn two_policies_that_differ_are_a_conflict_with_both_names() {
    let errors = build(&[Wants("one", 4), Wants("two", 2)]).unwrap_err();
    assert_eq!(
        errors[0].to_string(),
        "`two` wants batch_size = 2, but `one` already set it to 4; turn one of them off"
    );
}

#[test]
fn two_policies_that_agree_are_no_conflict() {
    let plan = build(&[Wants("one", 4), Wants("two", 4)]).unwrap();
    assert_eq!(*plan.batch_size.get(), 4);
    assert_eq!(plan.batch_size.set_by(), Some("one"));
}

#[test]
fn a_field_that_nothing_applied_is_an_error() {
    let mut plan = build(&[Wants("one", 4)]).unwrap();
    let errors = plan.ensure_applied().unwrap_err();
    assert_eq!(errors, [PolicyError::Unapplied { field: "batch_size", policy: "one" }]);
    assert_eq!(plan.batch_size.apply(), 4);
    plan.ensure_applied().unwrap();
}

#[test]
fn a_default_needs_no_mechanism() {
    build(&[]).unwrap().ensure_applied().unwrap();
}

#[test]
fn a_batch_of_nothing_is_refused() {
    let errors = build(&[Wants("one", 0)]).unwrap_err();
    assert!(errors[0].to_string().contains("at least 1"), "{}", errors[0]);
}
