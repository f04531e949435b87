//! Signing in at the forge through a link: the way there, the way back, and the press on what it brought.
//!
//! Promised: the state is the secret part of the link, so nobody else's sign-in comes in through it. The code is sealed
//! within the request that brings it. Whoever brings it gets a press token, and only with that something can be
//! pressed: the forge does not ask a person again who has once authorised the app, so somebody could lead them through
//! the sign-in with a link of their own. A request that could not be handed to the worker is undone. Deliberately
//! absent: the app's client secret, and any way to open a code.

use bobbin_cloud::clock::now_ms;
use bobbin_cloud::queue::Queues;
use bobbin_core::base::ids::{Ms, digest};
use bobbin_core::base::secret::Secret;
use bobbin_core::records::control::ControlAction;
use bobbin_core::records::message::Body;
use bobbin_core::tenant::setup_link::{Purpose, SetupLink, StoredLink};
use bobbin_core::tenant::sign_in::{ForgeRequest, StoredSignIn, code_id, code_seal, press_id};

use crate::page;
use crate::setup::{
    FORM_BYTES_MAX, Links, OpenLink, SetupAnswer, control, is_token, later, spent, within,
};

/// Longest code of a forge.
const CODE_BYTES_MAX: usize = 200;

impl Links {
    /// Takes a person who comes back from the forge.
    pub async fn come_back(
        &self,
        query: impl Fn(&str) -> Option<String>,
        queues: &Queues,
    ) -> SetupAnswer {
        let now_ms = now_ms();
        let state = query("state").unwrap_or_default();
        let OpenLink { id, link, seal } = match self.open_link(&state, now_ms).await {
            Ok(open) if !matches!(open.link.purpose, Purpose::Key(_) | Purpose::ProjectSecret) => {
                open
            }
            Ok(_) => return spent(),
            Err(told) => return told,
        };
        if query("error").is_some() {
            return (page::denied(), "setup: sign-in denied");
        }
        let is_code = |code: &String| {
            (1..=CODE_BYTES_MAX).contains(&code.len()) && code.bytes().all(|b| b.is_ascii_graphic())
        };
        let Some(code) = query("code").filter(is_code) else {
            return spent();
        };
        let came = code_id(&code);
        let context = code_seal(&self.stack, &link.thread.tenant(), &id);
        let sealed = match within(seal.close(&Secret::from(code), &context)).await {
            Ok(sealed) => sealed,
            Err(why) => return later(&why),
        };
        let token = press_token();
        let press = press_id(&token);
        let why = match within(self.store.signed_in(&id, &press, (&sealed, &came), now_ms)).await {
            Ok(true) => {
                let name = digest(&["signed-in", &id, &press]);
                let wish = ForgeRequest::SignedIn { link: id.clone(), press: press.clone() };
                match queues.send(&message(&name, &link, wish)).await {
                    Ok(()) => {
                        let there = format!("../setup/{id}/{token}");
                        return (page::lead_on(&there), "setup: signed in");
                    }
                    Err(error) => error.to_string(),
                }
            }
            Ok(false) => return spent(),
            // It may be stored all the same.
            Err(why) => why,
        };
        if let Err(error) = within(self.store.forget_sign_in(&id, &press)).await {
            tracing::warn!(event = "setup.unopened", %error, "a sign-in that was not queued could not be forgotten");
        }
        later(&why)
    }

    /// Shows what a sign-in brought.
    pub async fn show_found(&self, (id, token): (&str, &str), queues: &Queues) -> SetupAnswer {
        let now_ms = now_ms();
        let (link, sign_in) = match self.signed_in(id, token).await {
            Ok(found) => found,
            Err(told) => return told,
        };
        if let Some((_, at_ms)) = sign_in.pressed {
            return pressed_before((id, &link), at_ms, sign_in.found.is_some(), queues).await;
        }
        if now_ms >= link.until_ms {
            return spent();
        }
        match sign_in.found {
            Some(found) => (page::found(&link, &found, None), "setup: choice shown"),
            None => (page::looking(), "setup: looking"),
        }
    }

    /// Takes a press on what a sign-in brought.
    pub async fn press(
        &self,
        (id, token): (&str, &str),
        body: &[u8],
        queues: &Queues,
    ) -> SetupAnswer {
        let now_ms = now_ms();
        let (link, sign_in) = match self.signed_in(id, token).await {
            Ok(found) => found,
            Err(told) => return told,
        };
        if let Some((_, at_ms)) = sign_in.pressed {
            return pressed_before((id, &link), at_ms, sign_in.found.is_some(), queues).await;
        }
        let StoredSignIn { press, found: Some(found), .. } = sign_in else {
            return (page::looking(), "setup: looking");
        };
        let choice = chosen(body).filter(|choice| found.is_choice(choice));
        let Some(choice) = choice else {
            const NONE: &str = "That cannot be chosen. Nothing was changed.";
            return (page::found(&link, &found, Some(NONE)), "setup: no choice");
        };
        let why = match within(self.store.press(id, &press, &choice, now_ms)).await {
            Ok(true) => match hand_over((id, &link), now_ms, queues).await {
                Ok(()) => return (page::pressed(), "setup: pressed"),
                Err(why) => why,
            },
            Ok(false) => return spent(),
            // It may be stored all the same.
            Err(why) => why,
        };
        if let Err(error) = within(self.store.take_press_back(id, now_ms)).await {
            tracing::warn!(event = "setup.unopened", %error, "a press that was not queued could not be taken back");
        }
        later(&why)
    }

    /// The sign-in to which a press token belongs.
    async fn signed_in(
        &self,
        id: &str,
        token: &str,
    ) -> Result<(SetupLink, StoredSignIn), SetupAnswer> {
        if self.seal.is_none() || !is_token(id) || !is_token(token) {
            return Err(spent());
        }
        let found = within(self.store.link(id)).await.map_err(|why| later(&why))?;
        let Some(StoredLink { link, sign_in: Some(sign_in), .. }) = found else {
            return Err(spent());
        };
        // Hashes are compared, so how long that takes tells nothing of the token.
        if sign_in.press != press_id(token) {
            return Err(spent());
        }
        Ok((link, sign_in))
    }
}

/// Answers a visit after a press. Until the press is carried out, which removes what was found, the worker may not have
/// heard of it: it is told again.
async fn pressed_before(
    (id, link): (&str, &SetupLink),
    at_ms: Ms,
    is_pending: bool,
    queues: &Queues,
) -> SetupAnswer {
    if is_pending && let Err(why) = hand_over((id, link), at_ms, queues).await {
        return later(&why);
    }
    (page::pressed(), "setup: pressed before")
}

/// Hands a stored press to the worker; a repeat is the same message.
async fn hand_over(
    (id, link): (&str, &SetupLink),
    at_ms: Ms,
    queues: &Queues,
) -> Result<(), String> {
    let name = digest(&["pressed", id, &at_ms.to_string()]);
    let wish = ForgeRequest::Pressed { link: id.to_owned() };
    queues.send(&message(&name, link, wish)).await.map_err(|e| e.to_string())
}

/// A token that nobody can guess.
fn press_token() -> String {
    hex::encode(rand::random::<[u8; 32]>())
}

/// What the form says was pressed.
fn chosen(body: &[u8]) -> Option<String> {
    if body.len() > FORM_BYTES_MAX {
        return None;
    }
    let mut fields = form_urlencoded::parse(body);
    fields.find(|(name, _)| name == page::CHOICE).map(|(_, value)| value.into_owned())
}

/// The control message that hands a wish of the page to the worker.
fn message(name: &str, link: &SetupLink, forge: ForgeRequest) -> Body {
    control(format!("sign-in-{}", &name[..32]), link, ControlAction::Forge { forge })
}
