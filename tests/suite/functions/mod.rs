//! The three real programs, each alone behind a Runtime API: their messages about a wrong configuration, and their
//! answers to every file in `events/`.

mod brake;
mod configuration;
mod container;
mod counted;
mod direct;
mod events;
mod links;
mod vanished;

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::run::trial;

pub fn trials() -> Vec<Trial> {
    vec![
        container::environment(),
        container::invoked(),
        trial("functions::wrong_configuration_logs_one_naming_line", configuration::refused),
        trial("functions::worker_without_keys_briefly_holds_messages", configuration::without_keys),
        trial("functions::stop_all_flags_before_replying", brake::stop_all),
        trial("functions::valid_configuration_starts_silently", configuration::accepted),
        trial("functions::ingress_events_get_listed_answers", events::ingress),
        trial("functions::worker_events_get_listed_answers", events::worker),
        trial("functions::ingress_puts_direct_message_into_one_thread", direct::chosen),
        trial("functions::ingress_reads_no_table_for_other_messages", direct::others),
        trial("functions::direct_message_is_worked_on_in_one_thread", direct::taken_once),
        trial("functions::unqueued_request_is_counted", counted::ingress),
        trial("functions::losses_and_table_failures_are_counted", counted::worker),
        trial("functions::sandbox_dead_letter_reaches_requester", counted::sandbox_letters),
        trial("functions::newer_dead_letter_waits_a_day", counted::newer_letters),
        trial("functions::stored_press_is_handed_over_again", links::pressed_again),
        trial("functions::unknown_press_is_taken_back", links::unknown_press),
        trial("functions::deleted_orphan_is_counted", counted::sweeper),
        trial("functions::mass_absence_keeps_all_records", vanished::held),
        trial("functions::sweeper_tick_checks_everything_and_reports", events::sweeper),
    ]
}

/// Every credential, for any function.
fn secret() -> Value {
    json!({
        "discord_bot_token": "a-bot-token", "slack_bot_token": "xoxb-a-bot-token",
        "slack_signing_secret": events::SLACK_SECRET, "daytona_api_key": "a-provider-key",
        "github_webhook_secret": events::WEBHOOK_SECRETS,
        "anthropic_api_key": "a-model-key", "openai_api_key": "", "openrouter_api_key": "",
        "stack_key": "k".repeat(48),
    })
}
