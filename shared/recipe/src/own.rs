//! `.bobbin/environment.yaml`, and the same in a tenant's settings. Who writes it means Bobbin, so what cannot be read
//! is an error that says what to do.

use bobbin_core::records::recipe::{
    NAME_BYTES_MAX, ProjectService, Recipe, RecipeSource, RecipeStep, STEPS_MAX,
    is_refused_variable,
};
use bobbin_core::tenant::environments;
use bobbin_core::tenant::repositories_beside::BESIDE_MAX;

use crate::SettingsRecipe;
use crate::files::{self, ProjectFiles};
use crate::gathered::{NAMED_MAX, VARIABLES_MAX, bounded, is_tool_word};
use crate::node::{NodeValue, Pair, RecipeNode, Unread};
use crate::words::{code, listed, nearest};
use crate::{steps, syntax, variables};

const PATH: &str = ".bobbin/environment.yaml";
const KEYS: [&str; 6] = ["set-up", "start", "services", "ports", "tools", "variables"];
/// A key of settings alone.
const REPOSITORIES: &str = "repositories";
const STEP_KEYS: [&str; 2] = ["name", "run"];
const SERVICES: [(&str, ProjectService); 2] =
    [("postgres", ProjectService::Postgres), ("redis", ProjectService::Redis)];

pub(crate) fn find(files: &ProjectFiles) -> Option<Recipe> {
    let bytes = files.texts.get(PATH)?;
    let read = files::text(bytes).and_then(|text| {
        let SettingsRecipe { recipe, repositories } =
            read(text, RecipeSource::File(PATH.to_owned()))?;
        let mut recipe =
            recipe.unwrap_or_else(|| Recipe::empty(RecipeSource::File(PATH.to_owned())));
        if !repositories.is_empty() {
            let sentence = "`repositories` counts only in the tenant's settings.";
            recipe.refused.push(sentence.to_owned());
        }
        let names: Vec<String> = recipe.variables.keys().cloned().collect();
        for name in names.iter().filter(|name| is_refused_variable(name)) {
            recipe.variables.remove(name);
            let sentence = format!("{} is not a variable that a repository may set.", code(name));
            recipe.refused.push(sentence);
        }
        bounded(recipe)
    });
    Some(read.unwrap_or_else(|unread| files::unreadable(PATH, &unread)))
}

pub(crate) fn of_settings(text: &str) -> Result<SettingsRecipe, Unread> {
    let read = read(text, RecipeSource::Settings)?;
    Ok(SettingsRecipe { recipe: read.recipe.map(bounded).transpose()?, ..read })
}

fn read(text: &str, from: RecipeSource) -> Result<SettingsRecipe, Unread> {
    let root = syntax::yaml(text)?;
    let pairs = root.map().ok_or_else(|| {
        let words = format!("begin with one of the keys {}", listed(&KEYS));
        Unread::at(root.line, words)
    })?;
    let mut recipe = Recipe::empty(from);
    let mut repositories = Vec::new();
    for Pair { key, line, value } in pairs {
        match key.as_str() {
            "set-up" => recipe.set_up = steps_of(key, *line, value)?,
            "start" => recipe.start = steps_of(key, *line, value)?,
            "services" => recipe.services = each(key, *line, value, SERVICES.len(), service)?,
            "ports" => recipe.ports = each(key, *line, value, NAMED_MAX, port)?,
            "tools" => recipe.tools = entries(key, *line, value, NAMED_MAX, tool)?,
            "variables" => {
                let variables = entries(key, *line, value, VARIABLES_MAX, variable)?;
                recipe.variables = variables.into_iter().collect();
            }
            REPOSITORIES => repositories = each(key, *line, value, BESIDE_MAX, repository)?,
            _ => return Err(unknown(key, *line, &KEYS)),
        }
    }
    // Who only wants repositories beside one leaves the rest to its files.
    let is_said = pairs.is_empty() || pairs.iter().any(|pair| pair.key != REPOSITORIES);
    Ok(SettingsRecipe { recipe: is_said.then_some(recipe), repositories })
}

fn repository(item: &RecipeNode) -> Result<String, String> {
    let name = item.text().and_then(environments::repository);
    let wrong = "`repositories` takes names such as `acme/api`, of the default branch";
    name.ok_or_else(|| wrong.to_owned())
}

fn unknown(key: &str, line: usize, keys: &[&str]) -> Unread {
    let words = format!("{} is not a key; the nearest is `{}`", code(key), nearest(key, keys));
    Unread::at(line, words)
}

fn steps_of(key: &str, line: usize, value: &RecipeNode) -> Result<Vec<RecipeStep>, Unread> {
    let items = value.list().ok_or_else(|| {
        let words = "takes a list: put each step on a line that begins with `- `";
        Unread::at(line, format!("{} {words}", code(key)))
    })?;
    if items.len() > STEPS_MAX {
        return Err(Unread::at(
            line,
            format!("{} has more than {STEPS_MAX} steps: join some in a script", code(key)),
        ));
    }
    items.iter().map(step).collect()
}

fn step(item: &RecipeNode) -> Result<RecipeStep, Unread> {
    let fault = |line: usize, words: &str| Unread::at(line, format!("the step {words}"));
    let (name, run) = match item.map() {
        None => (None, item),
        Some(pairs) => {
            if let Some(odd) = pairs.iter().find(|pair| !STEP_KEYS.contains(&pair.key.as_str())) {
                return Err(unknown(&odd.key, odd.line, &STEP_KEYS));
            }
            let run = item.get("run");
            let run = run.ok_or_else(|| fault(item.line, "has no `run`: say what to run"))?;
            (item.get("name"), run)
        }
    };
    let name = name
        .map(|name| {
            let text = name.text().filter(|text| (1..=NAME_BYTES_MAX).contains(&text.len()));
            text.ok_or_else(|| fault(name.line, "takes a `name` of 1 to 80 bytes"))
        })
        .transpose()?;
    let text = run.text().ok_or_else(|| fault(run.line, "takes a text: put it into quotes"))?;
    // Who writes several lines expects the second only if the first went well.
    let before = if text.trim_end().contains('\n') { "set -e\n" } else { "" };
    steps::step(name, before, text).map_err(|words| fault(run.line, words))
}

/// The items of a list, each once.
fn each<T: PartialEq>(
    key: &str,
    line: usize,
    value: &RecipeNode,
    most: usize,
    read: fn(&RecipeNode) -> Result<T, String>,
) -> Result<Vec<T>, Unread> {
    let items = value.list();
    let items = items.ok_or_else(|| Unread::at(line, format!("{} takes a list", code(key))))?;
    if items.len() > most {
        return Err(Unread::at(line, format!("{} has more than {most} items", code(key))));
    }
    let mut found = Vec::with_capacity(items.len());
    for item in items {
        let one = read(item).map_err(|words| Unread::at(item.line, words))?;
        if found.contains(&one) {
            let words = format!("{} names the same twice: keep one", code(key));
            return Err(Unread::at(item.line, words));
        }
        found.push(one);
    }
    Ok(found)
}

fn service(item: &RecipeNode) -> Result<ProjectService, String> {
    let known = SERVICES.iter().find(|(name, _)| item.text() == Some(name));
    known
        .map(|(_, service)| *service)
        .ok_or_else(|| "`services` takes `postgres` and `redis`: start others in a step".to_owned())
}

fn port(item: &RecipeNode) -> Result<u16, String> {
    item.port().ok_or_else(|| "`ports` takes whole numbers from 1 to 65535".to_owned())
}

/// The entries of a map whose values are texts or numbers.
fn entries(
    key: &str,
    line: usize,
    value: &RecipeNode,
    most: usize,
    read: fn(&str, &RecipeNode) -> Result<String, &'static str>,
) -> Result<Vec<(String, String)>, Unread> {
    let pairs = value.map().ok_or_else(|| {
        Unread::at(line, format!("{} takes lines such as `name: value`", code(key)))
    })?;
    if pairs.len() > most {
        return Err(Unread::at(line, format!("{} has more than {most} lines", code(key))));
    }
    let entry = |pair: &Pair| {
        let read = read(&pair.key, &pair.value);
        let said = |words| Unread::at(pair.line, format!("{} {words}", code(&pair.key)));
        Ok((pair.key.clone(), read.map_err(said)?))
    };
    pairs.iter().map(entry).collect()
}

fn variable(name: &str, value: &RecipeNode) -> Result<String, &'static str> {
    let text = value.scalar().ok_or("takes a text: put it into quotes")?;
    variables::fault(name, text).map_or_else(|| Ok(text.to_owned()), Err)
}

fn tool(name: &str, version: &RecipeNode) -> Result<String, &'static str> {
    let is_truth = matches!(version.value, NodeValue::Bool(_));
    let version = version.scalar().filter(|version| !is_truth && is_tool_word(version));
    let version = version.filter(|_| is_tool_word(name));
    version.map(str::to_owned).ok_or("takes a name and a version such as `node: 22.4.0`")
}
