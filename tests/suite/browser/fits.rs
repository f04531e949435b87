//! The page on a narrow screen and with the keyboard.

use bobbin_tests::browser::{Browser, ENTER};
use bobbin_tests::chat::Platform;
use bobbin_tests::limits::{BROWSER_MS_MAX, VISIBLE_MS_MAX};
use bobbin_tests::wait::eventually;
use bobbin_tests::world::World;
use serde_json::{Value, json};

use super::{THREAD, open};

/// Width of a small phone, in CSS pixels.
const PHONE: u32 = 400;

/// Nothing overflows, text has room, and the list of channels is hidden until it is needed.
pub async fn phone(world: &World, browser: &Browser) {
    let (talk, turn) = world
        .begin(
            Platform::Discord,
            "question: [DB] Which database, of all those that there are? | Postgres = relational | SQLite = a file",
        )
        .await;
    open(browser, &talk).await;
    browser.wide(Some(PHONE)).await;
    browser.reads(VISIBLE_MS_MAX, THREAD, "Which database, of all those").await;
    let seen = browser
        .run(
            "const box = document.querySelector('#thread-pane [data-testid=composer]').getBoundingClientRect();
             const over = [...document.querySelectorAll('#thread-pane .message *, #thread-pane .composer *')]
               .filter((one) => one.getBoundingClientRect().right > innerWidth && !one.closest('pre, table'))
               .map((one) => one.outerHTML.slice(0, 80));
             return { page: document.documentElement.scrollWidth, box: box.width >= 250, over,
               menu: getComputedStyle(document.getElementById('sidebar')).visibility };",
        )
        .await;
    assert_eq!(seen, json!({"page": PHONE, "box": true, "over": [], "menu": "hidden"}));
    browser.press("[data-testid=menu-toggle]").await;
    browser
        .press(&format!(
            "[data-testid=channel-list] [data-testid=thread][data-id='{}']",
            talk.thread.root
        ))
        .await;
    let shut = "return getComputedStyle(document.getElementById('sidebar')).visibility";
    eventually(BROWSER_MS_MAX, "the list goes away again", async || {
        let seen = browser.run(shut).await;
        (seen == "hidden").then_some(()).ok_or(seen)
    })
    .await;
    browser.wide(None).await;
    talk.stop().await;
    talk.ended(&turn).await;
    talk.finish().await;
}

/// The text box is one key away from the first stop, and the focus stays where it is while the page changes.
pub async fn keyboard(world: &World, browser: &Browser) {
    let (talk, first) = world.begin(Platform::Discord, "echo: first").await;
    talk.ended(&first).await;
    open(browser, &talk).await;
    // A pane that opens later would take the focus from the text box.
    browser.reads(VISIBLE_MS_MAX, THREAD, "first").await;
    // The page's first stop skips both lists.
    let first = browser
        .run("const first = document.querySelector('a, button, input, select, textarea, [tabindex]'); first.focus(); return first.id")
        .await;
    assert_eq!(first, "skip-to-composer");
    browser.key(ENTER).await;
    eventually(BROWSER_MS_MAX, "the link leads to the text box", async || {
        let seen = browser.run(FOCUSED).await;
        (seen == "composer").then_some(()).ok_or(seen)
    })
    .await;
    let entry = format!(
        "document.querySelector(\"[data-testid=channel-list] [data-testid=thread][data-id='{}']\")",
        talk.thread.root
    );
    browser.run(&format!("{entry}.focus()")).await;
    // It moves to the top of the list, where it gets a dot.
    let (other, turn) = world.begin(Platform::Discord, "echo: another thread").await;
    other.ended(&turn).await;
    eventually(VISIBLE_MS_MAX, "the other thread is listed", async || {
        let listed = format!(
            "return !!document.querySelector(\"[data-testid=channel-list] [data-id='{}']\")",
            other.thread.root
        );
        let seen = browser.run(&listed).await;
        (seen == true).then_some(()).ok_or(seen)
    })
    .await;
    let kept = format!("return document.activeElement === {entry}");
    assert_eq!(browser.run(&kept).await, Value::Bool(true));
    for talk in [talk, other] {
        talk.finish().await;
    }
}

const FOCUSED: &str = "return document.activeElement.dataset.testid || ''";
