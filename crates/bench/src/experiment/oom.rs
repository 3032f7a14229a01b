//! Evidence that the system killed a process for want of memory.

use std::path::{Path, PathBuf};

/// The kernel's counts of processes it killed for want of memory.
///
/// A killed process cannot say why. On Linux these counts can: the control group's if there is one, else the whole
/// system's. Elsewhere there is no evidence, and the outcome says "probably".
#[derive(Debug, Clone)]
pub struct OomCounter {
    files: Vec<PathBuf>,
}

impl OomCounter {
    /// The counts of this system.
    #[must_use]
    pub fn of_system() -> Self {
        let group = std::fs::read_to_string("/proc/self/cgroup").ok().and_then(|text| {
            let path = text.lines().find_map(|line| line.strip_prefix("0::"))?;
            Some(Path::new("/sys/fs/cgroup").join(path.trim_start_matches('/')).join("memory.events"))
        });
        Self::of_files(group.into_iter().chain([PathBuf::from("/proc/vmstat")]))
    }

    /// The counts in `files`: lines of `oom_kill N`. The first one that moves is the evidence.
    #[must_use]
    pub fn of_files(files: impl IntoIterator<Item = PathBuf>) -> Self {
        Self { files: files.into_iter().collect() }
    }

    /// The counts now, in an order that [`evidence`](Self::evidence) understands.
    #[must_use]
    pub fn read(&self) -> Vec<Option<u64>> {
        self.files.iter().map(|file| count(file)).collect()
    }

    /// Which count moved since `before`, for people.
    #[must_use]
    pub fn evidence(&self, before: &[Option<u64>]) -> Option<String> {
        self.files.iter().zip(before).find_map(|(file, before)| {
            let (before, now) = ((*before)?, count(file)?);
            (now > before).then(|| format!("oom_kill in {} went from {before} to {now}", file.display()))
        })
    }
}

fn count(file: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}
