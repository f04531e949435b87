//! Which file counts.

use bobbin_recipe::{ProjectFiles, RecipeSource, WANTED, is_wanted, recipe_of};

use crate::fixture::{files, named, recipe};

#[test]
fn the_first_kind_of_file_wins() {
    let mut files = files("every-kind");
    let mut order = Vec::new();
    while let Some(recipe) = recipe_of(&files) {
        let RecipeSource::File(path) = recipe.from else { panic!("{:?}", recipe.from) };
        assert_eq!(recipe.set_up.len() + recipe.start.len(), 1, "{path}");
        assert!(files.texts.remove(&path).is_some() | files.root.remove(&path), "{path}");
        order.push(path);
    }
    let expected = [
        ".bobbin/environment.yaml",
        ".devcontainer/devcontainer.json",
        ".devcontainer.json",
        ".devcontainer/one/devcontainer.json",
        ".cursor/environment.json",
        ".openinspect/setup.sh",
        ".openhands/setup.sh",
        ".github/workflows/copilot-setup-steps.yml",
        "package-lock.json",
    ];
    assert_eq!(order, expected);
}

#[test]
fn nothing_known_gives_no_recipe() {
    assert_eq!(recipe_of(&files("nothing")), None);
    assert_eq!(recipe_of(&ProjectFiles::default()), None);
}

#[test]
fn fixtures_are_many_and_all_told() {
    let told = [
        include_str!("devcontainers.rs"),
        include_str!("own.rs"),
        include_str!("scripts.rs"),
        include_str!("versions.rs"),
        include_str!("workflows.rs"),
        include_str!("first.rs"),
    ]
    .concat();
    let untold: Vec<String> =
        named("").into_iter().filter(|name| !told.contains(&format!("\"{name}\""))).collect();
    assert_eq!(untold, Vec::<String>::new());
    assert!(named("").len() >= 20);
}

#[test]
fn only_known_paths_are_wanted() {
    assert!(WANTED.iter().all(|path| is_wanted(path)));
    assert!(is_wanted(".devcontainer/python/devcontainer.json"));
    let long = format!(".devcontainer/{}/devcontainer.json", "x".repeat(101));
    for path in [
        "",
        "package.json",
        ".devcontainer//devcontainer.json",
        ".devcontainer/../devcontainer.json",
        ".devcontainer/a/b/devcontainer.json",
        ".devcontainer/a\u{202e}/devcontainer.json",
        ".devcontainer/a\n/devcontainer.json",
        "sub/.devcontainer/devcontainer.json",
        ".bobbin/environment.yml",
        &long,
    ] {
        assert!(!is_wanted(path), "{path:?}");
    }
}

#[test]
fn windows_fixtures_keep_their_bytes() {
    for (fixture, path) in [
        ("own-windows", ".bobbin/environment.yaml"),
        ("devcontainer-windows", ".devcontainer/devcontainer.json"),
    ] {
        let bytes = &files(fixture).texts[path];
        assert!(bytes.starts_with(b"\xef\xbb\xbf"), "{fixture}");
        assert!(bytes.windows(2).any(|pair| pair == b"\r\n"), "{fixture}");
        assert_eq!(recipe(fixture).refused, Vec::<String>::new());
    }
}
