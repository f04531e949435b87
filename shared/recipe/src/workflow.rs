//! The commands of `copilot-setup-steps.yml`. Its actions are programs for GitHub's runners, which are not here.

use bobbin_core::records::recipe::{ProjectService, Recipe, is_refused_variable};

use crate::files::{self, ProjectFiles};
use crate::gathered::{Gathered, KnownKeys, RunsAt};
use crate::node::{NodeValue, Pair, RecipeNode, Unread};
use crate::shell::quoted;
use crate::{steps, syntax, variables};

const PATH: &str = ".github/workflows/copilot-setup-steps.yml";
const JOB: &str = "copilot-setup-steps";
const EXPRESSION: &str = "has a value that only GitHub fills in: write it as a constant";
const CONDITION: &str = "is a condition, which is not evaluated: it is taken as true";
/// Files that a runner reads after each step.
const RUNNER_FILES: [&str; 4] =
    ["GITHUB_ENV", "GITHUB_PATH", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"];
const JOB_KEYS: KnownKeys = KnownKeys {
    quiet: &[
        "name",
        "runs-on",
        "permissions",
        "timeout-minutes",
        "steps",
        "services",
        "env",
        "defaults",
        "concurrency",
        "environment",
        "outputs",
    ],
    refused: &[
        ("if", CONDITION),
        ("needs", "is not waited for: the other jobs do not run"),
        ("container", "is not used: the sandbox has its own image"),
        ("snapshot", "is not used: the sandbox has its own image"),
        ("strategy", "is not read: the steps run once"),
        ("uses", "cannot run here: it is a workflow for GitHub's runners"),
        ("continue-on-error", "is not read: a failed step is reported"),
    ],
};
const STEP_KEYS: KnownKeys = KnownKeys {
    quiet: &["id", "if", "name", "run", "working-directory", "env", "shell", "timeout-minutes"],
    refused: &[("continue-on-error", "is not read: a failed step is reported")],
};

pub(crate) fn find(files: &ProjectFiles) -> Option<Recipe> {
    files::recipe(files, PATH, syntax::yaml, fill)
}

fn fill(root: &RecipeNode, out: &mut Gathered) -> Result<(), Unread> {
    let job = root.get("jobs").and_then(|jobs| jobs.get(JOB));
    let job = job.filter(|job| job.map().is_some()).ok_or_else(|| {
        Unread::whole("no job `copilot-setup-steps` in it: name the job so, below `jobs`")
    })?;
    if let Some(said) = job.get("if").filter(|_| condition(job) == Some(false)) {
        out.refuse_at(said.line, "if", "is `false`: nothing of the job is run");
        return Ok(());
    }
    for env in [root.get("env"), job.get("env")].into_iter().flatten() {
        out.constants(env, constant_fault);
    }
    for Pair { key, line, value } in
        job.get("services").and_then(RecipeNode::map).unwrap_or_default()
    {
        service(key, *line, value, out);
    }
    let steps = job.get("steps").and_then(RecipeNode::list).unwrap_or_default();
    for item in steps {
        step(item, &[job, root], out);
    }
    out.refuse_keys(job.map().unwrap_or_default(), &JOB_KEYS);
    Ok(())
}

fn constant_fault(text: &str) -> Option<&'static str> {
    text.contains("${{").then_some(EXPRESSION)
}

/// A step's own setting, or that of its job, or that of the workflow.
fn setting<'a>(item: &'a RecipeNode, around: &[&'a RecipeNode], key: &str) -> Option<&'a str> {
    let default = |node: &&'a RecipeNode| node.get("defaults")?.get("run")?.get(key);
    item.get(key).or_else(|| around.iter().find_map(default)).and_then(RecipeNode::scalar)
}

fn step(item: &RecipeNode, around: &[&RecipeNode], out: &mut Gathered) {
    if let Some(uses) = item.get("uses") {
        let action = uses.scalar().unwrap_or("an action");
        let words = "is an action for GitHub's runners: it is not run";
        return out.refuse_at(uses.line, action, words);
    }
    let (name, run) = (item.get("name").and_then(RecipeNode::scalar), item.get("run"));
    let Some(run) = run.and_then(|run| run.text()) else {
        let label = name.unwrap_or("a step");
        return out.refuse_at(item.line, label, "has no text to run: it is left out");
    };
    let label = name.unwrap_or_else(|| steps::first_line(run));
    let folder = setting(item, around, "working-directory");
    let shell = setting(item, around, "shell");
    if let Some(words) = fault(item, run, folder, shell) {
        return out.refuse_at(item.line, label, words);
    }
    out.refuse_keys(item.map().unwrap_or_default(), &STEP_KEYS);
    // As runners do: the first command that fails ends the step.
    let mut before =
        if shell == Some("bash") { "set -eo pipefail\n" } else { "set -e\n" }.to_owned();
    if run.contains("GITHUB_WORKSPACE") {
        before += "export GITHUB_WORKSPACE=$PWD\n";
    }
    before += &exports(item, out);
    if let Some(folder) = folder {
        before += &format!("cd -- {}\n", quoted(folder));
    }
    out.step(RunsAt::SetUp, item.line, label, steps::step(name, &before, run));
}

/// Whether a step or a job runs by its condition; `None`: that would have to be evaluated.
fn condition(item: &RecipeNode) -> Option<bool> {
    let Some(said) = item.get("if").filter(|said| said.value != NodeValue::Null) else {
        return Some(true);
    };
    let said = said.scalar()?.trim();
    let inner = said.strip_prefix("${{").and_then(|rest| rest.strip_suffix("}}"));
    match inner.unwrap_or(said).trim() {
        "" | "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

/// Why a step cannot run here.
fn fault(
    item: &RecipeNode,
    run: &str,
    folder: Option<&str>,
    shell: Option<&str>,
) -> Option<&'static str> {
    match condition(item) {
        Some(true) => {}
        Some(false) => return Some("has the condition `false`: it is not run"),
        None => return Some("has a condition, which is not evaluated: it is not run"),
    }
    if [Some(run), folder, shell].into_iter().flatten().any(|text| text.contains("${{")) {
        return Some("has a value that only GitHub fills in: it is not run");
    }
    if RUNNER_FILES.iter().any(|file| run.contains(file)) {
        return Some("writes to a file of GitHub's runners: it is not run");
    }
    let is_known = shell.is_none_or(|shell| ["bash", "sh"].contains(&shell));
    (!is_known).then_some("needs another shell than `bash`: it is not run")
}

/// The lines of a script that set a step's own variables.
fn exports(item: &RecipeNode, out: &mut Gathered) -> String {
    let mut lines = String::new();
    for Pair { key, line, value } in item.get("env").and_then(RecipeNode::map).unwrap_or_default() {
        let Some(text) = value.scalar() else {
            out.refuse_at(*line, key, "has no text as its value");
            continue;
        };
        let fault = constant_fault(text).or_else(|| variables::fault(key, text));
        let refused = "is not a variable that a repository may set";
        let fault = fault.or_else(|| is_refused_variable(key).then_some(refused));
        match fault {
            Some(words) => out.refuse_at(*line, key, words),
            None => lines += &format!("export {key}={}\n", quoted(text)),
        }
    }
    lines
}

fn service(name: &str, line: usize, value: &RecipeNode, out: &mut Gathered) {
    let image = value.scalar().or_else(|| value.get("image").and_then(RecipeNode::scalar));
    let image = image.unwrap_or_default();
    let last = image.rsplit('/').next().unwrap_or_default();
    let (own, tag) = last.split_once([':', '@']).unwrap_or((last, "latest"));
    let (service, port, moved) = match own {
        "postgres" => {
            (ProjectService::Postgres, "5432", "is not done: Postgres listens on 5432 here")
        }
        "redis" => (ProjectService::Redis, "6379", "is not done: Redis listens on 6379 here"),
        _ => {
            let words = "is not a service that starts here: only Postgres and Redis are";
            return out.refuse_at(line, name, words);
        }
    };
    out.service(service);
    if tag != "latest" {
        out.refuse_at(line, image, "has the sandbox's version");
    }
    for item in value.get("ports").and_then(RecipeNode::list).unwrap_or_default() {
        // `5433:5432`, perhaps with an address before it.
        let mapped = item.text().unwrap_or_default();
        if mapped.rsplit(':').nth(1).is_some_and(|host| host != port) {
            out.refuse_at(item.line, mapped, moved);
        }
    }
    for variable in ["POSTGRES_USER", "POSTGRES_DB"] {
        let asked = value.get("env").and_then(|env| env.get(variable));
        if let Some(asked) = asked.filter(|asked| asked.scalar() != Some("postgres")) {
            out.refuse_at(asked.line, variable, "is `postgres`: create others in a step");
        }
    }
}
