//! Lines of a difference: whether one is part of it, and where a push has left it.

use super::Side;

/// Start and length of one side in the head of a hunk: `-3,2` or `+4`.
fn span(text: &str) -> Option<(u64, u64)> {
    let text = text.trim_start_matches(['-', '+']);
    let (start, length) = text.split_once(',').unwrap_or((text, "1"));
    Some((start.parse().ok()?, length.parse().ok()?))
}

/// Both sides of a hunk's head: `@@ -3,2 +4,2 @@`.
fn spans(line: &str) -> Option<((u64, u64), (u64, u64))> {
    let mut words = line.strip_prefix("@@ ")?.split(' ');
    Some((span(words.next()?)?, span(words.next()?)?))
}

/// The hunk down to a line, and the line's place in the whole patch; `None` of a line that is no part of it.
pub(super) fn anchor(patch: &str, side: Side, wanted: u64) -> Option<(String, u64)> {
    let (mut left, mut right) = (0, 0);
    let mut hunk: Vec<&str> = Vec::new();
    for (position, line) in (0..).zip(patch.lines()) {
        if let Some(((old, _), (new, _))) = spans(line) {
            (left, right) = (old, new);
            hunk = vec![line];
            continue;
        }
        hunk.push(line);
        let (on_left, on_right) = match line.as_bytes().first() {
            Some(b'-') => (true, false),
            Some(b'+') => (false, true),
            Some(b'\\') => (false, false),
            _ => (true, true),
        };
        let is_it = match side {
            Side::Left => on_left && left == wanted,
            Side::Right => on_right && right == wanted,
        };
        if is_it {
            return Some((hunk.join("\n"), position));
        }
        left += u64::from(on_left);
        right += u64::from(on_right);
    }
    None
}

/// Where a line of the old side is on the new one, by a difference without context; `None` if it was changed.
pub(super) fn moved(difference: &str, line: u64) -> Option<u64> {
    let mut at = line;
    for ((old, removed), (_, added)) in difference.lines().filter_map(spans) {
        // Lines that are only added come after the one that is named.
        if removed == 0 && line > old {
            at += added;
        } else if removed > 0 && line >= old + removed {
            at = (at + added).saturating_sub(removed);
        } else if removed > 0 && line >= old {
            return None;
        }
    }
    Some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "@@ -1,3 +1,4 @@\n one\n-two\n+2\n+2b\n three\n@@ -9 +10 @@ fn\n-nine\n+9";

    #[test]
    fn lines_of_a_difference_have_a_place() {
        let found =
            |side, line| anchor(PATCH, side, line).map(|(hunk, at)| (hunk.lines().count(), at));
        assert_eq!(found(Side::Right, 2), Some((4, 3)));
        assert_eq!(found(Side::Left, 2), Some((3, 2)));
        assert_eq!(found(Side::Right, 4), Some((6, 5)));
        assert_eq!(found(Side::Right, 10), Some((3, 8)));
        assert_eq!(found(Side::Right, 7), None);
        assert_eq!(found(Side::Left, 10), None);
    }

    #[test]
    fn lines_move_until_they_are_changed() {
        let difference =
            "@@ -2 +2,2 @@\n-two\n+2\n+2b\n@@ -5,0 +7,3 @@\n+a\n+b\n+c\n@@ -9,2 +13,0 @@\n-x\n-y\n";
        let all = [1, 2, 3, 5, 6, 9, 10, 11].map(|line| moved(difference, line));
        assert_eq!(all, [Some(1), None, Some(4), Some(6), Some(10), None, None, Some(13)]);
    }
}
