//! Block Kit's limits for the blocks that Bobbin uses; any other block is refused, so that a new one is added here
//! first. Every error gets a line with a JSON pointer, as in Slack's `response_metadata.messages`.

use super::failure::MethodError;
use crate::ids::random_text;
use crate::json::JsonFields;
use serde_json::Value;
use std::collections::BTreeSet;

/// Assigns ids to blocks without one.
pub fn with_ids(mut blocks: Value) -> Value {
    for block in blocks.as_array_mut().into_iter().flatten().filter(|one| !one.has("block_id")) {
        block["block_id"] = random_text(5).into();
    }
    blocks
}

/// Checks a list of blocks, at most `most`.
pub fn check(blocks: &Value, most: usize) -> Result<(), MethodError> {
    let Some(list) = blocks.as_array() else {
        return Err(MethodError { error: "invalid_blocks_format", messages: Vec::new() });
    };
    let mut check = Check::default();
    if list.len() > most {
        check.wrong(format!("no more than {most} items allowed"), "/blocks");
    }
    for (at, block) in list.iter().enumerate() {
        check.block(block, &format!("/blocks/{at}"));
    }
    if check.markdown_chars > 12_000 {
        check.wrong(
            "markdown blocks have more than 12000 characters together".to_owned(),
            "/blocks",
        );
    }
    if check.messages.is_empty() {
        return Ok(());
    }
    Err(MethodError { error: "invalid_blocks", messages: check.messages })
}

#[derive(Default)]
struct Check {
    messages: Vec<String>,
    block_ids: BTreeSet<String>,
    action_ids: BTreeSet<String>,
    markdown_chars: usize,
}

impl Check {
    fn wrong(&mut self, what: String, at: &str) {
        self.messages.push(format!("[ERROR] {what} [json-pointer:{at}]"));
    }

    fn length(&mut self, text: &str, min: usize, max: usize, at: &str) {
        let count = text.chars().count();
        if count < min {
            self.wrong(format!("must be more than {} characters", min - 1), at);
        } else if count > max {
            self.wrong(format!("must be less than {} characters", max + 1), at);
        }
    }

    fn items(&mut self, list: &[Value], min: usize, max: usize, at: &str) {
        if !(min..=max).contains(&list.len()) {
            self.wrong(format!("between {min} and {max} items required"), at);
        }
    }

    /// Checks a text object's type and length.
    fn text(&mut self, text: &Value, plain_only: bool, max: usize, at: &str) {
        match text.str("type") {
            "plain_text" => {}
            "mrkdwn" if !plain_only => {}
            _ => self.wrong("must be a valid text object".to_owned(), &format!("{at}/type")),
        }
        self.length(text.str("text"), 1, max, &format!("{at}/text"));
    }

    fn id(&mut self, one: &Value, field: &str, at: &str) {
        let id = one.str(field);
        if !id.is_empty() {
            self.length(id, 1, 255, &format!("{at}/{field}"));
            let seen = if field == "block_id" { &mut self.block_ids } else { &mut self.action_ids };
            if !seen.insert(id.to_owned()) {
                self.wrong(format!("`{field}`s must be unique"), &format!("{at}/{field}"));
            }
        }
    }

    fn block(&mut self, block: &Value, at: &str) {
        let kind = block.str("type");
        self.id(block, "block_id", at);
        self.action_ids.clear();
        match kind {
            "section" => self.section(block, at),
            "header" => self.text(&block["text"], true, 150, &format!("{at}/text")),
            "context" => self.context(block, at),
            "actions" => {
                self.items(block.list("elements"), 1, 25, &format!("{at}/elements"));
                self.elements(block.list("elements"), at);
            }
            "markdown" => {
                self.markdown_chars += block.str("text").chars().count();
                self.length(block.str("text"), 1, 12_000, &format!("{at}/text"));
            }
            "plan" => {
                self.length(block.str("title"), 1, 3000, &format!("{at}/title"));
                self.items(block.list("tasks"), 0, 50, &format!("{at}/tasks"));
                for (nth, task) in block.list("tasks").iter().enumerate() {
                    self.task(task, &format!("{at}/tasks/{nth}"));
                }
            }
            "task_card" => self.task(block, at),
            "input" => self.input(block, at),
            "divider" => {}
            _ => self.wrong(format!("unsupported type: {kind}"), &format!("{at}/type")),
        }
    }

    fn section(&mut self, block: &Value, at: &str) {
        let fields = block.list("fields");
        if !block.has("text") && fields.is_empty() {
            self.wrong("one of text or fields is required".to_owned(), at);
        }
        if block.has("text") {
            self.text(&block["text"], false, 3000, &format!("{at}/text"));
        }
        self.items(fields, 0, 10, &format!("{at}/fields"));
        for (nth, field) in fields.iter().enumerate() {
            self.text(field, false, 2000, &format!("{at}/fields/{nth}"));
        }
        if block.has("accessory") {
            self.element(&block["accessory"], &format!("{at}/accessory"));
        }
    }

    fn context(&mut self, block: &Value, at: &str) {
        let elements = block.list("elements");
        self.items(elements, 1, 10, &format!("{at}/elements"));
        for (nth, one) in elements.iter().enumerate() {
            let here = format!("{at}/elements/{nth}");
            self.text(one, false, 3000, &here);
        }
    }

    fn task(&mut self, task: &Value, at: &str) {
        self.length(task.str("task_id"), 1, 255, &format!("{at}/task_id"));
        self.length(task.str("title"), 1, 3000, &format!("{at}/title"));
        // The value is `complete`; `completed` is refused.
        if task.has("status")
            && !["pending", "in_progress", "complete", "error"].contains(&task.str("status"))
        {
            self.wrong(
                "must be one of pending, in_progress, complete, error".to_owned(),
                &format!("{at}/status"),
            );
        }
        for field in ["details", "output"] {
            if task.has(field) && task[field].str("type") != "rich_text" {
                self.wrong("must be a rich_text block".to_owned(), &format!("{at}/{field}"));
            }
        }
    }

    fn input(&mut self, block: &Value, at: &str) {
        let kind = block["element"].str("type");
        if kind == "button" {
            self.wrong(format!("unsupported element: {kind}"), &format!("{at}/element/type"));
        }
        self.text(&block["label"], true, 2000, &format!("{at}/label"));
        if block.has("hint") {
            self.text(&block["hint"], true, 2000, &format!("{at}/hint"));
        }
        self.element(&block["element"], &format!("{at}/element"));
    }

    fn elements(&mut self, list: &[Value], at: &str) {
        for (nth, one) in list.iter().enumerate() {
            self.element(one, &format!("{at}/elements/{nth}"));
        }
    }

    fn element(&mut self, one: &Value, at: &str) {
        self.id(one, "action_id", at);
        if one.has("placeholder") {
            self.text(&one["placeholder"], true, 150, &format!("{at}/placeholder"));
        }
        match one.str("type") {
            "button" => {
                self.text(&one["text"], true, 75, &format!("{at}/text"));
                self.length(one.str("value"), 0, 2000, &format!("{at}/value"));
                self.length(one.str("url"), 0, 3000, &format!("{at}/url"));
                if one.has("style") && !["primary", "danger"].contains(&one.str("style")) {
                    self.wrong("must be one of primary, danger".to_owned(), &format!("{at}/style"));
                }
            }
            "static_select" | "multi_static_select" => self.options(one, 100, at),
            "plain_text_input" => {
                if one.int("max_length") > 3000 {
                    self.wrong("must be less than 3001".to_owned(), &format!("{at}/max_length"));
                }
            }
            "external_select" => {}
            other => self.wrong(format!("unsupported type: {other}"), &format!("{at}/type")),
        }
    }

    fn options(&mut self, element: &Value, max: usize, at: &str) {
        let options = element.list("options");
        self.items(options, 1, max, &format!("{at}/options"));
        for (nth, option) in options.iter().enumerate() {
            let here = format!("{at}/options/{nth}");
            self.length(option["text"].str("text"), 1, 75, &format!("{here}/text/text"));
            self.length(option.str("value"), 1, 150, &format!("{here}/value"));
            self.length(
                option["description"].str("text"),
                0,
                75,
                &format!("{here}/description/text"),
            );
        }
    }
}
