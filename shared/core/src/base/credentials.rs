//! Hides likely credentials in the text of other programs before a person sees it.
//!
//! Promised: hidden are keys and tokens of the services that Bobbin uses, words after `Bearer` or `Basic`, values of
//! variables and options that are named like a secret, and passwords in addresses. All other text stays as it was. This
//! is the second line of defence: such values should not be there at all, and one that looks like a word stays.

/// Prefixes of credentials of known services.
const BEGINNINGS: [&str; 16] = [
    "sk-",
    "dtn_",
    "xoxb-",
    "xoxp-",
    "xapp-",
    "xoxe-",
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "npm_",
    "AKIA",
    "ASIA",
];
/// Beginning of a JSON object in base64, with which a JSON Web Token begins (RFC 7519).
const JWT: &str = "eyJ";
/// Shorter words with such a prefix are ordinary words.
const CHARS_MIN: usize = 12;
/// Shown instead of a credential.
const HIDDEN: &str = "***";
/// Parts of names that mark a secret.
const SECRET_NAMES: [&str; 9] = [
    "token",
    "secret",
    "password",
    "passwd",
    "api_key",
    "apikey",
    "api-key",
    "access_key",
    "private_key",
];

/// What the previous word says about the next one.
#[derive(Clone, Copy, PartialEq)]
enum Before {
    Nothing,
    /// It is `Bearer` or `Basic`: an authorisation scheme, or an ordinary word.
    Scheme,
    /// It is an option that takes a secret.
    Option,
}

/// Replaces credentials in the text.
#[must_use]
pub fn redact(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut before = Before::Nothing;
    for piece in text.split_inclusive(char::is_whitespace) {
        let word = piece.trim_end();
        let gap = &piece[word.len()..];
        if word.is_empty() {
            shown.push_str(gap);
            continue;
        }
        let bare = word.trim_matches(|c: char| "\"',;{}".contains(c));
        let is_secret = match before {
            Before::Nothing => false,
            Before::Scheme => !bare.chars().all(char::is_alphabetic) || bare.len() >= CHARS_MIN,
            Before::Option => true,
        };
        if is_secret {
            shown.push_str(&word.replacen(bare, HIDDEN, 1));
        } else {
            shown.push_str(&inside(word));
        }
        shown.push_str(gap);
        let lower = bare.to_ascii_lowercase();
        let last = lower.rsplit([':', '=', '"', '\'']).next().unwrap_or("");
        before = if matches!(last, "bearer" | "basic") {
            Before::Scheme
        } else if lower.starts_with("--") && !lower.contains('=') && names_secret(&lower) {
            Before::Option
        } else {
            Before::Nothing
        };
    }
    shown
}

/// A word without an address's password, the value of a name that marks a secret, and known credentials.
fn inside(word: &str) -> String {
    if let Some((scheme, rest)) = word.split_once("://") {
        let authority = rest.split('/').next().unwrap_or("");
        if let Some((_, host)) = authority.rsplit_once('@') {
            return format!("{scheme}://{HIDDEN}@{host}{}", &rest[authority.len()..]);
        }
    }
    if let Some(at) = word.find(['=', ':']) {
        let (name, value) = (&word[..at], &word[at + 1..]);
        let value = value.trim_matches(['"', '\'']);
        if names_secret(&name.to_ascii_lowercase())
            && !value.is_empty()
            && !value.starts_with(['$', '/'])
        {
            return format!("{}{HIDDEN}", &word[..=at]);
        }
    }
    let is_token = |c: char| c.is_ascii_alphanumeric() || "-_.~+/".contains(c);
    let mut shown = String::with_capacity(word.len());
    let mut rest = word;
    while let Some(begin) = rest.find(is_token) {
        let (between, token) = rest.split_at(begin);
        let (token, further) = token.split_at(token.find(|c| !is_token(c)).unwrap_or(token.len()));
        shown.push_str(between);
        match credential(token) {
            Some(at) => shown.extend([&token[..at], HIDDEN]),
            None => shown.push_str(token),
        }
        rest = further;
    }
    shown + rest
}

/// Index of the credential in a token, if there is one.
fn credential(token: &str) -> Option<usize> {
    let is_begin = |at: usize| at == 0 || !token.as_bytes()[at - 1].is_ascii_alphanumeric();
    BEGINNINGS
        .iter()
        .filter_map(|beginning| token.find(beginning))
        .chain(token.find(JWT).filter(|at| is_jwt(&token[*at..])))
        .filter(|at| is_begin(*at) && token.len() - at >= CHARS_MIN)
        .min()
}

/// Whether it has a JSON Web Token's three parts: much else begins like one.
fn is_jwt(token: &str) -> bool {
    let parts: Vec<&str> = token.trim_end_matches('.').split('.').collect();
    parts.len() == 3 && parts.iter().all(|part| part.len() > 1)
}

fn names_secret(name: &str) -> bool {
    SECRET_NAMES.iter().any(|word| name.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_credentials_are_redacted() {
        for (text, shown) in [
            ("INFO key=sk-ant-api03-0123456789abcdef service=llm", "INFO key=*** service=llm"),
            (
                r#"{"authorization":"Bearer abcdefghijklmnopqrstuvwxyz"}"#,
                r#"{"authorization":"Bearer ***"}"#,
            ),
            ("clone https://user:hunter2@example.org/a.git", "clone https://***@example.org/a.git"),
            ("xoxb-1234567890-abcdef and dtn_0123456789abcdef", "*** and ***"),
            (
                "ghs_12345_eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiIxIn0.c2lnbmF0dXJl, ghr_0123456789",
                "***, ***",
            ),
            ("ghu_0123456789ab gho_0123456789ab github_pat_11AAAAA_0.b", "*** *** ***"),
            ("jwt=eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiIxIn0.c2lnbmF0dXJl.", "jwt=***"),
            ("cursor eyJpZCI6MTIzNDU2Nzg5fQ v1.eyJ.0", "cursor eyJpZCI6MTIzNDU2Nzg5fQ v1.eyJ.0"),
            ("task-list of the risk-based desk-", "task-list of the risk-based desk-"),
            (
                "GET http://127.0.0.1:4096/session 200 sk-1",
                "GET http://127.0.0.1:4096/session 200 sk-1",
            ),
            ("bearer of news: everything is well", "bearer of news: everything is well"),
            ("ä\n漢字 …", "ä\n漢字 …"),
            ("", ""),
        ] {
            assert_eq!(redact(text), shown);
        }
    }
}
