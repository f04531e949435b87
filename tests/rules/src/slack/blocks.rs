//! Block Kit: the blocks that are in use, their fields and limits (Slack's documentation and official types).

use std::collections::BTreeSet;

use serde_json::Value;

/// What Slack would refuse in a list of at most `most` blocks.
#[must_use]
pub fn wrong_blocks(blocks: &[Value], most: usize) -> Vec<String> {
    let mut check = Check::default();
    check.length("blocks", blocks.len(), 1, most);
    let mut ids = BTreeSet::new();
    for (n, block) in blocks.iter().enumerate() {
        check.block(&format!("blocks[{n}]"), block);
        if let Some(id) = block["block_id"].as_str()
            && !ids.insert(id)
        {
            check.wrong.push(format!("block_id {id} is used twice"));
        }
    }
    check.length("all markdown", check.markdown, 0, 12_000);
    check.wrong
}

#[derive(Default)]
struct Check {
    wrong: Vec<String>,
    markdown: usize,
}

fn units(value: &Value) -> usize {
    value.as_str().map_or(0, |text| text.encode_utf16().count())
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[][..], Vec::as_slice)
}

impl Check {
    fn length(&mut self, at: &str, length: usize, least: usize, most: usize) {
        if !(least..=most).contains(&length) {
            let fault = format!("{at}: {length} is not within {least}..={most}");
            self.wrong.push(fault);
        }
    }

    fn fields(&mut self, at: &str, value: &Value, known: &[&str]) {
        for name in value.as_object().into_iter().flat_map(|one| one.keys()) {
            if !known.contains(&name.as_str()) && !["type", "block_id"].contains(&name.as_str()) {
                self.wrong.push(format!("{at} has unknown field {name}"));
            }
        }
    }

    fn text(&mut self, at: &str, text: &Value, kind: &str, most: usize) {
        if text["type"] != kind {
            self.wrong.push(format!("{at} is not {kind}"));
        }
        self.length(at, units(&text["text"]), 1, most);
    }

    fn block(&mut self, at: &str, block: &Value) {
        self.length(&format!("{at}.block_id"), units(&block["block_id"]), 0, 255);
        match block["type"].as_str().unwrap_or_default() {
            "section" => {
                self.fields(at, block, &["text", "accessory"]);
                self.text(at, &block["text"], "mrkdwn", 3_000);
                if !block["accessory"].is_null() {
                    self.elements(at, std::slice::from_ref(&block["accessory"]));
                }
            }
            "header" => {
                self.fields(at, block, &["text"]);
                self.text(at, &block["text"], "plain_text", 150);
            }
            "divider" => self.fields(at, block, &[]),
            "context" => {
                self.fields(at, block, &["elements"]);
                self.length(at, list(&block["elements"]).len(), 1, 10);
                for element in list(&block["elements"]) {
                    self.text(at, element, "mrkdwn", 2_000);
                }
            }
            "markdown" => {
                self.fields(at, block, &["text"]);
                self.length(at, units(&block["text"]), 1, 12_000);
                self.markdown += units(&block["text"]);
            }
            "actions" => {
                self.fields(at, block, &["elements"]);
                self.length(at, list(&block["elements"]).len(), 1, 25);
                self.elements(at, list(&block["elements"]));
            }
            "context_actions" => {
                self.fields(at, block, &["elements"]);
                self.length(at, list(&block["elements"]).len(), 1, 5);
            }
            "input" => {
                self.fields(at, block, &["label", "element", "hint", "optional"]);
                self.text(at, &block["label"], "plain_text", 2_000);
                self.elements(at, std::slice::from_ref(&block["element"]));
            }
            "plan" => self.plan(at, block),
            other => self.wrong.push(format!("{at}: unknown block {other:?}")),
        }
    }

    fn plan(&mut self, at: &str, plan: &Value) {
        self.fields(at, plan, &["title", "tasks"]);
        self.length(&format!("{at}.title"), units(&plan["title"]), 1, 256);
        self.length(&format!("{at}.tasks"), list(&plan["tasks"]).len(), 1, 50);
        let mut ids = BTreeSet::new();
        for task in list(&plan["tasks"]) {
            let known = ["task_id", "title", "status", "details", "output", "sources"];
            self.fields(at, task, &known);
            self.length(&format!("{at}: a task"), units(&task["title"]), 1, 256);
            let status = task["status"].as_str().unwrap_or_default();
            if !["pending", "in_progress", "complete", "error"].contains(&status) {
                self.wrong.push(format!("{at}: unknown status {status:?}"));
            }
            if task["type"] != "task_card" || !ids.insert(task["task_id"].as_str()) {
                self.wrong.push(format!("{at}: no task_card with an id of its own"));
            }
        }
    }

    fn elements(&mut self, at: &str, elements: &[Value]) {
        let mut ids = BTreeSet::new();
        for element in elements {
            let id = element["action_id"].as_str().unwrap_or_default();
            self.length(&format!("{at}: action_id"), id.len(), 1, 255);
            if !ids.insert(id) {
                self.wrong.push(format!("{at}: action_id {id} is used twice"));
            }
            if !element["placeholder"].is_null() {
                self.text(at, &element["placeholder"], "plain_text", 150);
            }
            self.element(at, element);
        }
    }

    fn element(&mut self, at: &str, element: &Value) {
        match element["type"].as_str().unwrap_or_default() {
            "button" => {
                self.text(at, &element["text"], "plain_text", 75);
                self.length(at, units(&element["value"]), 0, 2_000);
                self.length(at, units(&element["accessibility_label"]), 0, 75);
                let style = element["style"].as_str();
                if !matches!(style, None | Some("primary" | "danger")) {
                    self.wrong.push(format!("{at}: unknown style {style:?}"));
                }
            }
            "static_select" | "multi_static_select" => {
                self.length(at, list(&element["options"]).len(), 1, 100);
                for option in list(&element["options"]) {
                    self.text(at, &option["text"], "plain_text", 75);
                    self.length(at, units(&option["value"]), 1, 150);
                    self.length(at, units(&option["description"]["text"]), 0, 75);
                }
            }
            "external_select" => {
                let known = ["action_id", "placeholder", "min_query_length"];
                self.fields(at, element, &known);
            }
            "plain_text_input" => {
                let most = element["max_length"].as_u64().unwrap_or(3_000);
                self.length(at, usize::try_from(most).unwrap_or(usize::MAX), 1, 3_000);
            }
            other => self.wrong.push(format!("{at}: unknown element {other:?}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_mistake_is_found() {
        let mistaken = [
            json!({"type": "section", "text": {"type": "mrkdwn", "text": "x".repeat(3_001)}}),
            json!({"type": "section", "text": {"type": "mrkdwn", "text": "x"}, "colour": "red"}),
            json!({"type": "header", "text": {"type": "mrkdwn", "text": "x"}}),
            json!({"type": "actions", "elements": []}),
            json!({"type": "actions", "elements": [{"type": "button", "action_id": "", "text": {"type": "plain_text", "text": "x"}}]}),
            json!({"type": "plan", "title": "x", "tasks": [{"type": "task_card", "task_id": "1", "title": "x", "status": "completed"}]}),
            json!({"type": "plan", "title": "x", "tasks": []}),
            json!({"type": "alert"}),
        ];
        for block in mistaken {
            let wrong = wrong_blocks(std::slice::from_ref(&block), 50);
            assert_eq!(wrong.len(), 1, "{block}: {wrong:?}");
        }
        let divider = json!({"type": "divider"});
        assert_eq!(wrong_blocks(std::slice::from_ref(&divider), 50), Vec::<String>::new());
        assert_eq!(wrong_blocks(&vec![divider; 51], 50).len(), 1);
    }
}
