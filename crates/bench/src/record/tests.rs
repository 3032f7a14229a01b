use std::io::{self, Write};
use std::path::Path;

use data::SetId;

use super::*;
use crate::fixture::{BASE, record, records, result};

fn one(repeat: usize) -> Record {
    record(SetId::Mnist, BASELINE, repeat, Outcome::Completed, Some(result(BASE)))
}

#[test]
fn a_record_is_one_line_and_comes_back_equal() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("records.jsonl");
    let all = records();
    let mut log = RecordLog::create(&path).unwrap();
    for record in &all {
        log.append(record).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), all.len());
    let contents = read(&path).unwrap();
    assert_eq!(contents.records.len(), all.len());
    for (read, written) in contents.records.iter().zip(&all) {
        assert_eq!(read, written);
    }
    assert_eq!(contents.truncated, None);
}

#[test]
fn a_record_looks_like_this() {
    insta::assert_json_snapshot!(one(1));
}

#[test]
fn a_last_line_that_was_cut_is_reported_and_removed_before_the_next_record() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("records.jsonl");
    let mut log = RecordLog::create(&path).unwrap();
    log.append(&one(1)).unwrap();
    log.append(&one(2)).unwrap();
    let whole = std::fs::read(&path).unwrap();
    // Every place where a killed writer can have stopped within the last line.
    let first_line = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    for end in [first_line + 1, first_line + 100, whole.len() - 1] {
        std::fs::write(&path, &whole[..end]).unwrap();
        let contents = read(&path).unwrap();
        assert_eq!(contents.records, [one(1)], "cut at {end}");
        assert_eq!(contents.truncated, Some(Truncated { line: 2, offset: first_line as u64 }), "cut at {end}");

        let (mut log, contents) = RecordLog::resume(&path).unwrap();
        assert_eq!(contents.records.len(), 1);
        log.append(&one(3)).unwrap();
        let repaired = read(&path).unwrap();
        assert_eq!(repaired.records, [one(1), one(3)], "cut at {end}");
        assert_eq!(repaired.truncated, None, "cut at {end}");
    }
}

#[test]
fn of_two_records_of_a_run_the_later_counts() {
    let interrupted = record(SetId::Mnist, BASELINE, 1, Outcome::Interrupted, None);
    let contents = Contents { records: vec![interrupted, one(1)], truncated: None };
    assert_eq!(contents.latest()["mnist/baseline/1"].outcome, Outcome::Completed);
}

#[test]
fn a_line_that_is_no_record_or_too_new_is_an_error_with_its_number() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("records.jsonl");
    for (second, says) in [
        ("{\"format_version\": 2}", "records.jsonl:2 has format_version 2"),
        ("{\"format_version\": 1}", "records.jsonl:2 is not a record: missing field"),
        ("nonsense", "records.jsonl:2 is not a record"),
    ] {
        let first = serde_json::to_string(&one(1)).unwrap();
        std::fs::write(&path, format!("{first}\n{second}\n{first}\n")).unwrap();
        let error = read(&path).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}

/// Takes whole lines up to some size, then is full.
struct Disk {
    written: Vec<u8>,
    size: usize,
}

impl Sink for Disk {
    fn append(&mut self, line: &[u8]) -> io::Result<()> {
        if self.written.len() + line.len() > self.size {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.written.write_all(line)
    }
}

#[test]
fn a_full_disk_is_an_error_that_says_what_is_kept() {
    let line = serde_json::to_vec(&one(1)).unwrap().len() + 1;
    let mut log = RecordLog::new(Path::new("out/records.jsonl"), Disk { written: Vec::new(), size: 2 * line + 10 }, 0);
    log.append(&one(1)).unwrap();
    log.append(&one(2)).unwrap();
    let error = log.append(&one(3)).unwrap_err();
    assert_eq!(log.kept(), 2);
    let message = error.to_string();
    for part in ["out/records.jsonl", "2 record(s) are kept", "--resume"] {
        assert!(message.contains(part), "{part} is not in: {message}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_device_without_space_is_reported_as_such() {
    let path = Path::new("/dev/full");
    let mut log = RecordLog::create(path).unwrap();
    let error = log.append(&one(1)).unwrap_err().to_string();
    assert!(error.contains("No space left on device"), "{error}");
    assert!(error.contains("0 record(s) are kept"), "{error}");
}
