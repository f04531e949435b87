//! The complete page on which a key is entered: constant HTML around a few words, no script, nothing from elsewhere.
//!
//! Its headers enforce that: the only source is the style named by its hash (W3C, Content Security Policy Level 3), no
//! form is sent elsewhere, no frame, no caching, and links do not reveal the address.

use bobbin_chat::HttpAnswer;
use bobbin_core::base::ids::Ms;
use bobbin_core::tenant::keys::Key;
use bobbin_core::tenant::own_keys::{KEY_BYTES_MAX, SetupLink};
use bobbin_core::text::{one_line, shorten, span};

/// Name of the form's only input.
pub const FIELD: &str = "key";
/// Maximum number of a name's characters on the page.
const NAME_CHARS_MAX: usize = 80;
const STYLE: &str = ":root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:34em;margin:4em auto;padding:0 1em;color:light-dark(#1c1c1e,#ececf0);background:light-dark(#f6f6f8,#17171a)}\
main{padding:1.5em 2em;border:1px solid light-dark(#dcdce2,#35353c);border-radius:10px;background:light-dark(#fff,#202024)}\
h1{font-size:1.4em;margin:0 0 .6em}.mark{font-weight:600;letter-spacing:.02em;margin:0 0 .6em}\
input{font:inherit;width:100%;box-sizing:border-box;padding:.5em;margin:.5em 0 1em}button{font:inherit;padding:.5em 1.2em}\
.why{color:light-dark(#a1260d,#ff8f73)}";
const HEADERS: &[(&str, &str)] = &[
    (
        "content-security-policy",
        "default-src 'none'; style-src 'sha256-X2H73A57ZCg/RQN2M1SmnWV3q5bbzhmgD/Yr682IFtQ='; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    ),
    ("referrer-policy", "no-referrer"),
    ("cache-control", "no-store"),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("cross-origin-opener-policy", "same-origin"),
    ("x-robots-tag", "noindex, nofollow"),
];

/// The form of a link, with what was wrong with the previous entry.
pub fn form(key: Key, link: &SetupLink, now_ms: Ms, wrong: Option<&str>) -> HttpAnswer {
    let brand = key.brand();
    let tenant = link.thread.tenant();
    let (place, id) = match tenant.as_str().split_once(':') {
        Some(("discord", id)) => ("the Discord server", id),
        Some(("slack", id)) => ("the Slack workspace", id),
        _ => ("", tenant.as_str()),
    };
    let shown = |name: &str| escaped(&shorten(&one_line(name), NAME_CHARS_MAX));
    let named = match &link.place {
        Some(name) => format!("<b>{}</b> ({})", shown(name), escaped(id)),
        None => format!("<b>{}</b>", escaped(id)),
    };
    let by = shown(&link.by.name);
    let left = span(link.until_ms.saturating_sub(now_ms));
    let why =
        wrong.map_or_else(String::new, |why| format!("<p class=\"why\">{}</p>", escaped(why)));
    let body = format!(
        "<h1>{brand} key</h1>{why}<p>For {place} {named}. <b>{by}</b> asked for this page; it works once, for {left}.</p>\
<p>If that was not you, or you do not know the place, close this page: a key that you enter here is used there.</p>\
<form method=\"post\"><label for=\"{FIELD}\">The key</label>\
<input id=\"{FIELD}\" name=\"{FIELD}\" type=\"password\" autocomplete=\"off\" spellcheck=\"false\" required maxlength=\"{KEY_BYTES_MAX}\" autofocus>\
<button>Store</button></form>\
<p>It is encrypted at once and never shown again. It takes effect when {brand} accepts it; the chat shows the result.</p>"
    );
    html(if wrong.is_some() { 422 } else { 200 }, &body)
}

/// The key was accepted and is being checked.
pub fn taken(key: Key) -> HttpAnswer {
    let brand = key.brand();
    html(
        200,
        &format!(
            "<h1>Checking the key</h1><p>{brand} is checking the key. It takes effect when {brand} accepts it; the \
chat shows the result. You can close this page.</p>"
        ),
    )
}

/// Nothing can be entered with this link, whatever it was.
pub fn spent() -> HttpAnswer {
    html(
        410,
        "<h1>This link does not work</h1><p>It was already used, has expired, or is incomplete. Nothing was stored. \
Ask for a new one in the chat: <code>/sandbox-setup</code> on Discord, <code>/bobbin setup</code> on Slack.</p>",
    )
}

/// A service that the page needs does not answer.
pub fn later() -> HttpAnswer {
    html(
        503,
        "<h1>Not right now</h1><p>The key could not be stored. Nothing was changed, and the link still works: go back \
and send the key again in a minute. If that keeps failing, tell the operator of Bobbin.</p>",
    )
}

fn html(status: u16, body: &str) -> HttpAnswer {
    HttpAnswer {
        status,
        content_type: "text/html; charset=utf-8",
        body: format!(
            "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
<title>Bobbin</title><style>{STYLE}</style></head><body><p class=\"mark\">Bobbin</p><main>{body}</main></body></html>"
        ),
        headers: HEADERS,
    }
}

fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use bobbin_core::base::ids::ThreadKey;
    use bobbin_core::base::person::{Membership, Person};
    use bobbin_core::records::message::Reply;
    use sha2::{Digest, Sha256};

    use super::*;

    fn link(name: &str) -> SetupLink {
        SetupLink {
            provider: "daytona".to_owned(),
            thread: ThreadKey::discord("41", "2").expect("ids"),
            by: Person { id: "1".to_owned(), name: name.to_owned() },
            place: Some(name.to_owned()),
            membership: Membership::default(),
            reply: Reply::Nobody,
            until_ms: 600_000,
        }
    }

    #[test]
    fn page_policy_allows_only_own_style() {
        let hash = STANDARD.encode(Sha256::digest(STYLE.as_bytes()));
        let shown = form(Key::DaytonaApiKey, &link("Ada"), 0, None);
        let policy = shown.headers.iter().find(|(name, _)| *name == "content-security-policy");
        assert_eq!(
            policy.map(|(_, value)| *value),
            Some(format!("default-src 'none'; style-src 'sha256-{hash}'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'").as_str())
        );
        assert!(!shown.body.contains("<script") && !shown.body.contains("http"));
        assert_eq!(shown.body.matches("<style>").count(), 1);
    }

    #[test]
    fn names_are_escaped_in_page() {
        let shown = form(Key::DaytonaApiKey, &link("<img src=x>\"'&"), 0, Some("<b>"));
        assert!(shown.body.contains("<b>&lt;img src=x&gt;&quot;&#39;&amp;</b>"), "{}", shown.body);
        assert_eq!(shown.status, 422);
    }
}
