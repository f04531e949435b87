//! The test turn on Slack: through the ingress, with Slack's signature.

use bobbin_chat::slack::{Identity, deliver};
use bobbin_cloud::clock::now_ms;
use bobbin_core::base::ids::ThreadKey;
use bobbin_core::base::person::{Membership, Person};
use bobbin_core::records::message::Reply;
use serde_json::json;

use super::follow::{Followed, TestTurn, follow, tell_answer, tidy};
use super::{TestOptions, TestTask};
use crate::setup::check::lists;
use crate::setup::report::Report;
use crate::target::StackTarget;

pub async fn run(
    target: &StackTarget,
    report: &mut Report,
    options: &TestOptions,
    channel: &str,
    user: &str,
) -> Result<(), String> {
    let stack = target.stack().await?;
    let token = target.needed("slack_bot_token").await?.value;
    let slack = target.slack(&token)?;
    let told = |error: bobbin_chat::slack::SlackError| format!("{error}");
    let app = slack.installed().await.map_err(told)?.identity;
    if !lists(target.parameter("AllowedTeams"), &app.team) {
        return Err(format!(
            "AllowedTeams does not list {}, the workspace of that token, so the ingress would refuse everything: {}",
            app.team,
            target.sam_deploy_listing("AllowedTeams", &app.team)
        ));
    }

    let task = TestTask::new("slack");
    let root = slack
        .say(
            channel,
            &format!("A test of the installation, requested by bobbin in the name of {user}."),
        )
        .await
        .map_err(told)?;
    let thread = ThreadKey::slack(&app.team, channel, &root).map_err(|e| e.to_string())?;
    report.right(&format!("The channel has a message for the test: {thread}"));
    mention(target, report, &app, &task, (channel, user, &root)).await?;

    let by = Person { id: user.to_owned(), name: user.to_owned() };
    let turn = TestTurn {
        thread,
        by,
        reply: Reply::Slack {
            channel: channel.to_owned(),
            thread_ts: Some(root.clone()),
            user: user.to_owned(),
        },
        membership: Membership { channel: channel.to_owned(), ..Membership::default() },
    };
    let followed = follow(stack, report, &turn, options.wait).await?;
    if followed == Followed::Answered {
        let words = slack.words_of_thread(channel, &root).await.map_err(told)?;
        // The first message is the prompt.
        let there = words.iter().skip(1).any(|words| words.contains(&task.word));
        tell_answer(target, report, &task, there);
    }
    tidy(target, stack, report, &turn, options).await
}

/// Delivers the mention to the ingress, with Slack's signature.
async fn mention(
    target: &StackTarget,
    report: &mut Report,
    app: &Identity,
    task: &TestTask,
    (channel, user, root): (&str, &str, &str),
) -> Result<(), String> {
    let secret = target.needed("slack_signing_secret").await?.value;
    let event = json!({
        "type": "event_callback",
        "team_id": app.team,
        "event_id": task.id,
        "event_time": now_ms() / 1_000,
        "authorizations": [{ "team_id": app.team, "user_id": app.user, "is_bot": true }],
        "event": {
            "type": "app_mention", "channel": channel, "user": user, "ts": root, "event_ts": root,
            "text": format!("<@{}> {}", app.user, task.text),
        },
    });
    let ingress = target.stack().await?.output("IngressAddress")?;
    match deliver(ingress, secret.expose(), &event, now_ms()).await {
        Ok(200) => {
            report.right("The ingress accepts the mention, signed as Slack signs it");
            Ok(())
        }
        Ok(401) => Err(format!(
            "The ingress refuses the signature: the stack has another signing secret than this machine. Store this one: bobbin {} secrets.",
            target.said()
        )),
        Ok(status) => Err(format!(
            "The ingress answers {status} to the mention: its log group in CloudWatch says why."
        )),
        Err(why) => Err(format!("The ingress does not answer the mention: {why}")),
    }
}
