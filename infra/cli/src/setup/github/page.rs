//! The pages that a person's browser sees during set-up. None has a script.

use bobbin_core::text::html_text;

/// A page that sends the manifest to GitHub at a press.
pub fn sending(action: &str, manifest: &str, words: &str) -> String {
    let (action, manifest) = (html_text(action), html_text(manifest));
    framed(&format!(
        "<p>{}.</p><form method=\"post\" action=\"{action}\"><input type=\"hidden\" name=\"manifest\" value=\"{manifest}\"><button>Continue to GitHub</button></form>",
        html_text(words)
    ))
}

/// A page with a sentence.
pub fn saying(words: &str) -> String {
    framed(&format!("<p>{}</p>", html_text(words)))
}

fn framed(content: &str) -> String {
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"referrer\" content=\"no-referrer\"><title>Bobbin</title></head><body><h1>Bobbin's GitHub App</h1>{content}</body></html>\n"
    )
}
