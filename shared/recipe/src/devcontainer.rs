//! Devcontainers: their lifecycle commands, their constants, their ports. Everything else needs Docker or an editor.

use bobbin_core::records::recipe::{Recipe, RecipeStep};

use crate::files::{self, ProjectFiles, is_nested_devcontainer};
use crate::gathered::{Gathered, KnownKeys, RunsAt};
use crate::node::{NodeValue, Pair, RecipeNode, Unread};
use crate::shell::{beside_each_other, quoted};
use crate::words::code;
use crate::{steps, syntax};

const PATHS: [&str; 2] = [".devcontainer/devcontainer.json", ".devcontainer.json"];
/// In the order in which they run.
const COMMANDS: [(&str, RunsAt); 4] = [
    ("onCreateCommand", RunsAt::SetUp),
    ("updateContentCommand", RunsAt::SetUp),
    ("postCreateCommand", RunsAt::SetUp),
    ("postStartCommand", RunsAt::Start),
];
/// Commands of one object.
const BESIDE_MAX: usize = 20;
/// Stands for the checkout, where each step begins.
const FOLDER: &str = "${containerWorkspaceFolder}";
/// What else the tools that know devcontainers put something in for.
const PLACEHOLDERS: [&str; 6] = [
    "${localEnv:",
    "${env:",
    "${containerEnv:",
    "${localWorkspaceFolder",
    "${containerWorkspaceFolderBasename}",
    "${devcontainerId}",
];
const PLACEHOLDER: &str =
    "needs a value from outside of this file: write it as a constant, or set it in the settings";
const IMAGE: &str = "is not used: the sandbox has its own image";
const RIGHTS: &str = "is not granted: a sandbox has the rights of its provider";
const MOUNT: &str = "is not mounted: a sandbox has its own disk";
const USER: &str = "is not changed: a sandbox has one user";
const KNOWN: KnownKeys = KnownKeys {
    quiet: &[
        "$schema",
        "name",
        "onCreateCommand",
        "updateContentCommand",
        "postCreateCommand",
        "postStartCommand",
        "containerEnv",
        "remoteEnv",
        "forwardPorts",
        // They say how an editor shows it, or belong to an image or compose, which are refused by their own keys.
        "customizations",
        "extensions",
        "settings",
        "devPort",
        "portsAttributes",
        "otherPortsAttributes",
        "waitFor",
        "shutdownAction",
        "overrideCommand",
        "overrideFeatureInstallOrder",
        "updateRemoteUserUID",
        "userEnvProbe",
        "init",
        "context",
        "service",
        "runServices",
    ],
    refused: &[
        ("initializeCommand", "is for the machine of an editor: it is not run"),
        ("postAttachCommand", "is for an editor that attaches: it is not run"),
        ("image", IMAGE),
        ("build", IMAGE),
        ("dockerFile", IMAGE),
        (
            "dockerComposeFile",
            "is not started: name Postgres or Redis as `services` in `.bobbin/environment.yaml`",
        ),
        ("features", "are not installed: install what is needed in a step"),
        ("mounts", "are not mounted: a sandbox has its own disk"),
        ("workspaceMount", MOUNT),
        ("workspaceFolder", "is not used: the checkout has its own place"),
        ("runArgs", "are for Docker, which does not run here"),
        ("appPort", "is for Docker: use `forwardPorts`"),
        ("privileged", RIGHTS),
        ("capAdd", RIGHTS),
        ("securityOpt", RIGHTS),
        ("hostRequirements", "are not read: the operator chooses the size of sandboxes"),
        ("secrets", "are not asked for: secrets are in the settings"),
        ("remoteUser", USER),
        ("containerUser", USER),
    ],
};

pub(crate) fn find(files: &ProjectFiles) -> Option<Recipe> {
    let there = |path: &&str| files.texts.contains_key(*path);
    if let Some(path) = PATHS.iter().find(|path| there(path)) {
        return read(files, path);
    }
    let nested = files.texts.keys().filter(|path| is_nested_devcontainer(path));
    let nested: Vec<&String> = nested.collect();
    let (first, others) = nested.split_first()?;
    let mut recipe = read(files, first)?;
    if let Some(other) = others.first() {
        let words = format!("{} is not used: the first by name is.", code(other));
        recipe.refused.push(words);
    }
    Some(recipe)
}

fn read(files: &ProjectFiles, path: &str) -> Option<Recipe> {
    files::recipe(files, path, syntax::jsonc, fill)
}

fn fill(root: &RecipeNode, out: &mut Gathered) -> Result<(), Unread> {
    let pairs = root.map().ok_or_else(|| Unread::at(root.line, "not an object: begin with `{`"))?;
    let at = |name: &str| pairs.iter().find(|pair| pair.key == name && pair.value.asks());
    for (name, when) in COMMANDS {
        if let Some(pair) = at(name) {
            let step = command_step(pair, out);
            out.step(when, pair.line, name, step);
        }
    }
    // The second sets what the first did not, and wins.
    for name in ["containerEnv", "remoteEnv"] {
        let Some(Pair { line, value, .. }) = at(name) else { continue };
        if value.map().is_none() {
            out.refuse_at(*line, name, "is not an object: it is left out");
        }
        let (unset, set): (Vec<Pair>, Vec<Pair>) = value
            .map()
            .unwrap_or_default()
            .iter()
            .cloned()
            .partition(|pair| pair.value.value == NodeValue::Null);
        unset.iter().for_each(|pair| out.unset(&pair.key));
        out.constants(&RecipeNode { line: *line, value: NodeValue::Map(set) }, |text| {
            has_placeholder(text, true).then_some(PLACEHOLDER)
        });
    }
    if let Some(pair) = at("forwardPorts") {
        ports(pair, out);
    }
    out.refuse_keys(pairs, &KNOWN);
    Ok(())
}

/// The step of a lifecycle command. An object's commands run beside each other; one that cannot run is left out in
/// words.
fn command_step(pair: &Pair, out: &mut Gathered) -> Result<RecipeStep, &'static str> {
    let Some(members) = pair.value.map() else {
        return match command(&pair.value)? {
            HookCommand::Script { before, text } => steps::step(None, before, text),
            HookCommand::Program { name, line } => steps::step(Some(&name), "", &line),
        };
    };
    if members.len() > BESIDE_MAX {
        return Err("has more than 20 parallel commands: it is not run");
    }
    let mut commands = Vec::new();
    for Pair { key, line, value } in members {
        match command(value) {
            Ok(command) => commands.push((key.as_str(), command.background())),
            Err(words) => out.refuse_at(*line, key, words),
        }
    }
    if commands.is_empty() {
        return Err("has nothing left to run");
    }
    let names: Vec<&str> = commands.iter().map(|(name, _)| *name).collect();
    let name = format!("{}: {}", pair.key, names.join(", "));
    steps::step(Some(&name), "", &beside_each_other(&commands))
}

/// What a lifecycle command runs.
enum HookCommand<'a> {
    /// A text for a shell, and a line of ours before it.
    Script { before: &'static str, text: &'a str },
    /// A program and its arguments: how people read them, and how a shell does.
    Program { name: String, line: String },
}

impl HookCommand<'_> {
    /// The command as it can stand before `&`: a script keeps its own syntax to itself.
    fn background(self) -> String {
        match self {
            Self::Script { before, text } => {
                format!("sh -c {}", quoted(&format!("{before}{text}")))
            }
            Self::Program { line, .. } => line,
        }
    }
}

fn command(value: &RecipeNode) -> Result<HookCommand<'_>, &'static str> {
    if let Some(text) = value.text() {
        if has_placeholder(text, false) {
            return Err(PLACEHOLDER);
        }
        if text.trim().is_empty() {
            return Err("runs nothing: it is left out");
        }
        // The shell puts it in where the tools that know devcontainers would.
        let is_inside = text.contains(FOLDER);
        let before = if is_inside { "export containerWorkspaceFolder=$PWD\n" } else { "" };
        return Ok(HookCommand::Script { before, text });
    }
    let words =
        value.list().map(|list| list.iter().map(RecipeNode::text).collect::<Option<Vec<_>>>());
    let words = words.flatten().filter(|words| !words.is_empty());
    let words = words.ok_or("is neither a text nor a list of texts: it is not run")?;
    if words.iter().any(|word| has_placeholder(word, false)) {
        return Err(PLACEHOLDER);
    }
    let argument = |word: &&str| {
        let parts = word.split(FOLDER).map(|part| match (part, *word) {
            ("", whole) if !whole.is_empty() => String::new(),
            (part, _) => quoted(part),
        });
        parts.collect::<Vec<_>>().join("\"$PWD\"")
    };
    let line = words.iter().map(argument).collect::<Vec<_>>().join(" ");
    Ok(HookCommand::Program { name: words.join(" "), line })
}

/// Whether something has to be put in that only the tools that know devcontainers have, or the sandbox.
fn has_placeholder(text: &str, with_folder: bool) -> bool {
    PLACEHOLDERS.iter().any(|placeholder| text.contains(placeholder))
        || with_folder && text.contains(FOLDER)
}

fn ports(pair: &Pair, out: &mut Gathered) {
    let Some(list) = pair.value.list() else {
        return out.refuse_at(pair.line, &pair.key, "is not a list: it is left out");
    };
    for item in list {
        match item.port() {
            Some(port) => out.port(item.line, port),
            None => {
                let written = item.scalar().unwrap_or("a port");
                out.refuse_at(item.line, written, "is not a port of the sandbox: it is left out");
            }
        }
    }
}
