//! Attempts at one prompt. The daemon runs a turn's id only once, so a prompt whose run was cut (the sandbox stopped)
//! is sent again with another id, which is derived from the first one: a third submission finds the second attempt.

use bobbin_agent_client::{ClientResult, TurnState, TurnStatus};

/// Most attempts at one prompt. The core gives up long before.
const TRIES_MAX: u32 = 20;

/// The id of the n-th attempt, from 1.
fn id(message: &str, number: u32) -> String {
    match number {
        0 | 1 => message.to_owned(),
        number => format!("{message}_{number}"),
    }
}

/// The newest attempt that the daemon knows, or else the first, which is then not seen.
pub(crate) struct Newest {
    /// Its turn's id.
    pub(crate) turn: String,
    pub(crate) status: TurnStatus,
    number: u32,
}

impl Newest {
    /// The turn to be sent next: this one, unless it was cut.
    pub(crate) fn next(&self, message: &str) -> String {
        match self.status.state {
            TurnState::Lost => id(message, self.number + 1),
            _ => self.turn.clone(),
        }
    }
}

/// Finds the newest attempt; `look` asks the daemon about one turn. One call, unless an attempt was cut.
pub(crate) async fn newest<F>(message: &str, look: impl Fn(String) -> F) -> ClientResult<Newest>
where
    F: Future<Output = ClientResult<TurnStatus>>,
{
    let turn = id(message, 1);
    let status = look(turn.clone()).await?;
    let mut newest = Newest { turn, status, number: 1 };
    while newest.status.state == TurnState::Lost && newest.number < TRIES_MAX {
        let number = newest.number + 1;
        let turn = id(message, number);
        let status = look(turn.clone()).await?;
        if status.state == TurnState::NotSeen {
            break;
        }
        newest = Newest { turn, status, number };
    }
    Ok(newest)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn status(state: &str) -> TurnStatus {
        serde_json::from_value(json!({"state": state, "lastEvent": 0})).unwrap()
    }

    async fn of(states: &[&str]) -> (String, String) {
        let look = |turn: String| {
            let number = match turn.split_once('_').unwrap().1.split_once('_') {
                Some((_, number)) => number.parse::<usize>().unwrap(),
                None => 1,
            };
            std::future::ready(Ok(status(states.get(number - 1).unwrap_or(&"not_seen"))))
        };
        let newest = newest("msg_a", look).await.unwrap();
        (newest.turn.clone(), newest.next("msg_a"))
    }

    #[tokio::test]
    async fn only_lost_attempts_are_repeated() {
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(of(&["not_seen"]).await, pair("msg_a", "msg_a"));
        assert_eq!(of(&["running"]).await, pair("msg_a", "msg_a"));
        assert_eq!(of(&["failed"]).await, pair("msg_a", "msg_a"));
        assert_eq!(of(&["lost"]).await, pair("msg_a", "msg_a_2"));
        assert_eq!(of(&["lost", "done"]).await, pair("msg_a_2", "msg_a_2"));
        assert_eq!(of(&["lost", "lost"]).await, pair("msg_a_2", "msg_a_3"));
    }
}
