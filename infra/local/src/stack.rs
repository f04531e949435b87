//! A stack from start to stop, and its announcements.

use std::fs;
use std::io::IsTerminal as _;
use std::path::PathBuf;

use bobbin_local_breakpoint::FolderLock;

use crate::folders::{lock, project_root};
use crate::options::LaptopOptions;
use crate::parts::StartedParts;
use crate::ready::Ready;
use crate::shutdown::Shutdown;
use crate::start::{self, READY, StartedStack};

/// A running stack, with everything that it started.
pub struct LaptopStack {
    parts: StartedParts,
    ready: Ready,
    ready_file: PathBuf,
    /// The state folder, if it is not the checkout's.
    own_folder: Option<PathBuf>,
    notes: Vec<String>,
    /// The template's properties without effect here.
    unhonoured: Vec<String>,
    /// Held while the stack runs: one stack per state folder.
    _lock: FolderLock,
}

impl LaptopStack {
    /// Starts everything; on an error nothing is left running.
    ///
    /// # Errors
    /// A sentence with advice.
    pub async fn start(options: &LaptopOptions, shutdown: Shutdown) -> Result<Self, String> {
        let root = project_root()?;
        let state_dir = options.state_dir.clone().unwrap_or_else(|| root.join(".bobbin/state"));
        let lock = lock(&state_dir, options.fresh)?;
        let state_dir = state_dir
            .canonicalize()
            .map_err(|e| format!("{} cannot be used: {e}", state_dir.display()))?;
        let mut parts = StartedParts::default();
        match start::start(&mut parts, options, &shutdown, &root, &state_dir).await {
            Ok(StartedStack { ready, notes, unhonoured }) => Ok(Self {
                parts,
                ready,
                ready_file: state_dir.join(READY),
                own_folder: options.state_dir.is_some().then_some(state_dir),
                notes,
                unhonoured,
                _lock: lock,
            }),
            Err(message) => {
                parts.stop().await;
                Err(message)
            }
        }
    }

    /// Prints the addresses.
    pub fn announce(&self, options: &LaptopOptions) {
        // Only its person reads a terminal; any other output may be shared.
        let (page, how) = if std::io::stdout().is_terminal() {
            let key = &self.ready.control_key;
            (bobbin_local_chat::login_url(&self.ready.console, key), String::new())
        } else {
            (self.ready.console.clone(), self.how_to_open())
        };
        println!("\n  Chat page   {page}{how}");
        if !options.without_aws {
            println!("  Ingress     {}", self.ready.ingress);
            println!("  AWS         {}", self.ready.aws_endpoint);
        }
        let unhonoured = self.unhonoured.len();
        let (listed, counted) = match (unhonoured, options.unhonoured) {
            (0, _) => (None, None),
            (_, true) => (Some(&self.unhonoured), None),
            (_, false) => (
                None,
                Some(format!(
                    "{unhonoured} settings of template.yaml have no effect on a laptop (alarms, roles, encryption and the like); --unhonoured lists them"
                )),
            ),
        };
        for (index, note) in self.notes.iter().chain(&counted).enumerate() {
            println!("{}  note: {note}", if index == 0 { "\n" } else { "" });
        }
        if let Some(listed) = listed {
            println!("\n  These settings of template.yaml have no effect here:");
            for line in listed {
                println!("    {line}");
            }
        }
        println!(
            "\nOpen the chat page and type /sandbox in #general, or mention @bobbin on the Slack side. Ctrl-C stops everything."
        );
    }

    /// The command that prints the page's address with its key.
    fn how_to_open(&self) -> String {
        let folder = self
            .own_folder
            .as_ref()
            .map_or_else(String::new, |folder| format!(" --state-dir {}", folder.display()));
        format!("  (to open it: cargo run -q -p bobbin-cli -- --laptop{folder} page)")
    }

    /// Stops the parts, newest first.
    pub async fn stop(self) {
        // A file left behind, as after a kill, names addresses at which nothing answers.
        let _ = fs::remove_file(&self.ready_file);
        self.parts.stop().await;
    }
}
