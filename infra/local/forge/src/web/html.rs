//! Pages: plain, readable without a script, labelled for people who cannot see them.

use std::fmt::Write as _;

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::api_error::ApiError;

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:0 auto;padding:1rem;color:#1f2328;background:#fff}\
header{border-bottom:1px solid #d1d9e0;margin-bottom:1rem}h1{font-size:1.6rem}\
a{color:#0550ae}button{font:inherit;padding:.4rem 1rem;margin:.2rem .4rem .2rem 0;cursor:pointer}\
label{display:block;margin:.4rem 0}input[type=text],input[type=password],select{font:inherit;padding:.3rem;width:20rem;max-width:100%}\
pre{background:#f6f8fa;padding:.6rem;overflow:auto;white-space:pre-wrap}table{border-collapse:collapse}\
td,th{text-align:left;padding:.2rem .8rem .2rem 0;vertical-align:top}\
@media(prefers-color-scheme:dark){body{color:#e6edf3;background:#0d1117}a{color:#79c0ff}pre{background:#161b22}}";

/// Nothing of a page is loaded from elsewhere, and nothing of it runs.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'";

/// Text in a page.
pub(super) fn text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}

/// A page. The title is text, the content markup.
pub(super) fn page(title: &str, content: &str) -> Response {
    with_status(StatusCode::OK, title, content)
}

/// A refusal as a page.
pub(super) fn refused(error: &ApiError) -> Response {
    let title = match error.status {
        StatusCode::NOT_FOUND => "Page not found",
        _ => "This did not work",
    };
    let mut content = format!("<p role=\"alert\">{}</p>", text(&error.message));
    for one in error.errors.iter().flat_map(|errors| errors.as_array().into_iter().flatten()) {
        if let Some(message) = one["message"].as_str() {
            let _ = write!(content, "<p>{}</p>", text(message));
        }
    }
    content.push_str("<p><a href=\"/\">To the start page</a></p>");
    with_status(error.status, title, &content)
}

pub(super) fn with_status(status: StatusCode, title: &str, content: &str) -> Response {
    let title = text(title);
    let page = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><title>{title}</title><style>{STYLE}</style></head><body><header><a href=\"/\">Forge of the laptop stack</a></header><main><h1>{title}</h1>{content}</main></body></html>"
    );
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::CACHE_CONTROL, "no-store"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    (status, headers, page).into_response()
}

/// A field that a form carries along.
pub(super) fn hidden(name: &str, value: &str) -> String {
    format!("<input type=\"hidden\" name=\"{}\" value=\"{}\">", text(name), text(value))
}

/// A button of a form, with what it means.
pub(super) fn button(name: &str, value: &str, label: &str) -> String {
    format!("<button name=\"{}\" value=\"{}\">{}</button>", text(name), text(value), text(label))
}

/// A form that is sent to an address of this forge.
pub(super) fn form(action: &str, content: &str) -> String {
    format!("<form method=\"post\" action=\"{}\">{content}</form>", text(action))
}

pub(super) fn link(at: &str, label: &str) -> String {
    format!("<a href=\"{}\">{}</a>", text(at), text(label))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_never_markup() {
        assert_eq!(text("<a href='\"&"), "&lt;a href=&#39;&quot;&amp;");
        let field = hidden("a", "\"><script>");
        assert_eq!(field, "<input type=\"hidden\" name=\"a\" value=\"&quot;&gt;&lt;script&gt;\">");
    }
}
