use data::SetId;
use mem_policy::Environment;

use super::*;
use crate::fixture::{experiment, settings};

fn problems(toml: &str) -> Vec<String> {
    resolve(Settings::from_toml(toml).unwrap(), &Environment::cpu())
        .unwrap_err()
        .iter()
        .map(ToString::to_string)
        .collect()
}

fn assert_each(problems: &[String], parts: &[&str]) {
    for part in parts {
        assert!(problems.iter().any(|problem| problem.contains(part)), "{part} is not in: {problems:#?}");
    }
    assert_eq!(problems.len(), parts.len(), "{problems:#?}");
}

#[test]
fn every_value_out_of_range_is_named_at_once() {
    let found = problems(
        "
        dataset = 'synthetic'
        repeats = 0
        epochs = 0
        batch-size = 0
        channels = 2
        image-size = 5
        widths = [4, 8]
        hidden = 0
        max-train = 0
        learning-rate = -1.0
        timeout = 0
        policies = ['batch-size', 'batch-size', 'no-such']
        [set.batch-size]
        size = 0
        colour = 3
        [set.no-such-either]
        x = 1
        [set.subset]
        fraction = 0.5
        ",
    );
    assert_each(
        &found,
        &[
            "repeats: 0 is out of range",
            "epochs: 0",
            "batch-size: 0",
            "channels: 2",
            "image-size: 5 is out of range: use 7",
            "hidden: 0",
            "max-train: 0",
            "learning-rate: -1",
            "timeout: 0",
            "policies: `batch-size` is listed twice",
            "policies: unknown policy `no-such`",
            "set.batch-size.colour: unknown key",
            "set.no-such-either: unknown policy",
            "set.subset: the policy is not measured",
        ],
    );
}

#[test]
fn a_bad_value_of_a_policy_is_named_where_it_was_set() {
    assert_each(
        &problems("dataset = 'synthetic'\n[set.batch-size]\nsize = 0"),
        &["set.batch-size.size: 0 is out of range"],
    );
}

#[test]
fn policies_that_cannot_be_planned_are_refused_before_anything_runs() {
    let found = problems("dataset = 'synthetic'\nbatch-size = 30\npolicies = ['gradient-accumulation']");
    assert_each(
        &found,
        &["arm `gradient-accumulation`: `gradient-accumulation` cannot be planned: a batch of 30 samples"],
    );
}

#[test]
fn a_folder_without_the_data_set_is_named_with_the_command_that_helps() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().display();
    let found = problems(&format!("data-dir = '{dir}'"));
    assert_each(&found, &["has no folder `mnist`; `cargo xtask datasets fetch mnist`", "has no folder `caltech101`"]);
    assert_each(&problems(&format!("data-dir = '{dir}/gone'")), &["gone is not a folder"]);
}

#[test]
fn unknown_keys_and_wrong_types_of_a_file_are_named_together() {
    let found = Settings::from_toml(
        "
        repeats = 'three'
        colour = 1
        dataset = ['mnist', 'cifar']
        max-steps = 'most'
        set = { batch-size = 4 }
        ",
    )
    .unwrap_err()
    .iter()
    .map(ToString::to_string)
    .collect::<Vec<_>>();
    assert_each(
        &found,
        &[
            "repeats: \"three\" is not accepted",
            "colour: unknown key; known: dataset, preset",
            "dataset: unknown data set `cifar`",
            "max-steps: \"most\" is not accepted",
            "set.batch-size: 4 is not accepted",
        ],
    );
}

#[test]
fn flags_win_over_a_file_and_parameters_are_merged() {
    let flags =
        Settings { repeats: Some(7), set: Some(vec!["subset.fraction=0.5".parse().unwrap()]), ..Settings::default() };
    let file = settings("repeats = 2\nepochs = 4\n[set.subset]\nfraction = 0.1\nsampling = 'random'");
    let experiment = resolve(flags.over(file), &Environment::cpu()).unwrap();
    assert_eq!((experiment.repeats, experiment.epochs), (7, 4));
    let expected: toml::Table = "[subset]\nfraction = 0.5\nsampling = 'random'".parse().unwrap();
    assert_eq!(experiment.set, expected);
}

#[test]
fn parameters_are_toml_or_else_text() {
    let value = |text: &str| text.parse::<set::SetParam>().map(|param| param.value);
    assert_eq!(value("a.b=16"), Ok(toml::Value::Integer(16)));
    assert_eq!(value("a.b = 0.5"), Ok(toml::Value::Float(0.5)));
    assert_eq!(value("a.b=true"), Ok(toml::Value::Boolean(true)));
    assert_eq!(value("a.b=random"), Ok(toml::Value::String("random".into())));
    for bad in ["a.b", "a=1", ".b=1", "a.=1", "a.b="] {
        assert!(value(bad).unwrap_err().contains("policy.param=value"), "{bad}");
    }
}

#[test]
fn experiment_toml_is_a_configuration_that_gives_the_same_experiment() {
    for toml in ["", "preset = 'reference'\nmax-steps = 3\nseed = 7", "[set.batch-size]\nsize = 16"] {
        let experiment = experiment(toml);
        let again = Settings::from_toml(&experiment.to_toml().unwrap()).unwrap();
        assert_eq!(resolve(again, &Environment::cpu()).unwrap(), experiment);
    }
}

#[test]
fn differences_name_the_keys_and_both_values() {
    let found = experiment("repeats = 2\n[set.batch-size]\nsize = 4").differences(&experiment("repeats = 3"));
    let found: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_each(&found, &["repeats: 2 is asked for, but the records were made with 3", "set: { batch-size"]);
    assert!(experiment("").differences(&experiment("")).is_empty());
}

#[test]
fn a_gpu_gets_more_to_do_than_a_cpu() {
    let gpu = Environment::new(mem_policy::Backend::Vulkan, "a gpu");
    let of = |env: &Environment| resolve(Settings::from_toml("dataset = 'synthetic'").unwrap(), env).unwrap();
    let (large, small) = (of(&gpu), of(&Environment::cpu()));
    assert!(large.image_size > small.image_size && large.widths.len() > small.widths.len());
    assert_eq!((large.device, small.device), (DeviceChoice::Vulkan, DeviceChoice::Cpu));
    let mut software = gpu;
    software.software = true;
    assert_eq!(of(&software).image_size, small.image_size);
}

#[test]
fn synthetic_images_need_no_folder() {
    let experiment = experiment("data-dir = '/nowhere'");
    assert_eq!(experiment.data_dir, None);
    assert_eq!(experiment.dataset, [SetId::Synthetic]);
}
