//! Tools that change a file: the new content is prepared first, and moved into place once per call name.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use crate::bounds::{UPLOAD_BYTES_MAX, WRITE_BYTES_MAX};
use crate::files::bytes;
use crate::place::{
    CallResult, OpenedSandbox, ToolOutput, ToolPlace, located, script, trouble, variables,
};

const WRITE: &str = include_str!("scripts/write.sh");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WriteFile {
    path: String,
    content: String,
    mode: Option<String>,
}

/// `write_file`.
pub(crate) async fn write(wanted: WriteFile, key: &str, place: &dyn ToolPlace) -> CallResult {
    let WriteFile { path, content, mode } = wanted;
    let (path, mode) = (located(&path)?, checked(mode)?);
    fits(content.len(), WRITE_BYTES_MAX)?;
    put(&place.open().await?, key, (&path, mode), content.into_bytes()).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct UploadFile {
    path: String,
    data: Option<String>,
    attachment: Option<String>,
    mode: Option<String>,
}

/// `upload_file`.
pub(crate) async fn upload(wanted: UploadFile, key: &str, place: &dyn ToolPlace) -> CallResult {
    let (path, mode) = (located(&wanted.path)?, checked(wanted.mode)?);
    let data = match (wanted.data, wanted.attachment) {
        (Some(data), None) => {
            let data = STANDARD.decode(data);
            data.map_err(|_| "`data` is not base64.".to_owned())?
        }
        (None, Some(attachment)) => place.attachment(&attachment).await?,
        _ => return Err("Give either `data` or `attachment`.".to_owned()),
    };
    fits(data.len(), UPLOAD_BYTES_MAX)?;
    put(&place.open().await?, key, (&path, mode), data).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Edit {
    path: String,
    old: String,
    new: String,
}

/// `edit_file`.
pub(crate) async fn edit(wanted: Edit, key: &str, place: &dyn ToolPlace) -> CallResult {
    let Edit { path, old, new } = wanted;
    let path = located(&path)?;
    if old.is_empty() {
        return Err("`old` is empty: use write_file to write a new file.".to_owned());
    }
    let opened = place.open().await?;
    let text = String::from_utf8(bytes(&opened, &path).await?);
    let text = text.map_err(|_| "This file is not text.".to_owned())?;
    // A reader of such a file is shown plain line endings.
    let of_crlf = text.contains("\r\n") && !text.replace("\r\n", "").contains('\n');
    let in_file = |words: String| {
        if of_crlf && !words.contains('\r') { words.replace('\n', "\r\n") } else { words }
    };
    let (old, new) = (in_file(old), in_file(new));
    match text.matches(&old).count() {
        1 => {}
        0 => {
            return Err(format!(
                "The old text is not in {path}: read the file and copy the text exactly. If you made this call before, the change may already be there."
            ));
        }
        n => {
            return Err(format!(
                "The old text is in {path} {n} times: include more of the text around it, so that it is unique."
            ));
        }
    }
    let changed = text.replacen(&old, &new, 1);
    fits(changed.len(), WRITE_BYTES_MAX)?;
    put(&opened, key, (&path, String::new()), changed.into_bytes()).await
}

fn fits(bytes: usize, most: usize) -> Result<(), String> {
    if bytes <= most {
        return Ok(());
    }
    Err(format!(
        "The file would have {bytes} bytes, and the limit is {most}: create it in the sandbox with run_command."
    ))
}

/// Three octal digits, or empty.
fn checked(mode: Option<String>) -> Result<String, String> {
    let mode = mode.unwrap_or_default();
    let is_mode = mode.len() == 3 && mode.bytes().all(|b| (b'0'..=b'7').contains(&b));
    if mode.is_empty() || is_mode {
        return Ok(mode);
    }
    Err("`mode` is three octal digits, such as 755.".to_owned())
}

async fn put(
    opened: &OpenedSandbox,
    key: &str,
    (path, mode): (&str, String),
    data: Vec<u8>,
) -> CallResult {
    let count = data.len();
    let ready = vec![(format!(".bobbin/ready/{key}"), data)];
    let laid = opened.provider.put_files(&opened.sandbox, ready).await;
    laid.map_err(|error| trouble(&error))?;
    let env = variables([("CALL", key.to_owned()), ("PATH", path.to_owned()), ("MODE", mode)]);
    let output = script(opened, WRITE, &env, 0).await?;
    match output.text.trim() {
        "written" => Ok(ToolOutput::Text(format!("Wrote {path}, {count} bytes."))),
        "again" => Err(format!(
            "This call arrived before, so it is not repeated. Read {path} to see the result."
        )),
        "folder" => Err(format!("{path} is a folder.")),
        other => Err(format!("{path} could not be written: {other}")),
    }
}
