//! A Slack message or Home as plain text: what a person sees, without what differs between runs.

use serde_json::Value;

/// The messages of a thread, oldest first, an empty line between them.
#[must_use]
pub fn page(messages: &[Value]) -> String {
    let shown: Vec<String> = messages.iter().map(message).collect();
    shown.join("\n\n")
}

/// One message: who wrote it, its blocks, its buttons in brackets, its files.
#[must_use]
pub fn message(message: &Value) -> String {
    let name = if message["bot_id"].is_string() { "Bobbin" } else { "a person" };
    let only = if message["is_ephemeral"] == true { " (only you see it)" } else { "" };
    let mut lines = vec![format!("{name}{only}")];
    let blocks = message["blocks"].as_array();
    let composed = |one: &&Value| one["type"] == "rich_text";
    match blocks.filter(|blocks| !blocks.is_empty() && !blocks.iter().any(|one| composed(&one))) {
        Some(blocks) => lines.extend(shown(blocks)),
        None => lines.extend(text(&message["text"])),
    }
    for file in message["files"].as_array().into_iter().flatten() {
        let name = file["name"].as_str().unwrap_or_default();
        lines.push(format!("  file: {name}"));
    }
    normal(&lines.join("\n"))
}

/// The shown view of a Home tab.
#[must_use]
pub fn home(view: &Value) -> String {
    let blocks = view["blocks"].as_array().map_or(&[][..], Vec::as_slice);
    normal(&shown(blocks).join("\n"))
}

fn shown(blocks: &[Value]) -> Vec<String> {
    blocks.iter().flat_map(block).collect()
}

fn text(text: &Value) -> Vec<String> {
    let text = text.as_str().unwrap_or_default();
    text.lines().map(|line| format!("  {line}")).collect()
}

fn block(block: &Value) -> Vec<String> {
    match block["type"].as_str().unwrap_or_default() {
        "header" => vec![format!("  # {}", block["text"]["text"].as_str().unwrap_or_default())],
        "section" => {
            let mut lines = text(&block["text"]["text"]);
            if !block["accessory"].is_null() {
                lines.push(format!("  {}", element(&block["accessory"])));
            }
            lines
        }
        "context" => {
            let elements = block["elements"].as_array().into_iter().flatten();
            elements
                .flat_map(|one| text(&one["text"]))
                .map(|line| format!("  ({})", line.trim()))
                .collect()
        }
        "markdown" => text(&block["text"]),
        "actions" => {
            let elements = block["elements"].as_array().into_iter().flatten();
            let row: Vec<String> = elements.map(element).collect();
            vec![format!("  {}", row.join(" "))]
        }
        "input" => vec![format!(
            "  {}: {}",
            block["label"]["text"].as_str().unwrap_or_default(),
            element(&block["element"])
        )],
        "plan" => {
            let title = block["title"].as_str().unwrap_or_default();
            let mut lines = vec![format!("  = {title}")];
            for task in block["tasks"].as_array().into_iter().flatten() {
                let sign = match task["status"].as_str().unwrap_or_default() {
                    "complete" => "done",
                    "in_progress" => "now",
                    "pending" => "next",
                    _ => "failed",
                };
                let title = task["title"].as_str().unwrap_or_default();
                lines.push(format!("  - {sign}: {title}"));
            }
            lines
        }
        other => vec![format!("  <{other}>")],
    }
}

fn element(element: &Value) -> String {
    match element["type"].as_str().unwrap_or_default() {
        "button" => format!("[{}]", element["text"]["text"].as_str().unwrap_or_default()),
        "plain_text_input" => "<text>".to_owned(),
        _ => format!("<{}>", element["placeholder"]["text"].as_str().unwrap_or("choose")),
    }
}

/// The text without times, a run's usage, ids, and the line by which a test finds its prompt.
fn normal(words: &str) -> String {
    let words = words.lines().filter(|line| !line.trim().starts_with("(task ")).map(|line| {
        let line = match line.split_once(" (task ") {
            Some((before, after)) => {
                format!("{before}{}", after.split_once(')').map_or("", |(_, rest)| rest))
            }
            None => line.to_owned(),
        };
        normal_line(&line)
    });
    words.collect::<Vec<_>>().join("\n")
}

fn normal_line(line: &str) -> String {
    let mut out: Vec<String> = Vec::new();
    let mut words = line.split(' ').peekable();
    while let Some(word) = words.next() {
        let bare = word.trim_start_matches('(');
        let opening = &word[..word.len() - bare.len()];
        let number = !bare.is_empty() && bare.chars().all(|c| c.is_ascii_digit() || c == ',');
        let unit = words
            .peek()
            .map(|next| next.trim_end_matches([',', '.', ':', ')']))
            .unwrap_or_default();
        if number && ["s", "min", "h"].contains(&unit) {
            let mut tail = words.next().unwrap_or_default().to_owned();
            // `3 min 12 s` is one span.
            while words.peek().is_some_and(|next| next.chars().all(|c| c.is_ascii_digit())) {
                words.next();
                tail = words.next().unwrap_or_default().to_owned();
            }
            let end: String = tail.chars().filter(|c| !c.is_alphanumeric()).collect();
            out.push(format!("{opening}<time>{end}"));
        } else if number && unit == "tokens" {
            out.push(format!("{opening}<some>"));
        } else if bare.starts_with('$') {
            out.push(format!("{opening}<money>"));
        } else if let Some((before, after)) =
            word.split_once("<!date^").or(word.split_once("<#")).or(word.split_once("<@"))
        {
            let kind = match () {
                () if word.contains("<!date^") => "<a time>",
                () if word.contains("<#") => "<a channel>",
                () => "<a person>",
            };
            let mut rest = after;
            while !rest.contains('>') {
                let Some(next) = words.next() else { break };
                rest = next;
            }
            let after = rest.split_once('>').map_or("", |(_, after)| after);
            out.push(format!("{before}{kind}{after}"));
        } else {
            out.push(word.to_owned());
        }
    }
    out.join(" ").trim_end().to_owned()
}
