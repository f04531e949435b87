//! The template's alarms and dashboard: they look at what the code writes, and a person who is woken finds a page.

use std::collections::BTreeSet;

use bobbin_core::signals::{COST, DIMENSION, Kind, NAMESPACE, OTHERS, TOKENS};
use bobbin_tests::binaries::workspace;
use libtest_mimic::Trial;
use serde_yaml_ng::Value;

pub fn trials() -> Vec<Trial> {
    vec![
        Trial::test(
            "deployment::alarms_look_at_metrics_that_the_code_writes",
            || {
                let known = written();
                let asked: BTreeSet<String> = alarms()
                    .iter()
                    .filter(|(_, alarm)| alarm["Namespace"] == NAMESPACE)
                    .map(|(_, alarm)| {
                        assert_eq!(alarm["Dimensions"][0]["Name"], DIMENSION);
                        alarm["MetricName"].as_str().unwrap().to_owned()
                    })
                    .collect();
                assert!(asked.len() >= 5, "{asked:?}");
                let unknown: Vec<_> = asked.difference(&known).collect();
                assert!(unknown.is_empty(), "{unknown:?} are written nowhere");
                Ok(())
            },
        ),
        Trial::test(
            "deployment::the_dashboard_shows_metrics_that_the_code_writes",
            || {
                let known = written();
                let mut shown = BTreeSet::new();
                for line in widgets() {
                    for metric in line["properties"]["metrics"].as_array().unwrap() {
                        if metric[0] == NAMESPACE {
                            assert_eq!(metric[2], DIMENSION, "{metric}");
                            shown.insert(metric[1].as_str().unwrap().to_owned());
                        }
                    }
                }
                let unknown: Vec<_> = shown.difference(&known).collect();
                assert!(unknown.is_empty(), "{unknown:?} are written nowhere");
                for needed in ["turn.answered", "turn.failed", "sandbox.create.ms", COST] {
                    assert!(shown.contains(needed), "{needed} is not shown");
                }
                Ok(())
            },
        ),
        Trial::test(
            "deployment::every_alarm_reaches_the_topic_and_has_a_page_in_the_runbook",
            || {
                let runbook = std::fs::read_to_string(workspace().join("docs/RUNBOOK.md")).unwrap();
                let alarms = alarms();
                for (id, alarm) in &alarms {
                    let about = alarm["AlarmDescription"].as_str().unwrap();
                    assert!(
                        about.ends_with(&format!("See docs/RUNBOOK.md, {id}.")),
                        "{about}"
                    );
                    assert_eq!(tagged(&alarm["AlarmActions"][0]), "Alarms", "{id}");
                    let page = runbook
                        .split("\n## ")
                        .find(|page| page.starts_with(&format!("{id}\n")))
                        .unwrap_or_else(|| panic!("{id} has no page"));
                    for part in ["**What it means.**", "**Look at.**", "**Do.**", "```"] {
                        assert!(page.contains(part), "the page of {id} has no {part}");
                    }
                }
                let pages = runbook.matches("\n## ").count();
                assert!(pages >= alarms.len(), "{pages} pages");
                Ok(())
            },
        ),
    ]
}

/// Every metric that some code writes.
fn written() -> BTreeSet<String> {
    let told = Kind::ALL.iter().map(|kind| kind.name());
    let took = Kind::ALL.iter().filter_map(|kind| kind.took());
    told.chain(took)
        .chain([TOKENS, COST])
        .chain(OTHERS)
        .map(str::to_owned)
        .collect()
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
    assert!(
        alarms.len() >= 8,
        "the template has only {} alarms",
        alarms.len()
    );
    alarms
}

fn widgets() -> Vec<serde_json::Value> {
    let body = tagged(&template()["Resources"]["Dashboard"]["Properties"]["DashboardBody"]);
    let body: serde_json::Value = serde_json::from_str(&body).unwrap();
    body["widgets"].as_array().unwrap().clone()
}

/// What stands behind a short tag such as `!Ref`.
fn tagged(value: &Value) -> String {
    match value {
        Value::Tagged(tagged) => tagged.value.as_str().unwrap().to_owned(),
        other => panic!("{other:?} has no tag"),
    }
}
