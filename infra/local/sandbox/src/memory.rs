//! Memory left for sandboxes.

use std::fs::read_to_string;

const KB_OF_A_MB: u64 = 1_024;
const BYTES_OF_A_MB: u64 = 1_024 * 1_024;

/// Available megabytes of this machine, or of this program's control group if that has less; `None` if the system does
/// not tell.
#[must_use]
pub fn left_mb() -> Option<u64> {
    let of_machine = number(&read_to_string("/proc/meminfo").ok()?, "MemAvailable:")? / KB_OF_A_MB;
    Some(of_machine.min(left_of_group_mb().unwrap_or(u64::MAX)))
}

/// The same for the control group, if it has a limit.
fn left_of_group_mb() -> Option<u64> {
    let groups = read_to_string("/proc/self/cgroup").ok()?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let read = |name: &str| read_to_string(format!("/sys/fs/cgroup{path}/{name}")).ok();
    let bound: u64 = read("memory.max")?.trim().parse().ok()?;
    let taken: u64 = read("memory.current")?.trim().parse().ok()?;
    // Reclaimable file cache.
    let cached = number(&read("memory.stat")?, "inactive_file").unwrap_or(0);
    Some(bound.saturating_sub(taken.saturating_sub(cached)) / BYTES_OF_A_MB)
}

/// The number after a name, in a file of such lines.
fn number(text: &str, name: &str) -> Option<u64> {
    let mut words = text.lines().map(str::split_whitespace);
    words.find_map(|mut words| (words.next()? == name).then(|| words.next()?.parse().ok())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_numbers_match_whole_names() {
        let text = "MemTotal:  8 kB\nMemAvailable:   4096 kB\nanon 1\ninactive_file 7\n";
        assert_eq!(number(text, "MemAvailable:"), Some(4_096));
        assert_eq!(number(text, "inactive_file"), Some(7));
        assert_eq!(number(text, "Mem"), None);
        if cfg!(target_os = "linux") {
            assert!(left_mb().is_some_and(|left| left > 0));
        }
    }
}
