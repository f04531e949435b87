//! The template: its alarms and dashboard use what the code writes, every alarm has a page, keys are where the code
//! looks for them, state outlives the stack, and the deployment asks for what matters.

use std::collections::{BTreeMap, BTreeSet};

use bobbin_core::base::limits::{CONTROL_DELIVERIES_MAX, DELIVERIES_MAX, IN_FLIGHT_MAX};
use bobbin_core::protocol::signals::{Alarm, DIMENSION, NAMESPACE, SignalKind, USED};
use bobbin_core::tenant::keys::Key;
use bobbin_core::tenant::overrides::Overrides;
use bobbin_tests::binaries::workspace;
use libtest_mimic::Trial;
use serde_yaml_ng::Value;

/// Where each count of Bobbin's own alarms is tested: event, file, test.
#[rustfmt::skip]
const COUNTED: [(&str, Alarm, &str, &str); 11] = [
    ("ingress.failed", Alarm::WorkDropped, "tests/suite/functions/mod.rs", "unqueued_request_is_counted"),
    ("control.dropped", Alarm::WorkDropped, "tests/suite/functions/mod.rs", "losses_and_table_failures_are_counted"),
    ("message.given_up", Alarm::WorkDropped, "tests/suite/functions/mod.rs", "losses_and_table_failures_are_counted"),
    ("turn.unposted", Alarm::WorkDropped, "tests/sim/tests/decide/steering.rs", "undelivered_end_is_signalled_once"),
    ("turn.lost", Alarm::WorkDropped, "shared/core/src/protocol/signals.rs", "ended_turn_is_signalled_once"),
    ("stack.budget_spent", Alarm::WorkDropped, "shared/core/src/protocol/signals.rs", "only_the_stacks_exhausted_budget_wakes_the_operator"),
    ("table.failed", Alarm::ServiceAway, "tests/suite/functions/mod.rs", "losses_and_table_failures_are_counted"),
    ("chat.outage.began", Alarm::ServiceAway, "tests/sim/tests/decide/outages.rs", "chat_outage_is_signalled_once"),
    ("provider.breaker.opened", Alarm::ServiceAway, "shared/cloud/tests/cloud/breakers.rs", "workers_share_one_breaker"),
    ("account.other", Alarm::ServiceAway, "tests/suite/security/keys.rs", "foreign_account_key_touches_no_sandbox"),
    ("turn.failed", Alarm::TurnFailed, "shared/core/src/protocol/signals.rs", "ended_turn_is_signalled_once"),
];

pub fn trials() -> Vec<Trial> {
    vec![
        Trial::test("deployment::alarms_cover_exactly_written_metrics", || {
            let written: BTreeSet<&str> = Alarm::ALL.iter().map(|it| it.metric()).collect();
            let all = alarms();
            let own = all.iter().filter(|(_, alarm)| alarm["Namespace"] == NAMESPACE);
            let looked_at: BTreeSet<&str> = own
                .map(|(_, alarm)| {
                    assert_eq!(alarm["Dimensions"][0]["Name"], DIMENSION);
                    alarm["MetricName"].as_str().unwrap()
                })
                .collect();
            assert_eq!(looked_at, written);
            Ok(())
        }),
        Trial::test("deployment::in_flight_alarm_precedes_the_limit", || {
            let all = alarms();
            let (_, alarm) = all.iter().find(|(id, _)| id == "MessagesInFlight").unwrap();
            assert_eq!(alarm["MetricName"], "ApproximateNumberOfMessagesNotVisible");
            let named = &alarm["Dimensions"][0]["Value"];
            assert_eq!(tagged(named), "Messages.QueueName");
            let threshold = alarm["Threshold"].as_u64().unwrap();
            assert!(2 * threshold <= IN_FLIGHT_MAX, "{threshold}");
            let about = alarm["AlarmDescription"].as_str().unwrap();
            assert!(about.contains("(120,000)"), "{about}");
            Ok(())
        }),
        Trial::test("deployment::queue_redrive_counts_match_code", || {
            let template = template();
            for (queue, bound) in
                [("Messages", DELIVERIES_MAX), ("Control", CONTROL_DELIVERIES_MAX)]
            {
                let policy = &template["Resources"][queue]["Properties"]["RedrivePolicy"];
                let most = policy["maxReceiveCount"].as_u64();
                assert_eq!(most, Some(bound.into()), "{queue}");
            }
            Ok(())
        }),
        Trial::test("deployment::every_alarm_event_has_a_test", || {
            let runbook = std::fs::read_to_string(workspace().join("docs/RUNBOOK.md")).unwrap();
            for kind in SignalKind::ALL {
                let listed = COUNTED.iter().find(|(event, ..)| *event == kind.name());
                assert_eq!(listed.map(|it| it.1), kind.alarm(), "{}", kind.name());
            }
            for (event, alarm, file, test) in COUNTED {
                let text = std::fs::read_to_string(workspace().join(file)).unwrap();
                assert!(text.contains(test), "{file} has no {test}");
                let all = alarms();
                let (id, _) =
                    all.iter().find(|(_, one)| one["MetricName"] == alarm.metric()).unwrap();
                let page = page(&runbook, id);
                assert!(page.contains(&format!("`{event}`")), "{id}: {event}");
            }
            Ok(())
        }),
        Trial::test("deployment::functions_depend_on_one_crypto_only", || {
            let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
            for function in ["ingress", "worker", "sweeper", "tools"] {
                let told = std::process::Command::new(&cargo)
                    .current_dir(workspace())
                    .args(["tree", "--offline", "--edges", "normal", "--prefix", "none"])
                    .args(["--package", &format!("bobbin-{function}")])
                    .output()
                    .unwrap();
                let tree = String::from_utf8(told.stdout).unwrap();
                assert!(tree.contains("\nbobbin-cloud "), "{told:?}", told = told.stderr);
                let links =
                    |name: &str| tree.lines().any(|line| line.starts_with(&format!("{name} ")));
                for named in [
                    "lambda_runtime",
                    "lambda_http",
                    "aws-sdk-dynamodb",
                    "aws-sdk-sqs",
                    "aws-sdk-scheduler",
                    "aws-sdk-secretsmanager",
                    "ring",
                ] {
                    assert!(links(named), "{function} does not link {named}");
                }
                // They would cost a cold start missing files and a second library of cryptography.
                for kept_out in ["aws-config", "aws-lc-rs", "aws-lc-sys", "openssl", "native-tls"] {
                    assert!(!links(kept_out), "{function} links {kept_out}");
                }
            }
            Ok(())
        }),
        Trial::test("deployment::dashboard_queries_only_known_events", || {
            let known: BTreeSet<&str> = SignalKind::ALL.iter().map(|kind| kind.name()).collect();
            let others = [
                USED,
                "message.given_up",
                "control.dropped",
                "table.failed",
                "provider.breaker.opened",
            ];
            let mut asked = BTreeSet::new();
            for widget in widgets() {
                let properties = &widget["properties"];
                if widget["type"] == "metric" {
                    let metrics = properties["metrics"].as_array().unwrap();
                    // They are Amazon's own and cost nothing.
                    assert!(metrics.iter().all(|it| it[0].as_str().unwrap().starts_with("AWS/")));
                    continue;
                }
                let query = properties["query"].as_str().unwrap();
                assert!(query.starts_with("SOURCE '${WorkerLogs}' | filter event "), "{query}");
                let quoted = query.split('\'').skip(3).step_by(2);
                asked.extend(quoted.filter(|word| !word.ends_with('.')).map(str::to_owned));
            }
            let unknown: Vec<_> = asked
                .iter()
                .filter(|event| !known.contains(&***event) && !others.contains(&&***event))
                .collect();
            assert!(unknown.is_empty(), "{unknown:?} are written nowhere");
            for needed in ["turn.answered", "turn.failed", "sandbox.create.ready", USED] {
                assert!(asked.contains(needed), "{needed} is not shown");
            }
            Ok(())
        }),
        Trial::test("deployment::alarms_reach_topic_and_runbook", || {
            let runbook = std::fs::read_to_string(workspace().join("docs/RUNBOOK.md")).unwrap();
            let alarms = alarms();
            for (id, alarm) in &alarms {
                let about = alarm["AlarmDescription"].as_str().unwrap();
                assert!(about.ends_with(&format!("See docs/RUNBOOK.md, {id}.")), "{about}");
                assert_eq!(tagged(&alarm["AlarmActions"][0]), "Alarms", "{id}");
                let page = page(&runbook, id);
                for part in ["**What it means.**", "**Look at.**", "**Do.**", "```"] {
                    assert!(page.contains(part), "the page of {id} has no {part}");
                }
            }
            let pages = runbook.matches("\n## ").count();
            assert!(pages >= alarms.len(), "{pages} pages");
            Ok(())
        }),
        Trial::test("deployment::secrets_start_empty_without_parameters", || {
            secrets_are_made_empty();
            Ok(())
        }),
        Trial::test("deployment::functions_know_only_readable_secrets", || {
            told_of_what_may_be_read();
            Ok(())
        }),
        Trial::test("deployment::stateful_resources_outlive_the_stack", || {
            for (id, resource) in &resources() {
                let kind = resource["Type"].as_str().unwrap();
                let queue = ["Messages", "MessagesDead"].contains(&id.as_str());
                let stateful = kind == "AWS::DynamoDB::Table"
                    || kind == "AWS::SecretsManager::Secret"
                    || kind == "AWS::KMS::Key"
                    || queue;
                // A failed first deployment deletes what it made: nobody has put anything into it.
                for (policy, kept) in
                    [("DeletionPolicy", "RetainExceptOnCreate"), ("UpdateReplacePolicy", "Retain")]
                {
                    let said = resource[policy].as_str();
                    assert_eq!(said, stateful.then_some(kept), "{id}: {policy}");
                }
            }
            Ok(())
        }),
        Trial::test("deployment::parameters_are_described_grouped_and_keyless", || {
            parameters_are_asked_well();
            Ok(())
        }),
        Trial::test("deployment::every_override_is_documented", || {
            let page = workspace().join("docs/appendix/OVERRIDES.md");
            let page = std::fs::read_to_string(page).unwrap();
            let all = serde_json::to_value(Overrides::default()).unwrap();
            for name in all.as_object().unwrap().keys() {
                assert!(page.contains(&format!("| `{name}` |")), "{name}");
            }
            Ok(())
        }),
        Trial::test("deployment::sam_finds_every_function_binary", || {
            for (id, function) in functions() {
                let folder = function["Properties"]["CodeUri"].as_str().unwrap();
                let manifest = workspace().join(folder).join("Cargo.toml");
                let manifest = std::fs::read_to_string(manifest).unwrap();
                let build = &function["Metadata"];
                assert_eq!(build["BuildMethod"], "rust-cargolambda", "{id}");
                let binary = build["BuildProperties"]["Binary"].as_str().unwrap();
                let declared = format!("[[bin]]\nname = \"{binary}\"");
                assert!(manifest.contains(&declared), "{id}: {folder}");
            }
            Ok(())
        }),
    ]
}

/// The resources by logical id.
fn resources() -> Vec<(String, Value)> {
    let template = template();
    let all = template["Resources"].as_mapping().unwrap().clone();
    all.into_iter().map(|(id, one)| (id.as_str().unwrap().to_owned(), one)).collect()
}

fn functions() -> Vec<(String, Value)> {
    let all = resources().into_iter();
    let all: Vec<_> = all.filter(|(_, one)| one["Type"] == "AWS::Serverless::Function").collect();
    assert_eq!(all.len(), 4);
    all
}

/// Any change of a secret's properties could overwrite its value, so they must stay as they were from the start.
fn secrets_are_made_empty() {
    let expected: BTreeSet<&str> = Key::ALL.iter().map(|key| key.secret()).collect();
    let all = resources();
    let secrets: BTreeMap<&str, &Value> = all
        .iter()
        .filter(|(_, one)| one["Type"] == "AWS::SecretsManager::Secret")
        .map(|(id, one)| (id.as_str(), &one["Properties"]))
        .collect();
    let made: BTreeSet<&str> = secrets.keys().copied().collect();
    assert_eq!(made, expected);
    for (id, properties) in &secrets {
        let names: Vec<&str> =
            properties.as_mapping().unwrap().keys().map(|name| name.as_str().unwrap()).collect();
        let about = properties["Description"].as_str().unwrap();
        for key in Key::ALL.iter().filter(|key| key.secret() == *id) {
            assert!(about.contains(key.name()), "{id}: {about}");
        }
        if *id == Key::StackKey.secret() {
            assert_eq!(names, ["Description", "GenerateSecretString"]);
            let generate: Value = serde_yaml_ng::from_str(
                "{SecretStringTemplate: '{}', GenerateStringKey: stack_key, PasswordLength: 48, ExcludePunctuation: true}",
            )
            .unwrap();
            assert_eq!(properties["GenerateSecretString"], generate);
        } else {
            assert_eq!(names, ["Description", "SecretString"], "{id}");
            assert_eq!(properties["SecretString"], "{}", "{id}");
        }
    }
    let outputs = &template()["Outputs"];
    for (id, output) in [
        ("IngressSecret", "IngressSecretArn"),
        ("WorkerSecret", "WorkerSecretArn"),
        ("ProviderSecret", "ProviderSecretArn"),
        ("StackKey", "StackKeyArn"),
    ] {
        assert_eq!(tagged(&outputs[output]["Value"]), format!("{id}.Id"));
    }
}

fn told_of_what_may_be_read() {
    let all = resources();
    for (id, function) in functions() {
        let variables = function["Properties"]["Environment"]["Variables"].clone();
        let told: BTreeSet<String> = variables
            .as_mapping()
            .unwrap()
            .iter()
            .filter(|(name, _)| {
                let name = name.as_str().unwrap();
                name.ends_with("_SECRET_ID") || name == "STACK_KEY_ID"
            })
            .map(|(_, value)| tagged(value))
            .collect();
        let role = tagged(&function["Properties"]["Role"]);
        let role = role.split('.').next().unwrap();
        let (_, role) = all.iter().find(|(one, _)| one == role).unwrap();
        let statements = &role["Properties"]["Policies"][0]["PolicyDocument"]["Statement"];
        let mut may = BTreeSet::new();
        for statement in statements.as_sequence().unwrap() {
            if statement["Action"] == "secretsmanager:GetSecretValue" {
                match &statement["Resource"] {
                    Value::Sequence(many) => may.extend(many.iter().map(tagged)),
                    one => {
                        may.insert(tagged(one));
                    }
                }
            }
        }
        assert!(!may.is_empty(), "{id}");
        assert_eq!(told, may, "{id}");
    }
    let globals = &template()["Globals"]["Function"]["Environment"]["Variables"];
    for name in globals.as_mapping().unwrap().keys() {
        assert!(!name.as_str().unwrap().contains("SECRET"), "{name:?}");
    }
}

fn parameters_are_asked_well() {
    let template = template();
    let declared: Vec<String> = template["Parameters"]
        .as_mapping()
        .unwrap()
        .iter()
        .map(|(name, parameter)| {
            let name = name.as_str().unwrap();
            let about = parameter["Description"].as_str().unwrap_or_default();
            assert!(about.len() > 20, "{name}: {about}");
            assert!(parameter["NoEcho"].is_null(), "{name}: keys are stored");
            assert!(!parameter["Default"].is_null(), "{name} has no default");
            let checked = !parameter["AllowedPattern"].is_null();
            let told = !parameter["ConstraintDescription"].is_null();
            assert!(!checked || told, "{name}: a refusal says nothing");
            name.to_owned()
        })
        .collect();
    let groups = &template["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"];
    let mut grouped: Vec<String> = Vec::new();
    for group in groups.as_sequence().unwrap() {
        let names = group["Parameters"].as_sequence().unwrap();
        grouped.extend(names.iter().map(|name| name.as_str().unwrap().to_owned()));
    }
    assert_eq!(grouped, declared.clone(), "in the order of the groups");
    assert!(declared.len() <= 19, "{} questions", declared.len());
}

/// The page of an alarm.
fn page<'a>(runbook: &'a str, id: &str) -> &'a str {
    let mut pages = runbook.split("\n## ");
    let page = pages.find(|page| page.starts_with(&format!("{id}\n")));
    page.unwrap_or_else(|| panic!("{id} has no page"))
}

fn template() -> Value {
    let text = std::fs::read_to_string(workspace().join("template.yaml")).unwrap();
    serde_yaml_ng::from_str(&text).unwrap()
}

/// The alarms by logical id, with their properties.
fn alarms() -> Vec<(String, Value)> {
    let template = template();
    let resources = template["Resources"].as_mapping().unwrap();
    let alarms: Vec<_> = resources
        .iter()
        .filter(|(_, one)| one["Type"] == "AWS::CloudWatch::Alarm")
        .map(|(id, one)| (id.as_str().unwrap().to_owned(), one["Properties"].clone()))
        .collect();
    assert!(alarms.len() >= 8, "the template has only {} alarms", alarms.len());
    alarms
}

fn widgets() -> Vec<serde_json::Value> {
    let body = tagged(&template()["Resources"]["Dashboard"]["Properties"]["DashboardBody"]);
    let body: serde_json::Value = serde_json::from_str(&body).unwrap();
    body["widgets"].as_array().unwrap().clone()
}

/// The meaning of a short tag such as `!Ref`.
fn tagged(value: &Value) -> String {
    match value {
        Value::Tagged(tagged) => tagged.value.as_str().unwrap().to_owned(),
        other => panic!("{other:?} has no tag"),
    }
}
