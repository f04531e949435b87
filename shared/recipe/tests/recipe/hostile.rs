//! Files that somebody made on purpose.

use bobbin_recipe::{
    FILE_BYTES_MAX, ProjectFiles, Recipe, WANTED, is_wanted, of_settings, recipe_of,
};
use proptest::prelude::*;

use crate::expected::with;
use crate::fixture::{files, named};

const OWN: &str = ".bobbin/environment.yaml";
const DEVCONTAINER: &str = ".devcontainer/devcontainer.json";
const WORKFLOW: &str = ".github/workflows/copilot-setup-steps.yml";
const MISE: &str = "mise.toml";
/// Bytes of a sentence with a quoted text in it.
const SENTENCE_MAX: usize = 400;

/// Whether a recipe keeps to every bound, with nothing hidden in what people read.
fn is_bounded(recipe: &Recipe) -> bool {
    let steps = || recipe.set_up.iter().chain(&recipe.start);
    let shown = steps().map(|step| &step.name).chain(&recipe.refused);
    recipe.set_up.len() <= 20
        && recipe.start.len() <= 20
        && recipe.ports.len() <= 20
        && recipe.tools.len() <= 20
        && recipe.variables.len() <= 50
        && recipe.refused.len() <= 26
        && steps().all(|step| step.run.len() <= 4_096 && (1..=80).contains(&step.name.len()))
        && recipe.refused.iter().all(|sentence| sentence.len() <= SENTENCE_MAX)
        && shown.flat_map(|text| text.chars()).all(|c| !c.is_control() && c != '\u{202e}')
        && serde_json::to_vec(recipe).unwrap().len() <= 24_576
}

/// The sentence of a file from which nothing is taken.
fn refused(path: &str, text: impl Into<Vec<u8>>) -> String {
    let recipe = recipe_of(&with(path, text)).unwrap();
    assert!(is_bounded(&recipe));
    assert_eq!((recipe.set_up.len(), recipe.start.len()), (0, 0));
    assert_eq!(recipe.refused.len(), 1, "{:?}", recipe.refused);
    recipe.refused[0].clone()
}

#[test]
fn large_files_are_not_read() {
    for path in [OWN, DEVCONTAINER, WORKFLOW] {
        let said = refused(path, vec![b' '; FILE_BYTES_MAX + 1]);
        assert_eq!(
            said,
            format!("`{path}`: larger than 64 KB: move what its steps do into scripts.")
        );
    }
    let said = of_settings(&" ".repeat(FILE_BYTES_MAX + 1)).unwrap_err();
    assert_eq!(said, "larger than 64 KB: move what its steps do into scripts");
}

#[test]
fn bytes_that_are_no_text_name_their_line() {
    let said = refused(OWN, b"set-up:\n  - \xff\n");
    assert_eq!(said, format!("`{OWN}`, line 2: not UTF-8: save the file as UTF-8."));
    assert!(refused(DEVCONTAINER, b"\xff\xfe{\0}\0").contains("line 1: not UTF-8"));
}

#[test]
fn bombs_of_aliases_are_refused_at_once() {
    let mut bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n".to_owned();
    for (before, name) in "abcdefgh".chars().zip("bcdefghi".chars()) {
        bomb += &format!("{name}: &{name} [{}]\n", format!("*{before},").repeat(9));
    }
    for text in [bomb.as_str(), "set-up: &a [*a, *a]", "&a a: *a", "<<: *x", "a: !!binary aGk="] {
        for path in [OWN, WORKFLOW] {
            assert!(refused(path, text).contains(", line 1: "), "{text}");
        }
    }
}

#[test]
fn depth_is_refused_at_once() {
    for (path, open) in [
        (OWN, "["),
        (OWN, "{a: "),
        (OWN, "? "),
        (OWN, "- "),
        (WORKFLOW, "[[[{a: "),
        (DEVCONTAINER, "["),
        (DEVCONTAINER, "{\"a\":"),
    ] {
        let text = open.repeat(FILE_BYTES_MAX / open.len());
        let said = refused(path, text);
        // Each parser has a bound of its own beside ours.
        let words = ["32 values inside each other", "nesting depth", "recursion limit"];
        assert!(words.iter().any(|words| said.contains(words)), "{open} {said}");
    }
    let deep = with(MISE, format!("[tools]\nnode = {}", "[".repeat(60_000)));
    let said = &recipe_of(&deep).unwrap().refused;
    assert!(said[0].starts_with("`mise.toml`, line 2: not TOML ("), "{said:?}");
}

#[test]
fn many_of_everything_are_cut_in_words() {
    let steps = "      - run: make\n".repeat(30);
    let text = format!("jobs:\n  copilot-setup-steps:\n    steps:\n{steps}");
    let recipe = recipe_of(&with(WORKFLOW, text)).unwrap();
    assert_eq!(recipe.set_up.len(), 20);
    assert_eq!(recipe.refused.len(), 10);
    assert_eq!(recipe.refused[0], "Line 24: `make` is beyond the 20th step: it is not run.");

    let keys: Vec<String> = (0..400).map(|number| format!("\"k{number}\": 1")).collect();
    let recipe = recipe_of(&with(DEVCONTAINER, format!("{{{}}}", keys.join(",")))).unwrap();
    assert_eq!(recipe.refused.len(), 25);
    assert_eq!(recipe.refused[24], "376 more are ignored.");
    let said = refused(DEVCONTAINER, format!("{{{},{}}}", keys.join(","), keys.join(",")));
    assert!(said.contains("`k0` is on line 1 already"), "{said}");
    let keys: Vec<String> = (0..501).map(|number| format!("\"k{number}\": 1")).collect();
    let said = refused(DEVCONTAINER, format!("{{{}}}", keys.join(",")));
    assert!(said.ends_with("line 1: more than 500 keys in one place."), "{said}");

    let numbers: Vec<String> = (1..=60).map(|number| number.to_string()).collect();
    let ports = numbers.join(",");
    let set: Vec<String> = numbers.iter().map(|n| format!("\"V{n}\": \"{n}\"")).collect();
    let text = format!("{{\"forwardPorts\": [{ports}], \"remoteEnv\": {{{}}}}}", set.join(","));
    let recipe = recipe_of(&with(DEVCONTAINER, text)).unwrap();
    assert_eq!((recipe.ports.len(), recipe.variables.len()), (20, 50));
    assert!(
        recipe
            .refused
            .contains(&"Line 1: `V51` is beyond the 50th variable: it is left out.".to_owned())
    );
    assert!(is_bounded(&recipe));
}

#[test]
fn long_texts_are_refused_in_words() {
    let long = "x".repeat(4_097);
    let said = refused(DEVCONTAINER, format!("{{\"postCreateCommand\": \"{long}\"}}"));
    let expected = "is longer than 4,096 bytes: move it into a script and run that.";
    assert_eq!(said, format!("Line 1: `postCreateCommand` {expected}"));
    let said = of_settings(&format!("set-up:\n  - {long}")).unwrap_err();
    assert_eq!(said, format!("line 2: the step {}", expected.trim_end_matches('.')));
    let steps = format!("- {}\n", "x".repeat(4_000)).repeat(8);
    let said = of_settings(&format!("set-up:\n{steps}")).unwrap_err();
    assert_eq!(said, "more than 8,192 bytes in all: move its steps into scripts");
    assert!(refused(OWN, format!("set-up:\n{steps}")).contains("more than 8,192 bytes"));
}

#[test]
fn nothing_hides_in_what_people_read() {
    let text = r#"{
        "postCreateCommand": "\u202Eevil\u001b[2J `x` @everyone",
        "x`\u202E\n`y": 1,
        "postStartCommand": "a\u0000b",
        "remoteEnv": { "A": "a\u0000b" }
    }"#;
    let recipe = recipe_of(&with(DEVCONTAINER, text)).unwrap();
    assert_eq!(recipe.set_up[0].name, r"\u{202e}evil [2J `x` @everyone");
    assert_eq!(
        recipe.refused,
        [
            "Line 4: `postStartCommand` has a NUL character: leave that out.",
            "Line 5: `A` has a value with a NUL character: leave that out.",
            r"Line 3: `x'\u{202e} 'y` is not known: it is left out.",
        ]
    );
    assert!(is_bounded(&recipe));
}

#[test]
fn long_names_are_cut_between_letters() {
    let text = format!("{{\"postCreateCommand\": \"{}\"}}", "ü".repeat(100));
    let recipe = recipe_of(&with(DEVCONTAINER, text)).unwrap();
    assert_eq!(recipe.set_up[0].name, format!("{}…", "ü".repeat(38)));
}

/// Bytes that look like a file of ours, cut and mixed.
fn mixed() -> impl Strategy<Value = Vec<u8>> {
    let whole: Vec<Vec<u8>> =
        named("").iter().flat_map(|name| files(name).texts.into_values()).collect();
    let piece = (prop::sample::select(whole), any::<prop::sample::Index>(), 0..200_usize);
    let cut = piece.prop_map(|(bytes, at, length)| {
        let start = at.index(bytes.len().max(1)).min(bytes.len());
        bytes[start..(start + length).min(bytes.len())].to_vec()
    });
    let token = prop::sample::select(vec![
        &b"{"[..],
        b"}",
        b"[",
        b"]",
        b"\"",
        b": ",
        b"- ",
        b"\n",
        b"  ",
        b"\t",
        b"#",
        b"//",
        b"/*",
        b"|\n",
        b">-\n",
        b"&a ",
        b"*a",
        b"!!x ",
        b"? ",
        b"---\n",
        b"...\n",
        b"%YAML 1.2\n",
        b"'",
        b"\\u",
        b"\\",
        b",",
        b"\xff",
        b"\0",
        b"\r",
        b"=",
        b"\"\"\"",
    ])
    .prop_map(<[u8]>::to_vec);
    prop::collection::vec(prop_oneof![cut, token], 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_bytes_break_the_reading(bytes in prop_oneof![mixed(), any::<Vec<u8>>()]) {
        let paths = WANTED.iter().copied().chain([".devcontainer/x/devcontainer.json"]);
        for path in paths {
            prop_assert!(is_wanted(path));
            let files = ProjectFiles {
                root: ["yarn.lock".to_owned()].into(),
                ..with(path, bytes.clone())
            };
            let recipe = recipe_of(&files);
            prop_assert!(recipe.as_ref().is_none_or(is_bounded), "{recipe:?}");
        }
        if let Ok(text) = std::str::from_utf8(&bytes) {
            match of_settings(text) {
                Ok(said) => prop_assert!(
                    said.recipe.is_none_or(|it| is_bounded(&it) && it.refused.is_empty())
                ),
                Err(words) => prop_assert!(words.len() <= SENTENCE_MAX),
            }
        }
    }
}
