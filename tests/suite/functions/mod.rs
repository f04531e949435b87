//! The three real programs, each alone behind a Runtime API: what they say about a wrong configuration, and what they
//! answer to every file in `events/`.

mod brake;
mod configuration;
mod container;
mod counted;
mod events;
mod vanished;

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::run::trial;

pub fn trials() -> Vec<Trial> {
    vec![
        container::environment(),
        container::invoked(),
        trial(
            "functions::a_wrong_configuration_is_told_in_one_line_that_names_it",
            configuration::refused,
        ),
        trial(
            "functions::a_worker_that_cannot_read_its_keys_holds_what_comes_for_seconds",
            configuration::without_keys,
        ),
        trial("functions::stop_all_flags_everything_before_anything_is_said", brake::stop_all),
        trial(
            "functions::what_is_right_asks_for_work_and_has_nothing_to_say",
            configuration::accepted,
        ),
        trial(
            "functions::every_event_of_discord_and_slack_has_the_answer_stated_here",
            events::ingress,
        ),
        trial("functions::every_event_of_the_worker_has_the_answer_stated_here", events::worker),
        trial("functions::a_request_that_cannot_be_queued_is_counted", counted::ingress),
        trial(
            "functions::a_control_word_that_is_given_up_a_dead_letter_and_a_table_that_refuses_are_counted",
            counted::worker,
        ),
        trial(
            "functions::a_dead_letter_of_a_sandbox_is_done_and_told_to_who_asked",
            counted::sandbox_letters,
        ),
        trial("functions::an_orphan_that_is_deleted_is_counted", counted::sweeper),
        trial("functions::most_records_without_a_listed_sandbox_are_kept", vanished::held),
        trial(
            "functions::the_tick_of_the_sweeper_looks_everywhere_and_answers_with_numbers",
            events::sweeper,
        ),
    ]
}

/// Every credential, whichever function asks.
fn secret() -> Value {
    json!({
        "discord_bot_token": "a-bot-token", "slack_bot_token": "xoxb-a-bot-token",
        "slack_signing_secret": events::SLACK_SECRET, "daytona_api_key": "a-provider-key",
        "anthropic_api_key": "a-model-key", "openai_api_key": "", "openrouter_api_key": "",
        "stack_key": "k".repeat(48),
    })
}
