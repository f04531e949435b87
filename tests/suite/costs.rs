//! docs/COSTS.md: its counts match a turn here, and its bills follow from its counts and prices.

use std::collections::BTreeMap;
use std::path::Path;

use bobbin_core::base::limits::{Limits, OTHERS_MS};
use bobbin_core::protocol::signals::Alarm;
use bobbin_core::records::outcome::Outcome;
use bobbin_tests::binaries::workspace;
use bobbin_tests::breakpoints::Condition;
use bobbin_tests::chat::Platform;
use bobbin_tests::limits::ANSWER_MS_MAX;
use bobbin_tests::stack::{Options, Stack};
use bobbin_tests::talk::{Talk, marked};
use bobbin_tests::wait::eventually;
use bobbin_tests::world::World;
use futures::future::join_all;
use libtest_mimic::Trial;
use serde_json::json;

use crate::run::{COMMON, on, trial};

const PROMPT: &str = "echo: counted";
/// A minute of a month of 30 days.
const MINUTES_A_MONTH: f64 = 43_200.0;
/// Pollers of an idle mapping, each waiting for 20 s.
const POLLERS: f64 = 5.0;
const POLLS_A_MINUTE: f64 = 3.0;
/// Hours of an active month in which a metric with an alarm is counted.
const HOURS_WITH_TROUBLE: f64 = 0.1;
/// How far the document's counts may exceed the measured ones, which vary with time.
pub(crate) const ROOM: f64 = 2.0;

pub fn trials() -> Vec<Trial> {
    vec![
        Trial::test("costs::documented_bills_follow_from_counts", || {
            bills();
            sandbox_minutes();
            Ok(())
        }),
        on(&COMMON, "costs::turn_stays_within_documented_counts", measured),
        trial("costs::idle_poll_matches_documented_counts", looked).with_ignored_flag(true),
    ]
}

/// Price of a sandbox for an hour, in dollars; minutes of a turn.
const SANDBOX_HOUR: f64 = 0.08;
const TURN_MINUTES: f64 = 5.0;

/// The bill for sandboxes; the default is one.
fn sandbox_minutes() {
    let bill = table("Sandbox minutes");
    let default = Limits::DEFAULT.sandbox.idle_pause_ms / 60_000;
    assert!(bill.contains_key(&format!("{default} min")), "{default} min is not in the bill");
    for (after, row) in bill {
        let idle: f64 = after.trim_end_matches(" min").parse().unwrap();
        let minutes = TURN_MINUTES + idle;
        let dollars = 1_000.0 * minutes / 60.0 * SANDBOX_HOUR;
        assert_eq!(row["minutes paid a turn"], format!("{minutes}"), "{after}");
        assert_eq!(row["1,000 turns"], format!("${dollars:.2}"), "{after}");
    }
}

/// A table of the document: the cells by row and column.
type Table = BTreeMap<String, BTreeMap<String, String>>;

/// The table under a heading.
fn table(heading: &str) -> Table {
    let path = workspace().join(Path::new("docs/COSTS.md"));
    let text = std::fs::read_to_string(&path).unwrap();
    let part = text
        .split("\n## ")
        .find(|part| part.starts_with(heading))
        .unwrap_or_else(|| panic!("docs/COSTS.md has no part {heading}"));
    let cells = |line: &str| -> Vec<String> {
        let line = line.trim().trim_matches('|');
        line.split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    let mut lines = part.lines().filter(|line| line.starts_with('|'));
    let columns = cells(lines.next().unwrap_or_default());
    lines
        .skip(1)
        .map(|line| {
            let row = cells(line);
            let named = columns.iter().cloned().zip(row.iter().cloned());
            (row[0].clone(), named.collect())
        })
        .collect()
}

fn number(table: &Table, row: &str, column: &str) -> f64 {
    let cell = table
        .get(row)
        .and_then(|cells| cells.get(column))
        .unwrap_or_else(|| panic!("docs/COSTS.md has no {row} / {column}"));
    let digits: String = cell.chars().filter(|char| !matches!(char, ',' | '$')).collect();
    digits.parse().unwrap_or_else(|_| panic!("{row} / {column} is {cell:?}, not a number"))
}

/// The document's count of something in a column.
pub(crate) fn counted(row: &str, column: &str) -> f64 {
    number(&table("Counts"), row, column)
}

/// The parts of a bill: how many of each column of the counts, and of each monthly item.
struct Scenario {
    bill: &'static str,
    parts: &'static [(&'static str, f64)],
    /// `a month` or `an active month`: the bills of turns come on top of the idle one.
    monthly: &'static str,
}

const SCENARIOS: [Scenario; 4] = [
    Scenario { bill: "an idle month", parts: &[("sweep", MINUTES_A_MONTH)], monthly: "a month" },
    Scenario {
        bill: "1,000 turns",
        parts: &[
            ("first turn", 200.0),
            ("next turn", 800.0),
            ("minute held", 1_000.0),
            ("poll", 9_000.0),
            ("session's end", 200.0),
        ],
        monthly: "an active month",
    },
    Scenario {
        bill: "1,000,000 agent minutes",
        parts: &[
            ("first turn", 40_000.0),
            ("next turn", 160_000.0),
            ("minute held", 200_000.0),
            ("poll", 4_200_000.0),
            ("session's end", 40_000.0),
        ],
        monthly: "an active month",
    },
    Scenario {
        bill: "the same, polled less",
        parts: &[
            ("first turn", 40_000.0),
            ("next turn", 160_000.0),
            ("minute held", 200_000.0 * 5.0 / 60.0),
            ("poll", 2_000_000.0),
            ("nudge", 200_000.0),
            ("session's end", 40_000.0),
        ],
        monthly: "an active month",
    },
];

/// With these limits.
const LOOKED_AT_LESS: &str = r#"{"hold_ms": 5000, "look_ms_min": 30000, "look_ms_max": 30000}"#;
/// The goal for 1,000,000 agent minutes, in dollars.
const MINUTES_MAX: f64 = 25.0;

fn bills() {
    let (counts, prices, bills) = (table("Counts"), table("Prices"), table("Bills"));
    let mut wrong = Vec::new();
    for scenario in &SCENARIOS {
        let bill = scenario.bill;
        let mut sum = 0.0;
        for (row, price) in &prices {
            let price_of_one = number(&prices, row, "price") / number(&prices, row, "per");
            let amount = match price["counted"].as_str() {
                "each" => {
                    let parts = scenario.parts.iter();
                    parts.map(|(column, times)| times * number(&counts, row, column)).sum()
                }
                monthly if monthly == scenario.monthly => number(&prices, row, "how many"),
                _ => 0.0,
            };
            let dollars = amount * price_of_one;
            sum += dollars;
            let told = number(&bills, row, bill);
            if (told - dollars).abs() > 0.0051 {
                wrong.push(format!("{row}, {bill}: {dollars:.2}, not {told}"));
            }
        }
        let told = number(&bills, "**together**", bill);
        if (told - sum).abs() > 0.0051 {
            wrong.push(format!("together, {bill}: {sum:.2}, not {told}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));

    // Monthly items are in the template.
    let template = std::fs::read_to_string(workspace().join("template.yaml")).unwrap();
    // Items that exist only with tools are listed beside the bills.
    let of_tools = "Type: AWS::CloudWatch::Alarm\n    Condition: HasTools\n";
    let of_tools = template.matches(of_tools).count();
    let each = number(&prices, "alarms", "price");
    let told = format!("is ${:.2} a month more", of_tools as f64 * each);
    let costs = std::fs::read_to_string(workspace().join("docs/COSTS.md")).unwrap();
    assert!(costs.contains(&told), "{told}");
    for (row, line, apart) in [
        // An alarm that adds metrics up is billed for each of them.
        ("alarms", " MetricName: ", of_tools),
        ("secrets", "Type: AWS::SecretsManager::Secret\n", 0),
    ] {
        let there = template.matches(line).count() - apart;
        assert_eq!(number(&prices, row, "how many"), there as f64, "{row}");
    }
    // The dashboard is optional, and each of our own metrics is written in this many hours.
    assert!(template.contains("Type: AWS::CloudWatch::Dashboard\n    Condition: IsObserved\n"));
    let written = Alarm::ALL.len() as f64 * HOURS_WITH_TROUBLE;
    let told = number(&prices, "metrics in use", "how many");
    assert!((told - written).abs() < 1e-9, "{told}, not {written}");
    let mappings = template.matches("FunctionResponseTypes: [ReportBatchItemFailures]").count();
    let polls = mappings as f64 * POLLERS * POLLS_A_MINUTE * MINUTES_A_MONTH;
    assert_eq!(number(&prices, "polls of empty queues", "how many"), polls);

    // The cost of the followed minute and the number of polls after it follow from the limits.
    let limits = Limits::DEFAULT;
    assert_eq!(limits.poll.hold_ms, 60_000);
    let looks_until = |limits: &Limits, end_ms: u64| {
        let (mut age_ms, mut looks) = (limits.poll.hold_ms, 0);
        while age_ms < end_ms {
            age_ms += limits.poll.next_poll_after(age_ms, 1);
            looks += 1;
        }
        looks
    };
    assert_eq!([120_000, 300_000].map(|end_ms| looks_until(&limits, end_ms)), [9, 21]);
    let text = std::fs::read_to_string(workspace().join("docs/COSTS.md")).unwrap();
    assert!(text.contains(&format!("`{LOOKED_AT_LESS}`")));
    let less: Limits = serde_json::from_str(LOOKED_AT_LESS).unwrap();
    assert_eq!(less.check(), Ok(()));
    assert_eq!((less.poll.hold_ms, looks_until(&less, 300_000)), (5_000, 10));
    assert!(number(&bills, "**together**", "the same, polled less") <= MINUTES_MAX);
    let a_minute = |ms: u64| 60_000.0 / ms as f64;
    let followed = |row: &str| number(&counts, row, "minute held");
    assert_eq!(
        followed("queue requests"),
        a_minute(limits.poll.heartbeat_ms) + a_minute(OTHERS_MS)
    );
    assert_eq!(followed("table reads"), 2.0 * a_minute(limits.poll.poll_ms));
    assert!(template.contains("\n    MemorySize: 128\n"));
    assert_eq!(followed("function GB-seconds"), 60.0 * 0.125);
}

/// The cost of a turn's calls, without reads: their number depends on how long it waits.
#[derive(Debug)]
struct Taken {
    queue: f64,
    writes: f64,
}

/// Threads, one of which must match the document: on a busy machine one may take longer and write that down.
const THREADS: usize = 3;

async fn measured(world: World) {
    let counts = table("Counts");
    let each = Platform::ALL.map(async |platform| {
        let mut odd = Vec::new();
        for _ in 0..THREADS {
            let [first, next] = two_turns(&world, platform).await;
            println!("{} first turn: {first:?}, next turn: {next:?}", platform.word());
            odd = [("first turn", first), ("next turn", next)]
                .into_iter()
                .flat_map(|(column, taken)| {
                    [("queue requests", taken.queue), ("table writes", taken.writes)]
                        .map(|(row, measured)| (row, column, measured))
                })
                .filter_map(|(row, column, measured)| {
                    let told = number(&counts, row, column);
                    let is_told = measured <= told && told <= ROOM * measured;
                    (!is_told).then(|| format!("{column}, {row}: {measured}, told {told}"))
                })
                .collect();
            if odd.is_empty() {
                break;
            }
        }
        assert_eq!(odd, Vec::<String>::new(), "{}", platform.word());
    });
    join_all(each).await;
}

/// The first and the next turn of a thread.
async fn two_turns(world: &World, platform: Platform) -> [Taken; 2] {
    let (text, mark) = marked(PROMPT);
    let breakpoint = world.breakpoint(&noted(&mark)).await;
    let (mut talk, turn) = world.begin_marked(platform, &text, &mark).await;
    assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
    let first = taken(&talk, &breakpoint.status().await.unwrap().calls).await;
    breakpoint.remove().await.unwrap();

    let (text, mark) = marked(PROMPT);
    let breakpoint = world.breakpoint(&noted(&mark)).await;
    let turn = talk.say_marked(&text, &mark).await;
    assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
    let next = taken(&talk, &breakpoint.status().await.unwrap().calls).await;
    breakpoint.remove().await.unwrap();
    talk.finish().await;
    [first, next]
}

/// Polls, one of which must match the document: on a busy machine one may take longer and renew its claim.
const LOOKS: u32 = 5;

/// Its own stack: a turn of a minute that is followed for its first second.
async fn looked() {
    let stack = Stack::start(&Options {
        stand_in_agent: true,
        ..Options::limits(json!({"hold_ms": 1_000}))
    });
    let world = World::of(&stack);
    for platform in Platform::ALL {
        let (text, mark) = marked("quiet: 60 counted");
        let (talk, turn) = world.begin_marked(platform, &text, &mark).await;
        // The first polls find something new.
        given_back(&talk, 3).await;
        let breakpoint = world.breakpoint(&noted(&mark)).await;
        let mut looks = Vec::new();
        let mut before = 0;
        for look in 4..4 + LOOKS {
            given_back(&talk, look).await;
            let calls = breakpoint.status().await.unwrap().calls;
            looks.push(calls[before..].to_vec());
            before = calls.len();
            if is_as_documented(&looks[looks.len() - 1]) {
                break;
            }
        }
        breakpoint.remove().await.unwrap();
        println!("{}: {looks:#?}", platform.word());
        assert!(looks.last().is_some_and(|look| is_as_documented(look)), "{looks:#?}");
        assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
        talk.finish().await;
    }
    stack.end().unwrap();
}

/// Whether a poll has the documented calls and shows nothing new.
fn is_as_documented(look: &[String]) -> bool {
    let count = |of: &str| look.iter().filter(|call| call.starts_with(of)).count() as f64;
    // The mapping receives it.
    let queue = 1.0 + count("sqs ");
    let (reads, table) = (count("dynamodb BatchGetItem"), count("dynamodb "));
    queue == counted("queue requests", "poll")
        && count("dynamodb UpdateItem") == counted("table writes", "poll")
        && (reads, table, count("chat ")) == (1.0, 2.0, 0.0)
}

/// Waits until this delivery has returned the turn to the queue.
async fn given_back(talk: &Talk<'_>, receive: u32) {
    let what = format!("delivery {receive} gives the turn back");
    eventually(ANSWER_MS_MAX, &what, async || {
        let parked = talk.world.parked(&talk.thread.key).await?;
        let is_later = parked.receive >= receive;
        is_later.then_some(()).ok_or_else(|| format!("{parked:?}"))
    })
    .await;
}

fn noted(mark: &str) -> Condition {
    Condition { text: mark.to_owned(), function: "Worker".to_owned(), ..Condition::default() }
}

/// The calls in billed units, with the record's size after the turn.
async fn taken(talk: &Talk<'_>, calls: &[String]) -> Taken {
    let session = talk.session().await;
    let bytes = serde_json::to_string(&session).unwrap().len();
    // A write is billed by the KB and doubled in a transaction, which the ledger's item needs. One more unit is for the
    // index, whose entry a write may move.
    let kb = bytes.div_ceil(1_024) as f64;
    // Ingress sends; the mapping receives and deletes.
    let mut taken = Taken { queue: 3.0, writes: 0.0 };
    for call in calls {
        match call.as_str() {
            "dynamodb UpdateItem" | "dynamodb PutItem" => taken.writes += kb + 1.0,
            "dynamodb TransactWriteItems" => taken.writes += 2.0 * (kb + 2.0),
            // The number depends on time: the document counts them by the minute.
            "sqs ChangeMessageVisibility" => {}
            call if call.starts_with("sqs ") => taken.queue += 1.0,
            _ => {}
        }
    }
    taken
}
