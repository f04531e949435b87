use super::*;

fn backticks(markdown: &str) -> String {
    fit(markdown, Dialect::Backticks)
}

fn entities(markdown: &str) -> String {
    fit(markdown, Dialect::Entities)
}

#[test]
fn fences_become_three_backticks() {
    let apart = "`\u{2060}`\u{2060}`";
    for (written, sent) in [
        ("````md\n# A\n```js\nx\n```\n````", format!("```md\n# A\n{apart}js\nx\n{apart}\n```")),
        ("~~~py\nx\n~~~", "```py\nx\n```".to_owned()),
        ("```js title=\"a.js\"\nx\n```", "```js\nx\n```".to_owned()),
        ("```{.c}\nx\n```", "```\nx\n```".to_owned()),
        ("a\n\n    x\n      y\n\nb", "a\n\n```\nx\n  y\n```\n\nb".to_owned()),
        ("1. a\n   ~~~sh\n   x\n   ~~~\n2. b", "1. a\n```sh\nx\n```\n2. b".to_owned()),
        ("- ```\n  x\n  ```\n- b", "- \n```\nx\n```\n- b".to_owned()),
        (">> ```\n>> x\n>>\n>> y\n>> ```", "> ```\n> x\n> \n> y\n> ```".to_owned()),
        ("```\n```\nb", "\nb".to_owned()),
        ("```rs\nx", "```rs\nx\n```".to_owned()),
        ("a ``` b", "a \\`\\`\\` b".to_owned()),
        ("a ```` ``` ```` b", format!("a `` {apart} `` b")),
    ] {
        assert_eq!(backticks(written), sent, "{written:?}");
    }
}

#[test]
fn tables_are_drawn_everywhere() {
    let drawn = |quote: &str| {
        format!("{quote}```\n{quote}Name | n\n{quote}-----|--\n{quote}a    | 1\n{quote}```")
    };
    for (prefix, quote) in [("", ""), ("   ", ""), ("> ", "> ")] {
        let rows = ["| Name | n |", "|:--|--:|", "| `a` | 1 |"];
        let table = rows.map(|row| format!("{prefix}{row}")).join("\n");
        let (lead, gap) = if prefix == "   " { ("1. Sizes:\n\n", "\n") } else { ("", "\n") };
        assert_eq!(
            backticks(&format!("{lead}{table}\n{gap}Behind")),
            format!("{lead}{}\n{gap}Behind", drawn(quote)),
        );
        assert!(entities(&table).contains("| `a` | 1 |"));
    }
    let wide = "| 漢字 | b<br>c |\n|--|--|\n| [x](https://e.org) | ![y](https://i.org) |";
    assert_eq!(
        backticks(wide),
        "```\n漢字              | b c\n------------------|------------------\nx (https://e.org) | y (https://i.org)\n```"
    );
    let code = "```\n| a |\n|---|\n| b |\n```";
    assert_eq!(backticks(code), code);
}

#[test]
fn unsupported_markup_is_written_out() {
    for (written, small, full) in [
        ("#### Deep\n##### a #####", "**Deep**\n**a**", "#### Deep\n##### a #####"),
        ("### Third\n\nTitle\n===", "### Third\n\n# Title", "### Third\n\nTitle\n==="),
        ("a\n\n---\n\nb", "a\n\n──────────\n\nb", "a\n\n---\n\nb"),
        ("- [x] a\n- [ ] b", "- ☑ a\n- ☐ b", "- [x] a\n- [ ] b"),
        (
            "![A *b*](https://e.org/i.png)",
            "[A b](https://e.org/i.png)",
            "![A b](https://e.org/i.png)",
        ),
        ("[![ok](https://i.org)](https://e.org)", "[ok](https://e.org)", "[ok](https://e.org)"),
        ("a[^1] b\n\n[^1]: Note.", "a[1] b\n\n- [1] Note.", "a[1] b\n\n- [1] Note."),
        (
            "[a *b*][r] c\n\n[r]: https://e.org",
            "[a *b*](https://e.org) c",
            "[a *b*](https://e.org) c",
        ),
        (
            "<details>\n<summary>Log</summary>\n\na<br>b <kbd>C</kbd>\n\n</details>",
            "**Log**\n\na\nb C",
            "**Log**\n\na\nb C",
        ),
        ("Vec<String> <!-- no -->x", "Vec<String> x", "Vec&lt;String> x"),
        ("a\\\nb &lt;x&gt; || c", "a\nb \\<x\\> \\|\\| c", "a\\\nb &lt;x&gt; || c"),
        ("> a\n>\n> b", "> a\n> \n> b", "> a\n>\n> b"),
        (
            "<https://e.org/a|b> <https://e.org>",
            "<https://e.org/a|b> <https://e.org>",
            "https://e.org/a|b https://e.org",
        ),
        (
            "snake_case **b** *i* ~~s~~ https://e.org/a_b",
            "snake_case **b** *i* ~~s~~ https://e.org/a_b",
            "snake_case **b** *i* ~~s~~ https://e.org/a_b",
        ),
    ] {
        assert_eq!(backticks(written).trim(), small, "{written:?}");
        assert_eq!(entities(written).trim(), full, "{written:?}");
    }
}

#[test]
fn code_keeps_its_entities() {
    let text = "```html\n<a href=\"?b&c\">&lt;</a> &amp\n```\n`&lt;`";
    let sent = "```html\n&lt;a href=\"?b&c\">&amp;lt;&lt;/a> &amp\n```\n`&amp;lt;`";
    assert_eq!(entities(text), sent);
    assert_eq!(backticks(text), text);
}

#[test]
fn item_html_does_not_end_list() {
    let item = "1. a\n\n   <T>\n   # c\n   \n   ~~~\n2. b";
    assert_eq!(entities(item), "1. a\n\n   &lt;T>\n\\# c\n\n   \n   ~~~\n2. b");
    assert_eq!(written(&entities(item)), written(item));
}

#[test]
fn vanishing_text_is_sent_unchanged() {
    assert_eq!(parts("<!-- x -->", Dialect::Backticks, 100), ["<!-- x -->"]);
    assert!(parts(" \n", Dialect::Backticks, 100).is_empty());
}

/// Marks a table's cells, to tell a drawn table from code.
const CELL: char = '§';

/// The code in a text of CommonMark, in order.
fn written(markdown: &str) -> Vec<String> {
    let mut all = Vec::new();
    let (mut block, mut image) = (false, false);
    for event in Parser::new_ext(markdown, options()) {
        match event {
            // The text of an image is not code.
            Event::Start(Tag::Image { .. }) => image = true,
            Event::End(TagEnd::Image) => image = false,
            Event::Start(Tag::CodeBlock(_)) => {
                block = true;
                all.push(String::new());
            }
            Event::End(TagEnd::CodeBlock) => block = false,
            Event::Text(text) if block => all.last_mut().expect("a block").push_str(&text),
            Event::Code(code) if !image => all.push(code.to_string()),
            _ => {}
        }
    }
    all
}

/// The code that a reader of [`Dialect::Backticks`] sees: a block by
/// `^```(?:([a-z0-9_+\-.#]+?)\n)?\n*([^\n][^]*?)\n*``` `, a span by ``^(`+)([\s\S]*?[^`])\1(?!`)``, wherever no mark of
/// emphasis has its other end first.
fn seen(text: &str, quoted: bool, all: &mut Vec<String>) {
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let begins_line = at == 0 || text[..at].ends_with('\n');
        if begins_line && !quoted && is_quoted(rest) {
            let lines: Vec<&str> =
                rest.split_inclusive('\n').take_while(|line| is_quoted(line)).collect();
            let inner: String =
                lines.iter().map(|line| &line.trim_start_matches(' ')[2..]).collect();
            seen(&inner, true, all);
            at += lines.concat().len();
        } else if let Some((length, code)) = block(rest).or_else(|| span(rest)) {
            all.push(code.to_owned());
            at += length;
        } else if let Some((mark, end)) = emphasis(rest) {
            seen(&rest[mark..end], quoted, all);
            at += end + mark;
        } else {
            at += step(rest);
        }
    }
}

fn is_quoted(line: &str) -> bool {
    line.trim_start_matches(' ').starts_with("> ")
}

fn block(rest: &str) -> Option<(usize, &str)> {
    let inner = rest.strip_prefix("```")?;
    let (first, behind) = inner.split_once('\n').unwrap_or(("", inner));
    let is_name = !first.is_empty()
        && first.chars().all(|c| c.is_ascii_alphanumeric() || "_+-.#".contains(c));
    let body = if is_name { behind } else { inner };
    let body = body.trim_start_matches('\n');
    let first = body.chars().next()?.len_utf8();
    let end = first + body[first..].find("```")?;
    let length = rest.len() - body.len() + end + 3;
    Some((length, body[..end].trim_end_matches('\n')))
}

fn span(rest: &str) -> Option<(usize, &str)> {
    let most = rest.len() - rest.trim_start_matches('`').len();
    (1..=most).rev().find_map(|marks| {
        let mark = &rest[..marks];
        let body = &rest[marks..];
        let ends = body.match_indices(mark).map(|(at, _)| at);
        let end = ends.into_iter().find(|at| {
            *at > 0 && !body[..*at].ends_with('`') && !body[at + marks..].starts_with('`')
        })?;
        Some((marks + end + marks, &body[..end]))
    })
}

/// The length of a mark, and the end of the text that it emphasises.
fn emphasis(rest: &str) -> Option<(usize, usize)> {
    let mark =
        ["**", "__", "~~", "||", "*", "_"].into_iter().find(|mark| rest.starts_with(mark))?;
    let length = mark.len();
    let in_word = |c: char| mark == "_" && c.is_alphanumeric();
    let goes_on = |rest: &str| rest.starts_with(&mark[..1]) || rest.starts_with(in_word);
    let spaced = |text: &str| mark == "*" && text.ends_with(char::is_whitespace);
    if mark == "*" && rest[1..].starts_with(char::is_whitespace) {
        return None;
    }
    let mut at = length;
    while at < rest.len() {
        let here = &rest[at..];
        let doubled = length == 1 && here.starts_with(&mark.repeat(2));
        if here.starts_with('\\') || doubled {
            at += step(here).max(if doubled { 2 } else { 1 });
        } else if at > length
            && here.starts_with(mark)
            && !goes_on(&here[length..])
            && !spaced(&rest[..at])
        {
            return Some((length, at));
        } else {
            at += here.chars().next().map_or(1, char::len_utf8);
        }
    }
    None
}

/// Length of one character, of a backslash with the character that it escapes, or of an address.
fn step(rest: &str) -> usize {
    if rest.starts_with("https://") {
        return rest.find(|c: char| c.is_whitespace() || c == '<').unwrap_or(rest.len());
    }
    let mut chars = rest.chars();
    let first = chars.next().map_or(1, char::len_utf8);
    match chars.next() {
        Some(c) if rest.starts_with('\\') && c.is_ascii_punctuation() => first + 1,
        _ => first,
    }
}

fn code_ink(all: Vec<String>) -> String {
    let code = all.into_iter().filter(|one| !one.contains(CELL));
    ink(&code.collect::<String>().replace('\u{2060}', ""))
}

fn document() -> impl Strategy<Value = String> {
    let line = prop::sample::select(vec![
        "```js",
        "```",
        "~~~",
        "    deep",
        "*a",
        "b* _c_",
        "~~",
        "**kwargs",
        "<T>",
        "&lt;b>",
        "a || b",
        "`",
        "@here",
        "# c",
        "> q",
        "| a | b |",
        "",
        "x_y",
        "\\",
        "[l](u)",
    ]);
    let lines = |prefix: &'static str| {
        prop::collection::vec(line.clone(), 1..6).prop_map(move |lines| {
            lines.iter().map(|line| format!("{prefix}{line}\n")).collect::<String>()
        })
    };
    let fence = |prefix: &'static str| {
        let marks = prop::sample::select(vec!["```", "````", "~~~", "~~~~~"]);
        let info = prop::sample::select(vec!["", "js", "py title=\"a\"", "{.c}"]);
        (marks, info, lines(prefix))
            .prop_map(move |(marks, info, code)| format!("{marks}{info}\n{code}{prefix}{marks}"))
    };
    let prose = prop::sample::select(vec![
        "a ` b",
        "2 * 3 *x",
        "snake_case _y",
        "~~ z",
        "p || q",
        "a ``` b",
        "<T>",
        "x<br>y",
        "<div>\n```\nx",
        "\\`c",
        "https://e.org/a_b*c`d",
        "&amp;&#96;&lt;",
        "a\\\nb",
        "#### h *i*",
        "Title `t*`\n---",
        "---",
        "- [x] `done_`",
        "![a `b`](https://i.org)",
        "n[^1]\n\n[^1]: `note`",
        "[a][r] `x`\n\n[r]: https://e.org/`",
        "<!-- `c` -->",
        "`a*b` and ``c`d``",
        "``` x ```",
        "```` ``` ````",
        "**`**k`** *`a*b`*",
        "> q\n>\n> `r_s`",
        "1. `a`\n2. b *c",
        "| §a | `§b` |\n|---|---|\n| §c | §d |\n",
        "> | §a | §b |\n> |---|---|\n> | §c | `§d*` |\n",
        "\\\\`e`",
        "*it_ **b***",
        "[l `m_`](https://e.org/(x))",
        "<a title=\"`\"> `n`",
        "\\||",
        "line one\nline `two` *",
    ])
    .prop_map(str::to_owned);
    let block = prop_oneof![
        3 => prose,
        2 => fence(""),
        1 => fence("  ").prop_map(|code| format!("- {code}")),
        1 => fence("   ").prop_map(|code| format!("1. a *b\n\n   {code}\n2. b")),
        1 => fence("> ").prop_map(|code| format!("> {code}")),
        1 => lines("    ").prop_map(|code| format!("So:\n\n{code}")),
    ];
    (prop::collection::vec(block, 1..8), prop::sample::select(vec!["\n\n", "\n"]))
        .prop_map(|(blocks, between)| blocks.join(between))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn rendered_code_matches_written_code(text in document(), max in 200usize..2_000) {
        // A text whose conversion is blank is sent unchanged.
        prop_assume!(!backticks(&text).trim().is_empty());
        let code = written(&text);
        // A block that contains a table's drawing cannot be told from one.
        prop_assume!(code.iter().all(|one| !one.contains(CELL) || one.len() < 8));
        let original = code_ink(code);
        let mut all = Vec::new();
        for part in parts(&text, Dialect::Backticks, max) {
            seen(&part, false, &mut all);
        }
        prop_assert_eq!(code_ink(all), original.clone(), "{}", backticks(&text));
        let decoded = |code: String| code.replace("&lt;", "<").replace("&amp;", "&");
        // Uncut, because a part that begins deep in a list is read without that list.
        let all = written(&entities(&text)).into_iter().map(decoded);
        prop_assert_eq!(code_ink(all.collect()), original, "{}", entities(&text));
    }
}
