//! Files that the agent leaves for people to see: which of them a turn shows, and under which names.
//!
//! Promised: a file is shown once, whichever turn finds it, until its content changes; number and size are bounded, and
//! files left out are named. Deliberately absent: reading the folder, which the sandbox does, and posting.

use serde::{Deserialize, Serialize};

use crate::base::ids::digest;
use crate::base::limits::FileLimits;
use crate::text::{one_line, shorten};

/// The folder, below the agent's working directory.
pub const FOLDER: &str = "output/display";
/// Files that one listing of the folder returns: the newest ones.
pub const LISTED_MAX: usize = 100;
/// Lines about files that could not be shown.
const UNSHOWN_LINES_MAX: usize = 10;
/// Characters of a name in the thread.
const NAME_CHARS_MAX: usize = 80;
/// Bytes of the longest accepted path: Linux has none longer.
const PATH_BYTES_MAX: usize = 4_096;

/// A file in the folder.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Artifact {
    /// Path below the folder.
    pub path: String,
    /// Its size in bytes.
    pub size: u64,
    /// Checksum of its content; `-` if it was too large to be read.
    pub sum: String,
}

impl Artifact {
    /// The key under which it is remembered: other content makes another file.
    #[must_use]
    pub fn key(&self) -> String {
        let size = self.size.to_string();
        digest(&["artifact", &self.path, &size, &self.sum])[..16].to_owned()
    }

    /// Its name for people, safe in any file system: letters, digits, `.`, `-` and `_`.
    #[must_use]
    pub fn name(&self) -> String {
        let safe: String = self
            .path
            .chars()
            .map(|c| match c {
                c if c.is_alphanumeric() || matches!(c, '.' | '-' | '_') => c,
                _ => '_',
            })
            .collect();
        let safe = safe.trim_start_matches(['.', '-']);
        // Keeps the end of a long name: it says what kind of file it is.
        let skip = safe.chars().count().saturating_sub(NAME_CHARS_MAX);
        let name: String = safe.chars().skip(skip).collect();
        let name = name.trim_start_matches(['.', '-']);
        if name.is_empty() { "file".to_owned() } else { name.to_owned() }
    }

    /// Its path as text, in a code span.
    #[must_use]
    pub fn words(&self) -> String {
        let path = shorten(&one_line(&self.path).replace('`', "'"), NAME_CHARS_MAX);
        format!("`{path}`")
    }
}

/// Parses the sandbox's listing: one line per file, `SUM SIZE PATH`, newest first. Returns the oldest first. Skips
/// other lines, and paths that leave the folder.
#[must_use]
pub fn listed(printed: &str) -> Vec<Artifact> {
    let read = |line: &str| {
        let (sum, rest) = line.split_once(' ')?;
        let (size, path) = rest.split_once(' ')?;
        let plain = sum == "-" || sum.bytes().all(|b| b.is_ascii_digit());
        let inside = path.len() <= PATH_BYTES_MAX
            && !path.starts_with('/')
            && path.split('/').all(|part| !matches!(part, "" | "." | ".."))
            && !path.chars().any(char::is_control);
        (plain && inside && !sum.is_empty()).then(|| Artifact {
            path: path.to_owned(),
            size: size.parse().unwrap_or(u64::MAX),
            sum: sum.to_owned(),
        })
    };
    let mut files: Vec<Artifact> = printed.lines().take(LISTED_MAX).filter_map(read).collect();
    files.reverse();
    files
}

/// The listed files that a turn shows, oldest first, and a line for each new file that it does not show.
#[must_use]
pub fn chosen(
    listed: Vec<Artifact>,
    shown: &[String],
    limits: &FileLimits,
) -> (Vec<Artifact>, Vec<String>) {
    let (mut files, mut left_out) = (Vec::new(), Vec::new());
    let mut bytes = 0_u64;
    for file in listed {
        if shown.contains(&file.key()) {
            continue;
        }
        let why = if file.size == 0 {
            Some("is empty".to_owned())
        } else if file.size > limits.artifact_bytes {
            let mib = limits.artifact_bytes / (1024 * 1024);
            Some(format!("is larger than {mib} MiB"))
        } else if files.len() >= limits.artifacts {
            Some(format!("is over the limit of {} files", limits.artifacts))
        } else if bytes.saturating_add(file.size) > limits.artifacts_bytes {
            Some("does not fit with the others".to_owned())
        } else {
            None
        };
        match why {
            None => {
                bytes += file.size;
                files.push(file);
            }
            Some(why) => left_out.push(format!("{} {why}", file.words())),
        }
    }
    let more = left_out.len().saturating_sub(UNSHOWN_LINES_MAX);
    left_out.truncate(UNSHOWN_LINES_MAX);
    if more > 0 {
        left_out.push(format!("and {more} more"));
    }
    (files, left_out)
}

/// The text about the folder for the agent.
#[must_use]
pub fn agent_instructions(limits: &FileLimits) -> String {
    format!(
        "You work for a person in a chat thread. Files that you put into `{FOLDER}/` of the working directory (screenshots, \
charts, documents) are shown to them in the thread after your turn, each once: at most {} files of {} MiB. Put nothing else there.",
        limits.artifacts,
        limits.artifact_bytes / (1024 * 1024)
    )
}

const _: () = assert!(FileLimits::DEFAULT.artifacts_known >= LISTED_MAX);

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, size: u64) -> Artifact {
        Artifact { path: path.to_owned(), size, sum: "1".to_owned() }
    }

    #[test]
    fn listing_excludes_paths_outside_folder() {
        let printed = "12 3 new chart.png\n- 99999999 big.bin\n7 1 sub/a.txt\n1 1 ../../etc/passwd\n1 1 /etc/passwd\nrubbish\n1 1 a//b\n";
        let paths: Vec<String> = listed(printed).into_iter().map(|one| one.path).collect();
        assert_eq!(paths, ["sub/a.txt", "big.bin", "new chart.png"]);
        let many = "1 1 x\n".repeat(LISTED_MAX + 5);
        assert_eq!(listed(&many).len(), LISTED_MAX);
    }

    #[test]
    fn unchanged_file_is_shown_once() {
        let limits = FileLimits::DEFAULT;
        let first = file("a.png", 3);
        let known = vec![first.key()];
        assert_eq!(chosen(vec![first.clone()], &known, &limits).0, []);
        let changed = Artifact { sum: "2".to_owned(), ..first };
        assert_eq!(chosen(vec![changed.clone()], &known, &limits).0, [changed]);
    }

    #[test]
    fn artifacts_over_limit_are_only_named() {
        let limits = FileLimits {
            artifacts: 2,
            artifact_bytes: 2 * 1024 * 1024,
            artifacts_bytes: 3 * 1024 * 1024,
            ..FileLimits::DEFAULT
        };
        let mib = 1024 * 1024;
        let all = vec![
            file("empty", 0),
            file("big", 3 * mib),
            file("a", 2 * mib),
            file("b", 2 * mib),
            file("c", mib),
            file("d", 1),
        ];
        let (files, lines) = chosen(all, &[], &limits);
        let names: Vec<&str> = files.iter().map(|one| one.path.as_str()).collect();
        assert_eq!(names, ["a", "c"]);
        assert_eq!(
            lines,
            [
                "`empty` is empty",
                "`big` is larger than 2 MiB",
                "`b` does not fit with the others",
                "`d` is over the limit of 2 files"
            ]
        );
        let crowd = (0..60).map(|n| file(&format!("f{n}"), 1)).collect();
        let (_, lines) = chosen(crowd, &[], &limits);
        assert_eq!(lines.len(), UNSHOWN_LINES_MAX + 1);
        assert_eq!(lines.last().map(String::as_str), Some("and 48 more"));
    }

    #[test]
    fn artifact_name_is_safe_keeps_extension() {
        for (path, name) in [
            ("sub/a chart.png", "sub_a_chart.png"),
            (".hidden", "hidden"),
            ("über.png", "über.png"),
            ("a\"b\r\n.txt", "a_b__.txt"),
            ("...", "file"),
        ] {
            assert_eq!(file(path, 1).name(), name);
        }
        let long = file(&format!("{}.tar.gz", "x".repeat(300)), 1).name();
        assert!(long.ends_with(".tar.gz") && long.chars().count() == NAME_CHARS_MAX);
    }
}
