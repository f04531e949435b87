//! The button *Set-up log*: the output of the set-up of the thread's project.

use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{Ms, TurnId};
use bobbin_core::base::secret::Secret;
use bobbin_core::protocol::ports::Loaded;
use bobbin_core::records::control::Control;
use bobbin_core::records::sandbox::Phase;
use bobbin_core::records::session::Session;
use bobbin_core::tenant::project_secrets::{SecretRequest, named_repository};
use bobbin_core::tenant::settings::Settings;

use crate::control::Lane;

/// UTF-16 units of the output that are shown: a message has room for 2,000.
const SHOWN_UNITS_MAX: usize = 1_600;
/// Stands for a secret's value.
const HIDDEN: &str = "***";
/// Bytes of a value that are still told from other text.
const PIECE_BYTES: usize = 4;
const GONE: &str = "That set-up's sandbox is gone, and its output with it.";
const PAUSED: &str = "The output is in the sandbox, which does not run. Send the thread a message, then press again.";
const NOTHING: &str = "The set-up has no output.";
const CHANGED: &str = "The set-up's output is not shown: it may hold a secret that was changed or removed since. A new sandbox is set up with the present ones. This output is in the sandbox, in `.bobbin/set-up`.";

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
            Ok(said) => self.log_words(control, found, session, &said).await?,
            Err(Failure::SandboxGone) => GONE.to_owned(),
            Err(Failure::SandboxDown { .. }) => PAUSED.to_owned(),
            Err(failure) => return Err(failure),
        };
        self.chat.answer(&control.reply, &words).await
    }

    /// What is shown of the output: nothing of the project's secrets that its steps could read.
    async fn log_words(
        &self,
        control: &Control,
        found: &Loaded,
        session: &Session,
        said: &str,
    ) -> Result<String, Failure> {
        let Some(repository) = named_repository(&session.sandbox) else { return Ok(words(said)) };
        if is_changed(session, &repository, &found.settings) {
            return Ok(CHANGED.to_owned());
        }
        let (tenant, settings) = (control.thread.tenant(), &found.settings);
        let opened = self.tenants.project_secrets(&tenant, settings, &repository).await?;
        Ok(shown_beside(said, &opened))
    }
}

/// Whether the steps could read a value that is no longer known. One that was stored since changes nothing, nor does a
/// name that the sandbox got since.
fn is_changed(session: &Session, repository: &str, settings: &Settings) -> bool {
    let set_up = session.sandbox.project.set_up.as_ref();
    let mut read = set_up.into_iter().flat_map(|set_up| &set_up.secrets);
    let present = settings.project_secrets.read_by_set_up(repository);
    read.any(|(name, value)| present.get(name) != Some(value))
}

/// Says why nothing is shown if a value is not known that the output may hold.
fn shown_beside(said: &str, secrets: &[(SecretRequest, Option<Secret>)]) -> String {
    let unopened = secrets.iter().find(|(wish, value)| wish.set_up && value.is_none());
    if let Some((SecretRequest { name, .. }, _)) = unopened {
        return format!(
            "The set-up's output is not shown: it may hold the secret `{name}`, whose value cannot be opened. Ask a manager to store `{name}` again, and start a new sandbox. This output is in the sandbox, in `.bobbin/set-up`."
        );
    }
    let values = secrets.iter().filter_map(|(_, value)| value.as_ref());
    words(&without(said, &values.map(Secret::expose).collect::<Vec<_>>()))
}

/// The output without these values, and without what a cut has left of one at the beginning or the end.
fn without(said: &str, values: &[&str]) -> String {
    let mut said =
        values.iter().fold(said.trim().to_owned(), |said, value| said.replace(value, HIDDEN));
    for value in values {
        let cuts = || (1..value.len()).filter(move |at| value.is_char_boundary(*at));
        // The first step's output begins behind a line of ours.
        let ours = said.starts_with("-- step ").then(|| said.find('\n')).flatten();
        let from = ours.map_or(0, |end| end + 1);
        let pieces = cuts().map(|at| &value[at..]);
        let mut pieces = pieces.take_while(|piece| piece.len() >= PIECE_BYTES);
        if let Some(piece) = pieces.find(|piece| said[from..].starts_with(*piece)) {
            said.replace_range(from..from + piece.len(), HIDDEN);
        }
        let pieces = cuts().rev().map(|at| &value[..at]);
        let mut pieces = pieces.take_while(|piece| piece.len() >= PIECE_BYTES);
        if let Some(piece) = pieces.find(|piece| said.ends_with(*piece)) {
            said.truncate(said.len() - piece.len());
            said.push_str(HIDDEN);
        }
    }
    said
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
    use bobbin_core::base::ids::ThreadKey;
    use bobbin_core::base::person::Person;
    use bobbin_core::records::set_up::SetUp;
    use bobbin_core::tenant::project_secrets::ProjectSecret;

    use super::*;

    #[test]
    fn no_part_of_a_secret_is_shown() {
        let values = ["hunter2-long-value", "another-value"];
        for (said, shown) in [
            ("it is hunter2-long-value!", "it is ***!"),
            ("ter2-long-value\nnext", "***\nnext"),
            ("-- step 1\nlong-value\nnext\n", "-- step 1\n***\nnext"),
            ("first hunter2-lo\n", "first ***"),
            ("ther-value another-v", "*** ***"),
            ("a value: long-values, anot", "a value: long-values, ***"),
            ("lue", "lue"),
        ] {
            assert_eq!(without(said, &values), shown, "{said}");
        }
    }

    #[test]
    fn output_that_may_hold_an_unopened_secret_is_not_shown() {
        let wish = |name: &str, set_up| SecretRequest {
            repository: "acme/api".to_owned(),
            name: name.to_owned(),
            hosts: Vec::new(),
            readable: true,
            set_up,
        };
        let known = (wish("KNOWN", true), Some(Secret::from("hunter2-long-value".to_owned())));
        let others = (wish("OTHERS", false), None);
        let shown = shown_beside("it is hunter2-long-value!", &[known, others]);
        assert!(shown.contains("it is ***!"), "{shown}");
        let shown = shown_beside("it is", &[(wish("NPM_TOKEN", true), None)]);
        let begins = "The set-up's output is not shown: it may hold the secret `NPM_TOKEN`,";
        assert!(shown.starts_with(begins), "{shown}");
    }

    #[test]
    fn output_that_may_hold_a_changed_secret_is_not_shown() {
        let wish = SecretRequest {
            repository: "acme/api".to_owned(),
            name: "NPM_TOKEN".to_owned(),
            hosts: Vec::new(),
            readable: true,
            set_up: true,
        };
        let stored_as = |settings: &Settings, sealed: &str, wish: &SecretRequest| {
            let secret = ProjectSecret {
                sealed: sealed.to_owned(),
                hosts: Vec::new(),
                readable: true,
                set_up: true,
                by: Person::default(),
                since_ms: 1,
            };
            settings.with_secret(sealed, wish, secret).expect("there is room")
        };
        let stored = |settings: &Settings, sealed: &str| stored_as(settings, sealed, &wish);
        let settings = stored(&Settings::default(), "one");
        let set_up_with = |settings: &Settings| {
            let mut session = Session::new(ThreadKey::discord("1", "2").expect("ids"), 0);
            let secrets = settings.project_secrets.read_by_set_up("acme/api");
            session.sandbox.project.set_up = Some(SetUp { secrets, ..SetUp::nothing(1) });
            session
        };
        let session = set_up_with(&settings);
        assert!(!is_changed(&session, "acme/api", &settings));
        for changed in [stored(&settings, "two"), Settings::default()] {
            assert!(is_changed(&session, "acme/api", &changed));
        }
        // One that came later is in no output.
        let another = SecretRequest { name: "PIP_TOKEN".to_owned(), ..wish.clone() };
        assert!(!is_changed(&session, "acme/api", &stored_as(&settings, "three", &another)));
        assert!(!is_changed(&set_up_with(&Settings::default()), "acme/api", &settings));
    }

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
