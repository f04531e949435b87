//! The command `slack manifest`: the app as Slack is to make it.

use serde_json::Value;

use crate::support::{Options, World};

#[tokio::test]
async fn manifest_has_address_and_creation_link() {
    let parameters = vec![("Ingress", "https://stack.example".to_owned())];
    let world = World::with(Options { parameters, ..Options::default() }).await;
    for (arguments, host) in [
        (&["slack", "manifest", "--address", "https://bobbin.example"][..], "bobbin.example"),
        (&["slack", "manifest"], "stack.example"),
    ] {
        let done = world.run(arguments, &[]).await;
        assert_eq!(done.code, 0, "{}", done.err);
        let (manifest, rest) = done.out.split_once("\n\n").unwrap();
        let manifest: Value = serde_json::from_str(manifest).unwrap();
        assert_eq!(
            manifest["settings"]["event_subscriptions"]["request_url"],
            format!("https://{host}/slack/events")
        );
        assert!(rest.contains("https://api.slack.com/apps?new_app=1&manifest_json=%7B"), "{rest}");
        let link = world.run(&[arguments, &["--link"]].concat(), &[]).await;
        assert!(
            link.out.starts_with("https://api.slack.com/apps?new_app=1")
                && link.out.lines().count() == 1
        );
    }
}

#[tokio::test]
async fn local_slack_address_is_refused() {
    let world = World::start().await;
    let done = world.run(&["slack", "manifest", "--address", "http://localhost:3000"], &[]).await;
    done.refused("https:// and a host name");
    // The stack's own address is one of this machine here, as the laptop stack's is.
    let local = world.run(&["slack", "manifest"], &[]).await;
    local.refused("only on this machine");
    local.refused("slack manifest --address https://TUNNEL");
    let stackless = world.run(&["slack", "manifest", "--stack", "other"], &[]).await;
    stackless.refused("There is no stack other in us-east-1.");
}
