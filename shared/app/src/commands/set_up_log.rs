//! The button *Set-up log*: the output of the set-up of the thread's project.

use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{Ms, TurnId};
use bobbin_core::protocol::ports::Loaded;
use bobbin_core::records::control::Control;
use bobbin_core::records::sandbox::Phase;
use bobbin_core::records::session::Session;
use bobbin_core::tenant::project_secrets::project_of;

use crate::control::Lane;

/// UTF-16 units of the output that are shown: a message has room for 2,000.
const SHOWN_UNITS_MAX: usize = 1_600;
const GONE: &str = "That set-up's sandbox is gone, and its output with it.";
const PAUSED: &str = "The output is in the sandbox, which does not run. Send the thread a message, then press again.";
const NOTHING: &str = "The set-up has no output.";

impl Lane<'_> {
    /// The end of the output, for the person who pressed.
    pub(super) async fn set_up_log(
        &self,
        control: &Control,
        turn: &TurnId,
        found: &Loaded,
    ) -> Result<(), Failure> {
        let session = found.session.as_ref();
        let Some(session) = session.filter(|session| ran_in(session, turn)) else {
            return self.chat.answer(&control.reply, GONE).await;
        };
        if session.sandbox.phase == Phase::Paused {
            return self.chat.answer(&control.reply, PAUSED).await;
        }
        let sandboxes = self.sandboxes(&control.thread, found).await?;
        let said = sandboxes.set_up_log(&session.sandbox_key(), session.sandbox.generation).await;
        let words = match said {
            Ok(said) => words(&self.hidden(control, found, session, said).await?),
            Err(Failure::SandboxGone) => GONE.to_owned(),
            Err(Failure::SandboxDown { .. }) => PAUSED.to_owned(),
            Err(failure) => return Err(failure),
        };
        self.chat.answer(&control.reply, &words).await
    }

    /// The output without the secrets of the project that its steps could read.
    async fn hidden(
        &self,
        control: &Control,
        found: &Loaded,
        session: &Session,
        said: String,
    ) -> Result<String, Failure> {
        let Some(repository) = project_of(&session.sandbox) else { return Ok(said) };
        let (tenant, settings) = (control.thread.tenant(), &found.settings);
        let opened = self.tenants.project_secrets(&tenant, settings, &repository).await?;
        let values = opened.iter().filter_map(|(_, value)| value.as_ref());
        Ok(values.fold(said, |said, value| said.replace(value.expose(), "***")))
    }
}

/// Whether the present sandbox was set up during this turn, or before it.
fn ran_in(session: &Session, turn: &TurnId) -> bool {
    let set_up = session.sandbox.project.set_up.as_ref().filter(|_| session.sandbox.is_alive());
    let mut ended = session.ended.iter().filter(|ended| ended.id == *turn);
    let until_ms: Option<Ms> = match &session.turn {
        Some(present) if present.id == *turn => Some(Ms::MAX),
        _ => ended.next().map(|ended| ended.at_ms),
    };
    set_up.is_some_and(|set_up| until_ms.is_some_and(|until_ms| set_up.begun_ms <= until_ms))
}

fn words(said: &str) -> String {
    let said = said.trim().replace("```", "'''");
    if said.is_empty() {
        return NOTHING.to_owned();
    }
    let mut units = 0;
    let kept = said.char_indices().rev().take_while(|(_, char)| {
        units += char.len_utf16();
        units <= SHOWN_UNITS_MAX
    });
    let from = kept.last().map_or(0, |(at, _)| at);
    let what = if from > 0 { "The end of the set-up's output" } else { "The set-up's output" };
    let shown = &said[from..];
    format!("{what} (all of it is in the sandbox, in `.bobbin/set-up`):\n```\n{shown}\n```")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_output_is_cut_at_its_beginning() {
        let short = words("step 1\n```x```\n");
        assert_eq!(
            short,
            "The set-up's output (all of it is in the sandbox, in `.bobbin/set-up`):\n```\nstep 1\n'''x'''\n```"
        );
        let long = words(&format!("{}the end", "ä🙂".repeat(1_000)));
        assert!(
            long.starts_with("The end of the set-up's output") && long.ends_with("the end\n```")
        );
        assert!((1_600..1_750).contains(&bobbin_core::text::units(&long)), "{}", long.len());
        assert_eq!(words(" \n"), NOTHING);
    }
}
