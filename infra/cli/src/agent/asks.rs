//! Puts an agent's asks to the person at the terminal.

use std::io::BufRead as _;

use bobbin_agent_client::PermissionAnswer;
use bobbin_agent_events::{PermissionRequest, QuestionInfo, QuestionRequest};
use tokio::sync::oneshot;

/// Asks for a permission.
pub async fn permission(ask: &PermissionRequest, sits: bool) -> PermissionAnswer {
    let what = ask.patterns.join(", ");
    if !sits {
        tell!("Refused, because there is nobody to ask here: {} {what}", ask.permission);
        return PermissionAnswer::Reject;
    }
    let always = if ask.always.is_empty() { "" } else { ", (a)lways" };
    let prompt = format!("Allow {} {what}? (y)es{always}, (n)o: ", ask.permission);
    match line(prompt).await.as_deref() {
        Some("y" | "yes") => PermissionAnswer::Once,
        Some("a" | "always") => PermissionAnswer::Always,
        _ => PermissionAnswer::Reject,
    }
}

/// Asks questions; `None` if nobody answers.
pub async fn questions(ask: &QuestionRequest, sits: bool) -> Option<Vec<Vec<String>>> {
    if !sits {
        tell!("Declined, because there is nobody to ask here: {}", ask.questions.first()?.question);
        return None;
    }
    let mut answers = Vec::new();
    for question in &ask.questions {
        let mut prompt = format!("{}\n", question.question);
        for (number, option) in question.options.iter().enumerate() {
            let more =
                option.description.as_deref().map_or(String::new(), |text| format!(" ({text})"));
            prompt.push_str(&format!("  {}. {}{more}\n", number + 1, option.label));
        }
        prompt.push_str("Numbers, or your own words; empty declines: ");
        let said = line(prompt).await.filter(|said| !said.is_empty())?;
        answers.push(chosen(question, &said));
    }
    Some(answers)
}

/// Resolves numbers to option labels; other input is taken as text.
fn chosen(question: &QuestionInfo, said: &str) -> Vec<String> {
    let numbers: Option<Vec<String>> = said
        .split([',', ' '])
        .filter(|word| !word.is_empty())
        .map(|word| {
            let place = word.parse::<usize>().ok()?.checked_sub(1)?;
            question.options.get(place).map(|option| option.label.clone())
        })
        .collect();
    numbers.unwrap_or_else(|| vec![said.to_owned()])
}

/// Reads a line in a detached thread: a terminal read cannot be cancelled and must not delay the program's exit.
async fn line(prompt: String) -> Option<String> {
    let (answer, answered) = oneshot::channel();
    std::thread::spawn(move || {
        tell_part!("{prompt}");
        let mut said = String::new();
        let read = match std::io::stdin().lock().read_line(&mut said) {
            Ok(1..) => Some(said.trim().to_owned()),
            Ok(0) | Err(_) => None,
        };
        // The receiver may be gone.
        let _ = answer.send(read);
    });
    answered.await.ok().flatten()
}

#[cfg(test)]
mod tests {
    use bobbin_agent_events::QuestionOption;

    use super::*;

    #[test]
    fn only_valid_numbers_choose_options() {
        let option = |label: &str| QuestionOption { label: label.to_owned(), description: None };
        let question = QuestionInfo {
            question: "Which?".to_owned(),
            header: None,
            options: vec![option("Left"), option("Right")],
            multi_select: Some(true),
            custom: None,
        };
        assert_eq!(chosen(&question, "2"), ["Right"]);
        assert_eq!(chosen(&question, "2, 1"), ["Right", "Left"]);
        for own in ["3", "0", "2 of them", "neither"] {
            assert_eq!(chosen(&question, own), [own]);
        }
    }
}
