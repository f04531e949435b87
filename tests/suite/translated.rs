//! The template as `CloudFormation` gets it: AWS's own transform and linter accept it, two stacks fit into one account,
//! a first deployment can be undone, and no kind of work can take another's concurrency.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use bobbin_tests::binaries::workspace;
use bobbin_tests::tools;
use libtest_mimic::Trial;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// Lambda keeps this many executions of an account for functions without a reservation.
const UNRESERVED_MIN: u64 = 100;
/// Lambda's limits for a queue mapping's concurrency.
const MAPPING: std::ops::RangeInclusive<u64> = 2..=1000;

pub fn trials() -> Vec<Trial> {
    vec![
        Trial::test("translated::sam_validate_with_lint_finds_nothing", || {
            let findings: Vec<String> = template().findings.clone();
            assert_eq!(findings, Vec::<String>::new());
            let wrong = source().replace("ApplicationLogLevel:", "ApplicationLogLevels:");
            let findings = translate(&wrong)?.findings;
            assert!(!findings.is_empty(), "the linter does not look");
            Ok(())
        }),
        Trial::test("translated::resource_names_never_clash_between_stacks", || {
            assert_eq!(fixed_names(&template().translated), Vec::<String>::new());
            let named_by_sam = translate(&source().replace("OmitName: true", ""))?.translated;
            assert_eq!(fixed_names(&named_by_sam), [r#"SweeperTick: Name is "SweeperTick""#]);
            let mut clashing = template().translated.clone();
            clashing["Resources"]["Dashboard"]["Properties"]["DashboardName"] =
                json!({"Ref": "AWS::StackName"});
            assert_eq!(fixed_names(&clashing).len(), 1);
            Ok(())
        }),
        Trial::test("translated::failed_first_deployment_leaves_nothing", || {
            let at_first = parameters(&[]);
            for (id, resource) in resources() {
                assert_ne!(resource["DeletionPolicy"], "Retain", "{id}");
                let protected = &resource["Properties"]["DeletionProtectionEnabled"];
                if !protected.is_null() {
                    assert_eq!(resolve(protected, &at_first), Some(json!(false)), "{id}");
                }
            }
            let protection = &resources()["Table"]["Properties"]["DeletionProtectionEnabled"];
            let later = parameters(&[("ProtectTable", "yes")]);
            assert_eq!(resolve(protection, &later), Some(json!(true)));
            Ok(())
        }),
        Trial::test("translated::every_log_level_reaches_cloudwatch", || {
            for (word, level) in
                [("info", "INFO"), ("full", "INFO"), ("debug", "DEBUG"), ("trace", "TRACE")]
            {
                assert!(allowed("Observability").contains(&json!(word)));
                let chosen = parameters(&[("Observability", word)]);
                for (id, function) in functions() {
                    let logging = &function["Properties"]["LoggingConfig"];
                    assert_eq!(logging["LogFormat"], "JSON", "{id}");
                    let application = resolve(&logging["ApplicationLogLevel"], &chosen);
                    assert_eq!(application, Some(json!(level)), "{id}");
                    let system = resolve(&logging["SystemLogLevel"], &chosen).unwrap();
                    let known = ["DEBUG", "INFO", "WARN"];
                    assert!(known.contains(&system.as_str().unwrap()), "{id}: {system}");
                    let own = &function["Properties"]["Environment"]["Variables"]["LOG_LEVEL"];
                    let own = resolve(own, &chosen).unwrap();
                    assert_eq!(own, json!(level.to_lowercase()), "{id}");
                }
            }
            assert_eq!(allowed("Observability").len(), 4);
            Ok(())
        }),
        Trial::test("translated::traces_and_dashboard_are_opt_in", || {
            assert_eq!(resources()["Dashboard"]["Condition"], "IsObserved");
            let condition = &template().translated["Conditions"]["IsObserved"];
            for (word, mode) in [("info", "PassThrough"), ("full", "Active")] {
                let chosen = parameters(&[("Observability", word)]);
                assert_eq!(holds(condition, &chosen), word == "full");
                for (id, function) in functions() {
                    let traced = &function["Properties"]["TracingConfig"]["Mode"];
                    assert_eq!(resolve(traced, &chosen), Some(json!(mode)), "{id}");
                }
            }
            let default = &template().translated["Parameters"]["Observability"]["Default"];
            assert_eq!(default, "info");
            Ok(())
        }),
        Trial::test("translated::default_share_fits_new_accounts", || {
            let share = share(10);
            assert_eq!(resolved_default("Concurrency"), 10);
            assert_eq!(share.reserved, BTreeMap::new(), "there is nothing to reserve");
            Ok(())
        }),
        Trial::test("translated::every_share_leaves_each_lane_room", || {
            let mut before: Option<Share> = None;
            for count in allowed("Concurrency") {
                let count = count.as_u64().unwrap();
                let share = share(count);
                fits(count, &share);
                if let Some(before) = before {
                    for (lane, most) in &before.mappings {
                        assert!(share.mappings[lane] >= *most, "{lane} at {count}");
                    }
                }
                before = Some(share);
            }
            Ok(())
        }),
        Trial::test("translated::readme_says_what_each_share_gives", || {
            let page = std::fs::read_to_string(workspace().join("docs/PRODUCTION.md")).unwrap();
            for count in allowed("Concurrency") {
                let count = count.as_u64().unwrap();
                let share = share(count);
                let ingress = match share.reserved.get("Ingress") {
                    Some(reserved) => format!("{reserved}, reserved"),
                    None => format!("what is left, {} at least", count - share.running() - 1),
                };
                let line = format!(
                    "| {count} | {} | {} | {ingress} |",
                    share.mappings["WorkerMessages"], share.mappings["WorkerControl"]
                );
                assert!(page.contains(&line), "docs/PRODUCTION.md has no line {line}");
            }
            Ok(())
        }),
    ]
}

/// What AWS's libraries report about a template.
#[derive(Debug, Deserialize)]
struct Translation {
    findings: Vec<String>,
    translated: Value,
}

fn source() -> String {
    std::fs::read_to_string(workspace().join("template.yaml")).unwrap()
}

/// The project's template, translated once.
fn template() -> &'static Translation {
    static TEMPLATE: OnceLock<Translation> = OnceLock::new();
    TEMPLATE.get_or_init(|| translate(&source()).unwrap())
}

fn translate(text: &str) -> Result<Translation, String> {
    let programs = tools::python("cfn-lint", &workspace().join("tests/template/requirements.txt"))?;
    let mut script = Command::new(programs.join("python"))
        .arg(workspace().join("tests/template/translate.py"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    let mut stdin = script.stdin.take().ok_or("no standard input")?;
    // The script reads all of it before it writes anything.
    stdin.write_all(text.as_bytes()).map_err(|error| error.to_string())?;
    drop(stdin);
    let told = script.wait_with_output().map_err(|error| error.to_string())?;
    if !told.status.success() {
        return Err(format!("translate.py ended with {}", told.status));
    }
    serde_json::from_slice(&told.stdout).map_err(|error| error.to_string())
}

fn resources() -> &'static Map<String, Value> {
    template().translated["Resources"].as_object().unwrap()
}

fn of_type(kind: &str) -> Vec<(&'static String, &'static Value)> {
    let all = resources().iter();
    all.filter(|(_, one)| one["Type"] == kind).collect()
}

fn functions() -> Vec<(&'static String, &'static Value)> {
    let functions = of_type("AWS::Lambda::Function");
    let names: Vec<&str> = functions.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(names, ["Ingress", "Sweeper", "Tools", "Worker"], "in another order, or more");
    functions
}

/// Names of resources that are the same in every stack, as `logical id: property is value`.
fn fixed_names(translated: &Value) -> Vec<String> {
    let resources = translated["Resources"].as_object().unwrap();
    let mut fixed = Vec::new();
    for (id, resource) in resources {
        let everywhere = resource["Type"] == "AWS::CloudWatch::Dashboard";
        // A policy's name within a role, which is the stack's own: it has no meaning outside.
        let within_role = resource["Type"] == "AWS::IAM::Policy";
        for (name, value) in resource["Properties"].as_object().into_iter().flatten() {
            // A metric's name says what is measured, not what the alarm is called.
            if !name.ends_with("Name") || name == "MetricName" || within_role {
                continue;
            }
            let text = value.to_string();
            let of_stack = text.contains("AWS::StackName");
            let of_region = !everywhere || text.contains("AWS::Region");
            let of_resource =
                value["Ref"].as_str().is_some_and(|other| resources.contains_key(other));
            let is_own = of_resource || of_stack && of_region;
            if !is_own {
                fixed.push(format!("{id}: {name} is {value}"));
            }
        }
    }
    fixed
}

fn allowed(parameter: &str) -> Vec<Value> {
    let declared = &template().translated["Parameters"][parameter];
    let allowed = declared["AllowedValues"].as_array().unwrap().clone();
    assert!(allowed.len() >= 2);
    allowed
}

fn resolved_default(parameter: &str) -> u64 {
    template().translated["Parameters"][parameter]["Default"].as_u64().unwrap()
}

/// The parameters as texts, with defaults for the others.
fn parameters(chosen: &[(&str, &str)]) -> BTreeMap<String, String> {
    let declared = template().translated["Parameters"].as_object().unwrap();
    let mut all: BTreeMap<String, String> =
        declared.iter().map(|(name, one)| (name.clone(), plain(&one["Default"]))).collect();
    for (name, value) in chosen {
        let before = all.insert((*name).to_owned(), (*value).to_owned());
        assert!(before.is_some(), "{name} is no parameter");
    }
    all
}

fn plain(value: &Value) -> String {
    value.as_str().map_or(value.to_string(), str::to_owned)
}

/// A value of the translated template, resolved; `None`: the property is left out.
fn resolve(value: &Value, parameters: &BTreeMap<String, String>) -> Option<Value> {
    if let Some(name) = value["Ref"].as_str() {
        return match name {
            "AWS::NoValue" => None,
            name => Some(json!(parameters[name])),
        };
    }
    if let Some(keys) = value["Fn::FindInMap"].as_array() {
        let keys: Vec<String> =
            keys.iter().map(|key| plain(&resolve(key, parameters).unwrap())).collect();
        let found = &template().translated["Mappings"][&keys[0]][&keys[1]][&keys[2]];
        assert!(!found.is_null(), "{keys:?}");
        return Some(found.clone());
    }
    if let Some(parts) = value["Fn::If"].as_array() {
        let condition = &template().translated["Conditions"][parts[0].as_str().unwrap()];
        let branch = if holds(condition, parameters) { 1 } else { 2 };
        return resolve(&parts[branch], parameters);
    }
    assert!(!value.is_object(), "{value} is not understood here");
    Some(value.clone())
}

fn holds(condition: &Value, parameters: &BTreeMap<String, String>) -> bool {
    let (name, parts) = condition.as_object().unwrap().iter().next().unwrap();
    let parts = parts.as_array().unwrap();
    match name.as_str() {
        "Fn::Not" => !holds(&parts[0], parameters),
        "Fn::Or" => parts.iter().any(|part| holds(part, parameters)),
        "Fn::Equals" => {
            let side = |part| plain(&resolve(part, parameters).unwrap());
            side(&parts[0]) == side(&parts[1])
        }
        other => panic!("{other} is not understood here"),
    }
}

/// The parts of a share of the account's limit.
struct Share {
    /// Most executions of the worker for each of its queues, by the mapping's logical id.
    mappings: BTreeMap<String, u64>,
    /// Reserved executions by function.
    reserved: BTreeMap<String, u64>,
}

impl Share {
    /// Most executions of the worker at once.
    fn running(&self) -> u64 {
        self.mappings.values().sum()
    }
}

fn share(count: u64) -> Share {
    let chosen = parameters(&[("Concurrency", &count.to_string())]);
    let mappings: BTreeMap<String, u64> = of_type("AWS::Lambda::EventSourceMapping")
        .into_iter()
        .map(|(id, mapping)| {
            let properties = &mapping["Properties"];
            assert_eq!(properties["FunctionName"]["Ref"], "Worker", "{id}");
            let most = &properties["ScalingConfig"]["MaximumConcurrency"];
            assert!(!most.is_null(), "{id} has no bound of its own");
            let most = resolve(most, &chosen).unwrap().as_u64().unwrap();
            (id.clone(), most)
        })
        .collect();
    assert_eq!(mappings.len(), 2, "no mapping polls a queue of dead letters");
    let reserved = functions()
        .into_iter()
        .filter_map(|(id, function)| {
            let reserved = &function["Properties"]["ReservedConcurrentExecutions"];
            let reserved = Some(reserved).filter(|reserved| !reserved.is_null())?;
            Some((id.clone(), resolve(reserved, &chosen)?.as_u64().unwrap()))
        })
        .collect();
    Share { mappings, reserved }
}

/// All mappings at their limits at once still fit, and Lambda accepts the numbers.
fn fits(count: u64, share: &Share) {
    for (lane, most) in &share.mappings {
        assert!(MAPPING.contains(most), "{lane} of {count}: {most}");
    }
    if share.reserved.is_empty() {
        // One for the sweeper, and one at least for ingress.
        let together = share.running() + 1 + 1;
        assert!(together <= count, "{together} of {count}");
        return;
    }
    // The tools use what is left of the account: then ingress and worker do not depend on it.
    assert_eq!(
        share.reserved.keys().collect::<Vec<_>>(),
        ["Ingress", "Sweeper", "Worker"],
        "all of them reserve or none, at {count}"
    );
    let reserved: u64 = share.reserved.values().sum();
    assert!(reserved + UNRESERVED_MIN <= count, "{reserved} reserved of {count}");
    // The worker's reservation covers all its mappings at once, so a full one leaves the others theirs.
    assert!(share.running() <= share.reserved["Worker"], "at {count}");
    assert!(share.reserved["Ingress"] >= 10, "at {count}");
    // A late tick may still run when the next begins.
    assert_eq!(share.reserved["Sweeper"], 2, "at {count}");
}
