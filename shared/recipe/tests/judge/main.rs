//! The devcontainers' own command line judges: what it reads in a file is what Bobbin honours or refuses in words.
#![allow(clippy::unwrap_used)]

#[path = "../recipe/fixture.rs"]
mod fixture;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use bobbin_recipe::{Recipe, RecipeSource, RecipeStep};
use bobbin_tests::tools;
use serde_json::{Map, Value, json};

use fixture::{folder, named, recipe};

const SET_UP: [&str; 3] = ["onCreateCommand", "updateContentCommand", "postCreateCommand"];
const START: [&str; 1] = ["postStartCommand"];
/// What the command line reports and what asks nothing of a sandbox, beside what is compared.
const QUIET: [&str; 12] = [
    "$schema",
    "configFilePath",
    "customizations",
    "init",
    "name",
    "otherPortsAttributes",
    "overrideCommand",
    "portsAttributes",
    "runServices",
    "service",
    "shutdownAction",
    "waitFor",
];

/// A devcontainer as the command line reads it, beside ours.
struct JudgedFixture {
    fixture: String,
    theirs: Map<String, Value>,
    ours: Recipe,
    /// Where the command line thinks that the checkout is.
    workspace: String,
}

impl JudgedFixture {
    async fn of(root: &Path, packages: &Path) -> Self {
        let fixture = root.file_name().unwrap().to_str().unwrap().to_owned();
        let ours = recipe(root.to_str().unwrap());
        let RecipeSource::File(path) = &ours.from else { panic!("{:?}", ours.from) };
        let mut script = tools::script("node");
        script.arg(packages.join("node_modules/@devcontainers/cli/devcontainer.js"));
        script.args(["read-configuration", "--mount-workspace-git-root", "false"]);
        // Nothing runs: it is asked for containers of the folder, and says that there are none.
        script.args(["--docker-path", "true"]);
        script.arg("--workspace-folder").arg(root);
        if path.matches('/').count() > 1 {
            // The command line looks for one in a folder of its own only if it is told so.
            script.arg("--config").arg(root.join(path));
        }
        let said: Value = tools::found(&mut script, &json!(null)).await;
        let theirs = said["configuration"].as_object().unwrap().clone();
        let read = PathBuf::from(theirs["configFilePath"]["fsPath"].as_str().unwrap());
        assert_eq!(read, root.join(path), "{fixture}: another file");
        let own = theirs.get("workspaceFolder").and_then(Value::as_str).map(str::to_owned);
        let workspace = own.unwrap_or_else(|| format!("/workspaces/{fixture}"));
        Self { fixture, theirs, ours, workspace }
    }

    fn is_told(&self, name: &str) -> bool {
        self.ours.refused.iter().any(|sentence| sentence.contains(&format!("`{name}`")))
    }

    fn asked(&self, name: &str) -> Option<&Value> {
        let value = self.theirs.get(name)?;
        let is_empty = [json!(null), json!(false), json!(""), json!([]), json!({})].contains(value);
        (!is_empty).then_some(value)
    }

    fn commands(&self, names: &[&str], steps: &[RecipeStep]) {
        let mut steps = steps.iter();
        for name in names {
            let Some(command) = self.asked(name) else { continue };
            if self.is_told(name) {
                continue;
            }
            let run =
                &steps.next().unwrap_or_else(|| panic!("{}: no step {name}", self.fixture)).run;
            match command {
                Value::Object(members) => self.beside(members, run),
                command => assert_eq!(&self.single(command, run), command, "{}", self.fixture),
            }
        }
        assert_eq!(steps.next(), None, "{}", self.fixture);
    }

    /// A step as a text or a list, whatever the other is.
    fn single(&self, command: &Value, run: &str) -> Value {
        if command.is_array() { json!(self.words(run)) } else { json!(self.text(run)) }
    }

    /// A text for a shell after the shell has put the checkout in.
    fn text(&self, run: &str) -> String {
        let text = run.strip_prefix("export containerWorkspaceFolder=$PWD\n").unwrap_or(run);
        text.replace("${containerWorkspaceFolder}", &self.workspace)
    }

    /// The words that a shell makes of a line.
    fn words(&self, line: &str) -> Vec<String> {
        let script = format!("PWD={}; printf '%s\\0' {line}", self.workspace);
        let output = Command::new("bash").args(["-c", &script]).output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        said.split_terminator('\0').map(str::to_owned).collect()
    }

    /// Each of these commands runs beside the others, and nothing else does.
    fn beside(&self, members: &Map<String, Value>, run: &str) {
        let lines: Vec<&str> = run.split(" & p").collect();
        let (_, lines) = lines.split_last().unwrap();
        // What is before the line stays of the one before it: its number.
        let lines =
            lines.iter().map(|line| line.split_once("=$!\n").map_or(*line, |(_, line)| line));
        let mut left: Vec<Vec<String>> = lines.map(|line| self.words(line)).collect();
        for (name, command) in members.iter().filter(|(name, _)| !self.is_told(name)) {
            let is_it = |words: &Vec<String>| match command {
                Value::String(text) => words[..2] == ["sh", "-c"] && self.text(&words[2]) == *text,
                list => json!(words) == *list,
            };
            let at = left.iter().position(is_it);
            left.remove(at.unwrap_or_else(|| panic!("{}: {name} {left:?}", self.fixture)));
        }
        assert_eq!(left, Vec::<Vec<String>>::new(), "{}", self.fixture);
    }

    fn variables(&self) {
        let mut theirs = BTreeMap::new();
        for name in ["containerEnv", "remoteEnv"] {
            theirs.extend(self.asked(name).and_then(Value::as_object).into_iter().flatten());
        }
        theirs.retain(|_, value| !value.is_null());
        for (name, value) in &theirs {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let is_kept = self.ours.variables.get(*name) == Some(&text);
            assert!(is_kept != self.is_told(name), "{}: {name}", self.fixture);
        }
        let mut ours = self.ours.variables.keys();
        assert!(ours.all(|name| theirs.contains_key(name)), "{}", self.fixture);
    }

    fn ports(&self) {
        let asked = self.asked("forwardPorts").and_then(Value::as_array);
        let theirs = asked.map(Vec::as_slice).unwrap_or_default();
        for port in theirs {
            let text = port.as_str().map_or_else(|| port.to_string(), str::to_owned);
            let is_kept = self.ours.ports.iter().any(|ours| port.as_u64() == Some((*ours).into()));
            assert!(is_kept || self.is_told(&text), "{}: {port}", self.fixture);
        }
        let mut ours = self.ours.ports.iter();
        assert!(ours.all(|port| theirs.contains(&json!(port))), "{}", self.fixture);
    }

    /// Every other key is told, or asks nothing of a sandbox.
    fn rest(&self) {
        let compared = ["containerEnv", "remoteEnv", "forwardPorts"];
        let known = [&SET_UP[..], &START, &compared, &QUIET].concat();
        let others = self.theirs.keys().filter(|key| !known.contains(&key.as_str()));
        for key in others {
            assert_eq!(self.is_told(key), self.asked(key).is_some(), "{}: {key}", self.fixture);
        }
    }
}

#[tokio::test]
async fn devcontainers_are_honoured_or_refused() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/judge");
    let packages = tools::node("devcontainers-cli", &package).unwrap();
    let mut judged = 0;
    let copies = tempfile::tempdir().unwrap();
    let fixtures = named("devcontainer-").into_iter().map(|name| folder().join(name));
    for root in fixtures.chain(copied(&package.join("devcontainers"), copies.path())) {
        let recipe = JudgedFixture::of(&root, &packages).await;
        // The command line guesses what a broken file means. Ours says that it is broken, and takes nothing.
        if recipe.fixture == "devcontainer-broken" {
            assert_eq!(recipe.ours.refused.len(), 1);
            assert!(recipe.ours.refused[0].contains("not JSON"), "{:?}", recipe.ours.refused);
            continue;
        }
        recipe.commands(&SET_UP, &recipe.ours.set_up);
        recipe.commands(&START, &recipe.ours.start);
        recipe.variables();
        recipe.ports();
        recipe.rest();
        judged += 1;
    }
    assert!(judged >= 20, "{judged}");
}

/// A checkout of each of these files.
fn copied(files: &Path, to: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(files).unwrap().map(|file| file.unwrap().path());
    let copy = |file: PathBuf| {
        let root = to.join(file.file_stem().unwrap());
        std::fs::create_dir_all(root.join(".devcontainer")).unwrap();
        std::fs::copy(file, root.join(".devcontainer/devcontainer.json")).unwrap();
        root
    };
    files.map(copy).collect()
}
