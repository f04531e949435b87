//! The commands and buttons: one file per use case, with its replies and their tests. The table of commands is
//! [`bobbin_core::tenant::commands`].

mod again;
mod bind;
mod config;
mod connect;
mod destroy;
mod diff;
mod find_sandbox;
mod github;
mod list;
mod now;
mod operate;
mod pr;
mod secret;
mod set_up_log;
mod settle;
mod setup;
mod status;
mod stop;
mod usage;
mod withdraw;

use bobbin_core::base::failure::Failure;
use bobbin_core::protocol::ports::Loaded;
use bobbin_core::records::control::{Control, ControlAction};
use bobbin_core::tenant::access::Refusal;
use bobbin_core::tenant::commands::{Command, WhoMay};
use bobbin_core::tenant::settings::{NotChanged, Settings, SettingsChange};

use crate::arrival::Arrival;
use crate::control::Lane;

impl Lane<'_> {
    /// Carries out a control message.
    pub(crate) async fn carry(&self, control: &Control, arrival: Arrival) -> Result<(), Failure> {
        let Arrival { receive, now_ms, .. } = arrival;
        // Requests made by ingress itself need no permission.
        match &control.want {
            ControlAction::Say { text } => return self.chat.answer(&control.reply, text).await,
            ControlAction::Help { text } => return self.answer(control, text).await,
            _ => {}
        }
        let found = self.store.record_with_settings(&control.thread).await;
        let found = found.map_err(|e| e.failure())?;
        // Nor do requests of the operator.
        if let ControlAction::Halt { turn } = &control.want {
            return self.halt(control, turn, &found).await;
        }
        if let Err(refusal) = admitted(control, &found.settings) {
            return self.chat.answer(&control.reply, &refusal.to_string()).await;
        }
        match &control.want {
            ControlAction::Say { .. } | ControlAction::Help { .. } | ControlAction::Halt { .. } => {
                Ok(())
            }
            ControlAction::StopAll => self.stop_all(control, &found, arrival).await,
            ControlAction::Now { turn } => self.now(control, &found, turn).await,
            ControlAction::Diff { turn } => self.diff(control, turn.as_ref(), &found).await,
            ControlAction::SetUpLog { turn } => self.set_up_log(control, turn, &found).await,
            ControlAction::Configure { change } => {
                self.configure(control, change, found.settings, arrival).await
            }
            ControlAction::OwnKey { key } => {
                self.own_key(control, key, found.settings, arrival).await
            }
            ControlAction::Forge { forge } => {
                self.at_forge(control, forge, found.settings, arrival).await
            }
            ControlAction::Withdraw { turn } => {
                self.take_back(control, turn, &found.flags, arrival).await
            }
            ControlAction::Sandboxes { page, in_thread } => {
                self.list(control, (*page, *in_thread), &found, now_ms).await
            }
            ControlAction::Connect { to } => {
                self.connect(control, to.as_ref(), &found, arrival).await
            }
            ControlAction::AskDestroy { sandbox } => {
                self.ask_destroy(control, sandbox, &found, now_ms).await
            }
            ControlAction::Operate { sandbox, operation } => {
                self.operate(control, (sandbox, *operation), &found, arrival).await
            }
            ControlAction::Publish { step } => self.publish(control, step, &found, arrival).await,
            ControlAction::Command { command } => {
                self.command(control, *command, &found, arrival).await
            }
            ControlAction::Again { turn } => self.again(control, turn, arrival).await,
            ControlAction::Stop { turn } => {
                self.stop(control, turn.as_ref(), &found, arrival).await
            }
            ControlAction::Settle { ask, choice } => {
                self.settle(control, &found, (ask, choice), receive, now_ms).await
            }
        }
    }

    /// A command that concerns only the place where it was typed.
    async fn command(
        &self,
        control: &Control,
        command: Command,
        found: &Loaded,
        arrival: Arrival,
    ) -> Result<(), Failure> {
        let row = command.row();
        if row.who == WhoMay::Managers && !self.membership(control).await?.manages {
            return self.chat.answer(&control.reply, &NotChanged::NotAllowed.to_string()).await;
        }
        match command {
            Command::Status => self.status(control, found, arrival.now_ms).await,
            Command::Usage => self.usage(control, found, arrival.now_ms).await,
            // These take more than the command's name.
            Command::Sandbox
            | Command::Say
            | Command::Diff
            | Command::Pr
            | Command::Stop
            | Command::Reset
            | Command::Name
            | Command::List
            | Command::Connect
            | Command::Destroy
            | Command::Config
            | Command::Setup
            | Command::GitHub
            | Command::Help => Err(Failure::NonRecoverable {
                advice: format!("{} came without its arguments", row.name),
            }),
        }
    }
}

/// Whether the settings let somebody use a command; checked again on each click. Managers of the place can always see
/// and change the settings: otherwise a list that leaves them out could never be corrected.
fn admitted(control: &Control, settings: &Settings) -> Result<(), Refusal> {
    let mends = match &control.want {
        ControlAction::Configure { change: SettingsChange::Show } => control.membership.manages,
        ControlAction::Configure { .. } | ControlAction::OwnKey { .. } => true,
        ControlAction::Forge { forge } => forge.is_admitted_later(),
        _ => false,
    };
    if mends { Ok(()) } else { settings.admit(&control.membership, &control.by.id) }
}
