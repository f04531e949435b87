//! Compares what people see with what they should see.

/// Compares the seen with the expected text, line by line.
pub fn shows(seen: &str, expected: &str) {
    let lines = |text: &str| -> Vec<String> {
        let lines = text.trim_matches('\n').lines();
        lines.map(|line| line.trim_end().to_owned()).collect()
    };
    let (seen, expected) = (lines(seen), lines(expected));
    assert!(seen == expected, "seen:\n{}\n\nexpected:\n{}", seen.join("\n"), expected.join("\n"));
}
