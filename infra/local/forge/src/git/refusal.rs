//! The texts with which GitHub refuses a push.

use super::packet;

/// A violated rule: its sentence, and what violates it.
pub(crate) struct Violation {
    pub(crate) sentence: String,
    pub(crate) found: Vec<String>,
}

impl Violation {
    pub(crate) fn new(sentence: impl Into<String>) -> Self {
        Self { sentence: sentence.into(), found: Vec::new() }
    }

    fn text(&self) -> String {
        let mut text = format!("- {}\n", self.sentence);
        if !self.found.is_empty() {
            let noun = if self.found.len() == 1 { "violation" } else { "violations" };
            text.push_str(&format!("  Found {} {noun}:\n\n", self.found.len()));
            for found in &self.found {
                text.push_str(&format!("  {found}\n"));
            }
        }
        text.push('\n');
        text
    }
}

/// Why a push is refused: what a person reads, and the reason beside each branch.
#[derive(Debug, Default)]
pub(crate) struct Refusal {
    pub(crate) told: String,
    /// By full name. An empty name stands for every branch.
    pub(crate) reasons: Vec<(String, String)>,
}

impl Refusal {
    pub(crate) fn is_none(&self) -> bool {
        self.reasons.is_empty()
    }

    /// Files that are too large.
    pub(crate) fn large_files(&mut self, files: &[(String, u64)], max_bytes: u64, trace: &str) {
        self.told.push_str(&format!("error: Trace: {trace}\n"));
        self.told.push_str("error: See https://gh.io/lfs for more information.\n");
        for (path, bytes) in files {
            self.told.push_str(&format!(
                "error: File {path} is {}; this exceeds GitHub's file size limit of {}\n",
                megabytes(*bytes),
                megabytes(max_bytes)
            ));
        }
        self.told.push_str("error: GH001: Large files detected. You may want to try Git Large File Storage - https://git-lfs.github.com.\n");
        self.declined();
    }

    /// Pointers to files that were not uploaded.
    pub(crate) fn unknown_objects(&mut self, oids: &[String]) {
        let noun = if oids.len() == 1 { "object" } else { "objects" };
        let count = oids.len();
        self.told.push_str(&format!(
            "error: GH008: Your push referenced at least {count} unknown Git LFS {noun}:\n"
        ));
        for oid in oids {
            self.told.push_str(&format!("    {oid}\n"));
        }
        self.told.push_str("Try to push them with 'git lfs push --all'.\n");
        self.declined();
    }

    fn declined(&mut self) {
        self.reasons.push((String::new(), "pre-receive hook declined".to_owned()));
    }

    /// Rules of the older kind.
    pub(crate) fn protected(&mut self, branch: &str, violations: &[Violation]) {
        self.told
            .push_str(&format!("error: GH006: Protected branch update failed for {branch}.\n\n"));
        self.told.extend(violations.iter().map(Violation::text));
        self.reasons.push((branch.to_owned(), "protected branch hook declined".to_owned()));
    }

    /// Rules of rulesets. `rules` is the page with all of them.
    pub(crate) fn ruleset(&mut self, branch: &str, rules: &str, violations: &[Violation]) {
        self.told.push_str(&format!(
            "error: GH013: Repository rule violations found for {branch}.\nReview all repository rules at {rules}\n\n"
        ));
        self.told.extend(violations.iter().map(Violation::text));
        let reason = "push declined due to repository rule violations";
        self.reasons.push((branch.to_owned(), reason.to_owned()));
    }

    /// A secret in a file. Where it is: commit, path and line.
    pub(crate) fn secret(&mut self, branch: &str, kind: &str, places: &[(String, String, usize)]) {
        self.told.push_str(&format!(
            "error: GH013: Repository rule violations found for {branch}.\n\n- GITHUB PUSH PROTECTION\n  —————————————————————————————————————————\n    Resolve the following violations before pushing again\n\n    - Push cannot contain secrets\n\n      —— {kind} ——————————————————————\n       locations:\n"
        ));
        for (commit, path, line) in places {
            self.told.push_str(&format!(
                "         - commit: {commit}\n           path: {path}:{line}\n"
            ));
        }
        self.told.push_str("\n       (?) To push, remove secret from commit(s) or follow this URL to allow the secret.\n\n");
        let reason = "push declined due to repository rule violations";
        self.reasons.push((branch.to_owned(), reason.to_owned()));
    }

    /// A file that an app must not touch.
    pub(crate) fn workflow(&mut self, branch: &str, path: &str) {
        let reason = format!(
            "refusing to allow a GitHub App to create or update workflow `{path}` without `workflows` permission"
        );
        self.reasons.push((branch.to_owned(), reason));
    }

    /// The answer to a push of these branches.
    pub(crate) fn answer(&self, branches: &[&str], has_side_band: bool, reports: bool) -> Vec<u8> {
        let mut report = packet::line(b"unpack ok\n");
        for branch in branches {
            let own = self.reasons.iter().find(|(name, _)| name == branch);
            let any = self.reasons.iter().find(|(name, _)| name.is_empty());
            let reason = own.or(any).map_or("pre-receive hook declined", |(_, reason)| reason);
            report.extend(packet::line(format!("ng {branch} {reason}\n").as_bytes()));
        }
        report.extend(packet::FLUSH);
        let report = if reports { report } else { Vec::new() };
        if has_side_band {
            [packet::told(&self.told), packet::report(&report), packet::FLUSH.to_vec()].concat()
        } else {
            report
        }
    }
}

/// As GitHub writes sizes.
#[allow(clippy::cast_precision_loss)]
pub(crate) fn megabytes(bytes: u64) -> String {
    format!("{:.2} MB", bytes as f64 / (1024.0 * 1024.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_told_as_github_tells_them() {
        let mut refusal = Refusal::default();
        let found = vec!["881bbb3d511baa101fc127a2ad906e42ca7f80ed".to_owned()];
        let sentence = "Commits must have verified signatures.".to_owned();
        refusal.ruleset("refs/heads/x", "https://h/o/r/rules", &[Violation { sentence, found }]);
        let expected = "error: GH013: Repository rule violations found for refs/heads/x.\nReview all repository rules at https://h/o/r/rules\n\n- Commits must have verified signatures.\n  Found 1 violation:\n\n  881bbb3d511baa101fc127a2ad906e42ca7f80ed\n\n";
        assert_eq!(refusal.told, expected);
        let mut refusal = Refusal::default();
        refusal.large_files(&[("a b.zip".to_owned(), 688_484_352)], 104_857_600, "00da");
        assert!(refusal.told.contains(
            "error: File a b.zip is 656.59 MB; this exceeds GitHub's file size limit of 100.00 MB\n"
        ));
        let plain = refusal.answer(&["refs/heads/x", "refs/heads/y"], false, true);
        let text = String::from_utf8(plain).expect("text");
        assert_eq!(
            text,
            "000eunpack ok\n002eng refs/heads/x pre-receive hook declined\n002eng refs/heads/y pre-receive hook declined\n0000"
        );
    }
}
