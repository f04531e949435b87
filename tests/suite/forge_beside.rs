//! A thread that works on two repositories: each of them becomes a pull request of its own.

use bobbin_core::records::outcome::Outcome;
use bobbin_core::tenant::settings::SettingsChange;
use bobbin_tests::chat::{ChatMessage, Platform};
use bobbin_tests::forge::TestForge;
use bobbin_tests::limits::{ANSWER_MS_MAX, VISIBLE_MS_MAX};
use bobbin_tests::wait::eventually;
use bobbin_tests::world::World;
use libtest_mimic::Trial;

use crate::choice::{configure, manager, settings};
use crate::forge::{a_name, is_review, offered, opened, said, text};
use crate::run::{CHAT, on};

pub fn trials() -> Vec<Trial> {
    let of = |platform: Platform| {
        let name = format!("forge_beside::{}::each_repository_is_a_pull_request", platform.word());
        on(&CHAT, &name, async move |world| each(world, platform).await)
    };
    Platform::ALL.into_iter().map(of).collect()
}

async fn each(world: World, platform: Platform) {
    let forge = TestForge::of(&world.ready);
    let web = forge.private(&a_name(), &[("README.md", "the page\n")]).await;
    let api = forge.private(&a_name(), &[("README.md", "the secret plan\n")]).await;
    let change = SettingsChange::Environment {
        repository: web.name.clone(),
        text: format!("{{repositories: [{}]}}", api.name),
        beside: Vec::new(),
    };
    configure(&world, platform, manager(&world, platform), true, change).await;
    eventually(VISIBLE_MS_MAX, "the setting is stored", async || {
        let now = settings(&world, platform).await;
        let is_set = now.beside.of(&web.name.to_ascii_lowercase()) == [api.name.clone()];
        is_set.then_some(()).ok_or_else(|| format!("{now:?}"))
    })
    .await;

    let folder = api.name.to_ascii_lowercase();
    let work = format!(
        "write: page.txt hello\nrun: cd .bobbin/repositories/{folder} && cat README.md && echo hello >api.txt && git status --porcelain"
    );
    let (talk, turn) = world.begin_with(platform, &[("repo", &web.name)], &work).await;
    assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
    let seen = talk.answer(&turn).await;
    assert!(seen.contains("the secret plan") && seen.contains("?? api.txt"), "{seen}");

    let card = offered(&talk, &turn, "Open pull request").await;
    talk.press(&card, "Open pull request").await;
    let has_all = |one: &ChatMessage| is_review(one) && one.button("Publish all 2").is_some();
    let shown = talk.see(ANSWER_MS_MAX, "all that would be published is shown", has_all).await;
    assert!(shown.text.contains(&api.name) && shown.text.contains("api.txt"), "{}", shown.text);
    assert_eq!((web.branches().await, api.branches().await), (vec![], vec![]));
    talk.press(&shown, "Publish all 2").await;
    for (repository, file) in [(&web, "page.txt"), (&api, "api.txt")] {
        let pull = opened(repository, 0).await;
        assert_eq!(repository.file(text(&pull, "/head/ref"), file).trim(), "hello");
    }
    said(&talk, &format!("`{}`: Pull request #1 is open as a draft", api.name)).await;
    talk.finish().await;
}
