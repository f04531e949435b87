//! `sandbox-destroy`, and the button of the list: asks once, and says what would be lost. The answer is an operation.

use bobbin_chat::Say;
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::Ms;
use bobbin_core::protocol::ports::Loaded;
use bobbin_core::records::control::{Control, Operation, WhichSandbox};
use bobbin_core::shown::sandboxes::Listed;

use super::operate::pointless;
use crate::control::Lane;

impl Lane<'_> {
    /// Asks once, and says what would be lost.
    pub(super) async fn ask_destroy(
        &self,
        control: &Control,
        which: &WhichSandbox,
        found: &Loaded,
        now_ms: Ms,
    ) -> Result<(), Failure> {
        let (key, record) = match self.find_sandbox(control, which, found).await? {
            Ok(meant) => meant,
            Err(words) => return self.chat.answer(&control.reply, &words).await,
        };
        let listed = Listed::of(&key, &record);
        if let Some(why) = pointless(&listed, Operation::Destroy) {
            return self.chat.answer(&control.reply, &why).await;
        }
        let thread = &control.thread;
        let say = Say::AskDestroy { thread, sandbox: &listed, now_ms };
        self.chat.answer(&control.reply, say).await
    }
}
