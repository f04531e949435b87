//! The log of a job, read as a stream and cut by the steps that failed.
//!
//! Each line begins with its time in UTC. A log has no bound that GitHub promises, so only the end of the cut is kept;
//! the end of the whole log where the cut is empty, because the clocks of a runner and of GitHub differ.

use std::collections::VecDeque;

/// Most bytes that are kept of a log.
pub(super) const LOG_BYTES_MAX: usize = 64 * 1024;
/// Letters of a time up to its second: `2026-11-28T08:00:00`.
const SECOND_CHARS: usize = 19;

/// When a step ran, in UTC. A log's lines are compared by the second, in which several steps may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StepTime {
    pub(super) from: String,
    pub(super) to: String,
}

/// Keeps the end of what the steps said.
pub(super) struct LogCut {
    steps: Vec<StepTime>,
    line: Vec<u8>,
    /// The line began within a step.
    is_within: bool,
    kept: LogEnd,
    whole: LogEnd,
}

/// The end of a text.
#[derive(Default)]
struct LogEnd(VecDeque<u8>);

impl LogEnd {
    fn push_line(&mut self, line: &[u8]) {
        self.0.extend(line);
        self.0.push_back(b'\n');
        let over = self.0.len().saturating_sub(LOG_BYTES_MAX);
        self.0.drain(..over);
    }

    /// From the beginning of a line.
    fn text(self) -> String {
        let is_whole = self.0.len() < LOG_BYTES_MAX;
        let kept = Vec::from(self.0);
        let text = String::from_utf8_lossy(&kept);
        match text.split_once('\n') {
            Some((_, rest)) if !is_whole && !rest.is_empty() => rest.to_owned(),
            _ => text.into_owned(),
        }
    }
}

/// The second of a time, if the text begins with one.
fn second(text: &[u8]) -> Option<&[u8]> {
    let second = text.get(..SECOND_CHARS)?;
    let shape = b"0000-00-00T00:00:00";
    let fits = |(one, of): (&u8, &u8)| match of {
        b'0' => one.is_ascii_digit(),
        other => one == other,
    };
    second.iter().zip(shape).all(fits).then_some(second)
}

impl LogCut {
    /// Without steps, everything is kept.
    pub(super) fn new(steps: Vec<StepTime>) -> Self {
        let (kept, whole) = (LogEnd::default(), LogEnd::default());
        Self { steps, line: Vec::new(), is_within: true, kept, whole }
    }

    pub(super) fn feed(&mut self, mut piece: &[u8]) {
        while let Some(end) = piece.iter().position(|byte| *byte == b'\n') {
            self.hold(&piece[..end]);
            self.end_line();
            piece = &piece[end + 1..];
        }
        self.hold(piece);
    }

    /// A line is held up to the bound of the whole: its end is what is missing then.
    fn hold(&mut self, part: &[u8]) {
        let room = LOG_BYTES_MAX.saturating_sub(self.line.len());
        self.line.extend_from_slice(&part[..part.len().min(room)]);
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let text = match second(&line) {
            Some(at) => {
                self.is_within = self.steps.is_empty()
                    || self
                        .steps
                        .iter()
                        .any(|step| step.from.as_bytes() <= at && at <= step.to.as_bytes());
                let gap = line.iter().position(|byte| *byte == b' ');
                gap.map_or(&[][..], |gap| &line[gap + 1..])
            }
            None => &line[..],
        };
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        self.whole.push_line(text);
        if self.is_within {
            self.kept.push_line(text);
        }
    }

    /// The end of the cut; of the whole log where no line is within it.
    pub(super) fn text(mut self) -> String {
        if !self.line.is_empty() {
            self.end_line();
        }
        let end = if self.kept.0.is_empty() { self.whole } else { self.kept };
        end.text()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(steps: &[(&str, &str)], log: &str, piece: usize) -> String {
        let time = |at: &str| format!("2026-11-28T08:00:{at}");
        let steps = steps.iter().map(|(from, to)| StepTime { from: time(from), to: time(to) });
        let mut cut = LogCut::new(steps.collect());
        for piece in log.as_bytes().chunks(piece) {
            cut.feed(piece);
        }
        cut.text()
    }

    const LOG: &str = "2026-11-28T08:00:01.0000000Z checkout\n\
        2026-11-28T08:00:04.1234567Z npm test\r\n\
        expected 4\n\
        2026-11-28T08:00:05.0000000Z failed\n\
        2026-11-28T08:00:09.0000000Z clean up\nbye";

    #[test]
    fn log_is_cut_by_failed_steps() {
        for piece in [1, 7, 1_000] {
            assert_eq!(cut(&[("04", "05")], LOG, piece), "npm test\nexpected 4\nfailed\n");
            assert_eq!(cut(&[("01", "01"), ("09", "09")], LOG, piece), "checkout\nclean up\nbye\n");
        }
        assert_eq!(cut(&[], LOG, 9), "checkout\nnpm test\nexpected 4\nfailed\nclean up\nbye\n");
    }

    #[test]
    fn whole_log_stands_for_an_empty_cut() {
        let cut = cut(&[("06", "08")], LOG, 9);
        assert_eq!(cut, "checkout\nnpm test\nexpected 4\nfailed\nclean up\nbye\n");
    }

    #[test]
    fn long_log_keeps_its_end() {
        let lines: Vec<String> = (0..20_000).map(|number| format!("line {number}")).collect();
        let kept = cut(&[], &lines.join("\n"), 4_096);
        assert!(kept.len() <= LOG_BYTES_MAX, "{}", kept.len());
        assert!(kept.starts_with("line 1") && kept.ends_with("line 19999\n"));
        // A line without an end is held within the bound too.
        let kept = cut(&[], &"x".repeat(3 * LOG_BYTES_MAX), 4_096);
        assert_eq!(kept.len(), LOG_BYTES_MAX);
    }
}
