//! The command `discord endpoint`: the address that Discord sends interactions to.

use crate::support::{APPLICATION, DISCORD_TOKEN, Options, World};

const TOKEN: [(&str, &str); 1] = [("DISCORD_BOT_TOKEN", DISCORD_TOKEN)];

#[tokio::test]
async fn interactions_endpoint_is_set_and_cleared() {
    let world = World::start().await;
    let here = format!("{}/discord/interactions", world.ingress);
    let name = format!("Discord application Bobbin ({APPLICATION})");
    let dry = world.run(&["discord", "endpoint", "--dry-run"], &TOKEN).await;
    dry.is(3, &format!("  to do {name}: interactions would be delivered to {here} instead of nowhere; nothing was written\n"));
    let set = world.run(&["discord", "endpoint"], &TOKEN).await;
    set.is(0, &format!("  ok    {name}: interactions are now delivered to {here} instead of nowhere\n        To go back: bobbin discord endpoint --clear\n"));
    let again = world.run(&["discord", "endpoint"], &TOKEN).await;
    again.is(0, &format!("  ok    {name}: interactions are already delivered to {here}\n"));
    let cleared = world.run(&["discord", "endpoint", "--clear"], &TOKEN).await;
    cleared.is(0, &format!("  ok    {name}: interactions are now delivered to nowhere instead of {here}\n        To go back: bobbin discord endpoint --address {here}\n"));
    let writes = world.requests("discord").await;
    assert_eq!(writes.iter().filter(|one| one.starts_with("PATCH")).count(), 2, "{writes:?}");
}

#[tokio::test]
async fn unverifiable_discord_endpoint_is_explained() {
    let world = World::start().await;
    let lax = format!("{}/lax/discord/interactions", world.ingress);
    let refused = world.run(&["discord", "endpoint", "--address", &lax], &TOKEN).await;
    refused.refused(&format!("Discord does not accept {lax}. Before it saves an address it sends a PING there, which must be answered within 3 s, and one with a wrong signature, which must be refused with 401."));
    let silent =
        world.run(&["discord", "endpoint", "--address", "http://127.0.0.1:9/"], &TOKEN).await;
    silent.refused("Discord does not accept http://127.0.0.1:9/.");

    let parameters =
        vec![("DiscordPublicKey", "ab".repeat(32)), ("Ingress", "http://127.0.0.1:9".to_owned())];
    let other = World::with(Options { parameters, ..Options::default() }).await;
    let refused = other.run(&["discord", "endpoint"], &TOKEN).await;
    refused.refused(&format!("The stack has the public key of another application: sam deploy --stack-name bobbin --region us-east-1 --parameter-overrides DiscordApplicationId={APPLICATION} DiscordPublicKey={}", other.public_key));
}
