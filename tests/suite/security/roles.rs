//! The role matrix, on somebody else's AWS emulator with roles enforced: each function may do what `template.yaml`
//! allows, on the resources that it names, and is refused every other call of the important services. The template says
//! what is allowed; the SDK's own list of calls says what can be tried.

use std::collections::BTreeMap;

use bobbin_tests::binaries::workspace;
use bobbin_tests::ministack::{Cell, Emulator};
use bobbin_tests::ready::Ready;
use libtest_mimic::Trial;
use serde_json::json;
use serde_yaml_ng::Value;

use crate::run::beside;

/// Every service that a function calls, and those with which it could extend its permissions.
const SERVICES: [&str; 10] =
    ["dynamodb", "sqs", "secretsmanager", "kms", "scheduler", "lambda", "iam", "sts", "s3", "logs"];
/// Services for which a refused action proves nothing: ministack searches every schedule in the default group, whatever
/// its group, and does not recognise the ARN that it gives a log group.
const UNSEEN: [&str; 2] = ["scheduler:", "logs:"];
/// Actions that cannot be tried: calls that pass a role on need them, or ministack has no such service.
const UNTRIED: [&str; 2] = ["iam:PassRole", "xray:"];
/// Fewer cells than this would mean that the emulator no longer enforces something.
const CELLS_MIN: usize = 1_500;

pub fn trials() -> Vec<Trial> {
    vec![beside("ministack::security::roles_allow_exactly_the_template", || {
        matrix();
        Ok(())
    })]
}

/// One permission: an action on a resource, by its logical id.
type Permission = (String, String);

fn matrix() {
    let allowed = permissions(&template());
    let emulator = Emulator::start().unwrap();
    // Nobody is called: the functions stay idle, and the sweeper finds nothing.
    let nowhere = |path: &str| format!("http://127.0.0.1:9{path}");
    let ready = Ready {
        discord_api: nowhere("/discord/api/v10"),
        slack_api: nowhere("/slack/api"),
        daytona_api: nowhere("/api"),
        daytona_api_key: "unused".to_owned(),
        model_api: nowhere("/v1"),
        ..Ready::default()
    };
    emulator.deploy(&ready, &json!({})).unwrap();
    let roles: Vec<&str> = allowed.keys().map(String::as_str).collect();
    let tried = emulator.try_roles(&roles, &SERVICES).unwrap();
    let mut wrong = Vec::new();
    let mut granted: BTreeMap<&str, usize> = BTreeMap::new();
    for cell in &tried.cells {
        let may = is_allowed(&allowed[&cell.role], cell);
        if may {
            *granted.entry(&cell.role).or_default() += 1;
        }
        let somewhere = allowed[&cell.role].iter().any(|(action, _)| *action == cell.action);
        let unseen = somewhere && UNSEEN.iter().any(|one| cell.action.starts_with(one));
        if may == cell.refused && !unseen {
            wrong.push(format!(
                "{} {} on {}: {}, but {} ({})",
                cell.role,
                cell.action,
                cell.resource,
                if may { "the template allows it" } else { "nothing allows it" },
                if cell.refused { "it was refused" } else { "it was not refused" },
                cell.answer,
            ));
        }
    }
    assert!(wrong.is_empty(), "{} cells are wrong:\n{}", wrong.len(), wrong.join("\n"));
    // Every permission in the template was tried; otherwise it would be there for nothing.
    for (role, permissions) in &allowed {
        let untried = |action: &str| UNTRIED.iter().any(|one| action.starts_with(one));
        for (action, resource) in permissions.iter().filter(|(action, _)| !untried(action)) {
            let there = tried.cells.iter().any(|cell| {
                cell.role == *role
                    && cell.action == *action
                    && (resource == "*" || cell.resource == *resource)
            });
            assert!(there, "{role}: {action} on {resource} was not tried");
        }
    }
    assert!(tried.cells.len() >= CELLS_MIN, "only {} cells", tried.cells.len());
    println!(
        "{} cells (role, action, resource) tried, allowed: {granted:?}; {} calls cannot be enforced there",
        tried.cells.len(),
        tried.unenforced.len()
    );
    emulator.end().unwrap();
}

/// Whether the template allows it; for a batch of messages SQS needs the permission for one.
fn is_allowed(permissions: &[Permission], cell: &Cell) -> bool {
    let single = cell.action.strip_suffix("Batch");
    let single = single.filter(|action| action.starts_with("sqs:"));
    let asked = single.unwrap_or(&cell.action);
    permissions.iter().any(|(action, resource)| {
        action == asked && (resource == "*" || *resource == cell.resource)
    })
}

fn template() -> Value {
    let text = std::fs::read_to_string(workspace().join("template.yaml")).unwrap();
    serde_yaml_ng::from_str(&text).unwrap()
}

/// Each role's permissions, by its logical id. Every function has one, so that SAM makes none and adds nothing.
fn permissions(template: &Value) -> BTreeMap<String, Vec<Permission>> {
    let resources = template["Resources"].as_mapping().unwrap();
    let mut found: BTreeMap<String, Vec<Permission>> = BTreeMap::new();
    for (id, resource) in resources {
        let properties = &resource["Properties"];
        let list = match resource["Type"].as_str() {
            Some("AWS::Serverless::Function") => {
                let role = logical(&properties["Role"]);
                assert!(resources.contains_key(role.as_str()), "{id:?}: {role}");
                assert!(properties["Policies"].is_null(), "{id:?}: SAM adds to them");
                continue;
            }
            Some("AWS::IAM::Role") => {
                match id.as_str() {
                    Some("IngressRole") => reads_no_record(properties),
                    Some("SweeperRole") => marks_alone(properties),
                    Some("WorkerRole") => queries_sums_alone(properties),
                    _ => {}
                }
                let policies = many(&properties["Policies"]).into_iter();
                policies.flat_map(|policy| statements(&policy["PolicyDocument"])).collect()
            }
            // A role's additional permissions under a condition of the template.
            Some("AWS::IAM::Policy") => {
                for role in many(&properties["Roles"]) {
                    for statement in many(&properties["PolicyDocument"]["Statement"]) {
                        worker_seals_linked_alone(role, statement);
                    }
                    let more = statements(&properties["PolicyDocument"]);
                    found.entry(logical(role)).or_default().extend(more);
                }
                continue;
            }
            // A key's own policy: administration cannot use it, and passes nothing on by a grant.
            Some("AWS::KMS::Key") => {
                for statement in many(&properties["KeyPolicy"]["Statement"]) {
                    match statement["Action"].as_str() {
                        Some("kms:Encrypt" | "kms:Decrypt") => {
                            of_this_stack_alone(statement);
                            worker_seals_linked_alone(&statement["Principal"]["AWS"], statement);
                        }
                        other => assert_eq!(
                            other, None,
                            "{id:?}: one action, or those of administration"
                        ),
                    }
                    for action in many(&statement["Action"]) {
                        let action = action.as_str().unwrap();
                        let uses = [
                            "kms:Encrypt",
                            "kms:Decrypt",
                            "kms:ReEncrypt",
                            "kms:GenerateDataKey",
                            "kms:CreateGrant",
                        ];
                        let alone = statement["Action"].is_string();
                        let covers = |one: &str| match action.split_once('*') {
                            Some((before, _)) => one.starts_with(before),
                            None => one == action,
                        };
                        assert!(alone || !uses.into_iter().any(covers), "{action}");
                    }
                }
                continue;
            }
            _ => continue,
        };
        let list: Vec<Permission> = list;
        let role = id.as_str().unwrap().to_owned();
        found.entry(role).or_default().extend(list);
    }
    assert!(found.len() >= 4, "the template has fewer roles than it should");
    found
}

/// The permissions of a policy document. A condition narrows one further, which is left out here.
fn statements(policy: &Value) -> Vec<Permission> {
    let mut list = Vec::new();
    for statement in many(&policy["Statement"]) {
        assert_eq!(statement["Effect"], "Allow", "only permissions are understood here");
        for action in many(&statement["Action"]) {
            let action = action.as_str().unwrap();
            assert!(!action.contains('*'), "{action}: every action is named");
            if action.starts_with("kms:") {
                of_this_stack_alone(statement);
            }
            let places = many(&statement["Resource"]).into_iter();
            list.extend(places.map(|place| (action.to_owned(), logical(place))));
        }
    }
    list
}

/// A key seals and opens only for this stack, tenant and kind. Read here, because the emulator does not check the
/// encryption context of a call.
fn of_this_stack_alone(statement: &Value) {
    let condition = &statement["Condition"];
    let stack = logical(&condition["StringEquals"]["kms:EncryptionContext:stack"]);
    assert_eq!(stack, "AWS::StackName");
    let names = &condition["ForAllValues:StringEquals"]["kms:EncryptionContextKeys"];
    let names: Vec<&str> = many(names).into_iter().filter_map(Value::as_str).collect();
    assert_eq!(names, ["stack", "tenant", "kind"]);
}

/// The worker seals only the tokens of people's own accounts, which change with each use: a tenant's entry is sealed
/// before the worker sees it.
fn worker_seals_linked_alone(role: &Value, statement: &Value) {
    let seals = many(&statement["Action"]).contains(&&Value::from("kms:Encrypt"));
    if seals && logical(role) == "WorkerRole" {
        let kinds = &statement["Condition"]["StringLike"]["kms:EncryptionContext:kind"];
        assert_eq!(many(kinds), ["linked:*"]);
    }
}

/// A function that anybody can call reads a tenant's items from the table, and of a thread's items only what is left
/// for its run's next poll. Read here, because the emulator does not check the attributes that a call names.
fn reads_no_record(ingress: &Value) {
    let conditions = conditions(ingress, "dynamodb:");
    let [tenants, parked] = conditions.as_slice() else {
        panic!("{conditions:?}");
    };
    let keys = &tenants["ForAllValues:StringLike"]["dynamodb:LeadingKeys"];
    assert_eq!(many(keys), ["tenant:*", "pull:*"]);
    let named = &parked["ForAllValues:StringEquals"]["dynamodb:Attributes"];
    assert_eq!(many(named), ["thread", "item", "parked", "receipt", "nudge"]);
    assert_eq!(parked["Null"]["dynamodb:Attributes"], "false");
}

/// The sweeper writes only that a sweep of an item is under way, and gets nothing else of it. Read here, for the same
/// reason.
fn marks_alone(sweeper: &Value) {
    let conditions = conditions(sweeper, "dynamodb:UpdateItem");
    let [marks] = conditions.as_slice() else {
        panic!("{conditions:?}");
    };
    let named = &marks["ForAllValues:StringEquals"]["dynamodb:Attributes"];
    assert_eq!(many(named), ["thread", "item", "due_at", "armed", "sweep", "swept"]);
    let answered = &marks["StringEqualsIfExists"]["dynamodb:ReturnValues"];
    assert_eq!(many(answered), ["NONE", "UPDATED_OLD", "UPDATED_NEW"]);
}

/// The worker queries the table for people's spending, and its index for what runs. Read here, because the laptop's AWS
/// refuses no call.
fn queries_sums_alone(worker: &Value) {
    let conditions = conditions(worker, "dynamodb:Query");
    let [index, sums] = conditions.as_slice() else {
        panic!("{conditions:?}");
    };
    assert!(index.is_null());
    let keys = &sums["ForAllValues:StringLike"]["dynamodb:LeadingKeys"];
    assert_eq!(many(keys), ["budget:*"]);
}

/// The conditions under which a role has actions with this prefix.
fn conditions<'a>(role: &'a Value, action: &str) -> Vec<&'a Value> {
    let policies = many(&role["Policies"]).into_iter();
    let all = policies.flat_map(|policy| many(&policy["PolicyDocument"]["Statement"]));
    let is_wanted = |statement: &&Value| {
        let mut actions = many(&statement["Action"]).into_iter();
        actions.any(|one| one.as_str().is_some_and(|one| one.starts_with(action)))
    };
    all.filter(is_wanted).map(|one| &one["Condition"]).collect()
}

fn many(value: &Value) -> Vec<&Value> {
    match value {
        Value::Sequence(list) => list.iter().collect(),
        Value::Null => Vec::new(),
        one => vec![one],
    }
}

/// Everything, or the logical id behind `!GetAtt X.Arn`, `!GetAtt X.Id`, `!Ref X`, `!Sub "${X.Arn}/path"`, or an ARN
/// that is put together from `${X}`.
fn logical(resource: &Value) -> String {
    if resource == "*" {
        return "*".to_owned();
    }
    let Value::Tagged(tagged) = resource else {
        panic!("{resource:?}: a resource is named by its logical id");
    };
    let text = tagged.value.as_str().unwrap();
    match tagged.tag.to_string().as_str() {
        "!Ref" => text.to_owned(),
        "!GetAtt" => text.split('.').next().unwrap().to_owned(),
        "!Sub" => match text.strip_prefix("${").and_then(|rest| rest.split_once(".Arn}")) {
            Some((id, path)) => format!("{id}{path}"),
            None => {
                let ids = text.split("${").skip(1).filter_map(|rest| rest.split('}').next());
                let own = ids.filter(|id| !id.starts_with("AWS::")).last();
                own.unwrap_or_else(|| panic!("{text} names no resource of the template")).to_owned()
            }
        },
        other => panic!("{other} is not understood here"),
    }
}
