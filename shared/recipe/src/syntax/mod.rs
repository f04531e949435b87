//! The three notations.

mod jsonc;
mod toml;
mod yaml;

pub(crate) use jsonc::jsonc;
pub(crate) use toml::toml;
pub(crate) use yaml::yaml;

/// Finds the line of a byte.
struct LineEnds(Vec<usize>);

impl LineEnds {
    fn of(text: &str) -> Self {
        Self(text.match_indices('\n').map(|(at, _)| at).collect())
    }

    fn line(&self, at: usize) -> usize {
        self.0.partition_point(|end| *end < at) + 1
    }
}
