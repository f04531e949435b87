//! File calls, performed inside the sandbox: a link out of it leads only where its own processes may go.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use serde_json::{Value, json};

use super::protocol::{Base64Bytes, InitRefusal, Op};
use crate::clock::iso;
use crate::limits::{DEPTH_MAX, ENTRIES_MAX, FILE_BYTES_MAX, FIND_BYTES_MAX};

/// Root of the file calls.
#[derive(Debug)]
pub(super) struct Ground {
    /// Base of relative paths.
    pub(super) home: PathBuf,
    /// The whole file system is the sandbox's own view: an absolute path leads only where its processes may go.
    pub(super) confined: bool,
}

/// Performs a file call; refuses any other.
pub(super) fn perform(op: Op, ground: &Ground) -> Result<Value, InitRefusal> {
    match op {
        Op::Read { path } => read(&ground.path(&path)?),
        Op::Write { path, data, mode } => write(&ground.path(&path)?, &data, mode),
        Op::List { path, depth } => list(&ground.path(&path)?, depth),
        Op::Info { path } => {
            let path = ground.path(&path)?;
            let meta = fs::symlink_metadata(&path).map_err(|error| refused(&path, &error))?;
            Ok(info(&path, &meta))
        }
        Op::Folder { path, mode, parents } => {
            let path = ground.path(&path)?;
            fs::DirBuilder::new()
                .recursive(parents)
                .mode(mode)
                .create(&path)
                .map_err(|error| refused(&path, &error))?;
            Ok(Value::Null)
        }
        Op::Move { source, destination } => {
            rename(&ground.path(&source)?, &ground.path(&destination)?)
        }
        Op::Delete { path, recursive } => delete(&ground.home, &ground.path(&path)?, recursive),
        Op::Search { path, pattern } => search(&ground.path(&path)?, &pattern),
        Op::Find { path, pattern } => find(&ground.path(&path)?, &pattern),
        _ => Err(InitRefusal::internal("not a file call")),
    }
}

/// Folders whose contents depend on the process that opens them, or describe the machine.
const OF_PROCESSES: [&str; 3] = ["/proc", "/sys", "/dev"];

impl Ground {
    /// The absolute path.
    fn path(&self, path: &str) -> Result<PathBuf, InitRefusal> {
        let mut clean = PathBuf::new();
        for part in self.home.join(path).components() {
            match part {
                Component::ParentDir => {
                    clean.pop();
                }
                Component::CurDir => {}
                part => clean.push(part),
            }
        }
        let of_process = OF_PROCESSES.iter().any(|folder| clean.starts_with(folder));
        if clean.starts_with(&self.home) || self.confined && !of_process {
            return Ok(clean);
        }
        Err(InitRefusal::bad_request(format_args!("{path} is outside of the sandbox's directory")))
    }
}

fn refused(path: &Path, error: &std::io::Error) -> InitRefusal {
    let (status, code, word) = match error.kind() {
        ErrorKind::NotFound => (404, "FILE_NOT_FOUND", "not found"),
        ErrorKind::PermissionDenied => (403, "FILE_ACCESS_DENIED", "forbidden"),
        _ => (400, "BAD_REQUEST", "bad request"),
    };
    InitRefusal::new(status, code, format!("{word}: {}: {error}", path.display()))
}

fn read(path: &Path) -> Result<Value, InitRefusal> {
    let meta = fs::metadata(path).map_err(|error| refused(path, &error))?;
    if !meta.is_file() {
        return Err(InitRefusal::bad_request(format_args!("{} is not a file", path.display())));
    }
    if meta.len() > FILE_BYTES_MAX as u64 {
        return Err(InitRefusal::bad_request(format_args!(
            "{} has more than {FILE_BYTES_MAX} bytes",
            path.display()
        )));
    }
    let bytes = fs::read(path).map_err(|error| refused(path, &error))?;
    Ok(json!({ "data": Base64Bytes::new(&bytes) }))
}

fn write(path: &Path, data: &Base64Bytes, mode: Option<u32>) -> Result<Value, InitRefusal> {
    let bytes = data.bytes().ok_or_else(|| InitRefusal::bad_request("not base64"))?;
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(|error| refused(parent, &error))?;
    }
    fs::write(path, &bytes).map_err(|error| refused(path, &error))?;
    if let Some(mode) = mode {
        let permissions = fs::Permissions::from_mode(mode & 0o7777);
        fs::set_permissions(path, permissions).map_err(|error| refused(path, &error))?;
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Ok(json!({ "name": name, "path": path, "type": "file", "bytes": bytes.len() }))
}

fn info(path: &Path, meta: &fs::Metadata) -> Value {
    let modified = iso(meta.mtime().saturating_mul(1000));
    let bits = meta.permissions().mode() & 0o777;
    json!({
        "name": path.file_name().unwrap_or_default().to_string_lossy(), "path": path, "isDir": meta.is_dir(),
        "size": meta.len(), "mode": letters(meta.is_dir(), bits), "permissions": format!("{bits:04o}"),
        "modTime": modified, "modifiedAt": modified, "owner": meta.uid().to_string(), "group": meta.gid().to_string(),
    })
}

fn letters(folder: bool, bits: u32) -> String {
    let flags =
        (0..9).map(|at| if bits & (0o400 >> at) == 0 { '-' } else { ['r', 'w', 'x'][at % 3] });
    std::iter::once(if folder { 'd' } else { '-' }).chain(flags).collect()
}

/// Calls `visit` for everything below `root` within the bounds, without following links; stops when it says so.
fn walk(
    root: &Path,
    depth: u32,
    visit: &mut impl FnMut(&Path, &fs::Metadata) -> bool,
) -> Result<bool, InitRefusal> {
    let entries = fs::read_dir(root).map_err(|error| refused(root, &error))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        // Removed since it was listed.
        let Ok(meta) = fs::symlink_metadata(&path) else {
            continue;
        };
        if !visit(&path, &meta) {
            return Ok(false);
        }
        // An unreadable folder is listed without its contents.
        if meta.is_dir() && depth > 1 && matches!(walk(&path, depth - 1, visit), Ok(false)) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn list(path: &Path, depth: u32) -> Result<Value, InitRefusal> {
    let mut entries = Vec::new();
    walk(path, depth.clamp(1, DEPTH_MAX), &mut |path, meta| {
        entries.push(info(path, meta));
        entries.len() < ENTRIES_MAX
    })?;
    Ok(Value::Array(entries))
}

fn rename(source: &Path, destination: &Path) -> Result<Value, InitRefusal> {
    let target = match source.file_name() {
        Some(name) if destination.is_dir() => destination.join(name),
        _ => destination.to_path_buf(),
    };
    fs::rename(source, &target).map_err(|error| refused(source, &error))?;
    Ok(Value::Null)
}

fn delete(home: &Path, path: &Path, recursive: bool) -> Result<Value, InitRefusal> {
    if path == home {
        return Err(InitRefusal::bad_request("the home folder itself cannot be deleted"));
    }
    let meta = fs::symlink_metadata(path).map_err(|error| refused(path, &error))?;
    let result = match (meta.is_dir(), recursive) {
        (true, false) => {
            return Err(InitRefusal::bad_request("cannot delete directory without recursive flag"));
        }
        (true, true) => fs::remove_dir_all(path),
        (false, _) => fs::remove_file(path),
    };
    result.map_err(|error| refused(path, &error))?;
    Ok(Value::Null)
}

fn search(root: &Path, pattern: &str) -> Result<Value, InitRefusal> {
    let mut found = Vec::new();
    walk(root, DEPTH_MAX, &mut |path, _| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if glob(pattern.as_bytes(), name.as_bytes()) {
            found.push(path.to_string_lossy().into_owned());
        }
        found.len() < ENTRIES_MAX
    })?;
    Ok(json!({ "files": found }))
}

fn find(root: &Path, pattern: &str) -> Result<Value, InitRefusal> {
    let mut found = Vec::new();
    let mut search_file = |path: &Path, meta: &fs::Metadata| {
        if meta.is_file() && meta.len() <= FIND_BYTES_MAX {
            let text = fs::read(path)
                .ok()
                .and_then(|bytes| String::from_utf8(bytes).ok())
                .unwrap_or_default();
            for (index, line) in text.lines().enumerate().filter(|(_, line)| line.contains(pattern))
            {
                found.push(json!({ "file": path, "line": index + 1, "content": line }));
            }
        }
        found.len() < ENTRIES_MAX
    };
    let meta = fs::metadata(root).map_err(|error| refused(root, &error))?;
    if meta.is_file() {
        search_file(root, &meta);
    } else {
        walk(root, DEPTH_MAX, &mut search_file)?;
    }
    found.truncate(ENTRIES_MAX);
    Ok(Value::Array(found))
}

/// Matches `*` and `?` against a name, backtracking only to the last star.
fn glob(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut from, mut star) = (0, 0, None);
    while from < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, from));
                at += 1;
            }
            Some(letter) if *letter == b'?' || *letter == name[from] => {
                at += 1;
                from += 1;
            }
            _ => match star {
                Some((star_at, star_from)) => {
                    star = Some((star_at, star_from + 1));
                    at = star_at + 1;
                    from = star_from + 1;
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|letter| *letter == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absolute_paths_respect_confinement() {
        let at = |confined, path| {
            let home = PathBuf::from("/s/home");
            let found = Ground { home, confined }.path(path);
            found.map(|path| path.to_string_lossy().into_owned()).ok()
        };
        for confined in [false, true] {
            assert_eq!(at(confined, "a/../b").as_deref(), Some("/s/home/b"));
            assert_eq!(at(confined, "/s/home/c").as_deref(), Some("/s/home/c"));
            for path in ["/proc/self/environ", "/tmp/../proc/1/fd/1", "/dev/mem"] {
                assert_eq!(at(confined, path), None, "{path}");
            }
        }
        for path in ["..", "/etc/passwd", "a/../../x", "/s/homely"] {
            assert_eq!(at(false, path), None, "{path}");
            assert!(at(true, path).is_some(), "{path}");
        }
    }

    #[test]
    fn stars_and_question_marks_match_names() {
        for (pattern, name, matches) in [
            ("*.rs", "a.rs", true),
            ("*.rs", "a.rsx", false),
            ("a?c*", "abc", true),
            ("*b*b", "abab", true),
            ("", "a", false),
        ] {
            assert_eq!(glob(pattern.as_bytes(), name.as_bytes()), matches, "{pattern} {name}");
        }
    }
}
