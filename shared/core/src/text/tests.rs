use proptest::prelude::*;
use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag, TagEnd};

use super::markdown::options;
use super::*;

mod dialect;

fn ink(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

fn is_subsequence(needle: &str, hay: &str) -> bool {
    let mut hay = hay.chars();
    needle.chars().all(|c| hay.any(|h| h == c))
}

/// The code of every fenced block, as a Markdown reader sees it.
fn fenced_code(markdown: &str) -> String {
    let mut inside = false;
    let mut out = String::new();
    for event in Parser::new_ext(markdown, options()) {
        match event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_))) => inside = true,
            Event::End(TagEnd::CodeBlock) => inside = false,
            Event::Text(text) if inside => out.push_str(&text),
            _ => {}
        }
    }
    ink(&out)
}

#[test]
fn only_hiding_characters_are_escaped() {
    assert_eq!(visible("rm\u{202e} x\u{7}\n\ty"), "rm\\u{202e} x\\u{7}\n\ty");
    for plain in ["❤️ 👩‍👩‍👧 👍🏽 ©️", "ശ്‍", "a\tb\nc", "漢字 é"] {
        assert_eq!(visible(plain), plain);
    }
    // Data in variation selectors, a joiner between letters, tag characters, blanks that are not spaces.
    for hidden in [
        "a\u{fe0f}",
        "❤\u{fe0f}\u{fe0e}",
        "\u{fe01}",
        "r\u{200d}m",
        "\u{e0101}",
        "\u{e0041}",
        "\u{2800}",
    ] {
        assert!(visible(hidden).contains("\\u{"), "{hidden:?}");
    }
}

#[test]
fn inline_fence_never_begins_a_part() {
    let text = format!("{} ```no block``` {}", "word ".repeat(20), "word ".repeat(20));
    for max in 20..140 {
        let parts = split(&text, max);
        assert!(parts.iter().all(|part| !part.starts_with("```")), "{max}: {parts:?}");
    }
}

#[test]
fn gist_is_summary_or_beginning() {
    let long = "words of it ".repeat(100);
    let with = format!(
        "# Report\n\n{long}\n\n## Summary of all\n\nIt **works**.\n\n### More\n\nA detail.\n\n## Appendix\n\n{long}"
    );
    assert_eq!(gist(&with, 200), "## Summary of all\n\nIt **works**.\n\n### More\n\nA detail.");
    let without = format!("# Report\n\nFirst.\n\n```\n# Summary\n```\n\n{long}");
    let begins = gist(&without, 60);
    assert!(begins.starts_with("# Report\n\nFirst.") && units(&begins) <= 60, "{begins}");
    let too_long = format!("# A\n\n{long}\n\n# Summary\n\n{long}");
    assert!(gist(&too_long, 100).starts_with("# A"));
    assert_eq!(gist("short", 100), "short");
}

#[test]
fn short_answer_is_unchanged_blank_dropped() {
    assert_eq!(split("Done.\n\n- a\n- b", 2000), ["Done.\n\n- a\n- b"]);
    assert!(split("", 2000).is_empty());
    assert!(split(" \n\n\t", 2000).is_empty());
}

#[test]
fn split_code_block_keeps_its_language() {
    let code: String = (0..200).map(|n| format!("    let value_{n} = {n};\n")).collect();
    let answer = format!("Here it is:\n\n```rust\n{code}```\n\nThat was it.");
    let parts = split(&answer, 500);
    assert!(parts.len() > 5);
    for part in &parts {
        assert!(units(part) <= 500);
        assert_eq!(part.matches("```").count() % 2, 0, "unbalanced: {part}");
    }
    assert!(parts[1].starts_with("```rust\n    let value_"));
    assert!(parts.last().expect("parts").ends_with("That was it."));
    let lines: Vec<&str> =
        parts.iter().flat_map(|p| p.lines()).filter(|l| l.contains("value_")).collect();
    assert_eq!(lines.len(), 200, "a line was cut or lost");
}

#[test]
fn no_cut_stands_in_a_closing_fence() {
    // However the bound falls beside the one long word of the block.
    for length in 300..420 {
        let answer = format!("```\n{}\n```", "x".repeat(length));
        for part in split(&answer, 400) {
            assert!(part.starts_with("```\n") && part.ends_with("\n```"), "{length}: {part}");
        }
    }
}

#[test]
fn nested_list_code_survives_split() {
    let code: String = (0..80).map(|n| format!("       step_{n}();\n")).collect();
    let answer = format!("1. First\n\n   - Then\n\n       ```js\n{code}       ```\n\n2. Last");
    let original: String = (0..80).map(|n| format!("step_{n}();")).collect();
    let parts = split(&answer, 300);
    assert!(parts.len() > 3);
    assert_eq!(parts.iter().map(|p| super::tests::fenced_code(p)).collect::<String>(), original);
}

#[test]
fn quoted_code_survives_split() {
    let code: String = (0..80).map(|n| format!("> step_{n}();\n")).collect();
    let answer = format!("> Look:\n>\n> ```js\n{code}> ```\n> Good?");
    let parts = split(&answer, 300);
    assert!(parts.iter().all(|p| p.lines().all(|l| l.starts_with('>'))));
    let original: String = (0..80).map(|n| format!("step_{n}();")).collect();
    assert_eq!(parts.iter().map(|p| super::tests::fenced_code(p)).collect::<String>(), original);
}

#[test]
fn unclosed_code_block_is_closed() {
    let answer = format!("```sh\n{}", "echo one two three\n".repeat(40));
    for part in split(&answer, 200) {
        assert!(part.starts_with("```sh\n") && part.ends_with("\n```"), "{part}");
    }
}

#[test]
fn list_end_closes_code_block() {
    let code = "  step();\n".repeat(60);
    let answer = format!("- x\n\n  ```py\n{code}Words after the list.");
    let parts = split(&answer, 300);
    let last = parts.last().expect("parts");
    assert_eq!(last, "Words after the list.");
    assert!(parts[1..parts.len() - 1].iter().all(|part| {
        part.starts_with("```py\n") && part.ends_with("\n```") && units(part) <= 300
    }));
}

#[test]
fn each_table_part_has_its_header() {
    let rows = |prefix: &str| format!("{prefix}| service | ok |\n").repeat(60);
    for (prefix, kept) in [("", ""), ("   ", ""), ("> ", "> ")] {
        let head = format!("{prefix}| Name | State |\n{prefix}|---|:-:|\n");
        let lead = if prefix == "   " { "1. Sizes:\n\n" } else { "" };
        let parts = split(&format!("{lead}{head}{}\nAfterwards.", rows(prefix)), 300);
        assert!(parts.len() > 3, "{prefix:?}");
        for part in &parts[1..] {
            let begins = format!("{kept}| Name | State |\n{kept}|---|:-:|\n{kept}| service");
            assert!(part.starts_with(&begins) && units(part) <= 300, "{part}");
        }
        let all = parts.concat().matches("| service |").count();
        assert_eq!(all, 60, "{prefix:?}");
        assert!(parts[parts.len() - 1].ends_with("Afterwards."));
    }
}

#[test]
fn grapheme_clusters_are_never_cut() {
    for cluster in ["\u{1f1e9}\u{1f1ea}", "नि", "👩‍👩‍👧", "e\u{301}", "👍🏽"] {
        let text = format!("a{}", cluster.repeat(400));
        for part in split(&text, 301) {
            let clusters = part.strip_prefix('a').unwrap_or(&part);
            assert_eq!(clusters.replace(cluster, ""), "", "{part}");
        }
        let short = shorten(&text, 100);
        let kept = short.trim_start_matches('a').trim_end_matches('…');
        assert_eq!(kept.replace(cluster, ""), "", "{short}");
    }
    let endless = format!("a{}", "\u{301}".repeat(500));
    assert_eq!(split(&endless, 100).concat(), endless);
}

#[test]
fn terminal_control_sequences_are_removed() {
    for (text, read) in [
        ("\u{1b}[31mFAIL\u{1b}[0m", "FAIL"),
        ("\u{1b}]8;;https://e.org\u{1b}\\here\u{1b}]8;;\u{7}", "here"),
        ("\u{9b}1;2Ha\u{7}b\u{8}c", "abc"),
        ("10%\r20%\r\nx\ty", "10%\n20%\nx\ty"),
        ("\u{1b}]no end of it", "no end of it"),
        ("\u{1b}]no end\nof it\u{7}", "no end\nof it"),
        ("\u{1b}(Ba\u{1b}=b\u{1b}", "ab"),
        ("a[31m é\u{1b}é", "a[31m éé"),
    ] {
        assert_eq!(without_controls(text), read, "{text:?}");
    }
}

#[test]
fn fitting_table_is_not_cut() {
    let table = format!("| a | b |\n|---|---|\n{}", "| one | two |\n".repeat(20));
    let answer = format!("{}\n\n{table}\nAfterwards.", "Words before. ".repeat(5));
    let parts = split(&answer, units(&table) + 10);
    assert!(parts.iter().any(|part| part.contains(table.trim())), "{parts:#?}");
}

#[test]
fn fitting_links_and_words_stay_whole() {
    let link = "[the words of it](https://example.com/a/very/long/path?with=query)";
    let answer = format!("{} {link} {}", "word ".repeat(12), "word ".repeat(30));
    for part in split(&answer, 100) {
        assert_eq!(part.contains("[the"), part.contains(link), "{part}");
        assert!(part.split_whitespace().all(|w| w == "word" || link.contains(w)), "{part}");
    }
}

#[test]
fn endless_word_is_cut_between_characters() {
    let answer = "👩‍👩‍👧".repeat(100);
    let parts = split(&answer, 50);
    assert_eq!(parts.concat(), answer);
    assert!(parts.iter().all(|part| units(part) <= 50
        && !part.starts_with('\u{200d}')
        && !part.ends_with('\u{200d}')));
}

#[test]
fn shortened_text_ends_at_a_word() {
    assert_eq!(shorten("  short ", 10), "short");
    assert_eq!(shorten("one two three", 10), "one two…");
    assert_eq!(shorten("😀😀😀", 5), "😀😀…");
    assert_eq!(shorten("abc", 0), "");
}

#[test]
fn dollars_are_exact_below_a_cent_alone() {
    assert_eq!(
        [0, 450, 9_949, 9_950, 420_000, 1_005_000, 1_234_567_890].map(dollars),
        ["$0.00", "$0.0005", "$0.0099", "$0.01", "$0.42", "$1.01", "$1,234.57"]
    );
}

fn markdown() -> impl Strategy<Value = String> {
    let block = prop_oneof![
        "[a-z é漢😀]{1,200}",
        "(- [a-z ]{1,60}\n){1,8}",
        "(```|~~~~|````)(rust|js|)\n([a-z(){};` ]{0,40}\n){0,30}(```|~~~~|````)?",
        "> ```\n(> [a-z]{1,30}\n){1,20}> ```",
        "- x\n\n  ```py\n(  [a-z]{1,30}\n){1,20}  ```",
        "\\| a \\| b \\|\n\\|---\\|---\\|\n(\\| [a-z]{1,9} \\| [a-z]{1,9} \\|\n){1,12}",
        "\\[[a-z ]{1,30}\\]\\(https://[a-z]{1,40}\\)",
        "#{1,4} [a-z]{1,30}",
        "[a-z]{100,400}",
        "<div>[a-z\n]{1,40}</div>",
        "\\[ref\\]: https://e.org",
    ];
    prop::collection::vec(block, 1..10).prop_map(|blocks| blocks.join("\n\n"))
}

proptest! {
    #[test]
    fn split_is_bounded_and_lossless(text in markdown(), max in 40usize..400) {
        let parts = split(&text, max);
        let joined = ink(&parts.concat());
        prop_assert!(parts.iter().all(|part| units(part) <= max && !part.trim().is_empty()));
        prop_assert!(is_subsequence(&ink(&text), &joined));
        let repeated = ["```", "~~~", "|---|"].iter().any(|mark| text.contains(mark));
        prop_assert!(repeated || ink(&text) == joined);
    }

    #[test]
    fn any_text_splits_within_bound(text in any::<String>(), max in 0usize..100) {
        let parts = split(&text, max);
        prop_assert!(parts.iter().all(|part| units(part) <= max.max(PART_UNITS_MIN)));
        prop_assert!(is_subsequence(&ink(&text), &ink(&parts.concat())));
    }

    #[test]
    fn hostile_punctuation_splits_within_bound(text in "[`~>\\-|\\[\\]()* \n\ta:0.<😀]{0,600}", max in 40usize..120) {
        let parts = split(&text, max);
        prop_assert!(parts.iter().all(|part| units(part) <= max));
        prop_assert!(is_subsequence(&ink(&text), &ink(&parts.concat())));
    }
}
