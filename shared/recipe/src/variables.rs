//! Whether a text can be a variable of a step.

/// Bytes of a name.
const NAME_MAX: usize = 100;
/// Bytes of a value.
const VALUE_MAX: usize = 4_096;

/// Why nobody can set this variable.
pub(crate) fn fault(name: &str, value: &str) -> Option<&'static str> {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let is_name = name.len() <= NAME_MAX
        && name.chars().all(is_letter)
        && !name.starts_with(|first: char| first.is_ascii_digit())
        && !name.is_empty();
    if !is_name {
        return Some("is not a variable name: use letters, digits and `_`");
    }
    if value.len() > VALUE_MAX {
        return Some("has a value of more than 4,096 bytes: put it into a file");
    }
    value.contains('\0').then_some("has a value with a NUL character: leave that out")
}
