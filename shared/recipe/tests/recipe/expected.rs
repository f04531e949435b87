//! A recipe as text, and what it is expected to be.

use bobbin_recipe::{ProjectFiles, Recipe, RecipeSource};

use crate::fixture::recipe;

/// A repository with this file alone.
pub fn with(path: &str, text: impl Into<Vec<u8>>) -> ProjectFiles {
    ProjectFiles { texts: [(path.to_owned(), text.into())].into(), ..ProjectFiles::default() }
}

/// A recipe as lines; a step's own line breaks are written out.
pub fn lines(recipe: &Recipe) -> Vec<String> {
    let Recipe { from, is_derived, set_up, start, services, ports, tools, variables, refused } =
        recipe;
    let mut lines = vec![match from {
        RecipeSource::Settings | RecipeSource::Nothing => "settings".to_owned(),
        RecipeSource::File(path) => path.clone(),
    }];
    let set_up_kind = if *is_derived { "derived" } else { "set-up" };
    for (kind, steps) in [(set_up_kind, set_up), ("start", start)] {
        lines.extend(steps.iter().map(|step| {
            let run = step.run.replace('\n', "⏎");
            if step.name == run {
                format!("{kind} {run}")
            } else {
                format!("{kind} [{}] {run}", step.name)
            }
        }));
    }
    lines.extend(services.iter().map(|service| format!("service {service:?}")));
    lines.extend(ports.iter().map(|port| format!("port {port}")));
    lines.extend(tools.iter().map(|(name, version)| format!("tool {name} {version}")));
    lines.extend(variables.iter().map(|(name, value)| format!("variable {name}={value}")));
    lines.extend(refused.iter().map(|sentence| format!("refused {sentence}")));
    lines
}

/// Asserts what a fixture's recipe is.
#[track_caller]
pub fn is(fixture: &str, expected: &[&str]) {
    assert_eq!(lines(&recipe(fixture)), expected, "{fixture}");
}
