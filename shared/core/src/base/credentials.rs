//! Hides likely credentials in the text of other programs before a person sees it.
//!
//! Promised: hidden are keys and tokens of the services that Bobbin uses, words after `Bearer` or `Basic`, values of
//! variables, options, headers and fields that are named like a secret, and passwords in addresses. All other text
//! stays as it was. This is the second line of defence: such values should not be there at all, and one that looks like
//! a word stays.

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
/// Longer words after the name of a secret are no ordinary words.
const WORD_CHARS_MAX: usize = 16;
/// Words of this length after such a name are values, even without a digit.
const VALUE_CHARS_MIN: usize = 16;
/// A number of fewer digits counts something.
const DIGITS_MIN: usize = 6;
/// A shorter word with fewer changes of case is an identifier.
const MIXED_CHARS_MIN: usize = 12;
const MIXED_CHANGES_MIN: usize = 6;
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
    /// It names a secret; the sign before the value may follow.
    Name,
    /// It names a secret and ends in `:` or `=`: a field or a header, or an ordinary sentence.
    Said,
    /// The same in quotes, or with the sign apart: no sentence.
    Field,
    /// It is the header in front of a scheme.
    Authorization,
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
            Before::Nothing | Before::Name => false,
            Before::Said => is_value(bare) && is_likely_value(bare),
            Before::Authorization => {
                is_value(bare) && !is_ordinary(word) && !is_scheme(&bare.to_ascii_lowercase())
            }
            Before::Field => is_value(bare),
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
        let is_of_header = before == Before::Authorization || lower.contains("authorization");
        before = if is_scheme(last) && (last != "token" || is_of_header) {
            Before::Scheme
        } else if lower.starts_with("--") && !lower.contains('=') && names_secret(&lower) {
            Before::Option
        } else if gap.contains('\n') {
            Before::Nothing
        } else {
            named(word, before)
        };
    }
    shown
}

/// Whether this is a scheme in front of a credential; `token` is one only in its header.
fn is_scheme(lower: &str) -> bool {
    matches!(lower, "bearer" | "basic" | "token")
}

/// What a word says about the next one on its line if it names a secret.
fn named(word: &str, before: Before) -> Before {
    if matches!(word, ":" | "=" | ":=" | "=>") {
        return if before == Before::Name { Before::Field } else { Before::Nothing };
    }
    let lower = word.to_ascii_lowercase();
    let whole = lower.trim_end_matches([':', '=']);
    let last = whole.rsplit([',', ';', '{', '(', '[']).next().unwrap_or("");
    let name = last.trim_matches(['"', '\'', '`']);
    let has_sign = whole.len() < lower.len();
    if has_sign && name.ends_with("authorization") {
        return Before::Authorization;
    }
    // Tokens in the plural are counted.
    if !names_secret(name) || name.ends_with("tokens") {
        return Before::Nothing;
    }
    if !has_sign {
        Before::Name
    } else if name.len() < last.len() {
        Before::Field
    } else {
        Before::Said
    }
}

/// Whether something stands there that could be a secret: no sign, constant, variable or path.
fn is_value(bare: &str) -> bool {
    let core = bare.trim_matches(|c: char| !c.is_alphanumeric());
    let is_constant = matches!(core, "true" | "false" | "null" | "None" | "none" | "undefined");
    !core.is_empty() && !is_constant && !bare.starts_with(['$', '/'])
}

/// Whether this looks like a credential where a sentence, a program or a count may go on as well.
fn is_likely_value(bare: &str) -> bool {
    let core = bare.trim_matches(|c: char| !c.is_alphanumeric());
    let has_letters = core.chars().any(char::is_alphabetic);
    let digits = core.chars().filter(char::is_ascii_digit).count();
    // As in `u64`, `Option<u64>`, `token(12)` and `<EOF>`.
    let width = core.strip_prefix(['i', 'u', 'f']).unwrap_or("");
    let is_type = matches!(width, "8" | "16" | "32" | "64" | "128");
    let is_call = bare.trim_end_matches('?').ends_with(['>', ')']);
    let cases: Vec<bool> =
        core.chars().filter(|c| c.is_alphabetic()).map(char::is_uppercase).collect();
    let changes = cases.windows(2).filter(|pair| pair[0] != pair[1]).count();
    let is_mixed = core.chars().count() >= MIXED_CHARS_MIN && changes >= MIXED_CHANGES_MIN;
    let is_long = core.chars().count() >= VALUE_CHARS_MIN;
    let is_like =
        if has_letters { digits > 0 || is_long || is_mixed } else { digits >= DIGITS_MIN };
    is_like && !is_type && !is_call
}

/// Whether this is a word of a sentence, by its look.
fn is_ordinary(word: &str) -> bool {
    let core = word.trim_matches(|c: char| !c.is_alphanumeric());
    let mut rest = core.chars();
    let begins = rest.next().is_some_and(char::is_alphabetic);
    let is_lower = |c: char| (c.is_alphabetic() && !c.is_uppercase()) || "'’-".contains(c);
    begins
        && rest.all(is_lower)
        && core.chars().count() <= WORD_CHARS_MAX
        && !word.starts_with(['"', '\''])
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
            ("X-Api-Key: 0123456789abcdef", "X-Api-Key: ***"),
            ("curl -H 'X-Api-Key: abc' -d x", "curl -H 'X-Api-Key: ***' -d x"),
            ("Authorization: token 0123456789abcdef0123 x", "Authorization: token *** x"),
            (r#"{"Authorization": "token 0a1b2c"}"#, r#"{"Authorization": "token ***"}"#),
            ("authorization: 0a1b2c3d", "authorization: ***"),
            ("password: hunter2\nuser: ann", "password: ***\nuser: ann"),
            (r#"{"password": "hunter", "n": 1}"#, r#"{"password": "***", "n": 1}"#),
            ("client_secret = 'hunter'; next", "client_secret = '***'; next"),
            ("DB_PASSWORD: Hunter-2-Hunter", "DB_PASSWORD: ***"),
            ("DB_PASSWORD: Hunter-Hunter-Hunter", "DB_PASSWORD: ***"),
            ("password: 84129730", "password: ***"),
            ("X-Api-Key: 8412-9730-1177", "X-Api-Key: ***"),
            ("password: Xk(9fj2Lq83jd", "password: ***"),
            ("secret: p4ss<w0rd9182", "secret: ***"),
            ("DB_PASSWORD: QzRtYpLmNwKd", "DB_PASSWORD: ***"),
            ("unexpected token: <EOF>", "unexpected token: <EOF>"),
            ("unexpected token: EOF, line 3", "unexpected token: EOF, line 3"),
            ("    token: Option<String>,", "    token: Option<String>,"),
            ("    secret: Arc<Mutex<Vec<u8>>>,", "    secret: Arc<Mutex<Vec<u8>>>,"),
            ("token: TokenKind, secret: u64", "token: TokenKind, secret: u64"),
            ("password: read_password(1)", "password: read_password(1)"),
            ("token_count: 12", "token_count: 12"),
            (r#""token": null, "#, r#""token": null, "#),
            ("password: $DB_PASSWORD", "password: $DB_PASSWORD"),
            ("the token: is it there?", "the token: is it there?"),
            ("Password: wrong.", "Password: wrong."),
            ("secret: it isn't one", "secret: it isn't one"),
            ("tokens: 1200 of 4096", "tokens: 1200 of 4096"),
            ("passwords:\n  A1: b", "passwords:\n  A1: b"),
            ("a token = *** and a token of 12 parts", "a token = *** and a token of 12 parts"),
            ("ä\n漢字 …", "ä\n漢字 …"),
            ("", ""),
        ] {
            assert_eq!(redact(text), shown);
        }
    }
}
