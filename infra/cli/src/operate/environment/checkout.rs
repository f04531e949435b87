//! `environment show` of a checkout: what Bobbin would do to make its project ready. Nothing is run.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use bobbin_core::records::recipe::{Recipe, RecipeStep};
use bobbin_recipe::{ProjectFiles, is_wanted, recipe_of};
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
    let mut texts = BTreeMap::new();
    for path in listed(&["-r"])?.into_iter().filter(|path| is_wanted(path)) {
        let text = git(folder, &["cat-file", "blob", &format!("{commit}:{path}")])?;
        texts.insert(path, text);
    }
    Ok(ProjectFiles { texts, root: listed(&[])? })
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
        let error = files(folder.path(), "v9").expect_err("no such commit");
        let words = format!("{error:?}");
        assert!(words.contains("is not a checkout of a repository with a commit v9."), "{words}");
    }
}
