//! The chat page in a real browser: what a person does on both platforms, by mouse and keyboard.

mod buttons;
mod fits;
mod forge;

use bobbin_core::records::outcome::Outcome;
use bobbin_core::records::session::Session;
use bobbin_core::tenant::budgets::BudgetKind;
use bobbin_core::tenant::settings::SettingsChange;
use bobbin_tests::binaries::workspace;
use bobbin_tests::browser::{Browser, ENTER, SHIFT, programs};
use bobbin_tests::chat::{Platform, Thread};
use bobbin_tests::limits::{ANSWER_MS_MAX, BROWSER_MS_MAX, VISIBLE_MS_MAX};
use bobbin_tests::observed::Accepted;
use bobbin_tests::stack::Stack;
use bobbin_tests::talk::{Talk, marked};
use bobbin_tests::wait::eventually;
use bobbin_tests::world::World;
use libtest_mimic::{Completion, Trial};

use crate::choice::set;
use crate::run::{CHAT, block_on};

const CHANNEL: &str = "#channel-pane";
const THREAD: &str = "#thread-pane";

pub fn trials() -> Vec<Trial> {
    vec![
        trial("browser::chat_page_works_in_browser", async |world, browser| {
            person(world, browser).await;
        }),
        trial("browser::forge_pane_merges_pull_request", async |world, browser| {
            forge::merged(world, browser).await;
        }),
        on_own_stack("browser::panel_shows_what_was_spent", || crate::budgets::priced(1.0), spent),
    ]
}

/// The open thread's sums are beside it, with their limits.
async fn spent(world: &World, browser: &Browser) {
    let platform = Platform::Discord;
    let budgets = [(BudgetKind::Thread, Some(5_000_000))].into();
    set(world, platform, SettingsChange::Budgets { set: budgets }).await;
    let (talk, turn) = world.begin(platform, "echo: worth something").await;
    assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
    browser.go(&world.ready.page_url()).await;
    open(browser, &talk).await;
    let panel = "#session-panel [data-testid=spending]";
    browser.reads(VISIBLE_MS_MAX, panel, "of $5.00").await;
    talk.finish().await;
}

fn trial(name: &str, test: impl AsyncFnOnce(&World, &Browser) + Send + 'static) -> Trial {
    with_browser(name, async move |browser| test(&World::of(&CHAT.get()), browser).await)
}

fn on_own_stack(
    name: &str,
    stack: fn() -> Stack,
    test: impl AsyncFnOnce(&World, &Browser) + Send + 'static,
) -> Trial {
    with_browser(name, async move |browser| {
        let stack = stack();
        test(&World::of(&stack), browser).await;
        stack.end().unwrap();
    })
}

fn with_browser(name: &str, test: impl AsyncFnOnce(&Browser) + Send + 'static) -> Trial {
    Trial::ignorable_test(name, || match programs() {
        Ok(programs) => {
            block_on(async {
                let browser = Browser::open(&programs).await;
                test(&browser).await;
                browser.close().await.unwrap();
            });
            Ok(Completion::Completed)
        }
        Err(missing) if std::env::var("CI").is_ok_and(|ci| ci == "true") => {
            Err(format!("{missing} is not installed, and CI skips nothing").into())
        }
        Err(missing) => Ok(Completion::ignored_with(format!(
            "{missing} is not installed (Debian: apt-get install chromium chromium-driver)"
        ))),
    })
}

async fn person(world: &World, browser: &Browser) {
    browser.go(&world.ready.page_url()).await;
    on_discord(world, browser).await;
    on_slack(world, browser).await;
    for platform in Platform::ALL {
        form(world, browser, platform).await;
        buttons::allow(world, browser, platform).await;
        buttons::again(world, browser, platform).await;
        buttons::now(world, browser, platform).await;
        buttons::diff(world, browser, platform).await;
    }
    fits::phone(world, browser).await;
    fits::keyboard(world, browser).await;
}

/// Opens a conversation's thread on the page.
async fn open(browser: &Browser, talk: &Talk<'_>) {
    let platform = talk.platform;
    browser.press(&format!("[data-testid=platform-{}]", platform.word())).await;
    // Both platforms have a channel of this name, so this waits for the right page.
    let hint = match platform {
        Platform::Discord => "Plain text is only for people here",
        Platform::Slack => "Type @ to mention",
    };
    browser.reads(VISIBLE_MS_MAX, CHANNEL, hint).await;
    browser
        .press(&format!("{CHANNEL} [data-testid=open-thread][data-thread='{}']", talk.thread.root))
        .await;
}

/// A button of the open thread; the last one of several.
fn button(label: &str) -> String {
    format!("{THREAD} [data-testid=button][data-label='{label}']")
}

/// A person fills the form for three questions, with mouse and keyboard.
async fn form(world: &World, browser: &Browser, platform: Platform) {
    let (talk, turn) = world
        .begin(
            platform,
            "question: [DB] Which database? | Postgres = relational | SQLite = a file // [Region, several] Where? | eu | us | asia // [Why] Why so?",
        )
        .await;
    open(browser, &talk).await;
    browser.reads(ANSWER_MS_MAX, THREAD, "Why so?").await;
    let fields = match platform {
        Platform::Discord => {
            browser.press(&format!("{THREAD} [data-testid=button][data-label='Answer…']")).await;
            "[data-testid=modal] [data-field='".to_owned()
        }
        Platform::Slack => format!("{THREAD} [data-field='v1:field:"),
    };
    browser.press(&format!("{fields}s0'] option[value=o1]")).await;
    browser.press(&format!("{fields}s1'] option[value=o0]")).await;
    browser.press(&format!("{fields}w2'] textarea")).await;
    browser.write(&format!("{fields}w2'] textarea"), "because of the tests").await;
    picture(browser, &format!("form-{}", platform.word())).await;
    let send = match platform {
        Platform::Discord => "[data-testid=modal] [data-testid=modal-submit]".to_owned(),
        Platform::Slack => format!("{THREAD} [data-testid=button][data-label='Send Answers']"),
    };
    browser.press(&send).await;
    browser.reads(VISIBLE_MS_MAX, THREAD, "Why: because of the tests").await;
    assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
    let answer = talk.answer(&turn).await;
    for words in [
        "“Which database?” was answered: SQLite",
        "“Where?” was answered: eu",
        "“Why so?” was answered: because of the tests",
    ] {
        assert!(answer.contains(words), "{answer}");
    }
    talk.finish().await;
}

async fn on_discord(world: &World, browser: &Browser) {
    browser.press("[data-testid=platform-discord]").await;
    browser.press("[data-testid=channel][data-name=general]").await;
    let composer = format!("{CHANNEL} [data-testid=composer]");
    browser.write(&composer, "/sand").await;
    browser
        .reads(BROWSER_MS_MAX, &format!("{CHANNEL} [data-testid=suggestions]"), "/sandbox")
        .await;
    browser.write(&composer, ENTER).await;
    let (first, first_mark) = marked(
        "write: notes/today.md # Today\\n\\n- fix the build\\n- write it down\nrun: cat notes/today.md && uname -s",
    );
    browser.write(&format!("{CHANNEL} [data-testid=option-prompt]"), &typed(&first)).await;
    browser.press(&format!("{CHANNEL} [data-testid=send]")).await;

    let session = begun(world, &first_mark, "discord:").await;
    let id = session.thread.to_string().rsplit(':').next().unwrap().to_owned();
    browser.press(&format!("{CHANNEL} [data-testid=open-thread][data-thread='{id}']")).await;
    let card = format!("{THREAD} [data-testid=card]");
    browser.reads(ANSWER_MS_MAX, &card, "Done").await;
    let answer = format!("{THREAD} [data-testid=message]");
    browser.reads(VISIBLE_MS_MAX, &answer, "fix the build").await;
    browser.reads(VISIBLE_MS_MAX, "#session-panel [data-testid=phase]", "active").await;
    browser.reads(VISIBLE_MS_MAX, "#session-panel [data-testid=timeline]", "active").await;
    browser.reads(VISIBLE_MS_MAX, "[data-testid=sandbox-list]", "started").await;
    pictures(browser).await;

    browser.press(&format!("{THREAD} [data-testid=button][data-label=Reply]")).await;
    let (second, second_mark) = marked("slow: 90 one two three four five six seven eight nine ten");
    browser.write("[data-testid=modal] textarea", &typed(&second)).await;
    browser.press("[data-testid=modal] [data-testid=modal-submit]").await;
    eventually(ANSWER_MS_MAX, "the second prompt reaches the agent", async || {
        let calls = world.model_calls().await?;
        if calls.iter().any(|call| call.user.contains(&second_mark)) {
            Ok(())
        } else {
            Err("no call of the model has it".to_owned())
        }
    })
    .await;
    browser.press(&format!("{THREAD} [data-testid=button][data-label=Stop]")).await;
    browser.reads(VISIBLE_MS_MAX, &card, "Stopped").await;

    let thread = world.discord.thread(&id).unwrap();
    let ended = finish(world, Platform::Discord, thread, &[first_mark, second_mark]).await;
    assert!(matches!(ended[..], [Outcome::Answered, Outcome::Cancelled { .. }]), "{ended:?}");
}

async fn on_slack(world: &World, browser: &Browser) {
    browser.press("[data-testid=platform-slack]").await;
    // Both platforms have a channel of this name: only the right page may be written to.
    browser.reads(VISIBLE_MS_MAX, CHANNEL, "Mention the bot").await;
    let composer = format!("{CHANNEL} [data-testid=composer]");
    browser.write(&composer, "@bob").await;
    browser.reads(BROWSER_MS_MAX, &format!("{CHANNEL} [data-testid=suggestions]"), "@bobbin").await;
    browser.write(&composer, ENTER).await;
    let (text, mark) = marked("echo: hello from the other side");
    browser.write(&composer, &typed(&text)).await;
    browser.press(&format!("{CHANNEL} [data-testid=send]")).await;

    let session = begun(world, &mark, "slack:").await;
    let key = session.thread.to_string();
    let parts: Vec<&str> = key.split(':').collect();
    browser
        .press(&format!("{CHANNEL} [data-testid=open-thread][data-thread='{}']", parts[3]))
        .await;
    browser.reads(ANSWER_MS_MAX, THREAD, "hello from the other side").await;
    browser.reads(ANSWER_MS_MAX, THREAD, "Done").await;
    let thread = world.slack.thread(parts[2], parts[3]).unwrap();
    assert_eq!(finish(world, Platform::Slack, thread, &[mark]).await, [Outcome::Answered]);
}

/// Lines as keys: Enter alone would send them.
fn typed(text: &str) -> String {
    text.replace('\n', &format!("{SHIFT}{ENTER}{SHIFT}"))
}

/// The record whose first prompt reached the agent with this mark.
async fn begun(world: &World, mark: &str, platform: &str) -> Session {
    eventually(ANSWER_MS_MAX, "the prompt reaches the agent", async || {
        let calls = world.model_calls().await?;
        let call = calls
            .iter()
            .find(|call| call.user.contains(mark) && !call.internal())
            .ok_or("no call of the model has it")?;
        let sessions = world.aws.sessions(&world.deployment.table).await?;
        let ours = |session: &Session| {
            let agent = session.conversation.session.as_deref();
            agent.is_some() && agent == call.session_id.as_deref()
        };
        sessions
            .into_iter()
            .find(|one| ours(one) && one.thread.to_string().starts_with(platform))
            .ok_or_else(|| "no record has its session".to_owned())
    })
    .await
}

/// The promises hold for the conversation on the page; then the sandbox is reset.
async fn finish(
    world: &World,
    platform: Platform,
    thread: Thread,
    marks: &[String],
) -> Vec<Outcome> {
    let session = eventually(VISIBLE_MS_MAX, "all turns have ended", async || {
        let session = world.session(&thread.key).await?;
        if session.ended.len() == marks.len() {
            Ok(session)
        } else {
            Err(format!("{:?}", session.turn))
        }
    })
    .await;
    let accepted = session
        .ended
        .iter()
        .zip(marks)
        .map(|(ended, mark)| Accepted { turn: ended.id.to_string(), mark: Some(mark.clone()) })
        .collect();
    Talk { world, platform, thread, accepted }.finish().await;
    session.ended.into_iter().map(|ended| ended.outcome).collect()
}

/// A picture of the window for the documentation, on request.
async fn picture(browser: &Browser, name: &str) {
    if wanted() {
        keep(name, &browser.picture().await);
    }
}

/// The same of the open thread alone, once the page has drawn everything.
async fn picture_of_thread(browser: &Browser, name: &str) {
    if wanted() {
        keep(name, &browser.picture_of(THREAD).await);
    }
}

fn wanted() -> bool {
    std::env::var_os("BOBBIN_SCREENSHOTS").is_some()
}

fn keep(name: &str, picture: &[u8]) {
    let folder = workspace().join("docs/images");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(format!("{name}.png")), picture).unwrap();
}

/// Pictures for the documentation, in light and dark, on request.
async fn pictures(browser: &Browser) {
    if !wanted() {
        return;
    }
    for _ in 0..2 {
        let theme = browser.run("return document.documentElement.dataset.theme || (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light')").await;
        keep(&format!("chat-{}", theme.as_str().unwrap()), &browser.picture().await);
        browser.press("[data-testid=theme-toggle]").await;
    }
}
