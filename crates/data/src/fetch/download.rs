//! One file over HTTP: resumed, tried again, verified, and then renamed.

use super::{Event, FetchError, partial};
use crate::checksum::Checksum;
use crate::manifest::FullFile;
use backon::{BackoffBuilder, ExponentialBuilder};
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;
use std::thread;
use std::time::Duration;
use ureq::http::Response;
use ureq::{Agent, Body};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// Without a byte for so long, a connection counts as broken.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

pub(super) struct Downloader {
    agent: Agent,
    retry: ExponentialBuilder,
}

/// What an attempt reports to.
type OnEvent<'a> = &'a mut dyn FnMut(Event<'_>);

impl Downloader {
    pub(super) fn new(retry: ExponentialBuilder) -> Self {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_recv_response(Some(READ_TIMEOUT))
            .timeout_per_read(Some(READ_TIMEOUT))
            // The published checksums are of the files as they are: nothing may decompress them on the way.
            .accept_encoding("identity")
            .build();
        Self { agent: config.new_agent(), retry }
    }

    /// Downloads `file` to `path` from the first of its sources that has it.
    pub(super) fn download(&self, file: &FullFile, path: &Path, on_event: OnEvent<'_>) -> Result<(), FetchError> {
        let part = partial(path);
        let mut failures = Vec::new();
        for url in &file.urls {
            let outcome = self
                .resume(url, path, &part, on_event)
                .and_then(|()| verify(url, path, &part, &file.checksum, on_event));
            match outcome {
                Ok(()) => return fs::rename(&part, path).map_err(FetchError::io(path)),
                Err(error) if error.is_the_sources() => failures.push(error),
                Err(error) => return Err(error),
            }
        }
        Err(FetchError::NoSource { path: path.to_owned(), failures })
    }

    /// Asks `url` again and again, until the file is whole or the retries are used up.
    fn resume(&self, url: &str, path: &Path, part: &Path, on_event: OnEvent<'_>) -> Result<(), FetchError> {
        let mut pauses = self.retry.build();
        loop {
            let error = match self.attempt(url, path, part, on_event) {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            let Some(pause) = pauses.next().filter(|_| error.is_temporary()) else {
                return Err(error);
            };
            on_event(Event::Retrying { path, error: &error, pause });
            thread::sleep(pause);
        }
    }

    /// One request for what is missing of the file.
    fn attempt(&self, url: &str, path: &Path, part: &Path, on_event: OnEvent<'_>) -> Result<(), FetchError> {
        let have = part.metadata().map_or(0, |metadata| metadata.len());
        on_event(Event::Started { path, url, resumed_from: have });
        let mut request = self.agent.get(url);
        if have > 0 {
            request = request.header("Range", format!("bytes={have}-"));
        }
        let response = request.call().map_err(|error| broken(url, error))?;
        let start = match response.status().as_u16() {
            // The server starts anew, whether or not it was asked for the rest.
            200 => 0,
            206 if range_start(&response) == Some(have) => have,
            // It has nothing after what is there: the file is whole, or not this one, which the checksum tells.
            416 => return Ok(()),
            status => {
                return Err(FetchError::Status { url: url.to_owned(), status });
            }
        };
        let total = response.body().content_length().map(|rest| start + rest);
        let mut out = open(part, start)?;
        let mut done = start;
        let mut body = response.into_body().into_reader();
        let mut buffer = vec![0; 1 << 16];
        loop {
            let n = body.read(&mut buffer).map_err(|error| broken(url, error))?;
            if n == 0 {
                break;
            }
            out.write_all(&buffer[..n]).map_err(FetchError::io(part))?;
            done += n as u64;
            on_event(Event::Progress { path, done, total });
        }
        match total {
            Some(total) if done < total => Err(broken(url, format!("{done} of {total} bytes arrived"))),
            // The name must not come to stand for data that a crash could still lose.
            _ => out.sync_all().map_err(FetchError::io(part)),
        }
    }
}

/// Compares the checksum; a wrong file is deleted, so that the next attempt starts anew.
fn verify(url: &str, path: &Path, part: &Path, expected: &Checksum, on_event: OnEvent<'_>) -> Result<(), FetchError> {
    on_event(Event::Verifying { path });
    let found = expected.same_kind_of_file(part).map_err(FetchError::io(part))?;
    if found == *expected {
        return Ok(());
    }
    fs::remove_file(part).map_err(FetchError::io(part))?;
    Err(FetchError::Checksum { url: url.to_owned(), found, expected: expected.clone() })
}

fn open(part: &Path, start: u64) -> Result<File, FetchError> {
    let mut options = OpenOptions::new();
    if start == 0 {
        options.write(true).create(true).truncate(true);
    } else {
        options.append(true);
    }
    options.open(part).map_err(FetchError::io(part))
}

/// The first byte of a partial answer: `Content-Range: bytes 100-199/200`.
fn range_start(response: &Response<Body>) -> Option<u64> {
    let value = response.headers().get("content-range")?.to_str().ok()?;
    value.strip_prefix("bytes ")?.split('-').next()?.trim().parse().ok()
}

fn broken(url: &str, reason: impl ToString) -> FetchError {
    FetchError::Connection { url: url.to_owned(), reason: reason.to_string() }
}
