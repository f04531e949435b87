//! Calls over time as a picture: a named bar for each; those on the critical path are filled.
//!
//! Promised: the same input is the same text; readable on light and on dark ground; every text is escaped. Deliberately
//! absent: measuring.

use std::fmt::Write as _;

#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    pub name: String,
    /// The number of its group.
    pub group: usize,
    pub from_ms: f64,
    pub to_ms: f64,
    /// Whether it is on the critical path.
    pub is_critical: bool,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Picture {
    pub title: String,
    pub notes: Vec<String>,
    /// The names of the groups of bars; there are colours for five.
    pub groups: Vec<String>,
    /// The bars, from the top.
    pub bars: Vec<Bar>,
    /// The times of named events.
    pub marks: Vec<(String, f64)>,
}

const WIDTH: f64 = 980.0;
const NAMES_WIDTH: f64 = 250.0;
const TIMES_WIDTH: f64 = 80.0;
const ROW: f64 = 20.0;
const BAR: f64 = 12.0;
/// Lines of the scale.
const TICKS: [f64; 13] =
    [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1_000.0, 2_000.0, 5_000.0, 10_000.0];
const TICKS_MAX: f64 = 12.0;

const STYLE: &str = "text{font:12px system-ui,sans-serif;fill:#1f2328}.title{font-size:16px;font-weight:600}\
.soft{fill:#59636e}.line{stroke:#d1d9e0}.mark{stroke:#1f2328;stroke-dasharray:4 3}.back{fill:#fff}\
.g0{fill:#d4691e;stroke:#d4691e}.g1{fill:#5865f2;stroke:#5865f2}.g2{fill:#1a7f64;stroke:#1a7f64}\
.g3{fill:#b8367f;stroke:#b8367f}.g4{fill:#6e7781;stroke:#6e7781}.beside{fill-opacity:.2}\
@media(prefers-color-scheme:dark){text{fill:#f0f6fc}.soft{fill:#9198a1}.line{stroke:#3d444d}.mark{stroke:#f0f6fc}\
.back{fill:#0d1117}.g0{fill:#f0883e;stroke:#f0883e}.g1{fill:#8b95ff;stroke:#8b95ff}.g2{fill:#3fb98f;stroke:#3fb98f}\
.g3{fill:#e86fb1;stroke:#e86fb1}.g4{fill:#9198a1;stroke:#9198a1}}";

impl Picture {
    #[must_use]
    pub fn svg(&self) -> String {
        let ends = self.bars.iter().map(|bar| bar.to_ms);
        let whole_ms = ends.chain(self.marks.iter().map(|(_, at)| *at)).fold(1.0, f64::max);
        let scale = (WIDTH - NAMES_WIDTH - TIMES_WIDTH) / whole_ms;
        let x = |ms: f64| NAMES_WIDTH + ms * scale;
        let head = 54.0 + 18.0 * self.notes.len() as f64;
        let top = head + 18.0 * (self.marks.len() as f64 + 1.0);
        let bottom = top + ROW * self.bars.len() as f64;
        let height = bottom + 14.0;

        let mut svg = String::new();
        let mut put = |line: String| {
            svg.push_str(&line);
            svg.push('\n');
        };
        put(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\">"
        ));
        put(format!("<title>{}</title>", escaped(&self.title)));
        put(format!("<style>{STYLE}</style>"));
        put("<rect class=\"back\" width=\"100%\" height=\"100%\"/>".to_owned());
        put(text(10.0, 24.0, "title", &self.title));
        for (row, note) in self.notes.iter().enumerate() {
            put(text(10.0, 44.0 + 18.0 * row as f64, "soft", note));
        }
        let mut left = 10.0;
        for (group, name) in self.groups.iter().enumerate() {
            put(format!(
                "<rect class=\"g{group}\" x=\"{left}\" y=\"{:.1}\" width=\"10\" height=\"10\"/>",
                head - 13.0
            ));
            put(text(left + 15.0, head - 4.0, "", name));
            left += 40.0 + 7.0 * name.chars().count() as f64;
        }
        let tick = TICKS.into_iter().find(|tick| whole_ms / tick <= TICKS_MAX);
        let tick = tick.unwrap_or(whole_ms);
        let mut at = 0.0;
        while at <= whole_ms {
            put(format!(
                "<path class=\"line\" d=\"M{0:.1} {1:.1}V{bottom:.1}\"/>",
                x(at),
                top - 4.0
            ));
            put(text(x(at) + 2.0, top - 6.0, "soft", &format!("{at:.0} ms")));
            at += tick;
        }
        for (row, bar) in self.bars.iter().enumerate() {
            let y = top + ROW * row as f64;
            let kind = if bar.is_critical { "" } else { " beside" };
            let width = ((bar.to_ms - bar.from_ms) * scale).max(1.5);
            put(text(10.0, y + 14.0, "", &bar.name));
            put(format!(
                "<rect class=\"g{}{kind}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{BAR}\"/>",
                bar.group,
                x(bar.from_ms),
                y + 4.0
            ));
            let took = bar.to_ms - bar.from_ms;
            let end = (x(bar.to_ms) + 5.0).min(WIDTH - TIMES_WIDTH + 5.0);
            put(text(end, y + 14.0, "soft", &format!("{} ms", number(took))));
        }
        for (row, (name, at)) in self.marks.iter().enumerate() {
            let y = head + 18.0 * (row as f64 + 1.0) - 6.0;
            put(format!("<path class=\"mark\" d=\"M{0:.1} {y:.1}V{bottom:.1}\"/>", x(*at)));
            let words = format!("{name}: {} ms", number(*at));
            put(format!(
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                x(*at) - 4.0,
                y + 4.0,
                escaped(&words)
            ));
        }
        svg.push_str("</svg>\n");
        svg
    }
}

fn text(x: f64, y: f64, class: &str, words: &str) -> String {
    let class = match class {
        "" => String::new(),
        class => format!(" class=\"{class}\""),
    };
    format!("<text{class} x=\"{x:.1}\" y=\"{y:.1}\">{}</text>", escaped(words))
}

fn escaped(words: &str) -> String {
    let mut safe = String::with_capacity(words.len());
    for letter in words.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            other => {
                let _ = write!(safe, "{other}");
            }
        }
    }
    safe
}

fn number(ms: f64) -> String {
    match ms {
        10.0.. => format!("{ms:.0}"),
        1.0.. => format!("{ms:.1}"),
        _ => format!("{ms:.2}"),
    }
}
