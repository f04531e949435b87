//! Figures: each with its unit, its runs and its spread, and ratios of interleaved runs.

use std::fmt::Write as _;

use serde::Serialize;

/// The values of one figure, in the order of the runs.
#[derive(Debug, Clone)]
pub struct Sample {
    pub program: String,
    /// One value for each run.
    pub values: Vec<f64>,
}

/// Median and spread of some runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    pub runs: usize,
    /// A quarter of the runs are below.
    pub low: f64,
    /// The run in the middle.
    pub median: f64,
    /// A quarter of the runs are above.
    pub high: f64,
}

/// One line of the table.
#[derive(Debug, Clone, Serialize)]
pub struct Line {
    pub figure: String,
    /// The unit; `x` for a ratio.
    pub unit: &'static str,
    /// The program, or the two programs of a ratio.
    pub program: String,
    #[serde(flatten)]
    pub spread: Spread,
    /// The most that a ratio should be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal: Option<f64>,
}

/// Everything that was measured.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    /// What the figures depend on: cores, versions.
    pub conditions: Vec<String>,
    pub lines: Vec<Line>,
}

impl Spread {
    /// The statistics of these values; there must be one.
    #[must_use]
    pub fn of(values: &[f64]) -> Self {
        let mut values = values.to_vec();
        values.sort_by(f64::total_cmp);
        Self {
            runs: values.len(),
            low: quantile(&values, 0.25),
            median: quantile(&values, 0.5),
            high: quantile(&values, 0.75),
        }
    }
}

/// The value below which this part of the sorted values lies; zero if there are none.
#[must_use]
pub fn quantile(sorted: &[f64], part: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else {
        return 0.0;
    };
    let at = part * last as f64;
    let (below, above) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    below + (above - below) * (at - at.floor())
}

impl Report {
    /// Adds a figure of several programs and the ratios of one of them (`of`) to each of the others, run by run.
    /// `goals` are the ratios that should not be exceeded, by the name of the other.
    pub fn add(
        &mut self,
        figure: &str,
        unit: &'static str,
        samples: &[Sample],
        of: &str,
        goals: &[(&str, f64)],
    ) {
        for sample in samples {
            self.lines.push(Line {
                figure: figure.to_owned(),
                unit,
                program: sample.program.clone(),
                spread: Spread::of(&sample.values),
                goal: None,
            });
        }
        let Some(ours) = samples.iter().find(|sample| sample.program == of) else {
            return;
        };
        for other in samples.iter().filter(|sample| sample.program != of) {
            let pairs = ours.values.iter().zip(&other.values);
            let ratios: Vec<f64> = pairs.map(|(ours, theirs)| ours / theirs).collect();
            let goal = goals.iter().find(|(name, _)| *name == other.program);
            self.lines.push(Line {
                figure: figure.to_owned(),
                unit: "x",
                program: format!("{of} / {}", other.program),
                spread: Spread::of(&ratios),
                goal: goal.map(|(_, goal)| *goal),
            });
        }
    }

    /// The goal of the last figure for this program.
    pub fn at_most(&mut self, program: &str, goal: f64) {
        let mut lines = self.lines.iter_mut().rev();
        if let Some(line) = lines.find(|line| line.program == program) {
            line.goal = Some(goal);
        }
    }

    /// As a table of Markdown.
    #[must_use]
    pub fn table(&self) -> String {
        let mut table = String::new();
        for condition in &self.conditions {
            let _ = writeln!(table, "- {condition}");
        }
        table.push_str("\n| Figure | Program | Median | Quartiles | Unit | Runs | Goal |\n|---|---|---:|---:|---|---:|---|\n");
        for line in &self.lines {
            let Spread { runs, low, median, high } = line.spread;
            let goal = match line.goal {
                Some(goal) if median <= goal => format!("≤ {}: met", number(goal)),
                Some(goal) => format!("≤ {}: missed", number(goal)),
                None => String::new(),
            };
            let _ = writeln!(
                table,
                "| {} | {} | {} | {} – {} | {} | {runs} | {goal} |",
                line.figure,
                line.program,
                number(median),
                number(low),
                number(high),
                line.unit,
            );
        }
        table
    }
}

/// With the meaningful digits.
fn number(value: f64) -> String {
    match value.abs() {
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        1.0.. => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}
