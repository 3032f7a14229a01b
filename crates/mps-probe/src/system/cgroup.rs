//! The memory limit of the process's Linux control group, version 2 or 1.

use std::path::{Path, PathBuf};

use crate::{Counter, Measurement, Quality};

/// A limit this high is version 1's way to say that there is none: `i64::MAX` rounded down to a page.
const UNLIMITED: u64 = 1 << 62;

/// The two versions differ in names only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    V1,
    V2,
}

impl Version {
    fn limit_file(self) -> &'static str {
        match self {
            Version::V1 => "memory.limit_in_bytes",
            Version::V2 => "memory.max",
        }
    }

    fn use_file(self) -> &'static str {
        match self {
            Version::V1 => "memory.usage_in_bytes",
            Version::V2 => "memory.current",
        }
    }

    /// The field of `memory.stat` that counts the group and its descendants.
    fn droppable_field(self) -> &'static str {
        match self {
            Version::V1 => "total_inactive_file",
            Version::V2 => "inactive_file",
        }
    }
}

/// Where the process's group is: below the mount point of its hierarchy.
#[derive(Debug, PartialEq, Eq)]
struct Group {
    version: Version,
    mount: PathBuf,
    /// The path below the mount point, without a leading slash; empty for the root.
    below: PathBuf,
}

/// The limit and the use under the file-system root `root`, which is `/` but for tests.
pub(super) fn read(root: &Path) -> [Measurement; 2] {
    match limited_group(root) {
        Ok((limit, directory, version)) => {
            let source = format!("{} of {}", version.limit_file(), directory.display());
            [Measurement::present(Counter::CgroupLimit, limit, source, Quality::Limit), in_use(&directory, version)]
        }
        Err(why) => {
            [Counter::CgroupLimit, Counter::CgroupInUse].map(|counter| Measurement::absent(counter, why.clone()))
        }
    }
}

/// The group with the smallest limit: that limit and the group's folder.
fn limited_group(root: &Path) -> Result<(u64, PathBuf, Version), String> {
    let groups = text(&root.join("proc/self/cgroup"))?;
    let mounts = text(&root.join("proc/self/mountinfo"))?;
    let group = locate(&groups, &mounts)
        .ok_or("no mounted control group hierarchy with a memory controller holds this process")?;
    let top = root.join(group.mount.strip_prefix("/").unwrap_or(&group.mount));
    let own = top.join(&group.below);
    own.ancestors()
        .take_while(|directory| directory.starts_with(&top))
        .filter_map(|directory| Some((limit_in(directory, group.version)?, directory.to_owned(), group.version)))
        .min_by_key(|(limit, ..)| *limit)
        .ok_or_else(|| "neither the control group nor an ancestor has a memory limit".to_owned())
}

/// The limit in one folder; `None` if it has none, as the root of version 2 has not.
fn limit_in(directory: &Path, version: Version) -> Option<u64> {
    let limit = text(&directory.join(version.limit_file())).ok()?;
    limit.trim().parse().ok().filter(|&bytes| bytes < UNLIMITED)
}

fn in_use(directory: &Path, version: Version) -> Measurement {
    let used = || -> Result<u64, String> {
        let path = directory.join(version.use_file());
        let used = text(&path)?;
        let used: u64 = used.trim().parse().map_err(|_| format!("{} is no number: {used:?}", path.display()))?;
        let path = directory.join("memory.stat");
        let droppable = text(&path)?
            .lines()
            .find_map(|line| line.strip_prefix(version.droppable_field())?.trim().parse::<u64>().ok())
            .ok_or_else(|| format!("{} has no {}", path.display(), version.droppable_field()))?;
        Ok(used.saturating_sub(droppable))
    };
    match used() {
        Ok(bytes) => {
            let source = format!("{} - {} of {}", version.use_file(), version.droppable_field(), directory.display());
            Measurement::present(Counter::CgroupInUse, bytes, source, Quality::Exact)
        }
        Err(why) => Measurement::absent(Counter::CgroupInUse, why),
    }
}

/// Finds the group whose memory controller counts, from `/proc/self/cgroup` and `/proc/self/mountinfo`.
///
/// Version 1 comes first: where both are mounted and version 1 has the memory controller, version 2 cannot have it.
fn locate(groups: &str, mounts: &str) -> Option<Group> {
    let path_of = |wanted: &dyn Fn(&str, &str) -> bool| {
        groups.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':');
            let (id, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
            wanted(id, controllers).then_some(path)
        })
    };
    let v1 = || {
        let path = path_of(&|_, controllers| controllers.split(',').any(|c| c == "memory"))?;
        let is_memory = |kind: &str, options: &str| kind == "cgroup" && options.split(',').any(|o| o == "memory");
        group_at(Version::V1, path, mounts, &is_memory)
    };
    let v2 = || {
        let path = path_of(&|id, controllers| id == "0" && controllers.is_empty())?;
        group_at(Version::V2, path, mounts, &|kind, _| kind == "cgroup2")
    };
    v1().or_else(v2)
}

/// The group `path` of the first mounted hierarchy for which `wanted(type, super options)` holds.
fn group_at(version: Version, path: &str, mounts: &str, wanted: &dyn Fn(&str, &str) -> bool) -> Option<Group> {
    mounts.lines().find_map(|line| {
        // "36 35 98:0 /root /mount/point options [optional fields] - type source super-options"
        let (mount, file_system) = line.split_once(" - ")?;
        let mut file_system = file_system.split(' ');
        let (kind, _source, options) = (file_system.next()?, file_system.next()?, file_system.next()?);
        if !wanted(kind, options) {
            return None;
        }
        let mut mount = mount.split(' ').skip(3);
        let (mount_root, mount_point) = (mount.next()?, mount.next()?);
        // A container sees its own group mounted as the root, but may see the path from the host's root.
        let path = Path::new(path);
        let below = path.strip_prefix(mount_root).or_else(|_| path.strip_prefix("/")).unwrap_or(path);
        // Without a namespace for groups, `..` leads out of what is mounted.
        let below = if below.starts_with("..") { Path::new("") } else { below };
        Some(Group { version, mount: mount_point.into(), below: below.into() })
    })
}

fn text(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const V2_MOUNT: &str = "35 25 0:30 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";
    const V1_MOUNT: &str = "25 24 0:22 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                            26 24 0:23 / /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory\n\
                            27 24 0:24 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

    /// Writes the files into an empty root and reads limit and use there.
    fn read_in(files: &[(&str, &str)]) -> [Measurement; 2] {
        let root = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        read(root.path())
    }

    fn bytes(of: &[Measurement; 2]) -> [Option<u64>; 2] {
        [of[0].bytes(), of[1].bytes()]
    }

    #[test]
    fn version_2_takes_the_tightest_limit_of_the_ancestors_and_its_groups_use() {
        let read = read_in(&[
            ("proc/self/cgroup", "0::/user/job/step\n"),
            ("proc/self/mountinfo", V2_MOUNT),
            ("sys/fs/cgroup/user/memory.max", "8000\n"),
            ("sys/fs/cgroup/user/job/memory.max", "5000\n"),
            ("sys/fs/cgroup/user/job/memory.current", "3000\n"),
            ("sys/fs/cgroup/user/job/memory.stat", "anon 1\ninactive_file 400\nactive_file 9\n"),
            ("sys/fs/cgroup/user/job/step/memory.max", "max\n"),
        ]);
        assert_eq!(bytes(&read), [Some(5000), Some(2600)]);
        assert!(read[0].to_string().contains("user/job"), "{}", read[0]);
    }

    #[test]
    fn version_1_without_a_limit_is_absent_and_with_one_is_read() {
        let base = [("proc/self/cgroup", "4:memory:/a\n1:cpu:/\n0::/\n"), ("proc/self/mountinfo", V1_MOUNT)];
        let limit = "sys/fs/cgroup/memory/a/memory.limit_in_bytes";
        let unlimited = read_in(&[base[0], base[1], (limit, "9223372036854771712\n")]);
        assert_eq!(bytes(&unlimited), [None, None]);
        assert!(unlimited[0].to_string().contains("has a memory limit"), "{}", unlimited[0]);
        let limited = read_in(&[
            base[0],
            base[1],
            (limit, "7000\n"),
            ("sys/fs/cgroup/memory/a/memory.usage_in_bytes", "1000\n"),
            ("sys/fs/cgroup/memory/a/memory.stat", "inactive_file 5\ntotal_inactive_file 300\n"),
        ]);
        assert_eq!(bytes(&limited), [Some(7000), Some(700)]);
    }

    #[test]
    fn a_container_that_sees_the_hosts_path_finds_its_own_group_at_the_mount_point() {
        let read = read_in(&[
            ("proc/self/cgroup", "0::/docker/abc\n"),
            ("proc/self/mountinfo", "35 25 0:30 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n"),
            ("sys/fs/cgroup/memory.max", "6000\n"),
            ("sys/fs/cgroup/memory.current", "10\n"),
        ]);
        assert_eq!(read[0].bytes(), Some(6000));
        assert!(read[1].to_string().contains("memory.stat"), "a missing file is named: {}", read[1]);
    }

    #[test]
    fn a_system_without_control_groups_says_what_is_missing() {
        let none = read_in(&[]);
        assert!(none[0].to_string().contains("proc/self/cgroup"), "{}", none[0]);
        let unmounted = read_in(&[("proc/self/cgroup", "0::/\n"), ("proc/self/mountinfo", "")]);
        assert!(unmounted[0].to_string().contains("no mounted control group"), "{}", unmounted[0]);
    }
}
