//! `copilot-setup-steps.yml`.

use bobbin_recipe::recipe_of;

use crate::expected::{is, lines, with};

const PATH: &str = ".github/workflows/copilot-setup-steps.yml";

/// The recipe of a workflow whose job holds this, as lines without the first.
fn of_job(job: &str) -> Vec<String> {
    let text = format!("jobs:\n  copilot-setup-steps:\n{job}");
    lines(&recipe_of(&with(PATH, text)).unwrap()).split_off(1)
}

#[test]
fn commands_run_as_on_a_runner() {
    is(
        "workflow-steps",
        &[
            ".github/workflows/copilot-setup-steps.yml",
            "set-up [Install] set -e⏎cd -- 'web app'⏎npm ci",
            r#"set-up [npx playwright install] set -eo pipefail⏎export BASE='it'\''s here'⏎export DEBUG=1⏎cd -- ./e2e⏎# the browsers⏎npx playwright install⏎npm run build⏎"#,
            r#"set-up [Where] set -e⏎export GITHUB_WORKSPACE=$PWD⏎cd -- 'web app'⏎ls "$GITHUB_WORKSPACE""#,
            "variable CI=true",
            "variable NODE_ENV=test",
        ],
    );
}

#[test]
fn actions_expressions_conditions_are_refused() {
    is(
        "workflow-actions",
        &[
            ".github/workflows/copilot-setup-steps.yml",
            "set-up [npm ci] set -e⏎export KEPT=yes⏎npm ci",
            "refused Line 8: `TOKEN` has a value that only GitHub fills in: write it as a constant.",
            "refused Line 9: `GIT_DIR` is not a variable that a repository may set.",
            "refused Line 11: `actions/checkout@v5` is an action for GitHub's runners: it is not run.",
            "refused Line 13: `actions/setup-node@v4` is an action for GitHub's runners: it is not run.",
            "refused Line 16: `With a secret` has a value that only GitHub fills in: it is not run.",
            "refused Line 18: `On Windows` has a condition, which is not evaluated: it is not run.",
            "refused Line 21: `Script` needs another shell than `bash`: it is not run.",
            r#"refused Line 24: `echo "$HOME/bin" >> "$GITHUB_PATH"` writes to a file of GitHub's runners: it is not run."#,
            "refused Line 25: `Nothing` has no text to run: it is left out.",
            "refused Line 27: `continue-on-error` is not read: a failed step is reported.",
            "refused Line 29: `NPM_TOKEN` has a value that only GitHub fills in: write it as a constant.",
            "refused Line 30: `NODE_OPTIONS` is not a variable that a repository may set.",
            "refused Line 5: `strategy` is not read: the steps run once.",
        ],
    );
}

#[test]
fn steps_run_that_surely_run() {
    let of = |condition: &str| {
        of_job(&format!("    steps:\n      - run: make\n        if: {condition}\n"))
    };
    for condition in ["true", "'true'", "${{ true }}", "", "''"] {
        assert_eq!(of(condition), ["set-up [make] set -e⏎make"], "{condition}");
    }
    for condition in ["false", "'false'", "${{ false }}", "False"] {
        let words = "refused Line 4: `make` has the condition `false`: it is not run.";
        assert_eq!(of(condition), [words], "{condition}");
    }
    for condition in ["0", "failure()", "[]", "${{ !true }}"] {
        let words =
            "refused Line 4: `make` has a condition, which is not evaluated: it is not run.";
        assert_eq!(of(condition), [words], "{condition}");
    }
}

#[test]
fn job_that_is_switched_off_runs_nothing() {
    let job = "    if: false\n    services: { db: { image: postgres } }\n    steps: [{ run: a }]\n";
    assert_eq!(of_job(job), ["refused Line 3: `if` is `false`: nothing of the job is run."]);
}

#[test]
fn postgres_and_redis_become_services() {
    is(
        "workflow-services",
        &[
            ".github/workflows/copilot-setup-steps.yml",
            "set-up [npm run migrate] set -e⏎npm run migrate",
            "service Postgres",
            "service Redis",
            "refused Line 10: `docker.io/library/postgres:16-alpine` has the sandbox's version.",
            "refused Line 14: `POSTGRES_DB` is `postgres`: create others in a step.",
            "refused Line 18: `search` is not a service that starts here: only Postgres and Redis are.",
            "refused Line 20: `vectors` is not a service that starts here: only Postgres and Redis are.",
            "refused Line 8: `container` is not used: the sandbox has its own image.",
        ],
    );
}

#[test]
fn services_keep_their_own_ports() {
    let ports = r#"    services:
      db:
        image: postgres
        ports: ["5433:5432", 5432, "127.0.0.1:5432:5432/tcp"]
      cache:
        image: redis
        ports:
          - 6379:6379
          - 127.0.0.1:6380:6379
"#;
    let expected = [
        "service Postgres",
        "service Redis",
        "refused Line 6: `5433:5432` is not done: Postgres listens on 5432 here.",
        "refused Line 11: `127.0.0.1:6380:6379` is not done: Redis listens on 6379 here.",
    ];
    assert_eq!(of_job(ports), expected);
}

#[test]
fn another_job_is_not_the_one() {
    is(
        "workflow-other",
        &[
            ".github/workflows/copilot-setup-steps.yml",
            "refused `.github/workflows/copilot-setup-steps.yml`: no job `copilot-setup-steps` in it: name the job so, below `jobs`.",
        ],
    );
}

#[test]
fn broken_workflow_names_its_line() {
    is(
        "workflow-broken",
        &[
            ".github/workflows/copilot-setup-steps.yml",
            "refused `.github/workflows/copilot-setup-steps.yml`, line 4: not YAML (while scanning a plain scalar, found a tab).",
        ],
    );
}

#[test]
fn anchors_in_workflows_are_refused() {
    is(
        "workflow-anchors",
        &[
            ".github/workflows/copilot-setup-steps.yml",
            "refused `.github/workflows/copilot-setup-steps.yml`, line 3: anchors, aliases and tags are not read: write the value out.",
        ],
    );
}
