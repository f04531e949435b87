//! A Discord message as plain text: what a person sees, without what differs between runs.

use serde_json::Value;

/// The messages, oldest first, an empty line between them.
#[must_use]
pub fn page(messages: &[Value]) -> String {
    let shown: Vec<String> = messages.iter().map(message).collect();
    shown.join("\n\n")
}

/// One message: who wrote it, its words, its boxes indented, its buttons in brackets, its files.
#[must_use]
pub fn message(message: &Value) -> String {
    let author = &message["author"];
    let name = author["global_name"].as_str().or(author["username"].as_str());
    let only = message["flags"].as_u64().unwrap_or(0) & 64 != 0;
    let mut lines = vec![format!(
        "{}{}",
        name.unwrap_or("somebody"),
        if only { " (only you see it)" } else { "" }
    )];
    // A message of components alone has no text in the line above a reply.
    let answered = message["referenced_message"]["content"].as_str();
    if let Some(answered) = answered.filter(|words| !words.is_empty()) {
        lines.push(format!("  answers: {answered}"));
    }
    for forwarded in message["message_snapshots"].as_array().into_iter().flatten() {
        let words = forwarded["message"]["content"].as_str().unwrap_or_default();
        lines.push(format!("  forwards: {words}"));
    }
    let content = message["content"].as_str().unwrap_or_default();
    lines.extend(content.lines().map(|line| format!("  {line}")));
    parts(&message["components"], "  ", &mut lines);
    for file in message["attachments"].as_array().into_iter().flatten() {
        lines.push(format!("  file: {}", text(file, "filename")));
    }
    normal(&lines.join("\n"))
}

/// A form as it opens.
#[must_use]
pub fn form(form: &Value) -> String {
    let mut lines = vec![text(form, "title").to_owned()];
    for part in form["components"].as_array().into_iter().flatten() {
        let input = &part["component"];
        let kind = match input["type"].as_u64() {
            Some(4) => "text",
            Some(3) => "select",
            Some(19) => "files",
            Some(21) => "choice",
            _ => "something else",
        };
        let optional = if input["required"] == false { ", optional" } else { "" };
        lines.push(format!("  {} ({kind}{optional})", text(part, "label")));
        for option in input["options"].as_array().into_iter().flatten() {
            let mark = if option["default"] == true { "(x)" } else { "( )" };
            let about = text(option, "description");
            lines.push(format!("    {mark} {}: {about}", text(option, "label")));
        }
    }
    lines.join("\n")
}

fn parts(components: &Value, indent: &str, lines: &mut Vec<String>) {
    for part in components.as_array().into_iter().flatten() {
        match part["type"].as_u64() {
            Some(10) => {
                let words = text(part, "content").lines();
                lines.extend(words.map(|line| format!("{indent}{line}")));
            }
            Some(14) => lines.push(format!("{indent}---")),
            Some(1) => {
                let row = part["components"].as_array().into_iter().flatten();
                let row: Vec<String> = row.map(control).collect();
                lines.push(format!("{indent}{}", row.join(" ")));
            }
            _ => parts(&part["components"], &format!("{indent}| "), lines),
        }
    }
}

/// A button or select.
fn control(part: &Value) -> String {
    if part["type"] == 2 {
        let off = if part["disabled"] == true { ", off" } else { "" };
        return format!("[{}{off}]", text(part, "label"));
    }
    let options = part["options"].as_array().into_iter().flatten();
    let options: Vec<&str> = options.map(|one| text(one, "label")).collect();
    format!("<{}: {}>", text(part, "placeholder"), options.join(" / "))
}

fn text<'v>(of: &'v Value, name: &str) -> &'v str {
    of[name].as_str().unwrap_or_default()
}

/// The text without times, a run's usage, and the line by which a test finds its prompt.
fn normal(words: &str) -> String {
    let lines = words.lines().filter(|line| !line.trim().starts_with("(task "));
    let lines: Vec<String> = lines.map(normal_line).collect();
    lines.join("\n")
}

fn normal_line(line: &str) -> String {
    let line = between(line, "<t:", ">", "<a time>");
    let line = between(&line, " (task ", ")", "");
    let line = between(&line, " \\(task ", "\\)", "");
    if let Some((time, change)) = line.split_once(" ago, ")
        && let Some((indent, _)) = time.split_once("- ")
    {
        return format!("{indent}- <some time> ago, {change}");
    }
    let facts = line.split(" · ").map(|fact| {
        let bare = fact.trim_start_matches(['-', '#', ' ', '|']);
        let before = &fact[..fact.len() - bare.len()];
        match bare {
            _ if bare.starts_with("took ") => format!("{before}took <some time>"),
            _ if bare.ends_with(" tokens") => format!("{before}<some> tokens"),
            _ if bare.starts_with('$') || bare.starts_with("under $") => {
                format!("{before}<some money>")
            }
            _ => fact.to_owned(),
        }
    });
    facts.collect::<Vec<_>>().join(" · ").trim_end().to_owned()
}

/// Everything from `open` to `close` as `put`.
fn between(line: &str, open: &str, close: &str, put: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some((before, inside)) = rest.split_once(open) {
        let Some((_, after)) = inside.split_once(close) else {
            break;
        };
        out.push_str(before);
        out.push_str(put);
        rest = after;
    }
    out + rest
}
