//! The form for subject and text of a pull request. The function that opens it reads no record: both texts come from
//! the clicked message, which shows them in a notation that loses nothing.

use bobbin_core::records::control::PublishStep;
use bobbin_core::records::publication::{BODY_CHARS_MAX, SUBJECT_CHARS_MAX};
use bobbin_core::text::units;
use serde_json::{Value, json};

use super::bounds::FORM_TEXT_UNITS_MAX;
use super::content::plain;
use super::custom_id::CustomId;
use super::form::{content, labelled, one_line_input, text_input};
use super::interaction::Modal;
use crate::HttpAnswer;
use crate::review::{BLANK, TICK, edited};

/// Component id of the subject's display, and of the text's.
pub(super) const SUBJECT_ID: u64 = 100;
pub(super) const BODY_ID: u64 = 101;
/// What stands in the place of an empty text.
pub(super) const NO_BODY: &str = "-# Without a text.";
/// Label of the button that opens the form, and title of the form.
pub(super) const EDIT: &str = "Edit text";
/// Names of the form's inputs.
const SUBJECT: &str = "subject";
const BODY: &str = "body";

/// The form, with both texts of the clicked message; `None` if that does not show them whole.
#[must_use]
pub(super) fn open(components: &[Value], of: Option<String>) -> Option<HttpAnswer> {
    let (subject, body) = shown(components)?;
    // A value longer than the bound would be refused; what is too long is told when the form comes back.
    let bound = |text: &str, most: usize| most.max(units(text)).min(FORM_TEXT_UNITS_MAX);
    let hint = |text: &str| {
        if text.contains(BLANK) { "␣ stands for a space that is not shown." } else { "" }
    };
    let subject_input = one_line_input(SUBJECT, bound(&subject, SUBJECT_CHARS_MAX), true, &subject);
    let body_input = text_input(BODY, bound(&body, BODY_CHARS_MAX), false, &body);
    let fields = [
        labelled("Subject", hint(&subject), subject_input),
        labelled("Text", hint(&body), body_input),
    ];
    let id = CustomId::Text { of }.text();
    Some(HttpAnswer::json(
        &json!({"type": 9, "data": {"custom_id": id, "title": EDIT, "components": fields}}),
    ))
}

/// Subject and text of the message, as its form shows them.
fn shown(components: &[Value]) -> Option<(String, String)> {
    let subject = content(components, SUBJECT_ID)?.strip_prefix("**")?.strip_suffix("**")?;
    let body = match content(components, BODY_ID)? {
        NO_BODY => "",
        fenced => fenced.strip_prefix("```\n")?.strip_suffix("\n```")?,
    };
    // Nothing in a form ends a block of code.
    let ticks = |text: &str| text.replace(TICK, "`");
    Some((ticks(&plain(subject)), ticks(body)))
}

/// The step of the form, filled in; `None` if it is not ours.
pub(super) fn filled(modal: &Modal, of: Option<&str>) -> Option<Result<PublishStep, String>> {
    let typed = |name: &str| modal.field(name)?.value.as_str();
    Some(edited(typed(SUBJECT)?, typed(BODY).unwrap_or_default(), of))
}

#[cfg(test)]
mod tests {
    use bobbin_core::records::card::Post;
    use bobbin_core::records::control::ShowOf;
    use bobbin_core::records::publication::subject;
    use proptest::prelude::*;
    use serde_json::Value;

    const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

    use super::*;
    use crate::discord::check::{CALLBACK, assert_fits};
    use crate::discord::render::post;
    use crate::review::tests::{pieces, review};

    fn opened(title: &str, body: &str) -> Value {
        let shown = post(&Post::Review(review(title, body))).body;
        let components = shown["components"].as_array().expect("components");
        let form: Value =
            serde_json::from_str(&open(components, None).expect("a form").body).expect("JSON");
        assert_fits(CALLBACK, "post", &form);
        form
    }

    /// Sends the form as it was opened.
    fn sent(form: &Value) -> Result<PublishStep, String> {
        let part = |nth: usize| {
            let component = &form["data"]["components"][nth]["component"];
            json!({"type": 18, "component": {"type": 4, "custom_id": component["custom_id"], "value": component["value"]}})
        };
        let modal = json!({"custom_id": "v1:text", "components": [part(0), part(1)]});
        filled(&serde_json::from_value(modal).expect("a form"), Some(COMMIT)).expect("it is ours")
    }

    #[test]
    fn form_shows_both_texts_of_the_message() {
        let form = opened("Fix `a_b` *now*", "See #\u{200b}12\n```\ncode\n```");
        assert_eq!(form["data"]["custom_id"], "v1:text");
        let components = &form["data"]["components"];
        assert_eq!(
            components[0],
            json!({"type": 18, "label": "Subject", "component": {"type": 4, "custom_id": "subject",
                "style": 1, "max_length": 120, "required": true, "value": "Fix `a_b` *now*"}})
        );
        assert_eq!(
            components[1],
            json!({"type": 18, "label": "Text", "description": "␣ stands for a space that is not shown.",
                "component": {"type": 4, "custom_id": "body", "style": 2, "max_length": 2_000, "required": false,
                    "value": "See #␣12\n```\ncode\n```"}})
        );
        assert_eq!(opened("Add", "")["data"]["components"][1]["component"]["value"], Value::Null);
    }

    proptest! {
        #[test]
        fn unchanged_form_sends_the_exact_texts(title in pieces(), body in pieces()) {
            let step = sent(&opened(&format!("a {title}"), &body));
            let subject = subject(&format!("a {title}"));
            let exact = PublishStep::Show {
                subject: Some(subject.trim().to_owned()),
                body: Some(body.trim().to_owned()),
                of: Some(ShowOf::Commit(COMMIT.to_owned())),
            };
            prop_assert_eq!(step, Ok(exact));
        }
    }

    #[test]
    fn shortened_message_opens_no_form() {
        let shown = post(&Post::Review(review("Add", &"word ".repeat(200)))).body;
        let smaller = crate::discord::render::smaller(&shown).expect("it is long");
        assert_eq!(open(smaller["components"].as_array().expect("components"), None), None);
        assert_eq!(open(&[], None), None);
    }
}
