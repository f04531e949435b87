//! Read-only tools: files, folders, their content, and how a port is reached.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bobbin_sandbox::ErrorKind;
use serde::Deserialize;

use crate::bounds::{
    DEPTH_MAX, ENTRIES_MAX, IMAGE_BYTES_MAX, MATCHES_MAX, OUTPUT_BYTES_MAX, TEXT_BYTES_MAX,
    TEXT_LINES_MAX,
};
use crate::place::{
    CallResult, OpenedSandbox, ToolOutput, ToolPlace, located, script, trouble, variables,
};

const LIST: &str = include_str!("scripts/list.sh");
const SEARCH: &str = include_str!("scripts/search.sh");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadFile {
    path: String,
    offset: Option<usize>,
    limit: Option<usize>,
}

/// The bytes of a file.
pub(crate) async fn bytes(opened: &OpenedSandbox, path: &str) -> Result<Vec<u8>, String> {
    let read = opened.provider.get_file(&opened.sandbox, path).await;
    read.map_err(|error| match error.kind {
        ErrorKind::NotFound => {
            opened.with_left_out(&format!("There is no file {path} in the sandbox."))
        }
        _ => trouble(&error),
    })
}

/// `read_file`.
pub(crate) async fn read(wanted: ReadFile, place: &dyn ToolPlace) -> CallResult {
    let path = located(&wanted.path)?;
    let opened = place.open().await?;
    let bytes = bytes(&opened, &path).await?;
    if let Some(kind) = image(&bytes) {
        if bytes.len() > IMAGE_BYTES_MAX {
            return Err(format!(
                "This image has {} bytes, and the limit is {IMAGE_BYTES_MAX}: make it smaller first.",
                bytes.len()
            ));
        }
        return Ok(ToolOutput::Image(STANDARD.encode(bytes), kind));
    }
    let Ok(text) = String::from_utf8(bytes) else {
        return Err("This file is not text: read it with run_command.".to_owned());
    };
    Ok(ToolOutput::Text(part(&text, wanted.offset, wanted.limit)))
}

/// Media type by the first bytes, if it is an image that models accept.
fn image(bytes: &[u8]) -> Option<&'static str> {
    let begins = |with: &[u8]| bytes.starts_with(with);
    if begins(b"\x89PNG\r\n\x1a\n") {
        Some("image/png")
    } else if begins(b"\xff\xd8\xff") {
        Some("image/jpeg")
    } else if begins(b"GIF8") {
        Some("image/gif")
    } else if begins(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        Some("image/webp")
    } else {
        None
    }
}

/// Some lines of a text, and where to continue.
fn part(text: &str, offset: Option<usize>, limit: Option<usize>) -> String {
    let first = offset.unwrap_or(1).max(1);
    // The description beside them takes some.
    let most = limit.unwrap_or(TEXT_LINES_MAX).clamp(1, TEXT_LINES_MAX - 10);
    let all = text.lines().count();
    let mut shown = String::new();
    let mut count = 0;
    for line in text.split_inclusive('\n').skip(first - 1).take(most) {
        if shown.len() + line.len() > TEXT_BYTES_MAX - 512 {
            break;
        }
        shown.push_str(line);
        count += 1;
    }
    if count == 0 && first <= all {
        return format!(
            "[Line {first} alone is longer than the limit: read a part of it with run_command.]"
        );
    }
    let last = first - 1 + count;
    if (first, last) == (1, all) {
        return shown;
    }
    let on =
        if last < all { format!("; continue with offset {}", last + 1) } else { String::new() };
    format!("{}\n[lines {first} to {last} of {all}{on}]", shown.trim_end_matches('\n'))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListFiles {
    path: String,
    depth: Option<u32>,
}

/// `list_files`.
pub(crate) async fn list(wanted: ListFiles, place: &dyn ToolPlace) -> CallResult {
    let path = located(&wanted.path)?;
    let opened = place.open().await?;
    let env = variables([
        ("PATH", path.clone()),
        ("DEPTH", wanted.depth.unwrap_or(1).clamp(1, DEPTH_MAX).to_string()),
        ("LINES", (ENTRIES_MAX + 1).to_string()),
        ("BYTES", OUTPUT_BYTES_MAX.to_string()),
    ]);
    let output = script(&opened, LIST, &env, 0).await?;
    let found = listed(&output.text, ENTRIES_MAX, "The folder is empty.");
    let found = found.map(|shown| match shown {
        ToolOutput::Text(words) => ToolOutput::Text(opened.with_left_out(&words)),
        image => image,
    });
    found.ok_or_else(|| format!("There is no folder {path} in the sandbox."))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Search {
    pattern: String,
    path: Option<String>,
}

/// `search`.
pub(crate) async fn search(wanted: Search, place: &dyn ToolPlace) -> CallResult {
    let path = located(wanted.path.as_deref().unwrap_or("."))?;
    if wanted.pattern.contains('\0') || wanted.pattern.len() > OUTPUT_BYTES_MAX {
        return Err("The pattern is too long, or has a zero byte.".to_owned());
    }
    let opened = place.open().await?;
    let env = variables([
        ("PATH", path.clone()),
        ("PATTERN", wanted.pattern),
        ("LINES", (MATCHES_MAX + 2).to_string()),
        ("BYTES", OUTPUT_BYTES_MAX.to_string()),
    ]);
    let output = script(&opened, SEARCH, &env, 0).await?;
    listed(&output.text, MATCHES_MAX, "Nothing matches.")
        .ok_or_else(|| format!("There is no {path} in the sandbox."))
}

/// The lines after the script's first one, which says whether there was anything to read.
fn listed(text: &str, most: usize, nothing: &str) -> Option<ToolOutput> {
    let (head, lines) = text.split_once('\n').unwrap_or((text, ""));
    if !["folder", "there"].contains(&head.trim()) {
        return None;
    }
    let all: Vec<&str> = lines.lines().collect();
    Some(ToolOutput::Text(if all.is_empty() {
        nothing.to_owned()
    } else if all.len() > most || lines.len() >= OUTPUT_BYTES_MAX {
        format!("{}\n[There is more: ask for less.]", all[..all.len().min(most)].join("\n"))
    } else {
        all.join("\n")
    }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Port {
    port: u16,
}

/// `get_url`.
pub(crate) async fn url(wanted: &Port, place: &dyn ToolPlace) -> CallResult {
    let opened = place.open().await?;
    let name = &opened.sandbox.name;
    let endpoint = opened.provider.endpoint(name, wanted.port).await;
    let endpoint = endpoint.map_err(|error| {
        format!("Port {} of the sandbox cannot be reached from outside: {error}", wanted.port)
    })?;
    let mut text = endpoint.url;
    for (name, value) in endpoint.headers {
        text.push_str(&format!("\nwith the header {name}: {value}"));
    }
    Ok(ToolOutput::Text(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partial_file_says_how_to_continue() {
        assert_eq!(part("a\nb\n", None, None), "a\nb\n");
        assert_eq!(part("", None, None), "");
        assert_eq!(
            part("a\nb\nc\n", Some(2), Some(1)),
            "b\n[lines 2 to 2 of 3; continue with offset 3]"
        );
        assert_eq!(part("a\nb\nc", Some(3), None), "c\n[lines 3 to 3 of 3]");
        let long = "x".repeat(TEXT_BYTES_MAX + 1);
        assert!(part(&long, None, None).starts_with("[Line 1 alone is longer"));
        let many = "line\n".repeat(3_000);
        assert!(
            part(&many, None, None)
                .ends_with("[lines 1 to 1990 of 3000; continue with offset 1991]")
        );
    }
}
