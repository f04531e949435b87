//! A recipe that is being read from a repository's file: what is honoured goes in, the rest becomes sentences.

use bobbin_core::records::recipe::{
    ProjectService, RECIPE_BYTES_MAX, Recipe, RecipeSource, RecipeStep, STEPS_MAX,
    is_refused_variable,
};

use crate::files::unreadable;
use crate::node::{Pair, RecipeNode, Unread};
use crate::variables;
use crate::words::code;

/// Sentences about what is refused.
const REFUSED_MAX: usize = 24;
/// Ports, and services' and tools' names, of a recipe.
pub(crate) const NAMED_MAX: usize = 20;
/// Variables of a recipe.
pub(crate) const VARIABLES_MAX: usize = 50;

/// RunsAt a step runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunsAt {
    SetUp,
    Start,
}

/// What a kind of file may say beside what is honoured.
pub(crate) struct KnownKeys {
    /// What is read, or asks nothing of a sandbox.
    pub(crate) quiet: &'static [&'static str],
    /// What cannot be honoured, with the rest of a sentence that says so.
    pub(crate) refused: &'static [(&'static str, &'static str)],
}

/// A recipe to which things are added.
pub(crate) struct Gathered {
    /// The file that gives the recipe its name.
    path: String,
    recipe: Recipe,
    /// The file that is read, if it is another one.
    beside: Option<&'static str>,
    /// How many sentences there was no room for.
    untold: usize,
}

impl Gathered {
    pub(crate) fn of(path: &str) -> Self {
        let recipe = Recipe::empty(RecipeSource::File(path.to_owned()));
        Self { path: path.to_owned(), recipe, beside: None, untold: 0 }
    }

    /// What follows is read from this file.
    pub(crate) fn read_from(&mut self, path: &'static str) {
        self.beside = (self.path != path).then_some(path);
    }

    /// Says what is not honoured.
    pub(crate) fn refuse(&mut self, sentence: String) {
        if self.recipe.refused.len() < REFUSED_MAX {
            self.recipe.refused.push(sentence);
        } else {
            self.untold += 1;
        }
    }

    /// Says that the thing of this name is not honoured.
    pub(crate) fn refuse_at(&mut self, line: usize, name: &str, words: &str) {
        let place = match self.beside {
            Some(path) => format!("{}, line {line}", code(path)),
            None => format!("Line {line}"),
        };
        self.refuse(format!("{place}: {} {words}.", code(name)));
    }

    /// Says which keys of a map are not honoured.
    pub(crate) fn refuse_keys(&mut self, pairs: &[Pair], known: &KnownKeys) {
        for Pair { key, line, value } in pairs {
            let refused = known.refused.iter().find(|(name, _)| name == key);
            match refused {
                Some((_, words)) if value.asks() => self.refuse_at(*line, key, words),
                None if !known.quiet.contains(&key.as_str()) => {
                    self.refuse_at(*line, key, "is not known: it is left out");
                }
                _ => {}
            }
        }
    }

    /// Adds a step, or says why it cannot run. `label` is what the file calls it.
    pub(crate) fn step(
        &mut self,
        when: RunsAt,
        line: usize,
        label: &str,
        step: Result<RecipeStep, &'static str>,
    ) {
        let steps = match when {
            RunsAt::SetUp => &mut self.recipe.set_up,
            RunsAt::Start => &mut self.recipe.start,
        };
        match step {
            Ok(_) if steps.len() >= STEPS_MAX => {
                self.refuse_at(line, label, "is beyond the 20th step: it is not run");
            }
            Ok(step) => steps.push(step),
            Err(words) => self.refuse_at(line, label, words),
        }
    }

    /// Adds a variable or takes its new value, unless a repository's file may not set it.
    pub(crate) fn variable(&mut self, line: usize, name: &str, value: &str) {
        let known = &mut self.recipe.variables;
        if let Some(fault) = variables::fault(name, value) {
            self.refuse_at(line, name, fault);
        } else if is_refused_variable(name) {
            self.refuse_at(line, name, "is not a variable that a repository may set");
        } else if known.len() >= VARIABLES_MAX && !known.contains_key(name) {
            self.refuse_at(line, name, "is beyond the 50th variable: it is left out");
        } else {
            known.insert(name.to_owned(), value.to_owned());
        }
    }

    /// Leaves a variable out again.
    pub(crate) fn unset(&mut self, name: &str) {
        self.recipe.variables.remove(name);
    }

    /// Adds the variables of a map of constants, or says which are none. `fault` says what is wrong with a value.
    pub(crate) fn constants(&mut self, map: &RecipeNode, fault: fn(&str) -> Option<&'static str>) {
        for Pair { key, line, value } in map.map().unwrap_or_default() {
            match value.scalar() {
                None => self.refuse_at(*line, key, "has no text as its value"),
                Some(text) => match fault(text) {
                    Some(words) => self.refuse_at(*line, key, words),
                    None => self.variable(*line, key, text),
                },
            }
        }
    }

    /// Adds a port on which the project listens.
    pub(crate) fn port(&mut self, line: usize, port: u16) {
        let ports = &mut self.recipe.ports;
        if ports.contains(&port) {
            return;
        }
        if ports.len() >= NAMED_MAX {
            self.refuse_at(line, &port.to_string(), "is beyond the 20th port: it is left out");
        } else {
            ports.push(port);
        }
    }

    /// Adds a service.
    pub(crate) fn service(&mut self, service: ProjectService) {
        if !self.recipe.services.contains(&service) {
            self.recipe.services.push(service);
        }
    }

    /// Adds a tool's version, unless an earlier file named one.
    pub(crate) fn tool(&mut self, name: &str, version: &str) {
        let tools = &mut self.recipe.tools;
        if tools.len() < NAMED_MAX && !tools.iter().any(|(known, _)| known == name) {
            tools.push((name.to_owned(), version.to_owned()));
        }
    }

    /// Whether nothing was found, and nothing refused.
    pub(crate) const fn is_empty(&self) -> bool {
        let Recipe { set_up, tools, refused, .. } = &self.recipe;
        set_up.is_empty() && tools.is_empty() && refused.is_empty()
    }

    /// The recipe, without anything in it if there is too much.
    pub(crate) fn finish(mut self) -> Recipe {
        if self.untold > 0 {
            self.recipe.refused.push(format!("{} more are ignored.", self.untold));
        }
        bounded(self.recipe).unwrap_or_else(|unread| unreadable(&self.path, &unread))
    }
}

/// The recipe, if it is not too large.
pub(crate) fn bounded(recipe: Recipe) -> Result<Recipe, Unread> {
    let bytes = serde_json::to_vec(&recipe).map_or(usize::MAX, |json| json.len());
    if bytes > RECIPE_BYTES_MAX {
        return Err(Unread::whole("more than 8,192 bytes in all: move its steps into scripts"));
    }
    Ok(recipe)
}

/// Whether a tool's name or version is one that can be handed to a version manager.
pub(crate) fn is_tool_word(word: &str) -> bool {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._+/:@-".contains(letter);
    (1..=80).contains(&word.len())
        && word.chars().all(is_plain)
        && word.starts_with(|first: char| first.is_ascii_alphanumeric())
}
