//! The program as a user starts it: real processes, real training of a tiny network on generated images.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use bench::record::{self, Outcome, Record};

/// An experiment of a few seconds.
const TINY: &str = "experiment --dataset synthetic --device cpu --repeats 2 --epochs 1 --max-train 64 --max-test 32 \
                    --batch-size 16 --image-size 12 --widths 4 --hidden 8 --warmup-steps 1 --policies \
                    batch-size,allocator-pages";

fn bench(line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bench"));
    command.args(line.split_whitespace()).env_remove("MEM_POLICY_DATA").stdin(Stdio::null());
    command
}

fn run(line: &str) -> Output {
    bench(line).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn records(folder: &Path) -> Vec<Record> {
    record::read(&folder.join("records.jsonl")).unwrap().records
}

fn assert_finished(folder: &Path) {
    let contents = record::read(&folder.join("records.jsonl")).unwrap();
    assert_eq!(contents.truncated, None);
    let latest = contents.latest();
    let ids: Vec<&str> = latest.keys().copied().collect();
    assert_eq!(
        ids,
        [
            "synthetic/allocator-pages/1",
            "synthetic/baseline/1",
            "synthetic/baseline/2",
            "synthetic/batch-size/1",
            "synthetic/batch-size/2"
        ]
    );
    for (id, record) in latest {
        if id.contains("allocator-pages") {
            assert!(matches!(record.outcome, Outcome::Unsupported { .. }), "{id}: {}", record.outcome);
        } else {
            assert_eq!(record.outcome, Outcome::Completed, "{id}: {:?}", record.observed);
            let result = record.result.as_ref().unwrap();
            assert!(result.complete && result.parameters > 0 && !result.steps.is_empty(), "{id}");
        }
    }
}

#[test]
fn an_experiment_gives_every_file_and_a_damaged_one_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let output = run(&format!("{TINY} --out {}", out.display()));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_finished(&out);
    for file in ["experiment.toml", "host.json", "summary.json", "report.md", "report.html", "figure.svg", "figure.png"]
    {
        assert!(fs::metadata(out.join(file)).unwrap().len() > 100, "{file} is nearly empty");
    }
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    for part in ["baseline", "batch-size", "unsupported", "heap.in_use", "Burn"] {
        assert!(table.contains(part), "{part} is not in:\n{table}");
    }
    assert_eq!(stderr(&output).lines().count(), 5, "a line for each run: {}", stderr(&output));

    // Killed while it wrote its last record.
    let file = out.join("records.jsonl");
    let whole = fs::read(&file).unwrap();
    fs::write(&file, &whole[..whole.len() - 20]).unwrap();
    let output = run(&format!("experiment --resume {}", out.display()));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("line 5 of the records was cut off"), "{}", stderr(&output));
    assert!(stderr(&output).contains("4 of 5 runs are there already"), "{}", stderr(&output));
    assert_finished(&out);

    // Another configuration is not the same experiment.
    let output = run(&format!("experiment --resume {} --batch-size 8", out.display()));
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("batch-size: 8 is asked for"), "{}", stderr(&output));

    // The reports follow from the records alone.
    let before = fs::read(out.join("summary.json")).unwrap();
    fs::remove_file(out.join("summary.json")).unwrap();
    let output = run(&format!("report {}", out.display()));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(fs::read(out.join("summary.json")).unwrap(), before);
}

#[test]
fn bad_input_is_listed_as_a_whole_and_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let config = folder.path().join("c.toml");
    fs::write(&config, "colour = 3\nrepeats = 'x'").unwrap();
    let line = format!("{TINY},no-such --epochs 0 --config {} --out {}", config.display(), out.display());
    let output = run(&line.replace("--epochs 1", ""));
    assert_eq!(output.status.code(), Some(2));
    for part in ["colour", "repeats", "epochs: 0", "no-such"] {
        assert!(stderr(&output).contains(part), "{part} is not in: {}", stderr(&output));
    }
    assert!(!out.exists());
}

#[test]
fn a_folder_that_cannot_be_made_is_an_error_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let output = run(&format!("{TINY} --out {}", file.join("out").display()));
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
}

#[test]
fn a_dry_run_prints_the_schedule_and_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let output = run(&format!("{TINY} --dry-run --out {}", out.display()));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("synthetic/batch-size/2") && text.contains("not run:"), "{text}");
    assert!(!out.exists());
}

/// Waits until `ready`, for a minute at most.
fn wait_until(what: &str, mut ready: impl FnMut() -> bool) {
    let started = Instant::now();
    while !ready() {
        assert!(started.elapsed() < Duration::from_secs(60), "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[cfg(unix)]
fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").arg(format!("-{name}")).arg(child.id().to_string()).status().unwrap();
    assert!(status.success());
}

#[cfg(unix)]
#[test]
fn ctrl_c_keeps_the_records_and_says_how_to_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let file = out.join("records.jsonl");
    let child = bench(&format!("{TINY} --out {}", out.display()))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until("a first record", || fs::metadata(&file).is_ok_and(|file| file.len() > 0));
    signal(&child, "INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    let said = format!("--resume {}", out.display());
    assert!(stderr(&output).contains(&said), "{}", stderr(&output));
    assert!(records(&out).len() < 5, "it ran to its end before the signal came");

    let output = run(&format!("experiment --resume {}", out.display()));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_finished(&out);
}

#[cfg(target_os = "linux")]
#[test]
fn a_killed_parent_takes_its_child_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    // A run of minutes, if nobody ended it.
    let line = TINY.replace("--epochs 1", "--epochs 1000").replace("--max-train 64", "--max-train 512");
    let mut parent =
        bench(&format!("{line} --out {}", out.display())).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let children = format!("/proc/{0}/task/{0}/children", parent.id());
    let mut child = String::new();
    wait_until("a child that runs", || {
        let list = fs::read_to_string(&children).unwrap_or_default();
        child = list.split_whitespace().next().unwrap_or_default().to_owned();
        let command = fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&command).contains("__run")
    });
    parent.kill().unwrap();
    parent.wait().unwrap();
    // Gone, or nobody has waited for it yet.
    let lives = || {
        fs::read_to_string(format!("/proc/{child}/stat"))
            .is_ok_and(|stat| stat.rsplit(')').next().is_some_and(|rest| !rest.trim_start().starts_with('Z')))
    };
    wait_until("the child to end", || !lives());
}

#[test]
fn a_folder_with_other_files_and_a_busy_one_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    fs::create_dir(&out).unwrap();
    fs::write(out.join("report.md"), "mine").unwrap();
    let output = run(&format!("{TINY} --out {}", out.display()));
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("is not empty (it holds report.md)"), "{}", stderr(&output));
    assert_eq!(fs::read_to_string(out.join("report.md")).unwrap(), "mine");

    let done = folder.path().join("done");
    assert_eq!(run(&format!("{TINY} --out {}", done.display())).status.code(), Some(0));
    let before = fs::read(done.join("records.jsonl")).unwrap();
    let lock = fs::File::create(done.join(".lock")).unwrap();
    lock.lock().unwrap();
    let output = run(&format!("experiment --resume {}", done.display()));
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("another process is writing"), "{}", stderr(&output));
    assert_eq!(fs::read(done.join("records.jsonl")).unwrap(), before);
}

#[test]
fn records_that_do_not_belong_to_the_settings_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    assert_eq!(run(&format!("{TINY} --out {}", out.display())).status.code(), Some(0));
    let settings = fs::read_to_string(out.join("experiment.toml")).unwrap();
    fs::write(out.join("experiment.toml"), settings.replace("hidden = 8", "hidden = 9")).unwrap();
    let output = run(&format!("experiment --resume {}", out.display()));
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("synthetic/baseline/1 was made with other settings"), "{}", stderr(&output));
}

#[test]
fn absurd_numbers_are_refused_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let numbers = "--hidden 99999999999 --max-steps 18446744073709551615 --sample-every 9999999999999 \
                   --cache-bytes 18446744073709551615 --timeout 18446744073709551615";
    let line = TINY.replace("--hidden 8", "").replace("--widths 4", "--widths 99999999999");
    let output = run(&format!("{line} {numbers} --out {}", out.display()));
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    for key in ["hidden", "max-steps", "sample-every", "cache-bytes", "timeout", "widths"] {
        assert!(stderr(&output).contains(&format!("- {key}: ")), "{key} is not in: {}", stderr(&output));
    }
    assert!(!out.exists());
}

#[test]
fn damaged_images_are_found_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    fs::create_dir_all(data.join("mnist")).unwrap();
    fs::write(data.join("mnist/train-images-idx3-ubyte"), b"not IDX").unwrap();
    let out = folder.path().join("out");
    let line = TINY.replace("--dataset synthetic", "--dataset mnist");
    let output = run(&format!("{line} --data-dir {} --out {}", data.display(), out.display()));
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("dataset mnist: "), "{}", stderr(&output));
    assert!(stderr(&output).contains("datasets fetch mnist"), "{}", stderr(&output));
    assert!(!out.exists());
}

#[test]
fn an_experiment_without_a_completed_baseline_has_an_exit_code_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let line =
        format!("{TINY} --always memory-limit --set memory-limit.hard=0.000001 --set memory-limit.soft=0.000001");
    let output = run(&format!("{line} --out {}", out.display()));
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    assert!(stderr(&output).contains("no baseline of synthetic completed"), "{}", stderr(&output));
}

#[test]
fn policies_that_are_always_on_are_on_in_every_arm() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let output = run(&format!("{TINY} --always fused-optimizer --out {}", out.display()));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    for record in records(&out) {
        assert!(record.spec.policies.contains_key("fused-optimizer"), "{}", record.id);
    }
    let output = run(&format!("{TINY},fused-optimizer --always fused-optimizer"));
    assert!(stderr(&output).contains("`fused-optimizer` is on in every arm"), "{}", stderr(&output));
}

#[cfg(target_os = "linux")]
#[test]
fn output_that_cannot_be_written_is_no_panic() {
    let full = || Stdio::from(fs::OpenOptions::new().write(true).open("/dev/full").unwrap());
    for line in ["probe --device cpu", "policies", "datasets list"] {
        let output = bench(line).stdout(full()).stderr(Stdio::piped()).output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{line}: {}", stderr(&output));
    }
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    // What was measured does not depend on who reads along.
    let output = bench(&format!("{TINY} --out {}", out.display())).stderr(full()).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_finished(&out);
}

#[cfg(unix)]
#[test]
fn an_argument_that_is_no_text_is_bad_input() {
    use std::os::unix::ffi::OsStrExt;
    let odd = std::ffi::OsStr::from_bytes(b"--out=\xff");
    let output = bench("experiment").arg("--dry-run").arg("--dataset=synthetic").arg("--device=cpu").arg(odd).output();
    assert_eq!(output.unwrap().status.code(), Some(0));
    let odd = std::ffi::OsStr::from_bytes(b"--device=\xff");
    assert_eq!(bench("experiment").arg(odd).output().unwrap().status.code(), Some(2));
}
