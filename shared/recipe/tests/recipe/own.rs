//! `.bobbin/environment.yaml`.

use bobbin_recipe::{of_settings, recipe_of};

use crate::expected::{is, lines, with};

#[test]
fn every_key_is_read_as_written() {
    is(
        "own-all",
        &[
            ".bobbin/environment.yaml",
            "set-up npm ci",
            "set-up [Database] set -e⏎createdb shop⏎npm run migrate⏎",
            "start npm run dev &",
            "service Postgres",
            "service Redis",
            "port 3000",
            "port 5173",
            "tool node 22.10",
            "tool python 3.12",
            "variable DEBUG=true",
            "variable EMPTY=",
            "variable RAILS_ENV=test",
            "variable WORKERS=2",
        ],
    );
}

#[test]
fn byte_order_mark_and_crlf_are_read() {
    is(
        "own-windows",
        &[".bobbin/environment.yaml", "set-up [Both] set -e⏎npm ci⏎npm test⏎", "port 3000"],
    );
}

#[test]
fn an_unknown_key_names_the_nearest() {
    is(
        "own-mistyped",
        &[
            ".bobbin/environment.yaml",
            "refused `.bobbin/environment.yaml`, line 3: `setup` is not a key; the nearest is `set-up`.",
        ],
    );
}

#[test]
fn an_alias_is_refused_unread() {
    is(
        "own-bomb",
        &[
            ".bobbin/environment.yaml",
            "refused `.bobbin/environment.yaml`, line 2: anchors, aliases and tags are not read: write the value out.",
        ],
    );
}

#[test]
fn dangerous_variables_of_repositories_are_refused() {
    is(
        "own-names",
        &[
            ".bobbin/environment.yaml",
            "set-up make",
            "variable ENVIRONMENT=kept",
            "variable PATHS=kept",
            "refused `ANTHROPIC_BASE_URL` is not a variable that a repository may set.",
            "refused `BASH_ENV` is not a variable that a repository may set.",
            "refused `BOBBIN_TOKEN` is not a variable that a repository may set.",
            "refused `ENV` is not a variable that a repository may set.",
            "refused `GIT_SSH_COMMAND` is not a variable that a repository may set.",
            "refused `HTTPS_PROXY` is not a variable that a repository may set.",
            "refused `LD_PRELOAD` is not a variable that a repository may set.",
            "refused `NODE_OPTIONS` is not a variable that a repository may set.",
            "refused `OPENAI_API_KEY` is not a variable that a repository may set.",
            "refused `OPENCODE_CONFIG` is not a variable that a repository may set.",
            "refused `PATH` is not a variable that a repository may set.",
            "refused `PYTHONSTARTUP` is not a variable that a repository may set.",
            "refused `http_proxy` is not a variable that a repository may set.",
        ],
    );
}

#[test]
fn broken_yaml_names_its_line() {
    is(
        "own-broken",
        &[
            ".bobbin/environment.yaml",
            "refused `.bobbin/environment.yaml`, line 3: not YAML (while parsing a block mapping, did not find expected key).",
        ],
    );
}

#[test]
fn settings_are_the_tenants_own() {
    let said = of_settings("set-up: [make]\nvariables: {NODE_OPTIONS: --trace-warnings}").unwrap();
    assert_eq!(
        lines(&said.recipe.unwrap()),
        ["settings", "set-up make", "variable NODE_OPTIONS=--trace-warnings"]
    );
}

#[test]
fn settings_alone_name_repositories_beside() {
    let said = of_settings("repositories: [acme/api, Acme/Docs]").unwrap();
    assert_eq!(said.repositories, ["acme/api", "acme/docs"]);
    assert_eq!(said.recipe, None, "the repository's own files count");
    let said = of_settings("{repositories: [acme/api], set-up: [make]}").unwrap();
    assert_eq!(lines(&said.recipe.unwrap()), ["settings", "set-up make"]);
    let file = with(".bobbin/environment.yaml", "repositories: [acme/api]\nset-up: [make]\n");
    assert_eq!(
        lines(&recipe_of(&file).unwrap()),
        [
            ".bobbin/environment.yaml",
            "set-up make",
            "refused `repositories` counts only in the tenant's settings.",
        ]
    );
}

#[test]
fn errors_say_what_to_do_and_where() {
    for (text, expected) in [
        (
            "",
            "line 1: begin with one of the keys `set-up`, `start`, `services`, `ports`, `tools` and `variables`",
        ),
        (
            "set-up: npm ci",
            "line 1: `set-up` takes a list: put each step on a line that begins with `- `",
        ),
        ("set-up:\n  - name: Install", "line 2: the step has no `run`: say what to run"),
        ("set-up:\n  - run: x\n    nam: y", "line 3: `nam` is not a key; the nearest is `name`"),
        ("set-up:\n  - 22", "line 2: the step takes a text: put it into quotes"),
        (
            "services:\n  - mysql",
            "line 2: `services` takes `postgres` and `redis`: start others in a step",
        ),
        ("ports: [3000,\n 70000]", "line 2: `ports` takes whole numbers from 1 to 65535"),
        (
            "repositories: [acme/api@main]",
            "line 1: `repositories` takes names such as `acme/api`, of the default branch",
        ),
        ("repositories: [a/b, a/c, a/d, a/e, a/f]", "line 1: `repositories` has more than 4 items"),
        ("ports: [80, 80]", "line 1: `ports` names the same twice: keep one"),
        (
            "tools:\n  node: '>=20'",
            "line 2: `node` takes a name and a version such as `node: 22.4.0`",
        ),
        ("variables:\n  A: [x]", "line 2: `A` takes a text: put it into quotes"),
        (
            "variables:\n  my-name: x",
            "line 2: `my-name` is not a variable name: use letters, digits and `_`",
        ),
        ("ports: [1]\nports: [2]", "line 2: `ports` is on line 1 already: keep one"),
        ("ports: [1]\n---\nports: [2]", "line 2: a second document: keep one"),
        ("[x]: y", "line 1: a key that is not a word: begin the line with one"),
    ] {
        assert_eq!(of_settings(text).unwrap_err(), expected, "{text}");
    }
}
