//! `environment show` of a checkout: what Bobbin would do to make its project ready. Nothing is run.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use bobbin_core::records::recipe::{Recipe, RecipeStep};
use bobbin_recipe::{LINK_OUT, ProjectFiles, WANTED, is_wanted, recipe_of};
use serde_json::json;

use super::super::arguments::ShowEnvironment;
use super::steps::{not_done, source};
use crate::columns::visible;
use crate::output::{CommandError, ExitStatus, Output};

/// Runs the command.
///
/// # Errors
/// The folder is no checkout, or has no such commit.
pub fn run(what: &ShowEnvironment) -> Result<Output, CommandError> {
    let folder = what.of.as_deref().unwrap_or(".");
    let at = what.at.as_deref().unwrap_or("HEAD");
    let recipe = recipe_of(&files(Path::new(folder), at)?);
    let (text, status) = match &recipe {
        None => {
            let text = "No file says how to set up this project. docs/ENVIRONMENTS.md lists the files that could.";
            (text.to_owned(), ExitStatus::Notice)
        }
        Some(recipe) if recipe.refused.is_empty() => (shown(recipe), ExitStatus::Done),
        Some(recipe) => (shown(recipe), ExitStatus::Notice),
    };
    Output::new(text, &json!({ "recipe": recipe }), status)
}

/// What the commit holds of what is wanted.
fn files(folder: &Path, at: &str) -> Result<ProjectFiles, CommandError> {
    let commit = git(folder, &["rev-parse", "--verify", "--quiet", &format!("{at}^{{commit}}")]);
    let commit = commit.map_err(|_| {
        format!(
            "{} is not a checkout of a repository with a commit {at}. To see what is on record about a repository: environment show OWNER/NAME --tenant TENANT.",
            folder.display()
        )
    })?;
    let commit = String::from_utf8_lossy(&commit).trim().to_owned();
    let listed = |more: &[&str]| {
        let arguments = [&["ls-tree", "--full-tree", "--name-only", "-z"], more, &[&commit]];
        let names = git(folder, &arguments.concat())?;
        let names = names.split(|byte| *byte == 0).map(String::from_utf8_lossy);
        Ok::<_, CommandError>(names.map(|name| name.into_owned()).collect::<BTreeSet<_>>())
    };
    let there = listed(&["-r"])?;
    let there = || there.iter().map(String::as_str).filter(|path| is_wanted(path));
    let paths: BTreeSet<&str> = there().chain(WANTED.iter().copied()).collect();
    let mut texts = BTreeMap::new();
    for path in paths {
        let text = content(folder, &format!("{commit}:{path}"))?;
        let text = text.or_else(|| there().any(|one| one == path).then(|| LINK_OUT.to_vec()));
        texts.extend(text.map(|text| (path.to_owned(), text)));
    }
    Ok(ProjectFiles { texts, root: listed(&[])? })
}

/// What a file holds, behind links inside of the commit; `None`: there is none.
fn content(folder: &Path, of: &str) -> Result<Option<Vec<u8>>, CommandError> {
    let fault = |error: std::io::Error| format!("git could not be started: {error}");
    let mut asked = Command::new("git");
    asked.arg("-C").arg(folder).args(["cat-file", "--batch", "--follow-symlinks"]);
    let piped = asked.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut running = piped.spawn().map_err(fault)?;
    if let Some(mut questions) = running.stdin.take() {
        writeln!(questions, "{of}").map_err(fault)?;
    }
    let said = running.wait_with_output().map_err(fault)?.stdout;
    let Some(end) = said.iter().position(|byte| *byte == b'\n') else { return Ok(None) };
    let (head, rest) = said.split_at(end + 1);
    // A head such as `1a2b3c blob 12`; a line break follows the content.
    let head = String::from_utf8_lossy(head);
    let size = head.trim_end().split_once(" blob ").and_then(|(_, size)| size.parse().ok());
    Ok(size.and_then(|size: usize| rest.get(..size)).map(<[u8]>::to_vec))
}

fn git(folder: &Path, arguments: &[&str]) -> Result<Vec<u8>, CommandError> {
    let ran = Command::new("git").arg("-C").arg(folder).args(arguments).output();
    let ran = ran.map_err(|error| format!("git could not be started: {error}"))?;
    if ran.status.success() {
        return Ok(ran.stdout);
    }
    Err(format!("git: {}", String::from_utf8_lossy(&ran.stderr).trim()).into())
}

/// A recipe for people.
pub fn shown(recipe: &Recipe) -> String {
    let mut lines = vec![format!("By {}:", source(&recipe.from))];
    for (what, steps) in [("once", &recipe.set_up), ("at each start", &recipe.start)] {
        lines.extend(steps.iter().map(|step| format!("- {what}: {}", named(step))));
    }
    let services: Vec<&str> = recipe.services.iter().map(|one| one.title()).collect();
    let tools = recipe.tools.iter().map(|(tool, version)| format!("{tool} {version}"));
    let lists = [
        ("services", services.join(", ")),
        ("ports", recipe.ports.iter().map(u16::to_string).collect::<Vec<_>>().join(", ")),
        ("versions wanted", tools.collect::<Vec<_>>().join(", ")),
        ("variables", recipe.variables.keys().cloned().collect::<Vec<_>>().join(", ")),
    ];
    let filled_in = lists.into_iter().filter(|(_, list)| !list.is_empty());
    lines.extend(filled_in.map(|(what, list)| format!("- {what}: {list}")));
    if lines.len() == 1 {
        lines.push("- nothing".to_owned());
    }
    lines.extend(not_done(&recipe.refused));
    visible(&lines.join("\n"))
}

/// A step's name, and what it runs if that is more.
fn named(step: &RecipeStep) -> String {
    let RecipeStep { name, run } = step;
    if name == run {
        return name.clone();
    }
    format!("{name}\n    {}", run.trim().replace('\n', "\n    "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEVCONTAINER: &str = r#"{ // Ours
  "postCreateCommand": "npm ci", "privileged": true, "forwardPorts": [3000], }"#;

    #[test]
    fn committed_recipe_is_shown_with_what_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join(".devcontainer.json");
        std::fs::write(&file, DEVCONTAINER).expect("written");
        let person = ["-c", "user.name=A", "-c", "user.email=a@b"];
        for line in [&["init", "-q"][..], &["add", "-A"], &["commit", "-qm", "One"]] {
            git(folder.path(), &[&person, line].concat()).expect("git");
        }
        std::fs::write(&file, "broken").expect("written");
        let read = files(folder.path(), "HEAD").expect("a commit");
        let shown = shown(&recipe_of(&read).expect("a recipe"));
        let begins = "By .devcontainer.json:\n- once: npm ci\n- ports: 3000\nNot done:\n- ";
        assert!(shown.starts_with(begins) && shown.contains("privileged"), "{shown}");
        std::fs::rename(&file, folder.path().join("ours.json")).expect("renamed");
        std::os::unix::fs::symlink("ours.json", &file).expect("linked");
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join(".nvmrc")).expect("linked");
        std::fs::write(folder.path().join("ours.json"), "{}").expect("written");
        for line in [&["add", "-A"][..], &["commit", "-qm", "Two"]] {
            git(folder.path(), &[&person, line].concat()).expect("git");
        }
        let texts = files(folder.path(), "HEAD").expect("a commit").texts;
        let read = texts.iter().map(|(path, text)| (path.as_str(), text.as_slice()));
        let expected = [(".devcontainer.json", &b"{}"[..]), (".nvmrc", LINK_OUT)];
        assert_eq!(read.collect::<Vec<_>>(), expected);
        let error = files(folder.path(), "v9").expect_err("no such commit");
        let words = format!("{error:?}");
        assert!(words.contains("is not a checkout of a repository with a commit v9."), "{words}");
    }
}
