//! Texts for a shell.

/// Words that a shell does not take for a program's name.
const RESERVED: [&str; 17] = [
    "if", "then", "else", "elif", "fi", "do", "done", "case", "esac", "while", "until", "for",
    "in", "function", "select", "time", "coproc",
];

/// A text that a shell reads as this one word.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_@%+:,./-".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) && !RESERVED.contains(&word) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// A script that runs all of these beside each other, waits for all, and fails if one fails. Each is a command that can
/// stand before `&`.
pub(crate) fn beside_each_other(commands: &[(&str, String)]) -> String {
    let mut script = String::new();
    for (index, (_, command)) in commands.iter().enumerate() {
        script += &format!("{command} & p{index}=$!\n");
    }
    script += "failed=0\n";
    for (index, (name, _)) in commands.iter().enumerate() {
        let said = quoted(&format!("{name} failed"));
        script += &format!("wait \"$p{index}\" || {{ echo {said} >&2; failed=1; }}\n");
    }
    script + "[ \"$failed\" = 0 ]"
}
