//! Rules for the components that Bobbin uses: nesting, lengths, counts. Any other component is refused, so that a new
//! one is added here first.

use super::refusal::FormErrors;
use crate::json::{JsonFields, units};
use crate::limits::TEXT_DISPLAY_UNITS_MAX;
use serde_json::Value;
use std::collections::BTreeSet;

/// Running counts over the component tree.
#[derive(Default)]
pub struct Tally {
    pub count: usize,
    pub text_units: usize,
    pub text_bytes: usize,
    custom_ids: BTreeSet<String>,
    numbers: BTreeSet<u64>,
}

impl Tally {
    pub fn component(
        &mut self,
        component: &Value,
        allowed: &[u64],
        path: &str,
        wrong: &mut FormErrors,
    ) {
        self.count += 1;
        let kind = component.int("type");
        if !allowed.contains(&kind) {
            wrong.at(
                &format!("{path}.type"),
                "UNION_TYPE_CHOICES",
                &format!("Value of field \"type\" must be one of {allowed:?}."),
            );
            return;
        }
        let number = component.int("id");
        if number > 0 && !self.numbers.insert(number) {
            wrong.at(
                &format!("{path}.id"),
                "COMPONENT_ID_DUPLICATED",
                "Component id cannot be duplicated",
            );
        }
        match kind {
            1 => self.row(component, path, wrong),
            2 => self.button(component, path, wrong),
            3 => self.select(component, path, wrong),
            10 => self.text(component, path, wrong),
            17 => self.container(component, path, wrong),
            _ => {}
        }
    }

    fn children(&mut self, list: &[Value], allowed: &[u64], path: &str, wrong: &mut FormErrors) {
        for (at, child) in list.iter().enumerate() {
            self.component(child, allowed, &format!("{path}.components.{at}"), wrong);
        }
    }

    fn row(&mut self, row: &Value, path: &str, wrong: &mut FormErrors) {
        let list = row.list("components");
        let selects = list.iter().filter(|one| one.int("type") != 2).count();
        if list.is_empty() || list.len() > 5 || (selects > 0 && list.len() > 1) {
            wrong.at(
                &format!("{path}.components"),
                "BASE_TYPE_BAD_LENGTH",
                "Must be 1 to 5 buttons or exactly one select.",
            );
        }
        self.children(list, &[2, 3], path, wrong);
    }

    fn custom_id(&mut self, component: &Value, path: &str, wrong: &mut FormErrors) {
        let id = component.str("custom_id");
        if id.is_empty() {
            wrong.at(&format!("{path}.custom_id"), "BASE_TYPE_REQUIRED", "This field is required");
        } else if !self.custom_ids.insert(id.to_owned()) {
            wrong.at(
                &format!("{path}.custom_id"),
                "COMPONENT_CUSTOM_ID_DUPLICATED",
                "Component custom id cannot be duplicated",
            );
        }
        wrong.longer(&format!("{path}.custom_id"), id, 100);
    }

    fn button(&mut self, button: &Value, path: &str, wrong: &mut FormErrors) {
        wrong.longer(&format!("{path}.label"), button.str("label"), 80);
        if button.str("label").is_empty() && !button.has("emoji") {
            wrong.at(path, "BUTTON_COMPONENT_INVALID", "A button needs a label or an emoji");
        }
        match (button.int("style"), button.has("url"), button.has("custom_id")) {
            (1..=4, false, _) => self.custom_id(button, path, wrong),
            (5, true, false) => {
                wrong.longer(&format!("{path}.url"), button.str("url"), 512);
                if !["http://", "https://", "discord://"]
                    .iter()
                    .any(|scheme| button.str("url").starts_with(scheme))
                {
                    wrong.at(
                        &format!("{path}.url"),
                        "URL_TYPE_INVALID_SCHEME",
                        "Scheme must be one of ('http', 'https', 'discord').",
                    );
                }
            }
            (5, ..) => wrong.at(
                path,
                "BUTTON_COMPONENT_CUSTOM_ID_URL_MUTUALLY_EXCLUSIVE",
                "A link button needs a url and no custom_id",
            ),
            (1..=4, true, _) => wrong.at(
                path,
                "BUTTON_COMPONENT_CUSTOM_ID_URL_MUTUALLY_EXCLUSIVE",
                "A custom id and url cannot both be specified",
            ),
            _ => wrong.at(
                &format!("{path}.style"),
                "BASE_TYPE_CHOICES",
                "Value must be one of {1, 2, 3, 4, 5, 6}.",
            ),
        }
    }

    fn select(&mut self, select: &Value, path: &str, wrong: &mut FormErrors) {
        self.custom_id(select, path, wrong);
        wrong.longer(&format!("{path}.placeholder"), select.str("placeholder"), 150);
        let options = select.list("options");
        if options.is_empty() || options.len() > 25 {
            wrong.at(
                &format!("{path}.options"),
                "BASE_TYPE_BAD_LENGTH",
                "Must be between 1 and 25 in length.",
            );
        }
        if select["max_values"].as_u64().unwrap_or(1) > options.len() as u64 {
            wrong.at(
                &format!("{path}.max_values"),
                "NUMBER_TYPE_MAX",
                "More values than there are options.",
            );
        }
        for (at, option) in options.iter().enumerate() {
            for field in ["label", "value", "description"] {
                wrong.longer(&format!("{path}.options.{at}.{field}"), option.str(field), 100);
            }
            for field in ["label", "value"] {
                if option.str(field).is_empty() {
                    wrong.at(
                        &format!("{path}.options.{at}.{field}"),
                        "BASE_TYPE_REQUIRED",
                        "This field is required",
                    );
                }
            }
        }
    }

    fn text(&mut self, display: &Value, path: &str, wrong: &mut FormErrors) {
        let content = display.str("content");
        if content.is_empty() {
            wrong.at(&format!("{path}.content"), "BASE_TYPE_REQUIRED", "This field is required");
        }
        wrong.longer(&format!("{path}.content"), content, TEXT_DISPLAY_UNITS_MAX);
        self.text_units += units(content);
        self.text_bytes += content.len() + 12;
    }

    fn container(&mut self, container: &Value, path: &str, wrong: &mut FormErrors) {
        if container.int("accent_color") > 0xFF_FFFF {
            wrong.at(
                &format!("{path}.accent_color"),
                "NUMBER_TYPE_MAX",
                "int value should be less than or equal to 16777215.",
            );
        }
        if container.list("components").is_empty() {
            wrong.at(
                &format!("{path}.components"),
                "BASE_TYPE_BAD_LENGTH",
                "Must be between 1 and 40 in length.",
            );
        }
        self.children(container.list("components"), &[1, 10, 14], path, wrong);
    }
}

/// Assigns ids to components without one.
pub fn number(components: &mut Value) {
    let mut taken = BTreeSet::new();
    visit(components, &mut |one| {
        taken.insert(one.int("id"));
    });
    let mut next = 1;
    visit(components, &mut |one| {
        if one.int("id") == 0 {
            while taken.contains(&next) {
                next += 1;
            }
            taken.insert(next);
            one["id"] = next.into();
        }
    });
}

fn visit(list: &mut Value, seen: &mut impl FnMut(&mut Value)) {
    for one in list.as_array_mut().into_iter().flatten() {
        seen(one);
        visit(&mut one["components"], seen);
    }
}
