//! Read units, as DynamoDB's documentation says that they are counted ("DynamoDB read and write operations", "Using
//! Global Secondary Indexes"; the sizes: "DynamoDB item sizes and formats").
//!
//! A query counts the bytes of all that it read together, in steps of 4 KB, at least one step; eventually consistent
//! (an index can be read in no other way) a step is half a unit. Of a batch each item is counted by itself, also one
//! that is not there.

use serde_json::Value;

const STEP_BYTES: u64 = 4 * 1024;

/// The cost of a call that returned all that it read, as our calls to the index do.
pub fn units(action: &str, asked: &Value, answer: &Value) -> f64 {
    let steps = |bytes: u64| bytes.div_ceil(STEP_BYTES).max(1) as f64;
    let share = |asked: &Value| match asked["ConsistentRead"].as_bool() {
        Some(true) => 1.0,
        _ => 0.5,
    };
    match action {
        "Query" => {
            let items = answer["Items"].as_array();
            steps(items.into_iter().flatten().map(bytes).sum()) * share(asked)
        }
        "BatchGetItem" => {
            let tables = asked["RequestItems"].as_object();
            let read = |(name, wanted): (&String, &Value)| {
                let found = answer["Responses"][name].as_array();
                let found = found.map_or(&[][..], Vec::as_slice);
                let keys = wanted["Keys"].as_array().map_or(0, Vec::len);
                let missing = keys.saturating_sub(found.len()) as f64;
                let there: f64 = found.iter().map(|item| steps(bytes(item))).sum();
                (there + missing) * share(wanted)
            };
            tables.into_iter().flatten().map(read).sum()
        }
        _ => 0.0,
    }
}

/// The cost that the engine reports.
pub fn told(answer: &Value) -> f64 {
    match &answer["ConsumedCapacity"] {
        Value::Array(tables) => tables.iter().map(one).sum(),
        table => one(table),
    }
}

fn one(table: &Value) -> f64 {
    table["CapacityUnits"].as_f64().unwrap_or(0.0)
}

/// Bytes of an item: names and values. A number takes a byte for two digits, and one more.
fn bytes(item: &Value) -> u64 {
    let attributes = item.as_object().into_iter().flatten();
    let sizes = attributes.map(|(name, value)| {
        let text = |kind: &str| value[kind].as_str().map(str::len);
        let number = text("N").map(|digits| digits.div_ceil(2) + 1);
        name.len() + text("S").or(number).unwrap_or(1)
    });
    sizes.sum::<usize>() as u64
}
