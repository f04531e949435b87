//! Makes another input from a seed: bytes for the parsers, and whole values for the code behind them, because most
//! changes of single bytes in JSON only reach the parser.

use serde_json::{Map, Number, Value};

use super::dice::Dice;

/// Changes in one mutation.
const CHANGES_MAX: u64 = 4;
/// Bytes that are repeated at once.
const REPEAT_BYTES_MAX: usize = 64;
/// A piece is repeated this often at most.
const REPEATS_MAX: u64 = 40;
/// Depth of a nested value that is put in.
const DEPTH_MAX: u64 = 60;

/// Text that parsers, renderers and shells are known to stumble over.
const NASTY: [&str; 16] = [
    "",
    " ",
    "\0",
    "\n",
    "\r\n",
    "\u{200b}",
    "\u{202e}",
    "👩‍👩‍👧",
    "\u{fffd}",
    "```",
    "~~~~",
    "> ```\n",
    "| a |\n|---|\n",
    "@everyone",
    "<!channel>",
    "18446744073709551616",
];

/// A mutation of `seed`, at most `bytes_max` long; parts of `other` may be grafted in.
#[must_use]
pub fn mutate(seed: &[u8], other: &[u8], bytes_max: usize, dice: &mut Dice) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..=dice.below(CHANGES_MAX) {
        let by_value = dice.falls(600);
        bytes = by_value
            .then(|| in_json(&bytes, other, dice))
            .flatten()
            .unwrap_or_else(|| in_bytes(bytes, other, dice));
    }
    bytes.truncate(bytes_max);
    bytes
}

fn in_bytes(mut bytes: Vec<u8>, other: &[u8], dice: &mut Dice) -> Vec<u8> {
    let at = dice.place(bytes.len() + 1);
    match dice.below(8) {
        0 => bytes.truncate(at),
        1 => {
            let _ = bytes.drain(..at);
        }
        2 => bytes.insert(at, dice.next().to_le_bytes()[0]),
        3 => {
            let until = (at + dice.place(REPEAT_BYTES_MAX)).min(bytes.len());
            let _ = bytes.drain(at..until);
        }
        4 => {
            let until = (at + dice.place(REPEAT_BYTES_MAX)).min(bytes.len());
            let times = usize::try_from(dice.below(REPEATS_MAX)).unwrap_or_default();
            let again = bytes[at..until].repeat(times);
            let _ = bytes.splice(at..at, again);
        }
        5 => {
            let from = dice.place(other.len() + 1);
            let until = (from + dice.place(4 * REPEAT_BYTES_MAX)).min(other.len());
            let _ = bytes.splice(at..at, other[from..until].iter().copied());
        }
        6 => {
            let _ = bytes.splice(at..at, NASTY[dice.place(NASTY.len())].bytes());
        }
        _ => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << dice.below(8);
            }
        }
    }
    bytes
}

/// Changes a value of the JSON that the bytes are, or of that in one line of a stream.
fn in_json(bytes: &[u8], other: &[u8], dice: &mut Dice) -> Option<Vec<u8>> {
    if let Ok(value) = serde_json::from_slice(bytes) {
        return Some(changed(value, other, dice).into_bytes());
    }
    let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    let of_event: Vec<usize> =
        (0..lines.len()).filter(|at| lines[*at].starts_with(b"data: {")).collect();
    let at = *of_event.get(dice.place(of_event.len()))?;
    if dice.falls(200) {
        // Events late, early or twice.
        let to = of_event[dice.place(of_event.len())];
        lines.swap(at, to);
        return Some(lines.join(&b'\n'));
    }
    let value = serde_json::from_slice(lines[at].get(6..)?).ok()?;
    let line = format!("data: {}", changed(value, other, dice));
    lines[at] = line.as_bytes();
    Some(lines.join(&b'\n'))
}

fn changed(mut value: Value, other: &[u8], dice: &mut Dice) -> String {
    let count = count(&value);
    let mut at = dice.place(count);
    let graft = serde_json::from_slice::<Value>(other).ok();
    if let Some(node) = node(&mut value, &mut at) {
        change(node, graft.as_ref(), dice);
    }
    value.to_string()
}

fn change(node: &mut Value, graft: Option<&Value>, dice: &mut Dice) {
    match dice.below(10) {
        0 => *node = Value::Null,
        1 => *node = number(dice),
        2 => *node = Value::from(NASTY[dice.place(NASTY.len())]),
        3 => *node = Value::from(dice.falls(500)),
        4 => *node = Value::Array(vec![node.clone(); dice.place(30)]),
        5 => *node = Value::Object(Map::from_iter([("id".to_owned(), node.clone())])),
        6 => {
            for _ in 0..dice.below(DEPTH_MAX) {
                *node = Value::Array(vec![node.take()]);
            }
        }
        7 => match node {
            Value::Object(fields) => {
                let name = fields.keys().nth(dice.place(fields.len())).cloned();
                let _ = name.and_then(|name| fields.remove(&name));
            }
            Value::Array(list) if !list.is_empty() => {
                let _ = list.remove(dice.place(list.len()));
            }
            other => *other = Value::Null,
        },
        8 => match node {
            Value::String(text) => {
                let times = usize::try_from(dice.below(REPEATS_MAX)).unwrap_or_default();
                let nasty = NASTY[dice.place(NASTY.len())];
                *text = format!("{text}{nasty}").repeat(times);
            }
            other => *other = number(dice),
        },
        _ => {
            if let Some(graft) = graft {
                let mut graft = graft.clone();
                let mut at = dice.place(count(&graft));
                if let Some(from) = self::node(&mut graft, &mut at) {
                    *node = from.take();
                }
            }
        }
    }
}

fn number(dice: &mut Dice) -> Value {
    match dice.below(6) {
        0 => Value::from(0),
        1 => Value::from(-1),
        2 => Value::from(u64::MAX),
        3 => Value::from(i64::MIN),
        4 => Number::from_f64(1e308).map_or(Value::Null, Value::Number),
        _ => Value::from(dice.next() % 100),
    }
}

/// Values in a value, itself included.
fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(list) => list.iter().map(count).sum(),
        Value::Object(fields) => fields.values().map(count).sum(),
        _ => 0_usize,
    }
}

/// The value with this number, counted from 0 in document order.
fn node<'v>(value: &'v mut Value, at: &mut usize) -> Option<&'v mut Value> {
    let Some(further) = at.checked_sub(1) else {
        return Some(value);
    };
    *at = further;
    match value {
        Value::Array(list) => list.iter_mut().find_map(|value| node(value, at)),
        Value::Object(fields) => fields.values_mut().find_map(|value| node(value, at)),
        _ => None,
    }
}
