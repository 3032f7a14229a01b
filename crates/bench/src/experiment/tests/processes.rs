//! Real processes, which are shells: how they end is what is seen.

use std::time::{Duration, Instant};

use data::SetId;

use crate::experiment::{Ended, Interrupt, Observation, OomCounter, judge};
use crate::fixture::{BASE, observation, result};
use crate::record::Outcome;
use crate::run::spec::{ErrorKind, RunError, RunResult};

#[test]
fn what_is_seen_of_a_child_decides_its_outcome() {
    let partial = || RunResult { complete: false, ..result(BASE) };
    let with_error = |kind| {
        let error = RunError { kind, message: "words".into() };
        Some(RunResult { error: Some(error), ..partial() })
    };
    let panic = "thread 'main' (7) panicked at src/a.rs:1:2:\nindex out of bounds\nnote: run with `RUST_BACKTRACE=1`";
    let oom_kill = Observation {
        oom_evidence: Some("oom_kill in f went from 1 to 2".into()),
        ..observation(Ended::Signalled(9), None, "")
    };
    let words = || "words".to_owned();
    let cases = [
        (observation(Ended::Exited(0), Some(result(BASE)), ""), Outcome::Completed),
        (
            // Everything was measured; what a driver does while it is torn down changes nothing.
            observation(Ended::Signalled(11), Some(result(BASE)), ""),
            Outcome::Completed,
        ),
        (observation(Ended::Exited(1), with_error(ErrorKind::OutOfMemory), ""), Outcome::OutOfMemory { why: words() }),
        (observation(Ended::Exited(1), with_error(ErrorKind::Policy), ""), Outcome::Stopped { message: words() }),
        (observation(Ended::Exited(1), with_error(ErrorKind::Unsupported), ""), Outcome::Unsupported { why: words() }),
        (observation(Ended::Exited(1), with_error(ErrorKind::Panic), ""), Outcome::Panicked { message: words() }),
        (observation(Ended::Exited(1), with_error(ErrorKind::Data), ""), Outcome::Failed { message: words() }),
        (
            observation(Ended::Exited(101), None, panic),
            Outcome::Panicked { message: "index out of bounds (at src/a.rs:1:2)".into() },
        ),
        (
            observation(Ended::Exited(101), None, "panicked at b.rs:1:1:\nwgpu error: Out of Memory"),
            Outcome::OutOfMemory { why: "wgpu error: Out of Memory".into() },
        ),
        (
            observation(Ended::Signalled(6), None, "memory allocation of 123456 bytes failed"),
            Outcome::OutOfMemory { why: "memory allocation of 123456 bytes failed".into() },
        ),
        (
            observation(Ended::Signalled(9), Some(partial()), ""),
            Outcome::OutOfMemory { why: "killed (signal 9), probably out of memory".into() },
        ),
        (
            oom_kill,
            Outcome::OutOfMemory { why: "killed (signal 9) by the system: oom_kill in f went from 1 to 2".into() },
        ),
        (observation(Ended::Signalled(11), None, ""), Outcome::Killed { signal: 11 }),
        (observation(Ended::TimedOut { after_s: 5 }, Some(partial()), ""), Outcome::TimedOut { after_s: 5 }),
        (observation(Ended::Interrupted, None, ""), Outcome::Interrupted),
        (
            observation(Ended::Exited(3), None, "\nbad luck\n\n"),
            Outcome::Failed { message: "exit code 3: bad luck".into() },
        ),
        (
            observation(Ended::Exited(0), Some(partial()), ""),
            Outcome::Failed { message: "the process ended before its last epoch and did not say why".into() },
        ),
    ];
    for (seen, expected) in cases {
        assert_eq!(judge(&seen), expected, "{:?} with {:?}", seen.ended, seen.output_tail);
    }
}

#[test]
fn evidence_of_a_kill_is_a_count_that_moved() {
    let folder = tempfile::tempdir().unwrap();
    let (events, stat) = (folder.path().join("memory.events"), folder.path().join("vmstat"));
    std::fs::write(&events, "low 0\noom 4\noom_kill 2\n").unwrap();
    let counter = OomCounter::of_files([events.clone(), stat]);
    let before = counter.read();
    assert_eq!(before, [Some(2), None]);
    assert_eq!(counter.evidence(&before), None);
    std::fs::write(&events, "low 0\noom 5\noom_kill 3\n").unwrap();
    let evidence = counter.evidence(&before).unwrap();
    assert!(evidence.ends_with("memory.events went from 2 to 3"), "{evidence}");
}

#[cfg(unix)]
mod unix {
    use std::ffi::OsString;

    use super::*;
    use crate::experiment::{Launcher, ProcessLauncher};
    use crate::fixture::spec;

    /// Runs `script` in place of a child: `$3` is the specification's file, `$5` the result's.
    fn run(script: &str, timeout: Duration, interrupt: &Interrupt) -> Observation {
        let folder = tempfile::tempdir().unwrap();
        let arguments = ["-c", script, "sh"].map(OsString::from);
        let mut launcher = ProcessLauncher::new("/bin/sh", arguments, OomCounter::of_files([]));
        launcher.launch(&spec(SetId::Synthetic, ""), folder.path(), timeout, interrupt).unwrap()
    }

    fn at_once(script: &str) -> Observation {
        run(script, Duration::from_secs(60), &Interrupt::new())
    }

    #[test]
    fn a_child_gets_its_specification_and_gives_its_result() {
        let json = serde_json::to_string(&result(BASE)).unwrap();
        let seen = at_once(&format!(
            "grep -q synthetic \"$3\" || exit 7; echo said; echo warned >&2; cat > \"$5\" <<'END'\n{json}\nEND"
        ));
        assert_eq!((seen.ended, seen.output_tail.as_str()), (Ended::Exited(0), "said\nwarned\n"));
        assert_eq!(seen.result, Some(result(BASE)));
        assert_eq!(judge(&seen), Outcome::Completed);
        assert!(seen.peak_resident_bytes.is_some_and(|bytes| bytes > 100_000), "{:?}", seen.peak_resident_bytes);
    }

    #[test]
    fn a_child_that_is_killed_is_probably_out_of_memory_and_its_partial_result_is_kept() {
        let partial = RunResult { complete: false, ..result(BASE) };
        let json = serde_json::to_string(&partial).unwrap();
        let seen = at_once(&format!("cat > \"$5\" <<'END'\n{json}\nEND\nkill -9 $$"));
        assert_eq!(seen.ended, Ended::Signalled(9));
        assert_eq!(judge(&seen), Outcome::OutOfMemory { why: "killed (signal 9), probably out of memory".into() });
        assert_eq!(seen.result, Some(partial));
        assert_eq!(judge(&at_once("kill -15 $$")), Outcome::Killed { signal: 15 });
    }

    #[test]
    fn a_child_that_runs_out_of_its_address_space_says_so() {
        // A real refusal to allocate, in the words of the program that was refused.
        let seen = at_once("ulimit -v 50000; exec awk 'BEGIN { s = \"x\"; while (1) s = s s }'");
        assert!(matches!(judge(&seen), Outcome::OutOfMemory { .. }), "{:?}: {}", seen.ended, seen.output_tail);
    }

    #[test]
    fn a_child_that_takes_too_long_is_ended_with_all_it_started() {
        let folder = tempfile::tempdir().unwrap();
        let mark = folder.path().join("mark");
        let started = Instant::now();
        let script = format!("(sleep 2; touch {}) & sleep 60", mark.display());
        let seen = run(&script, Duration::from_millis(300), &Interrupt::new());
        assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
        assert_eq!(judge(&seen), Outcome::TimedOut { after_s: 0 });
        std::thread::sleep(Duration::from_millis(2500));
        assert!(!mark.exists(), "what the child started lives on");
    }

    #[test]
    fn an_interrupt_ends_the_child() {
        let interrupt = Interrupt::new();
        let flag = interrupt.clone();
        let setter = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(200));
            flag.set();
        });
        let started = Instant::now();
        let seen = run("sleep 60", Duration::from_secs(60), &interrupt);
        setter.join().unwrap();
        assert!(started.elapsed() < Duration::from_secs(30));
        assert_eq!(judge(&seen), Outcome::Interrupted);
    }

    #[test]
    fn a_long_output_is_kept_by_its_end() {
        let seen = at_once("i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done; exit 1");
        assert!(seen.output_tail.len() <= 8 * 1024);
        assert!(seen.output_tail.starts_with("line ") && seen.output_tail.ends_with("line 2999\n"));
    }

    #[test]
    fn a_program_that_is_not_there_is_an_error_with_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let mut launcher = ProcessLauncher::new("/no/such/program", [], OomCounter::of_files([]));
        let error = launcher
            .launch(&spec(SetId::Synthetic, ""), folder.path(), Duration::from_secs(1), &Interrupt::new())
            .unwrap_err();
        assert!(error.to_string().contains("/no/such/program"), "{error}");
    }
}
