//! The pages to which links from the chat lead: constant HTML around a few words, no script, nothing from elsewhere.
//!
//! Its headers enforce that: the only source is the style named by its hash (W3C, Content Security Policy Level 3), no
//! form is sent elsewhere, no frame, no caching, and links do not reveal the address.

use bobbin_chat::HttpAnswer;
use bobbin_core::base::ids::Ms;
use bobbin_core::tenant::own_keys::KEY_BYTES_MAX;
use bobbin_core::tenant::project_secrets::{SecretRequest, VALUE_BYTES_MAX};
use bobbin_core::tenant::setup_link::{Purpose, SetupLink};
use bobbin_core::tenant::sign_in::{CONNECT, OwnerChoice, SignInFound};
use bobbin_core::text::{html_text, one_line, shorten, span};

/// Name of the only input of a key's form.
pub const FIELD: &str = "key";
/// Name of the buttons under what a sign-in brought.
pub const CHOICE: &str = "choice";
/// Seconds after which a page that waits for the worker is loaded again.
const LOOK_S: u32 = 2;
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
pub fn form(link: &SetupLink, now_ms: Ms, wrong: Option<&str>) -> HttpAnswer {
    let (place, by) = (place(link), shown(&link.by.name));
    let left = span(link.until_ms.saturating_sub(now_ms));
    let why = told_wrong(wrong);
    let FormWords { heading, used, label, bytes_max, effect } = FormWords::of(link);
    let body = format!(
        "<h1>{heading}</h1>{why}<p>For {place}. <b>{by}</b> asked for this page; it works once, for {left}.</p>\
<p>If that was not you, or you do not know the place, close this page: {used}</p>\
<form method=\"post\"><label for=\"{FIELD}\">{label}</label>\
<input id=\"{FIELD}\" name=\"{FIELD}\" type=\"password\" autocomplete=\"off\" spellcheck=\"false\" required maxlength=\"{bytes_max}\" autofocus>\
<button>Store</button></form>\
<p>It is encrypted at once and never shown again. {effect}</p>"
    );
    html(if wrong.is_some() { 422 } else { 200 }, &body)
}

/// What a form says of what is entered in it. All is escaped.
struct FormWords {
    heading: String,
    used: String,
    label: &'static str,
    bytes_max: usize,
    effect: String,
}

impl FormWords {
    fn of(link: &SetupLink) -> Self {
        match (&link.secret, link.purpose) {
            (Some(wish), _) => Self {
                heading: format!("Secret {} of {}", shown(&wish.name), shown(&wish.repository)),
                used: format!(
                    "a secret that you enter here is used there, by tasks in {}, {}.",
                    shown(&wish.repository),
                    secret_use(wish)
                ),
                label: "The value",
                bytes_max: VALUE_BYTES_MAX,
                effect: "Tasks get it with their next message; the chat shows the result."
                    .to_owned(),
            },
            (None, purpose) => {
                let brand = brand(purpose);
                Self {
                    heading: format!("{brand} key"),
                    used: "a key that you enter here is used there.".to_owned(),
                    label: "The key",
                    bytes_max: KEY_BYTES_MAX,
                    effect: format!(
                        "It takes effect when {brand} accepts it; the chat shows the result."
                    ),
                }
            }
        }
    }
}

fn secret_use(wish: &SecretRequest) -> String {
    let hosts: Vec<String> = wish.hosts.iter().map(|host| shown(host)).collect();
    let hosts = hosts.join(", ");
    let how = if wish.readable {
        format!("which can read it (it is meant for {hosts})")
    } else {
        format!("which cannot read it: it is put into requests to {hosts} alone")
    };
    if wish.set_up { format!("{how}, and by the steps that set the project up") } else { how }
}

fn brand(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Key(key) => key.brand(),
        other => other.word(),
    }
}

/// What was entered was accepted and is being checked.
pub fn taken(purpose: Purpose) -> HttpAnswer {
    if purpose == Purpose::ProjectSecret {
        return html(
            200,
            "<h1>Storing the secret</h1><p>The chat shows the result. You can close this page.</p>",
        );
    }
    let brand = brand(purpose);
    html(
        200,
        &format!(
            "<h1>Checking the key</h1><p>{brand} is checking the key. It takes effect when {brand} accepts it; the \
chat shows the result. You can close this page.</p>"
        ),
    )
}

/// The way to the forge's sign-in.
pub fn sign_in(link: &SetupLink, there: &str, now_ms: Ms) -> HttpAnswer {
    let (place, by) = (place(link), shown(&link.by.name));
    let left = span(link.until_ms.saturating_sub(now_ms));
    let (heading, what) = match link.purpose {
        Purpose::ConnectAccount => (
            "Connect a GitHub account",
            format!(
                "Pull requests that <b>{by}</b> opens there will be those of the account with which you sign in. If you are not <b>{by}</b>, close this page."
            ),
        ),
        _ => (
            "Bind an owner at GitHub",
            "After the sign-in you choose an organisation that you own, or your own account. People there can then have Bobbin work on those of its repositories that they open. If you do not know the place or the person, close this page.".to_owned(),
        ),
    };
    html(
        200,
        &format!(
            "<h1>{heading}</h1><p>For {place}. <b>{by}</b> asked for this page; it works once, for {left}.</p><p>{what}</p>\
<p><a href=\"{}\">Continue at GitHub</a></p>",
            html_text(there)
        ),
    )
}

/// The person said no at the forge.
pub fn denied() -> HttpAnswer {
    html(
        200,
        "<h1>You did not sign in</h1><p>GitHub says that you did not allow it. Nothing was changed, and the link from the chat still works.</p>",
    )
}

/// Leads a browser from the forge's way back, whose address holds a code, to its own page.
pub fn lead_on(to: &str) -> HttpAnswer {
    let body = format!("<h1>Signed in</h1><p><a href=\"{to}\">Go on</a></p>");
    page(200, &format!("<meta http-equiv=\"refresh\" content=\"0; url={to}\">"), &body)
}

/// The worker looks who has signed in.
pub fn looking() -> HttpAnswer {
    page(
        200,
        &format!("<meta http-equiv=\"refresh\" content=\"{LOOK_S}\">"),
        "<h1>Asking GitHub</h1><p>Bobbin is asking GitHub who you are. This page shows the answer by itself.</p>",
    )
}

/// What a sign-in brought, with what was wrong with the previous press.
pub fn found(link: &SetupLink, found: &SignInFound, wrong: Option<&str>) -> HttpAnswer {
    let (place, by) = (place(link), shown(&link.by.name));
    let why = told_wrong(wrong);
    let body = match found {
        SignInFound::Owners { login, owners, unsaid, install } => {
            let choices: String = owners.iter().map(choice).collect();
            let unsaid: Vec<String> = unsaid.iter().map(|login| shown(login)).collect();
            let unsaid = if unsaid.is_empty() {
                String::new()
            } else {
                format!(
                    "<p>GitHub did not say what your role in <b>{}</b> is: the app has to be granted the permission Members (read) there, or you have to sign in to that organisation at GitHub first.</p>",
                    unsaid.join(", ")
                )
            };
            format!(
                "<h1>Bind an owner at GitHub</h1>{why}<p>To {place}. <b>{by}</b> asked for it. You are signed in as <b>{}</b>.</p>\
<p>People there can then have Bobbin work on those of its repositories that they open. If you do not know the place or the person, close this page.</p>\
{choices}{unsaid}<p>Not here? You have to own it, and the app has to be installed there: {}, then open the link from the chat again.</p>",
                shown(login),
                linked(install, "install it")
            )
        }
        SignInFound::Account { account } => {
            let login = shown(&account.login);
            format!(
                "<h1>Connect a GitHub account</h1>{why}<p>The account <b>{login}</b>, to <b>{by}</b> of {place}.</p>\
<p>Pull requests that <b>{by}</b> opens there will be those of <b>{login}</b>. If you are not <b>{by}</b>, close this page.</p>{}",
                button(CONNECT, &format!("Connect {login}"))
            )
        }
        SignInFound::Refused { why } => {
            format!("<h1>That did not work</h1><p>{}</p>", html_text(&one_line(why)))
        }
    };
    html(if wrong.is_some() { 422 } else { 200 }, &body)
}

fn choice(owner: &OwnerChoice) -> String {
    let login = shown(&owner.login);
    if owner.is_suspended {
        let mend = linked(&owner.page, "Its owner can lift that");
        return format!("<p><b>{login}</b> has suspended the app. {mend}.</p>");
    }
    button(&owner.id.to_string(), &format!("Bind {login}"))
}

/// `label` is escaped.
fn button(value: &str, label: &str) -> String {
    format!(
        "<form method=\"post\"><p><button name=\"{CHOICE}\" value=\"{value}\">{label}</button></p></form>"
    )
}

/// A link to a page of the forge.
fn linked(address: &str, label: &str) -> String {
    if address.starts_with("https://") || address.starts_with("http://") {
        format!("<a href=\"{}\">{label}</a>", html_text(address))
    } else {
        label.to_owned()
    }
}

/// Something was pressed, and is being carried out.
pub fn pressed() -> HttpAnswer {
    html(
        200,
        "<h1>Done here</h1><p>Bobbin carries it out, and the chat shows the result. You can close this page.</p>",
    )
}

/// Nothing can be done with this link, whatever it was.
pub fn spent() -> HttpAnswer {
    html(
        410,
        "<h1>This link does not work</h1><p>It was already used, has expired, or is incomplete. Nothing was stored. \
Ask for a new one in the chat: <code>/sandbox-setup</code> or <code>/github connect</code> on Discord, \
<code>/bobbin setup</code> or <code>/bobbin github connect</code> on Slack.</p>",
    )
}

/// A service that the page needs does not answer.
pub fn later() -> HttpAnswer {
    html(
        503,
        "<h1>Not right now</h1><p>This could not be stored. Nothing was changed, and the link still works: go back \
and try again in a minute. If that keeps failing, tell the operator of Bobbin.</p>",
    )
}

/// The server or workspace of a link.
fn place(link: &SetupLink) -> String {
    let tenant = link.thread.tenant();
    let (place, id) = match tenant.as_str().split_once(':') {
        Some(("discord", id)) => ("the Discord server", id),
        Some(("slack", id)) => ("the Slack workspace", id),
        _ => ("", tenant.as_str()),
    };
    match &link.place {
        Some(name) => format!("{place} <b>{}</b> ({})", shown(name), html_text(id)),
        None => format!("{place} <b>{}</b>", html_text(id)),
    }
}

fn shown(name: &str) -> String {
    html_text(&shorten(&one_line(name), NAME_CHARS_MAX))
}

fn told_wrong(wrong: Option<&str>) -> String {
    wrong.map_or_else(String::new, |why| format!("<p class=\"why\">{}</p>", html_text(why)))
}

fn html(status: u16, body: &str) -> HttpAnswer {
    page(status, "", body)
}

fn page(status: u16, head: &str, body: &str) -> HttpAnswer {
    HttpAnswer {
        status,
        content_type: "text/html; charset=utf-8",
        body: format!(
            "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">{head}\
<title>Bobbin</title><style>{STYLE}</style></head><body><p class=\"mark\">Bobbin</p><main>{body}</main></body></html>"
        ),
        headers: HEADERS,
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use bobbin_core::base::ids::ThreadKey;
    use bobbin_core::base::person::{Membership, Person};
    use bobbin_core::records::message::Reply;
    use bobbin_core::tenant::keys::Key;
    use sha2::{Digest, Sha256};

    use super::*;

    fn link(name: &str) -> SetupLink {
        SetupLink {
            purpose: Purpose::Key(Key::DaytonaApiKey),
            thread: ThreadKey::discord("41", "2").expect("ids"),
            by: Person { id: "1".to_owned(), name: name.to_owned() },
            place: Some(name.to_owned()),
            membership: Membership::default(),
            reply: Reply::Nobody,
            until_ms: 600_000,
            sign_in: None,
            secret: None,
        }
    }

    #[test]
    fn page_policy_allows_only_own_style() {
        let hash = STANDARD.encode(Sha256::digest(STYLE.as_bytes()));
        let shown = form(&link("Ada"), 0, None);
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
        let shown = form(&link("<img src=x>\"'&"), 0, Some("<b>"));
        assert!(shown.body.contains("<b>&lt;img src=x&gt;&quot;&#39;&amp;</b>"), "{}", shown.body);
        assert_eq!(shown.status, 422);
    }

    #[test]
    fn a_secrets_page_says_where_it_goes() {
        let wish = SecretRequest {
            repository: "acme/api".to_owned(),
            name: "NPM_TOKEN".to_owned(),
            hosts: vec!["*.example.com".to_owned()],
            readable: false,
            set_up: true,
        };
        let link =
            |wish| SetupLink { purpose: Purpose::ProjectSecret, secret: Some(wish), ..link("Ada") };
        let shown = form(&link(wish.clone()), 0, None).body;
        for words in [
            "<h1>Secret NPM_TOKEN of acme/api</h1>",
            "which cannot read it: it is put into requests to *.example.com alone, and by the steps that set the project up.",
            "maxlength=\"2048\"",
        ] {
            assert!(shown.contains(words), "{shown}");
        }
        let readable = form(&link(SecretRequest { readable: true, ..wish }), 0, None).body;
        assert!(readable.contains("which can read it"), "{readable}");
    }

    #[test]
    fn sign_in_names_place_and_person() {
        let link = SetupLink { purpose: Purpose::ConnectAccount, ..link("Ada <b>") };
        let there = "https://github.com/login/oauth/authorize?client_id=a&state=b";
        let shown = sign_in(&link, there, 0);
        for words in [
            "For the Discord server <b>Ada &lt;b&gt;</b> (41). <b>Ada &lt;b&gt;</b> asked for this page",
            "<a href=\"https://github.com/login/oauth/authorize?client_id=a&amp;state=b\">Continue at GitHub</a>",
        ] {
            assert!(shown.body.contains(words), "{}", shown.body);
        }
    }

    #[test]
    fn choices_are_buttons_and_nothing_else_is() {
        let owner = |id, login: &str, is_suspended| OwnerChoice {
            id,
            login: login.to_owned(),
            is_organization: true,
            installation: 7,
            is_suspended,
            page: "javascript:alert(1)".to_owned(),
        };
        let owners = SignInFound::Owners {
            login: "ada".to_owned(),
            owners: vec![owner(41, "acme<", false), owner(42, "other", true)],
            unsaid: vec!["third".to_owned()],
            install: "https://github.com/apps/bobbin/installations/new".to_owned(),
        };
        let link = SetupLink { purpose: Purpose::BindOwner, ..link("Ada") };
        let shown = found(&link, &owners, None);
        assert!(shown.body.contains("<button name=\"choice\" value=\"41\">Bind acme&lt;</button>"));
        assert_eq!(shown.body.matches("<button").count(), 1);
        assert!(shown.body.contains("<b>other</b> has suspended the app."), "{}", shown.body);
        assert!(shown.body.contains("what your role in <b>third</b> is"), "{}", shown.body);
        assert!(!shown.body.contains("javascript:"), "{}", shown.body);
        let why = SignInFound::Refused { why: "<i>".to_owned() };
        assert!(found(&link, &why, None).body.contains("<p>&lt;i&gt;</p>"));
    }
}
