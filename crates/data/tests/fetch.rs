//! Downloads from a server on this machine that misbehaves in the ways that real ones do.

#![expect(clippy::unwrap_used, reason = "a failed test is a panic")]

use data::fetch::{Event, Fetch, FetchError};
use data::manifest::{FullFile, Manifest};
use data::{Checksum, SetId};
use std::collections::VecDeque;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

/// How the server answers one request.
#[derive(Debug, Clone, Copy)]
enum Answer {
    /// With all of the body, or the part that was asked for.
    Whole,
    /// The same, but the connection closes after so many bytes.
    CutAfter(usize),
    /// With all of the body, whatever was asked for.
    IgnoringRange,
    Status(u16),
}

/// A server that answers as planned, and `Whole` after that. It notes each request's `Range` header.
struct Server {
    url: String,
    ranges: Arc<Mutex<Vec<Option<String>>>>,
}

impl Server {
    fn start(body: Vec<u8>, plan: &[Answer]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/file", listener.local_addr().unwrap());
        let ranges = Arc::new(Mutex::new(Vec::new()));
        let (seen, mut plan) = (Arc::clone(&ranges), VecDeque::from(plan.to_vec()));
        // Ends with the test's process.
        thread::spawn(move || {
            for connection in listener.incoming() {
                let answer = plan.pop_front().unwrap_or(Answer::Whole);
                serve(connection.unwrap(), &body, answer, &seen);
            }
        });
        Self { url, ranges }
    }

    fn ranges(&self) -> Vec<Option<String>> {
        self.ranges.lock().unwrap().clone()
    }
}

fn serve(connection: TcpStream, body: &[u8], answer: Answer, seen: &Mutex<Vec<Option<String>>>) {
    let mut reader = BufReader::new(connection);
    let mut range = None;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("range:") {
            range = Some(value.trim().to_owned());
        }
    }
    seen.lock().unwrap().push(range.clone());
    let asked = range.and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-')?.parse::<usize>().ok());
    let mut out = reader.into_inner();
    let (start, cut) = match answer {
        Answer::Whole => (asked, usize::MAX),
        Answer::CutAfter(bytes) => (asked, bytes),
        Answer::IgnoringRange => (None, usize::MAX),
        Answer::Status(status) => {
            write!(out, "HTTP/1.1 {status} No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").unwrap();
            return;
        }
    };
    let total = body.len();
    let head = match start {
        Some(start) if start >= total => {
            write!(out, "HTTP/1.1 416 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").unwrap();
            return;
        }
        Some(start) => format!("206 Partial\r\nContent-Range: bytes {start}-{}/{total}", total - 1),
        None => "200 OK".to_owned(),
    };
    let rest = &body[start.unwrap_or(0)..];
    write!(out, "HTTP/1.1 {head}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", rest.len()).unwrap();
    // The client may have gone; what it does then is what is tested.
    let _ = out.write_all(&rest[..rest.len().min(cut)]);
}

fn body() -> Vec<u8> {
    (0..200_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

fn sha256(bytes: &[u8]) -> Checksum {
    let kind: Checksum = format!("sha256:{}", "0".repeat(64)).parse().unwrap();
    kind.same_kind_of(bytes).unwrap()
}

fn file(urls: &[&str]) -> FullFile {
    FullFile {
        path: PathBuf::from("set/file.gz"),
        urls: urls.iter().map(|&url| url.to_owned()).collect(),
        checksum: sha256(&body()),
        bytes: None,
        unzip: None,
        content: None,
    }
}

/// Runs a download with `times` retries; gives the outcome and the retries it took.
fn fetch(dir: &TempDir, file: FullFile, times: usize) -> (Result<Vec<PathBuf>, FetchError>, usize) {
    let mut retries = 0;
    let outcome = Fetch::files(vec![file], dir.path())
        .with_retries(times, Duration::from_millis(5))
        .run(&mut |event| retries += usize::from(matches!(event, Event::Retrying { .. })));
    (outcome, retries)
}

fn names(dir: &TempDir) -> Vec<String> {
    let entries = fs::read_dir(dir.path().join("set")).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort_unstable();
    names
}

#[test]
fn a_download_arrives_whole_under_its_name_and_reports_its_progress() {
    let (dir, server) = (TempDir::new().unwrap(), Server::start(body(), &[]));
    let (mut last, mut finished) = (0, false);
    let paths = Fetch::files(vec![file(&[&server.url])], dir.path())
        .run(&mut |event| match event {
            Event::Progress { done, total, .. } => {
                assert!(done > last && total == Some(200_000));
                last = done;
            }
            Event::Done { .. } => finished = true,
            _ => {}
        })
        .unwrap();
    assert_eq!(fs::read(&paths[0]).unwrap(), body());
    assert_eq!((last, finished), (200_000, true));
    assert_eq!(names(&dir), ["file.gz"]);
}

#[test]
fn a_broken_connection_is_resumed_where_it_broke() {
    let plan = [Answer::CutAfter(70_000), Answer::CutAfter(50_000)];
    let (dir, server) = (TempDir::new().unwrap(), Server::start(body(), &plan));
    let (outcome, retries) = fetch(&dir, file(&[&server.url]), 5);
    assert_eq!(fs::read(&outcome.unwrap()[0]).unwrap(), body());
    assert_eq!(retries, 2);
    let expected = [None, Some("bytes=70000-".to_owned()), Some("bytes=120000-".to_owned())];
    assert_eq!(server.ranges(), expected);
}

#[test]
fn an_interrupted_run_leaves_a_part_that_the_next_run_completes() {
    let (dir, server) = (TempDir::new().unwrap(), Server::start(body(), &[Answer::CutAfter(90_000)]));
    let (outcome, _) = fetch(&dir, file(&[&server.url]), 0);
    assert!(outcome.unwrap_err().to_string().contains("broke off"));
    assert_eq!(names(&dir), ["file.gz.part"]);
    let (outcome, _) = fetch(&dir, file(&[&server.url]), 0);
    assert_eq!(fs::read(&outcome.unwrap()[0]).unwrap(), body());
    assert_eq!(server.ranges()[1], Some("bytes=90000-".to_owned()));
    assert_eq!(names(&dir), ["file.gz"]);
}

#[test]
fn a_server_that_cannot_resume_starts_anew() {
    let plan = [Answer::CutAfter(90_000), Answer::IgnoringRange];
    let (dir, server) = (TempDir::new().unwrap(), Server::start(body(), &plan));
    let (outcome, _) = fetch(&dir, file(&[&server.url]), 3);
    assert_eq!(fs::read(&outcome.unwrap()[0]).unwrap(), body());
}

#[test]
fn a_part_that_is_whole_already_is_only_verified() {
    let (dir, server) = (TempDir::new().unwrap(), Server::start(body(), &[]));
    fs::create_dir(dir.path().join("set")).unwrap();
    fs::write(dir.path().join("set/file.gz.part"), body()).unwrap();
    let (outcome, _) = fetch(&dir, file(&[&server.url]), 0);
    assert_eq!(fs::read(&outcome.unwrap()[0]).unwrap(), body());
}

#[test]
fn a_busy_server_is_asked_again() {
    let plan = [Answer::Status(503), Answer::Status(429), Answer::Status(500)];
    let (dir, server) = (TempDir::new().unwrap(), Server::start(body(), &plan));
    let (outcome, retries) = fetch(&dir, file(&[&server.url]), 3);
    assert!(outcome.is_ok());
    assert_eq!(retries, 3);
}

#[test]
fn a_missing_file_is_named_and_not_asked_for_again() {
    let (dir, server) = (TempDir::new().unwrap(), Server::start(body(), &[Answer::Status(404)]));
    let (outcome, retries) = fetch(&dir, file(&[&server.url]), 5);
    let message = outcome.unwrap_err().to_string();
    assert!(message.contains(&server.url) && message.contains("HTTP 404"), "{message}");
    assert_eq!((retries, server.ranges().len()), (0, 1));
}

#[test]
fn wrong_bytes_are_refused_named_and_deleted() {
    let mut altered = body();
    altered[123_456] ^= 1;
    let (dir, server) = (TempDir::new().unwrap(), Server::start(altered.clone(), &[]));
    let (outcome, _) = fetch(&dir, file(&[&server.url]), 2);
    let message = outcome.unwrap_err().to_string();
    for part in [server.url.as_str(), &sha256(&altered).to_string(), &sha256(&body()).to_string()] {
        assert!(message.contains(part), "{message}");
    }
    assert_eq!(names(&dir), [""; 0]);
}

#[test]
fn the_next_source_is_asked_when_one_fails() {
    let gone = Server::start(body(), &[Answer::Status(404)]);
    let wrong = Server::start(b"something else".to_vec(), &[]);
    let right = Server::start(body(), &[]);
    let dir = TempDir::new().unwrap();
    let (outcome, _) = fetch(&dir, file(&[&gone.url, &wrong.url, &right.url]), 0);
    assert_eq!(fs::read(&outcome.unwrap()[0]).unwrap(), body());
    assert_eq!(right.ranges(), [None], "the wrong source's bytes were kept");
}

#[test]
fn a_file_that_is_there_is_not_downloaded_again_and_never_overwritten() {
    let (dir, server) = (TempDir::new().unwrap(), Server::start(body(), &[]));
    fetch(&dir, file(&[&server.url]), 0).0.unwrap();
    fetch(&dir, file(&[&server.url]), 0).0.unwrap();
    assert_eq!(server.ranges().len(), 1);
    let path = dir.path().join("set/file.gz");
    fs::write(&path, "mine").unwrap();
    let error = fetch(&dir, file(&[&server.url]), 0).0.unwrap_err();
    assert!(matches!(error, FetchError::Differs { .. }), "{error}");
    assert_eq!(fs::read(&path).unwrap(), b"mine");
}

#[test]
fn a_file_inside_a_zip_is_unpacked_and_the_zip_removed() {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    for (name, bytes) in [("a/__MACOSX/._inner.gz", b"no".to_vec()), ("a/inner.gz", body())] {
        zip.start_file(name, options).unwrap();
        zip.write_all(&bytes).unwrap();
    }
    let archive = zip.finish().unwrap().into_inner();
    let server = Server::start(archive.clone(), &[Answer::CutAfter(1000)]);
    let zipped =
        |wanted: &str| FullFile { checksum: sha256(&archive), unzip: Some(wanted.to_owned()), ..file(&[&server.url]) };
    let dir = TempDir::new().unwrap();
    let (outcome, _) = fetch(&dir, zipped("inner.gz"), 2);
    assert_eq!(fs::read(&outcome.unwrap()[0]).unwrap(), body());
    assert_eq!(names(&dir), ["file.gz"]);
    let other = TempDir::new().unwrap();
    let message = fetch(&other, zipped("missing.gz"), 2).0.unwrap_err().to_string();
    assert!(message.contains("missing.gz"), "{message}");
}

#[test]
fn real_sets_are_described_by_the_manifest_and_synthetic_data_is_not_fetched() {
    let manifest = Manifest::shipped().unwrap();
    for set in [SetId::Mnist, SetId::Caltech101] {
        Fetch::new(&manifest, set, "unused").unwrap();
    }
    let error = Fetch::new(&manifest, SetId::Synthetic, "unused").unwrap_err();
    assert!(matches!(error, FetchError::NothingToFetch(SetId::Synthetic)), "{error}");
}
