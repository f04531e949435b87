//! An admitted interaction: its author, its place, and how it becomes work on the queue.

use bobbin_core::base::ids::{Ms, ThreadKey};
use bobbin_core::base::person::{Membership, Person};
use bobbin_core::protocol::decide::words;
use bobbin_core::records::control::{Control, ControlAction};
use bobbin_core::records::message::{Body, Message, Reply, Work};

use crate::discord::answer;
use crate::discord::app::App;
use crate::discord::interaction::{Channel, GuildMember, Interaction, User};
use crate::{HttpAnswer, Inbound};

const ADMINISTRATOR: u32 = 3;
const MANAGE_GUILD: u32 = 5;
const IN_SERVERS_ONLY: &str = "This works in servers only, not in direct messages.";
const NOT_A_MEMBER: &str = "The app is not a member of this server. Someone who manages the server can add it, then this works.";
const PEOPLE_ONLY: &str = "Only people can use this.";
const IN_THREADS_ONLY: &str =
    "Use this in a thread that has a sandbox. `/sandbox` in a channel starts one.";

/// The queue may have accepted it, with its answer arriving too late.
const REPEAT_IT: &str = "Bobbin does not know whether this was accepted. Trying again does no harm";

/// Why nothing is started, in words for the person; and the note for the log.
pub(super) struct Refused(pub(super) String, pub(super) &'static str);

pub(super) type RequestOutcome = Result<Inbound, Refused>;

pub(super) fn refuse<T>(words: impl Into<String>, note: &'static str) -> Result<T, Refused> {
    Err(Refused(words.into(), note))
}

/// Whether these permissions, a decimal number, include managing the server.
fn manages(permissions: &str) -> bool {
    permissions
        .parse::<u128>()
        .is_ok_and(|held| held & (1 << ADMINISTRATOR | 1 << MANAGE_GUILD) != 0)
}

/// The acting person, by the name that others in the guild see.
fn person(member: &GuildMember, user: &User) -> Person {
    let name = [member.nick.as_ref(), user.global_name.as_ref()]
        .into_iter()
        .flatten()
        .find(|name| !name.trim().is_empty());
    Person { id: user.id.clone(), name: name.unwrap_or(&user.username).clone() }
}

/// An interaction of somebody who may use Bobbin here.
pub(super) struct AdmittedInteraction<'a> {
    pub(super) interaction: &'a Interaction,
    pub(super) app: &'a App,
    pub(super) now_ms: Ms,
    pub(super) guild: &'a str,
    pub(super) channel: &'a str,
    pub(super) by: Person,
    pub(super) membership: Membership,
}

impl<'a> AdmittedInteraction<'a> {
    pub(super) fn admitted(
        interaction: &'a Interaction,
        app: &'a App,
        now_ms: Ms,
    ) -> Result<Self, Refused> {
        let elsewhere = interaction.context.is_some_and(|context| context != 0);
        let (Some(guild), Some(channel), Some(member), false) =
            (&interaction.guild_id, &interaction.channel_id, &interaction.member, elsewhere)
        else {
            return refuse(IN_SERVERS_ONLY, "discord: not in a guild");
        };
        let owners = &interaction.authorizing_integration_owners;
        if !owners.is_empty() && owners.get("0") != Some(guild) {
            return refuse(NOT_A_MEMBER, "discord: user install");
        }
        let Some(user) = member.user.as_ref().filter(|user| !user.bot && !user.id.is_empty())
        else {
            return refuse(PEOPLE_ONLY, "discord: a bot");
        };
        let parent = interaction.channel.as_ref().and_then(|channel| channel.parent_id.as_deref());
        // A text channel has a parent too: its category. Only a thread is admitted by its parent.
        let parent =
            parent.filter(|_| interaction.channel.as_ref().is_some_and(Channel::is_thread));
        let channels: Vec<&str> = [channel.as_str()].into_iter().chain(parent).collect();
        let ids: Vec<&str> =
            [user.id.as_str()].into_iter().chain(member.roles.iter().map(String::as_str)).collect();
        if let Err(refusal) = app.policy.discord(guild, &channels, &ids) {
            return refuse(refusal.to_string(), "discord: refused by policy");
        }
        Ok(Self {
            interaction,
            app,
            now_ms,
            guild,
            channel,
            by: person(member, user),
            membership: Membership {
                channel: parent.unwrap_or(channel).to_owned(),
                roles: member.roles.clone(),
                manages: member.permissions.as_deref().is_some_and(manages),
                outside: None,
                operates: false,
            },
        })
    }

    pub(super) fn in_thread(&self) -> bool {
        self.interaction.channel.as_ref().is_some_and(Channel::is_thread)
    }

    /// The thread of the interaction.
    pub(super) fn thread(&self) -> Result<ThreadKey, Refused> {
        if self.in_thread() {
            self.here()
        } else {
            refuse(IN_THREADS_ONLY, "discord: not in a thread")
        }
    }

    /// The channel of the interaction as a key. Our posts are only in threads, so a click needs no more than this.
    pub(super) fn here(&self) -> Result<ThreadKey, Refused> {
        ThreadKey::discord(self.guild, self.channel)
            .or_else(|_| refuse(IN_THREADS_ONLY, "discord: ids not understood"))
    }

    pub(super) fn permitted(&self, needed: &[(u32, &str)]) -> Result<(), Refused> {
        let Some(ours) =
            self.interaction.app_permissions.as_ref().and_then(|text| text.parse::<u128>().ok())
        else {
            return Ok(());
        };
        let missing: Vec<&str> = needed
            .iter()
            .filter(|(bit, _)| ours & (1 << bit) == 0)
            .map(|(_, name)| *name)
            .collect();
        if missing.is_empty() || ours & (1 << ADMINISTRATOR) != 0 {
            return Ok(());
        }
        refuse(
            format!(
                "The app lacks permissions in this channel: {}. Someone who manages the server can grant them.",
                missing.join(", ")
            ),
            "discord: permissions missing",
        )
    }

    pub(super) fn message(
        &self,
        thread: ThreadKey,
        work: Work,
        answer: HttpAnswer,
        note: &'static str,
    ) -> Inbound {
        let message = Message {
            id: self.interaction.id.clone().into(),
            thread,
            accepted_at_ms: self.now_ms,
            work,
        };
        Inbound {
            enqueue: Some(Body::Message(message)),
            on_queue_failure: self.not_queued(words::MAYBE_TAKEN),
            ..Inbound::only(answer, note)
        }
    }

    pub(super) fn control(
        &self,
        thread: ThreadKey,
        want: ControlAction,
        answer: HttpAnswer,
        note: &'static str,
    ) -> Inbound {
        let control = Control {
            id: self.interaction.id.clone(),
            thread,
            by: self.by.clone(),
            reply: self.reply(),
            membership: self.membership.clone(),
            want,
        };
        Inbound {
            enqueue: Some(Body::Control(control)),
            on_queue_failure: self.not_queued(REPEAT_IT),
            ..Inbound::only(answer, note)
        }
    }

    pub(super) fn reply(&self) -> Reply {
        Reply::Discord {
            application: self.app.application.clone(),
            token: self.interaction.token.clone(),
        }
    }

    /// The answer if the queue does not accept: `happened`, and the reference for the operator.
    pub(super) fn not_queued(&self, happened: &str) -> HttpAnswer {
        answer::word(&format!(
            "{happened}; if it keeps failing, give the operator this reference: `{}`",
            self.interaction.id
        ))
    }
}
