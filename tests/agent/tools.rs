//! The tools that the model is offered: commands, files, the plan and questions, with the permission that the real ones
//! ask for where something outside of the project is named.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use bobbin_tests::processes;
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::time::timeout;

/// A command is ended after this time.
const COMMAND_MS_MAX: u64 = 120_000;
/// The part of its output that the model sees.
const OUTPUT_BYTES_MAX: usize = 30_000;
/// Commands whose arguments are checked: they are paths.
const WITH_PATHS: [&str; 9] = ["cd", "rm", "cp", "mv", "mkdir", "touch", "chmod", "chown", "cat"];
/// The model gets this instead of an answer or a result.
pub const DISMISSED: &str = "The user dismissed this question";
pub const REJECTED: &str = "The user rejected permission to use this specific tool call.";

/// A tool call of the model.
#[derive(Debug, Clone, Default)]
pub struct Call {
    pub id: String,
    pub tool: String,
    pub arguments: String,
}

impl Call {
    pub fn input(&self) -> Value {
        serde_json::from_str(&self.arguments).unwrap_or_else(|_| json!({}))
    }
}

/// The result of it.
pub struct Done {
    /// The model's result.
    pub output: String,
    pub title: String,
    pub metadata: Value,
}

/// As the model is offered them.
pub fn offered() -> Value {
    let tool = |name: &str| json!({"type": "function", "function": {"name": name, "parameters": {"type": "object"}}});
    ["bash", "write", "todowrite", "question"].into_iter().map(tool).collect()
}

/// The permission that a call needs; `None` within the project.
pub fn permission(call: &Call, project: &Path) -> Option<Value> {
    let input = call.input();
    let (path, metadata) = match call.tool.as_str() {
        "bash" => (outside(input["command"].as_str()?, project)?, json!({})),
        "write" => {
            let path = input["filePath"].as_str().filter(|path| is_outside(path, project))?;
            let parent = Path::new(path).parent()?;
            (path.to_owned(), json!({"filepath": path, "parentDir": parent}))
        }
        _ => return None,
    };
    let pattern = format!("{}/*", Path::new(&path).parent()?.display());
    Some(
        json!({"permission": "external_directory", "patterns": [pattern], "always": [pattern], "metadata": metadata}),
    )
}

/// The first path outside of the project that a command names.
fn outside(command: &str, project: &Path) -> Option<String> {
    let commands = command.split([';', '&', '|', '\n']);
    let words = commands.map(|one| one.split_whitespace().collect::<Vec<_>>());
    let mut with_paths =
        words.filter(|words| words.first().is_some_and(|name| WITH_PATHS.contains(name)));
    with_paths.find_map(|words| {
        let path = words.into_iter().skip(1).find(|word| is_outside(word, project));
        path.map(str::to_owned)
    })
}

fn is_outside(path: &str, project: &Path) -> bool {
    Path::new(path).is_absolute() && !Path::new(path).starts_with(project)
}

/// Runs a command.
pub async fn command(input: &Value, project: &Path) -> Result<Done, String> {
    let command = input["command"].as_str().ok_or("there is no command")?;
    let printed = tempfile::tempfile().map_err(|error| error.to_string())?;
    let to = || printed.try_clone().map_err(|error| error.to_string());
    let mut child = Command::new("bash")
        .args(["-c", command])
        .current_dir(project)
        .stdin(Stdio::null())
        .stdout(to()?)
        .stderr(to()?)
        .process_group(0)
        .spawn()
        .map_err(|error| error.to_string())?;
    let group = child.id().map(Group);
    let ended = timeout(Duration::from_millis(COMMAND_MS_MAX), child.wait()).await;
    let exit = ended.ok().and_then(Result::ok).and_then(|status| status.code());
    drop(group);
    let output = read(printed).map_err(|error| error.to_string())?;
    let told = if output.is_empty() { "(no output)".to_owned() } else { output.clone() };
    let metadata = json!({"output": output, "exit": exit, "truncated": false});
    Ok(Done { output: told, title: command.to_owned(), metadata })
}

/// A command's processes end with it, and with a stop.
struct Group(u32);

impl Drop for Group {
    fn drop(&mut self) {
        processes::kill_group(self.0);
    }
}

fn read(mut printed: std::fs::File) -> std::io::Result<String> {
    use std::io::{Read as _, Seek as _};
    printed.rewind()?;
    let mut bytes = Vec::new();
    printed.take(OUTPUT_BYTES_MAX as u64).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Writes a file.
pub fn write(input: &Value, project: &Path) -> Result<Done, String> {
    let path = project.join(input["filePath"].as_str().ok_or("there is no path")?);
    let exists = path.exists();
    let text = |error: std::io::Error| error.to_string();
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(text)?;
    }
    std::fs::write(&path, input["content"].as_str().unwrap_or_default()).map_err(text)?;
    let title = path.strip_prefix(project).unwrap_or(&path).to_string_lossy().into_owned();
    let metadata =
        json!({"diagnostics": {}, "filepath": path, "exists": exists, "truncated": false});
    Ok(Done { output: "Wrote file successfully.".to_owned(), title, metadata })
}

/// Writes the plan down.
pub fn plan(input: &Value) -> Done {
    let todos = &input["todos"];
    let count = todos.as_array().map_or(0, Vec::len);
    Done {
        output: serde_json::to_string_pretty(todos).unwrap_or_default(),
        title: format!("{count} todos"),
        metadata: json!({"todos": todos, "truncated": false}),
    }
}

/// The model's result for answers to its questions.
pub fn answered(input: &Value, answers: &[Vec<String>]) -> Done {
    let questions = input["questions"].as_array().cloned().unwrap_or_default();
    let one = |(at, question): (usize, &Value)| {
        let answer = answers.get(at).filter(|answer| !answer.is_empty());
        let answer = answer.map_or_else(|| "Unanswered".to_owned(), |answer| answer.join(", "));
        format!("\"{}\"=\"{answer}\"", question["question"].as_str().unwrap_or_default())
    };
    let told: Vec<String> = questions.iter().enumerate().map(one).collect();
    let plural = if questions.len() == 1 { "" } else { "s" };
    Done {
        output: format!(
            "User has answered your questions: {}. You can now continue with the user's answers in mind.",
            told.join(", ")
        ),
        title: format!("Asked {} question{plural}", questions.len()),
        metadata: json!({"answers": answers, "truncated": false}),
    }
}
