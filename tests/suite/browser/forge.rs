//! The forge pane: a repository is created; a pull request is read, marked as ready and merged.

use bobbin_tests::browser::{Browser, ENTER};
use bobbin_tests::forge::TestForge;
use bobbin_tests::limits::{BROWSER_MS_MAX, VISIBLE_MS_MAX};
use bobbin_tests::wait::eventually;
use bobbin_tests::world::World;
use reqwest::Method;
use serde_json::{Value, json};

use super::picture;
use crate::forge::a_name;

const PULL: &str = "#pull-pane";
/// Somebody else's text: the page shows it only as text.
const TEXT: &str = "<img src=x onerror=\"document.title='run'\">\nIt says hello.";

pub async fn merged(world: &World, browser: &Browser) {
    let forge = TestForge::of(&world.ready);
    let name = a_name();
    browser.go(&world.ready.page_url()).await;
    browser.reads(VISIBLE_MS_MAX, "#channel-pane", "Plain text is only for people here").await;
    let reads = "return performance.getEntriesByType('resource').filter((one) => one.name.includes('/ui/forge')).length";
    assert_eq!(browser.run(reads).await, 0);
    browser.press("[data-testid=platform-forge]").await;

    // Created on the page.
    browser.press("[data-testid=new-repository]").await;
    browser.write("[data-testid=modal] [data-testid=repository-name]", &name).await;
    browser.press("[data-testid=modal] [data-testid=modal-submit]").await;
    let repository = forge.made(&name);
    browser.reads(VISIBLE_MS_MAX, "#forge-head h1", &repository.name).await;
    browser.reads(VISIBLE_MS_MAX, "#forge-head", "PRIVATE").await;
    browser.reads(VISIBLE_MS_MAX, "#forge-pane [data-testid=branch]", "main").await;
    assert_eq!(repository.call(Method::GET, "", &Value::Null).await["private"], true);

    // A pull request that was opened elsewhere appears in the pane.
    let pull = repository.draft("feature", ("hello.txt", "hello\n"), "Say hello", TEXT).await;
    browser.press("#forge-pane [data-id='pull 1']").await;
    browser.reads(VISIBLE_MS_MAX, &format!("{PULL} [data-testid=pull-state]"), "draft").await;
    let text = browser.text(&format!("{PULL} [data-testid=pull-text]")).await.unwrap();
    assert_eq!(text, TEXT);
    let run = "return [document.title, document.querySelectorAll('#pull-body img').length]";
    assert_eq!(browser.run(run).await, json!(["Bobbin · chat", 0]));
    browser.reads(VISIBLE_MS_MAX, &format!("{PULL} [data-path='hello.txt']"), "+hello").await;
    browser.reads(VISIBLE_MS_MAX, PULL, "feature → main").await;
    picture(browser, "forge-pane").await;

    // By keyboard; a second Enter does not reach the next button.
    browser
        .run(&format!("document.querySelector(\"{PULL} [data-label='Ready for review']\").focus()"))
        .await;
    browser.key(ENTER).await;
    browser.reads(VISIBLE_MS_MAX, &format!("{PULL} [data-testid=pull-state]"), "open").await;
    eventually(BROWSER_MS_MAX, "the focus is on the pull request", async || {
        let seen = browser.run("return document.activeElement.id").await;
        (seen == "pull-body").then_some(()).ok_or(seen)
    })
    .await;
    browser.key(ENTER).await;
    assert_eq!(repository.pulls().await[0]["draft"], false);
    browser.press(&format!("{PULL} [data-label=Merge]")).await;
    browser.reads(VISIBLE_MS_MAX, &format!("{PULL} [data-testid=pull-state]"), "merged").await;
    assert_eq!(repository.file("main", "hello.txt"), "hello\n");
    narrow(browser).await;

    // The link to the forge's own page.
    let opened = repository.press("open", &pull).await;
    let url = opened["url"].as_str().unwrap();
    let ticket = format!("{}/login/with/", world.ready.github_git);
    assert!(url.starts_with(&ticket) && url.ends_with("pull%2F1"), "{url}");
}

/// On a phone nothing overflows, and there is a way back.
async fn narrow(browser: &Browser) {
    browser.wide(Some(400)).await;
    let over = "const over = (pane) => [...document.querySelectorAll(`#${pane} *`)]
        .filter((one) => one.getBoundingClientRect().right > innerWidth && !one.closest('pre'))
        .map((one) => one.outerHTML.slice(0, 80));
        return [...over('pull-pane'), ...over('forge-pane'), document.documentElement.scrollWidth]";
    assert_eq!(browser.run(over).await, json!([400]));
    browser.press("[data-testid=close-pull]").await;
    browser.reads(VISIBLE_MS_MAX, "#forge-pane [data-id='pull 1']", "merged").await;
    assert_eq!(browser.run(over).await, json!([400]));
    browser.wide(None).await;
}
