//! Error descriptions for a person, with advice.

use bobbin_core::base::credentials::redact;
use bobbin_core::records::run::RunEnd;

use crate::steps::first_line;

/// Longest part of an error that is passed on, in characters.
const REASON_CHARS_MAX: usize = 300;

/// What OpenRouter answers once a key has spent its own limit.
const KEY_IS_SPENT: &str = "key limit exceeded";
/// What vendors answer once an account or a key has no money left: codes and words, of OpenRouter, LiteLLM, OpenAI and
/// Anthropic. Their statuses do not tell: 400, 403 and 429 mean other things as well.
const MONEY_IS_SPENT: [&str; 21] = [
    "402 payment required",
    KEY_IS_SPENT,
    "requires more credits",
    "budget_exceeded",
    "budget has been exceeded",
    "exceededbudget:",
    "exceeded budget for",
    "spend_limit_exceeded",
    "spend_limit_reached",
    "organization_usage_limit_exceeded",
    "credit_balance_exhausted",
    "spend limit",
    "spending limit",
    "billing_hard_limit_reached",
    "billing hard limit",
    "insufficient_quota",
    "insufficient credits",
    "insufficient balance",
    "credit balance is too low",
    "reached your specified api usage limits",
    "reached your specified workspace api usage limits",
];

/// Why a run failed, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    text: String,
    is_budget: bool,
    is_of_key: bool,
}

impl Reason {
    /// Of an error with this name, the vendor's HTTP status, its message and the body of its answer.
    #[must_use]
    pub fn of(name: &str, status: Option<u16>, said: &str, body: &str) -> Self {
        let says = |text: &str| {
            let text = text.to_lowercase();
            MONEY_IS_SPENT.iter().any(|words| text.contains(words))
        };
        if status == Some(402) || says(said) || says(body) {
            let is_of_key =
                [said, body].iter().any(|one| one.to_lowercase().contains(KEY_IS_SPENT));
            return Self { text: spent(said), is_budget: true, is_of_key };
        }
        Self { text: described(name, status, said), is_budget: false, is_of_key: false }
    }

    /// The words.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the vendor refused because its account or key has no money left.
    #[must_use]
    pub const fn is_budget(&self) -> bool {
        self.is_budget
    }

    /// The end of a run that failed for it.
    #[must_use]
    pub fn end(self) -> RunEnd {
        let (reason, of_key) = (self.text, self.is_of_key);
        if self.is_budget {
            RunEnd::OverBudget { reason, of_key }
        } else {
            RunEnd::Error { reason }
        }
    }
}

fn spent(said: &str) -> String {
    let said = redact(&first_line(said, REASON_CHARS_MAX));
    let said = said.trim_end_matches('.');
    let said = if said.is_empty() { String::new() } else { format!(" ({said})") };
    format!(
        "The model's vendor accepts no more requests, because its account or key has reached a spending limit{said}. That is not a budget of Bobbin's: only the operator can raise it, at the vendor."
    )
}

fn described(name: &str, status: Option<u16>, said: &str) -> String {
    let said = redact(&first_line(said, REASON_CHARS_MAX));
    let said = said.strip_prefix("ProviderModelNotFoundError: ").unwrap_or(&said);
    match (name, status) {
        ("MessageAbortedError", _) => "The run was stopped.".to_owned(),
        ("ContextOverflowError", _) => {
            "The conversation no longer fits into the model's context. A reset that keeps the files starts a new one.".to_owned()
        }
        ("MessageOutputLengthError", _) => "The answer grew longer than the model may write. Ask for a smaller piece.".to_owned(),
        ("ContentFilterError", _) => "The model's vendor refused the content of this conversation. If it refuses the next task too, a reset that keeps the files starts a new one.".to_owned(),
        ("ProviderAuthError", _) | (_, Some(401 | 403)) => {
            format!("The model's vendor refused the key: {said} The operator has to check the model key.")
        }
        (_, Some(429)) => format!("The model's vendor is limiting requests: {said} Try again later."),
        (_, Some(status @ 500..)) => format!("The model's vendor failed ({status}): {said} Try again later."),
        _ if said.contains("Model not found") => {
            format!("{said} The operator has to set MODEL to one that its vendor knows.")
        }
        (_, Some(status)) => format!("The model's vendor refused the request ({status}): {said} If it refuses the next task too, a reset that keeps the files starts a new conversation."),
        _ if said.is_empty() => "The agent failed without saying why.".to_owned(),
        _ => format!("The agent failed: {said}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the vendors answer, through OpenCode or an agent of its own.
    #[test]
    fn spent_money_is_no_fault() {
        let refusals = [
            (
                Some(403),
                "Key limit exceeded (total limit). Manage it using https://openrouter.ai/settings/keys",
                "",
            ),
            (Some(402), "This request requires more credits, or fewer max_tokens.", ""),
            (Some(402), "Insufficient credits", ""),
            (Some(400), "Budget has been exceeded! Current cost: 0.0010747, Max budget: 0.0", ""),
            (
                Some(400),
                "Refused.",
                r#"{"error":{"message":"Refused.","type":"budget_exceeded","param":null,"code":"400"}}"#,
            ),
            (
                Some(429),
                "Too much.",
                r#"{"error":{"message":"Too much.","code":"project_spend_limit_exceeded"}}"#,
            ),
            (Some(429), "organization_spend_limit_exceeded", ""),
            (Some(429), "Your project has reached its monthly spend limit.", ""),
            (None, "API Error: 403 Key limit exceeded (total limit)", ""),
            (None, "unexpected status 402 Payment Required: no credit", ""),
            (None, "Credit balance is too low", ""),
        ];
        for (status, said, body) in refusals {
            let reason = Reason::of("APIError", status, said, body);
            assert!(reason.is_budget(), "{said}");
            let ends = matches!(reason.end(), RunEnd::OverBudget { reason, .. } if reason.contains("only the operator can raise it"));
            assert!(ends, "{said}");
        }
    }

    #[test]
    fn other_refusals_stay_faults() {
        let refusals = [
            (Some(401), "Incorrect API key provided."),
            (Some(403), "This key may not use the model."),
            (Some(429), "You exceeded your current quota. Please retry in 21 s."),
            (Some(400), "max_tokens exceeded"),
            (None, "Rate limit reached"),
        ];
        for (status, said) in refusals {
            let end = Reason::of("APIError", status, said, "").end();
            assert!(matches!(end, RunEnd::Error { .. }), "{said}");
        }
    }

    #[test]
    fn words_of_spent_money_hide_keys() {
        let said = "Key limit exceeded (total limit) of sk-or-v1-abcdefghijklmnop.";
        let reason = Reason::of("APIError", Some(403), said, "");
        assert!(!reason.text().contains("abcdefgh"), "{}", reason.text());
    }
}
