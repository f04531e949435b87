//! Commands as they are registered.

use serde_json::Value;

use super::{Rules, units};

/// The whole set of a scope.
pub(super) fn check(set: &Value, rules: &mut Rules) {
    let commands = set.as_array().map_or(&[][..], Vec::as_slice);
    let kind = |command: &Value| command["type"].as_u64().unwrap_or(1);
    for (of, most) in [(1, 100), (2, 15), (3, 15)] {
        let count = commands.iter().filter(|one| kind(one) == of).count();
        rules.must(count <= most, "at most 100 slash commands, 15 menu commands of each type");
    }
    let mut names: Vec<(u64, &str)> =
        commands.iter().map(|one| (kind(one), text(one, "name"))).collect();
    names.sort_unstable();
    names.dedup();
    rules.must(names.len() == commands.len(), "the names of commands of a type differ");
    for command in commands {
        if kind(command) == 1 {
            slash(command, rules);
        } else {
            rules
                .must((1..=32).contains(&units(text(command, "name"))), "a name has 1 to 32 units");
            let bare = text(command, "description").is_empty() && command.get("options").is_none();
            rules.must(bare, "a menu command has neither description nor options");
        }
    }
}

fn slash(command: &Value, rules: &mut Rules) {
    named(command, rules);
    options(command, rules);
    rules.must(
        counted(command) <= 8_000,
        "names, descriptions and values of a command have 8000 units together",
    );
}

fn options(of: &Value, rules: &mut Rules) {
    let options = of["options"].as_array().map_or(&[][..], Vec::as_slice);
    rules.must(options.len() <= 25, "at most 25 options");
    let required: Vec<bool> = options.iter().map(|one| one["required"] == true).collect();
    rules.must(required.is_sorted_by(|a, b| a >= b), "required options come first");
    let mut names: Vec<&str> = options.iter().map(|one| text(one, "name")).collect();
    names.sort_unstable();
    names.dedup();
    rules.must(names.len() == options.len(), "the names of options differ");
    let nested = options.iter().filter(|one| matches!(one["type"].as_u64(), Some(1 | 2))).count();
    rules.must(nested == 0 || nested == options.len(), "subcommands stand beside subcommands only");
    for option in options {
        named(option, rules);
        let choices = option["choices"].as_array().map_or(0, Vec::len);
        rules.must(
            choices <= 25 && (choices == 0 || option["autocomplete"] != true),
            "at most 25 choices, and none beside autocomplete",
        );
        rules.must(
            option["max_length"].as_u64().is_none_or(|most| most <= 6_000),
            "an option takes at most 6000 units",
        );
        self::options(option, rules);
    }
}

/// `^[-_'\p{L}\p{N}\p{sc=Deva}\p{sc=Thai}]{1,32}$`, in lower case, with a description.
fn named(one: &Value, rules: &mut Rules) {
    let name = text(one, "name");
    let plain = |c: char| c.is_alphanumeric() || "-_'".contains(c);
    let fits = (1..=32).contains(&name.chars().count())
        && name.chars().all(plain)
        && name.to_lowercase() == name;
    rules.must(fits, "a name has 1 to 32 letters, digits, hyphens in lower case");
    let about = units(text(one, "description"));
    rules.must((1..=100).contains(&about), "a description has 1 to 100 units");
}

fn counted(one: &Value) -> usize {
    let own: usize =
        ["name", "description", "value"].iter().map(|field| units(text(one, field))).sum();
    let inner = ["options", "choices"].iter().filter_map(|field| one[*field].as_array());
    own + inner.flatten().map(counted).sum::<usize>()
}

fn text<'v>(one: &'v Value, field: &str) -> &'v str {
    one[field].as_str().unwrap_or_default()
}
