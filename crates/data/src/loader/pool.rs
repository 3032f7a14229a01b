//! Threads that run jobs in the order in which they were handed in.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

pub(super) type Job = Box<dyn FnOnce() + Send>;

/// A fixed number of threads, until it is dropped.
pub(super) struct Pool {
    /// `None` only while dropping.
    jobs: Option<Sender<Job>>,
    threads: Vec<JoinHandle<()>>,
}

impl Pool {
    pub(super) fn start(threads: usize) -> std::io::Result<Self> {
        let (jobs, queue) = channel::<Job>();
        let queue = Arc::new(Mutex::new(queue));
        let mut pool = Self { jobs: Some(jobs), threads: Vec::with_capacity(threads) };
        for number in 0..threads {
            let queue = Arc::clone(&queue);
            // On failure the pool is dropped here, which ends the threads that did start.
            let thread = Builder::new().name(format!("data-loader-{number}")).spawn(move || while_open(&queue))?;
            pool.threads.push(thread);
        }
        Ok(pool)
    }

    /// Hands in a job. It must catch its own panics.
    pub(super) fn run(&self, job: Job) {
        if let Some(jobs) = &self.jobs {
            // Fails only if every thread is gone; whoever waits for the job's answer then learns that it was dropped.
            let _ = jobs.send(job);
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.jobs = None;
        for thread in self.threads.drain(..) {
            // A thread that panicked has nothing more to say here.
            let _ = thread.join();
        }
    }
}

fn while_open(queue: &Mutex<Receiver<Job>>) {
    loop {
        // One thread waits for a job and the others wait for the lock; running it needs neither.
        let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        match job {
            Ok(job) => job(),
            Err(_) => return,
        }
    }
}
