//! The Home: its content, the effects of its buttons, and its suggestions.

use bobbin_core::base::ids::ThreadKey;
use bobbin_core::base::person::Person;
use bobbin_core::records::control::ControlAction;
use bobbin_core::records::ledger::LedgerEntry;
use bobbin_core::records::message::{Body, Overview, Reply, Surface};
use bobbin_core::records::outcome::Outcome;
use bobbin_core::shown::overview::{OpenRun, Picture};
use bobbin_core::tenant::catalogue::Catalogue;
use bobbin_core::tenant::selection::Selection;
use bobbin_core::tenant::settings::{DefaultKind, Settings, SettingsChange};
use serde_json::{Value, json};

use super::block_kit::home_problems;
use super::{app, signed};
use crate::slack::{render, suggested};
use crate::{Inbound, Lookup, SuggestionKind};

fn thread(channel: &str) -> ThreadKey {
    ThreadKey::slack("T1", channel, "1790000000.000100").unwrap()
}

fn picture() -> Picture {
    let entry: LedgerEntry = serde_json::from_value(json!({
        "turn": "old", "by": Person::default(), "accepted_at_ms": 10_000, "ended_at_ms": 40_000,
        "outcome": Outcome::Answered, "asked": "fix <the> build",
    }))
    .unwrap();
    Picture {
        runs: vec![
            OpenRun {
                thread: thread("C1"),
                turn: "slack_T1_C1_1.1".into(),
                state: "Waiting for a decision",
                since_ms: 100_000,
                asks: vec!["Allow bash: rm -rf <x>?".to_owned()],
            },
            OpenRun {
                thread: thread("D1"),
                turn: "slack_T1_D1_1.1".into(),
                state: "Stopping",
                since_ms: 190_000,
                asks: Vec::new(),
            },
        ],
        ended: vec![(thread("C2"), entry)],
        spending: vec!["This place, this month: ▓▓▓▓░░░░░░ $123.40 of $300.00".to_owned()],
        defaults: Selection { repo: Some("acme/api".to_owned()), ..Selection::default() },
        manages: false,
        notice: None,
        now_ms: 220_000,
    }
}

/// The text that a person reads, one line per block; buttons in brackets.
fn read(view: &Value) -> String {
    let element = |one: &Value| match one["type"].as_str().unwrap() {
        "button" => format!("[{}]", one["text"]["text"].as_str().unwrap()),
        "external_select" => format!("[{} ▾]", one["placeholder"]["text"].as_str().unwrap()),
        other => panic!("{other}"),
    };
    let block = |block: &Value| match block["type"].as_str().unwrap() {
        "header" => format!("# {}", block["text"]["text"].as_str().unwrap()),
        "section" => {
            let accessory = block.get("accessory").map(element);
            let text = block["text"]["text"].as_str().unwrap().to_owned();
            [Some(text), accessory].into_iter().flatten().collect::<Vec<_>>().join(" ")
        }
        "context" => format!("({})", block["elements"][0]["text"].as_str().unwrap()),
        "actions" => {
            block["elements"].as_array().unwrap().iter().map(element).collect::<Vec<_>>().join(" ")
        }
        other => panic!("{other}"),
    };
    view["blocks"].as_array().unwrap().iter().map(block).collect::<Vec<_>>().join("\n")
}

#[test]
fn home_shows_runs_asks_and_defaults() {
    let view = render::home(&picture());
    assert_eq!(home_problems(&view), Vec::<String>::new());
    assert_eq!(
        read(&view),
        "# Your running tasks\n*Waiting for a decision* in <#C1>, for 2 min 0 s\n• Decide in its thread: Allow bash: rm \
-rf &lt;x&gt;? [Stop]\n*Stopping* in our direct message, for 30 s\n# Recently\n• answered 3 min 0 s ago, took 30 s: \
fix &lt;the&gt; build (in <#C2>)\n# Spending\nThis place, this month: ▓▓▓▓░░░░░░ $123.40 of $300.00\n# Defaults of this workspace\n*Repository:* `acme/api`\n*Model:* none; the \
operator's setting applies\n*Agent:* none; the operator's setting applies\n*Sandbox provider:* none; the operator's \
setting applies\n*Runtime:* none; the operator's setting applies\n*Pull requests:* none; they are opened as drafts\n\
*Pull requests by:* none; everyone who may use me may open them\n\
*Submodules:* none; they are left out\n\
*Review bots:* none; only people's reviews count\n\
(People who manage this workspace can change them here. For one task, write `repo:owner/name`, `model:provider/model`, `agent:plan`, `provider:name` or \
`runtime:native` before its text.)"
    );
}

#[test]
fn manager_home_offers_choices_and_hints() {
    let view = render::home(&Picture {
        manages: true,
        notice: Some("The default repository is now `acme/api`.".to_owned()),
        defaults: picture().defaults,
        ..Picture::default()
    });
    assert_eq!(home_problems(&view), Vec::<String>::new());
    let words = read(&view);
    assert!(
        words.starts_with("The default repository is now `acme/api`.\n# Your running tasks\nNone of your tasks is running. Mention Bobbin"),
        "{words}"
    );
    assert!(
        words.contains(
            "*Repository:* `acme/api`\n[Choose a default repository ▾] [Clear]\n*Model:* none"
        ),
        "{words}"
    );
    assert!(words.contains("[Choose how pull requests are opened ▾]"), "{words}");
    let closed = render::closed_home("You may not <use> it.");
    assert_eq!(home_problems(&closed), Vec::<String>::new());
    assert_eq!(read(&closed), "You may not &lt;use&gt; it.");
}

#[test]
fn fullest_home_fits_slack_limits() {
    let mut full = picture();
    full.manages = true;
    full.notice = Some("n<".repeat(4_000));
    full.runs[0].asks = vec!["<&>".repeat(2_000); 20];
    full.runs = vec![full.runs[0].clone(); 200];
    full.ended[0].1.asked = "&".repeat(1_000);
    full.ended = vec![full.ended[0].clone(); 100];
    full.defaults.model = Some("x".repeat(300));
    assert_eq!(home_problems(&render::home(&full)), Vec::<String>::new());
}

#[test]
fn overview_command_answers_in_words() {
    assert_eq!(
        render::overview_words(&picture()),
        "- Waiting for a decision, for 2 min 0 s.\n  - It asks in its thread: Allow bash: rm -rf <x>?\n- Stopping, for 30 s.\n\
         - answered 3 min 0 s ago, took 30 s: fix <the> build\n- This place, this month: ▓▓▓▓░░░░░░ $123.40 of $300.00\nIn a thread, `@Bobbin status` says more and `@Bobbin stop` ends the run."
    );
}

fn interaction(kind: &str, action: Value, by: &str, team: &str) -> Value {
    json!({"type": kind, "user": {"id": by, "name": "anna", "team_id": team}, "team": {"id": team}, "is_enterprise_install": false,
        "view": {"type": "home", "app_installed_team_id": "T1"}, "container": {"type": "view", "view_id": "V1"},
        "actions": [action], "action_id": action["action_id"], "value": "acme"})
}

fn pressed(payload: &Value, people: &str) -> Inbound {
    let form: String = form_urlencoded::Serializer::new(String::new())
        .append_pair("payload", &payload.to_string())
        .finish();
    signed("interactivity", form.as_bytes(), &app("T1", "", people))
}

fn overview(inbound: Inbound) -> Overview {
    match inbound.enqueue {
        Some(Body::Overview(overview)) => overview,
        other => panic!("no overview: {other:?}"),
    }
}

#[test]
fn every_home_element_handles_presses() {
    let view = render::home(&Picture { manages: true, ..picture() });
    let mut understood = Vec::new();
    for block in view["blocks"].as_array().unwrap() {
        let elements = block["elements"].as_array().into_iter().flatten();
        for element in elements.chain(block.get("accessory")) {
            if !element["action_id"].is_string() {
                continue;
            }
            let mut action = element.clone();
            action["selected_option"] = json!({"value": "acme/api"});
            action["action_ts"] = "1790000300.000100".into();
            let taken = pressed(&interaction("block_actions", action, "U1", "T1"), "");
            understood.push(taken.note);
        }
    }
    let mut expected = vec!["config"; understood.len()];
    expected[0] = "stop";
    assert_eq!((understood.len(), understood), (11, expected));
}

#[test]
fn home_stop_targets_the_runs_thread() {
    let view = render::home(&picture());
    let button = view["blocks"][1]["accessory"].clone();
    let Some(Body::Control(control)) =
        pressed(&interaction("block_actions", button, "U1", "T1"), "").enqueue
    else {
        panic!("no control")
    };
    let turn = Some("slack_T1_C1_1.1".into());
    assert_eq!((control.thread, control.want), (thread("C1"), ControlAction::Stop { turn }));
    assert_eq!(
        control.reply,
        Reply::Slack {
            channel: "C1".to_owned(),
            thread_ts: Some("1790000000.000100".to_owned()),
            user: "U1".to_owned()
        }
    );
}

#[test]
fn home_choice_needs_access() {
    let choice = json!({"type": "external_select", "action_id": "v1:default:agent", "action_ts": "1.1", "selected_option": {"value": "plan"}});
    let chosen = overview(pressed(&interaction("block_actions", choice.clone(), "U1", "T1"), ""));
    assert_eq!(
        (chosen.place, chosen.refused, chosen.change),
        (
            Surface::Home,
            None,
            Some(SettingsChange::Default {
                channel: None,
                of: DefaultKind::Agent,
                value: Some("plan".to_owned())
            })
        )
    );
    let stranger =
        overview(pressed(&interaction("block_actions", choice.clone(), "U1", "T1"), "U2"));
    assert!(stranger.refused.is_some() && stranger.change.is_none());
    let external = overview(pressed(&interaction("block_actions", choice, "U9", "T9"), ""));
    assert!(external.refused.is_some() && external.change.is_none());
}

#[test]
fn only_opened_home_tab_is_drawn() {
    let event = |tab: &str, team: &str| {
        let body = json!({"type": "event_callback", "team_id": team,
            "event": {"type": "app_home_opened", "user": "U1", "channel": "D1", "tab": tab, "event_ts": "1.1"},
            "authorizations": [{"team_id": team, "user_id": "UBOT", "is_bot": true}]});
        signed("events", body.to_string().as_bytes(), &app("T1", "C7", ""))
    };
    // The list of channels does not apply: a Home belongs to none.
    assert_eq!(overview(event("home", "T1")).refused, None);
    assert_eq!(event("messages", "T1").enqueue, None);
    assert_eq!(event("home", "T2").enqueue, None);
}

#[test]
fn suggestions_are_typed_or_known_values() {
    let payload =
        interaction("block_suggestion", json!({"action_id": "v1:default:repo"}), "U1", "T1");
    let inbound = pressed(&payload, "");
    let lookup = inbound.lookup.unwrap();
    assert_eq!(
        (lookup.tenant.as_str(), lookup.sought, lookup.typed.as_str()),
        ("slack:T1", SuggestionKind::Choice(DefaultKind::Repo), "acme")
    );
    assert_eq!(pressed(&payload, "U2").lookup, None);
    let lookup = |typed: &str| Lookup { typed: typed.to_owned(), ..lookup.clone() };
    let mut catalogue = Catalogue::default();
    catalogue.recent.repos = vec!["acme/api".to_owned(), "x".repeat(151)];
    let values = |typed: &str, settings: &Settings| -> Vec<String> {
        let answer = suggested(&lookup(typed), settings, &catalogue);
        let body: Value = serde_json::from_str(&answer.body).unwrap();
        let options = body["options"].as_array().unwrap();
        let value = |one: &Value| one["value"].as_str().unwrap().to_owned();
        options.iter().map(value).collect()
    };
    let open = Settings::default();
    assert_eq!(values("", &open), ["acme/api"]);
    assert_eq!(values("acme", &open), ["acme/api"]);
    assert_eq!(values("acme/app", &open), ["acme/app"]);
    let closed = Settings { open_to: ["U2".to_owned()].into(), ..Settings::default() };
    assert_eq!(values("", &closed), Vec::<String>::new());
    assert_eq!(values("acme/app", &closed), ["acme/app"]);
}
