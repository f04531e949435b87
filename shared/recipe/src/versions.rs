//! What is left if nobody wrote down how to set a project up: versions of its tools, and lock files.

use bobbin_core::records::recipe::Recipe;

use crate::files::{self, ProjectFiles, unread_in};
use crate::gathered::{Gathered, KnownKeys, RunsAt, is_tool_word};
use crate::node::{NodeValue, Pair, RecipeNode, Unread};
use crate::words::code;
use crate::{steps, syntax};

/// Lock files of one language, the one that counts first, with what installs exactly what they name.
const LANGUAGES: [&[(&str, &str)]; 5] = [
    &[
        ("pnpm-lock.yaml", "pnpm install --frozen-lockfile"),
        ("yarn.lock", "yarn install --immutable"),
        ("bun.lock", "bun install --frozen-lockfile"),
        ("bun.lockb", "bun install --frozen-lockfile"),
        ("package-lock.json", "npm ci"),
        ("npm-shrinkwrap.json", "npm ci"),
    ],
    &[("uv.lock", "uv sync --frozen"), ("poetry.lock", "poetry install --no-interaction")],
    &[("Cargo.lock", "cargo fetch --locked")],
    &[("Gemfile.lock", "BUNDLE_FROZEN=true bundle install")],
    &[("go.sum", "go mod download")],
];
/// Files with nothing but the version of one tool.
const SINGLE: [(&str, &str); 4] = [
    (".nvmrc", "node"),
    (".node-version", "node"),
    (".python-version", "python"),
    ("rust-toolchain", "rust"),
];
const MISE: KnownKeys = KnownKeys {
    quiet: &["tools", "min_version", "settings"],
    refused: &[
        ("env", "is not set: mise does not run"),
        ("hooks", "are not run: mise does not run"),
        ("tasks", "are not run: mise does not run"),
    ],
};

pub(crate) fn find(files: &ProjectFiles) -> Option<Recipe> {
    let locks = LANGUAGES.iter().flat_map(|locks| locks.iter());
    let first_lock = locks.map(|(lock, _)| *lock).find(|lock| files.root.contains(*lock));
    let named = ["mise.toml", ".tool-versions", "rust-toolchain.toml"];
    let mut named = named.into_iter().chain(SINGLE.map(|(path, _)| path));
    let first_named = || named.find(|path| files.texts.contains_key(*path));
    let mut gathered = Gathered::of(first_lock.or_else(first_named)?);
    tools(files, &mut gathered);
    for locks in LANGUAGES {
        install(files, locks, &mut gathered);
    }
    (!gathered.is_empty()).then(|| Recipe { is_derived: true, ..gathered.finish() })
}

/// Installs by the first lock file of a language.
fn install(files: &ProjectFiles, locks: &[(&str, &str)], out: &mut Gathered) {
    let mut there = locks.iter().filter(|(lock, _)| files.root.contains(*lock));
    let Some((first, run)) = there.next() else { return };
    // Before version 2, which brought this file, Yarn calls it otherwise.
    let is_old_yarn = *first == "yarn.lock" && !files.root.contains(".yarnrc.yml");
    let run = if is_old_yarn { "yarn install --frozen-lockfile" } else { run };
    out.step(RunsAt::SetUp, 1, first, steps::step(None, "", run));
    for (other, _) in there.filter(|(_, other_run)| *other_run != run) {
        out.refuse(format!("{} is not used: {} is.", code(other), code(first)));
    }
}

/// The versions of tools, each by the first file that names one.
fn tools(files: &ProjectFiles, out: &mut Gathered) {
    if let Some(mise) = toml(files, "mise.toml", out) {
        for Pair { key, line, value } in
            mise.get("tools").and_then(RecipeNode::map).unwrap_or_default()
        {
            tool(*line, key, version(value), out);
        }
        out.refuse_keys(mise.map().unwrap_or_default(), &MISE);
    }
    for (line, text) in lines(files, ".tool-versions", out) {
        let mut words = text.split_whitespace();
        tool(line, words.next().unwrap_or_default(), words.next(), out);
    }
    channel(files, "rust-toolchain.toml", out);
    for (path, name) in SINGLE {
        match lines(files, path, out).next() {
            // The older name may hold what the newer one does.
            Some((_, text)) if name == "rust" && text.starts_with('[') => channel(files, path, out),
            Some((line, text)) => tool(line, name, Some(text), out),
            None => {}
        }
    }
}

/// The version of Rust in `rust-toolchain.toml`.
fn channel(files: &ProjectFiles, path: &'static str, out: &mut Gathered) {
    let file = toml(files, path, out);
    let channel = file.as_ref().and_then(|file| file.get("toolchain")?.get("channel"));
    if let Some(channel) = channel {
        tool(channel.line, "rust", channel.text(), out);
    }
}

/// A version in `mise.toml`: `"22"`, `["22", "20"]` or `{ version = "22" }`.
fn version(value: &RecipeNode) -> Option<&str> {
    match &value.value {
        NodeValue::List(list) => list.first().and_then(version),
        NodeValue::Map(_) => value.get("version").and_then(RecipeNode::scalar),
        _ => value.scalar(),
    }
}

fn tool(line: usize, name: &str, version: Option<&str>, out: &mut Gathered) {
    let name = match name {
        "nodejs" => "node",
        "golang" => "go",
        name => name,
    };
    let version = version.unwrap_or_default();
    // `v22` is RecipeNode's own way to write it; `lts/*` is nvm's for the newest.
    let plain = version.strip_prefix('v').filter(|rest| rest.starts_with(char::is_numeric));
    let version = if version == "lts/*" { "lts" } else { plain.unwrap_or(version) };
    if is_tool_word(name) && is_tool_word(version) {
        out.tool(name, version);
    } else {
        let said = format!("{name} {version}");
        out.refuse_at(line, said.trim(), "is not a tool with its version: it is left out");
    }
}

/// The text of a file, if it is there. One that cannot be read is told; the lock file's step does not need it.
fn parsed<'a, T>(
    files: &'a ProjectFiles,
    path: &'static str,
    out: &mut Gathered,
    parse: fn(&'a str) -> Result<T, Unread>,
) -> Option<T> {
    let bytes = files.texts.get(path)?;
    out.read_from(path);
    let read = files::text(bytes).and_then(parse);
    read.map_err(|unread| out.refuse(unread_in(path, &unread))).ok()
}

fn toml(files: &ProjectFiles, path: &'static str, out: &mut Gathered) -> Option<RecipeNode> {
    parsed(files, path, out, syntax::toml)
}

/// The lines of a file that say something, with their numbers; none if it is not there.
fn lines<'a>(
    files: &'a ProjectFiles,
    path: &'static str,
    out: &mut Gathered,
) -> impl Iterator<Item = (usize, &'a str)> + use<'a> {
    let text = parsed(files, path, out, Ok).unwrap_or_default();
    let bare = |line: &'a str| line.split('#').next().unwrap_or_default().trim();
    let bare = text.lines().map(bare).enumerate().map(|(index, line)| (index + 1, line));
    bare.filter(|(_, line)| !line.is_empty())
}
