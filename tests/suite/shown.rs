//! What people see, compared with what they should.

/// Compares what is seen with what should be, line by line.
pub fn shows(seen: &str, expected: &str) {
    let lines = |text: &str| -> Vec<String> {
        let lines = text.trim_matches('\n').lines();
        lines.map(|line| line.trim_end().to_owned()).collect()
    };
    let (seen, expected) = (lines(seen), lines(expected));
    assert!(seen == expected, "seen:\n{}\n\nexpected:\n{}", seen.join("\n"), expected.join("\n"));
}
