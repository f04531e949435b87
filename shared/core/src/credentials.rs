//! Hiding what looks like a credential in text of other programs, before a person sees it on a terminal.
//!
//! Promised: keys and tokens of the services that Bobbin speaks to, and what follows `Bearer` or stands as the password of an
//! address, are not shown; everything else stays as it was. It is the second line: no such value should be there at all.

/// How the credentials of known services begin.
const BEGINNINGS: [&str; 12] = [
    "sk-",
    "dtn_",
    "xoxb-",
    "xoxp-",
    "xapp-",
    "xoxe-",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "AKIA",
    "ASIA",
];
/// Shorter ones are words.
const CHARS_MIN: usize = 16;
/// What is shown in their stead.
const HIDDEN: &str = "[hidden]";

/// The text without them.
#[must_use]
pub fn hide(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    let mut after_bearer = false;
    while !rest.is_empty() {
        let of_token = |c: char| c.is_ascii_alphanumeric() || "-_.~+/=".contains(c);
        let end = rest.find(|c| !of_token(c)).unwrap_or(rest.len());
        if end == 0 {
            let end = rest.find(of_token).unwrap_or(rest.len());
            let between = &rest[..end];
            after_bearer &= between.trim_matches(|c| c == ' ' || c == ':').is_empty();
            shown.push_str(between);
            rest = &rest[end..];
            continue;
        }
        let (token, further) = rest.split_at(end);
        // `user:password@host` of an address.
        let password = shown.ends_with(':')
            && further.starts_with('@')
            && shown
                .rsplit([' ', '\n', '"'])
                .next()
                .is_some_and(|word| word.contains("//"));
        if password || (after_bearer && token.len() >= CHARS_MIN) {
            shown.push_str(HIDDEN)
        } else {
            shown.push_str(&without(token))
        }
        after_bearer = token.eq_ignore_ascii_case("bearer") || token.eq_ignore_ascii_case("basic");
        rest = further;
    }
    shown
}

/// A token, hidden from where a credential begins in it.
fn without(token: &str) -> String {
    let bounds = |at: usize| at == 0 || !token.as_bytes()[at - 1].is_ascii_alphanumeric();
    let begins = BEGINNINGS
        .iter()
        .filter_map(|beginning| token.find(beginning))
        .filter(|at| bounds(*at) && token.len() - at >= CHARS_MIN)
        .min();
    match begins {
        Some(at) => format!("{}{HIDDEN}", &token[..at]),
        None => token.to_owned(),
    }
}

/// Masks what looks like a secret: known key prefixes, `Bearer` and `Basic` credentials, values of variables and
/// options named like one, and passwords in addresses. Best effort: a secret that looks like a word stays.
#[must_use]
pub fn redact(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut next_is_secret = false;
    for piece in text.split_inclusive(char::is_whitespace) {
        let word = piece.trim_end();
        let gap = &piece[word.len()..];
        if word.is_empty() {
            masked.push_str(gap);
            continue;
        }
        let bare = word.trim_matches(['"', '\'', ',', ';']);
        if std::mem::take(&mut next_is_secret) || has_key_prefix(bare) {
            masked.push_str("***");
        } else {
            masked.push_str(&mask_inside(word));
        }
        let lower = bare.to_ascii_lowercase();
        let after = lower.rsplit([':', '=', '"', '\'']).next().unwrap_or("");
        next_is_secret = matches!(after, "bearer" | "basic")
            || (lower.starts_with("--") && !lower.contains('=') && names_secret(&lower));
        masked.push_str(gap);
    }
    masked
}

fn mask_inside(word: &str) -> String {
    if let Some((scheme, rest)) = word.split_once("://") {
        let authority = rest.split('/').next().unwrap_or("");
        if let Some((_, host)) = authority.rsplit_once('@') {
            return format!("{scheme}://***@{host}{}", &rest[authority.len()..]);
        }
    }
    if let Some(at) = word.find(['=', ':']) {
        let (name, value) = (&word[..at], &word[at + 1..]);
        let value = value.trim_matches(['"', '\'']);
        if has_key_prefix(value)
            || (names_secret(&name.to_ascii_lowercase())
                && !value.is_empty()
                && !value.starts_with(['$', '/']))
        {
            return format!("{}***", &word[..=at]);
        }
    }
    word.to_owned()
}

fn has_key_prefix(word: &str) -> bool {
    const PREFIXES: [&str; 14] = [
        "sk-",
        "ghp_",
        "gho_",
        "ghs_",
        "ghu_",
        "github_pat_",
        "glpat-",
        "xoxb-",
        "xoxp-",
        "xapp-",
        "dtn_",
        "AKIA",
        "ASIA",
        "npm_",
    ];
    word.len() >= 12 && PREFIXES.iter().any(|prefix| word.starts_with(prefix))
}

fn names_secret(name: &str) -> bool {
    [
        "token",
        "secret",
        "password",
        "passwd",
        "api_key",
        "apikey",
        "api-key",
        "access_key",
        "private_key",
    ]
    .iter()
    .any(|word| name.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_tokens_and_passwords_are_hidden_and_nothing_else() {
        for (text, shown) in [
            (
                "INFO key=sk-ant-api03-0123456789abcdef service=llm",
                "INFO key=[hidden] service=llm",
            ),
            (
                r#"{"authorization":"Bearer abcdefghijklmnopqrstuvwxyz"}"#,
                r#"{"authorization":"Bearer [hidden]"}"#,
            ),
            (
                "clone https://user:hunter2@example.org/a.git",
                "clone https://user:[hidden]@example.org/a.git",
            ),
            (
                "xoxb-1234567890-abcdef and dtn_0123456789abcdef",
                "[hidden] and [hidden]",
            ),
            (
                "task-list of the risk-based desk-",
                "task-list of the risk-based desk-",
            ),
            (
                "GET http://127.0.0.1:4096/session 200 sk-1",
                "GET http://127.0.0.1:4096/session 200 sk-1",
            ),
            (
                "bearer of news: everything is well",
                "bearer of news: everything is well",
            ),
            ("ä\n漢字 …", "ä\n漢字 …"),
            ("", ""),
        ] {
            assert_eq!(hide(text), shown);
        }
    }
}
