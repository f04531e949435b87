//! A scripted model that speaks the OpenAI chat-completions protocol, and those of Claude Code (Anthropic's messages) and
//! Codex (OpenAI's responses).
//!
//! It stands where a language model would and does what the last `user` message says, one action a line:
//!
//! | line | what the model does |
//! | --- | --- |
//! | `echo: TEXT` | answers TEXT |
//! | `slow: SECONDS TEXT` | streams TEXT word by word over that many seconds |
//! | `run: COMMAND` | calls the `bash` tool |
//! | `write: PATH TEXT` | calls the `write` tool; `\n` in TEXT becomes a newline |
//! | `ask: COMMAND` | calls `bash` in a way that needs a permission first |
//! | `question: TEXT \| OPTION \| OPTION` | calls the `question` tool; ` // ` parts several questions, `[HEADER] ` or `[HEADER, several] ` before TEXT names one, `LABEL = DESCRIPTION` explains an option |
//! | `long: CHARACTERS` | answers exactly that many characters: words, paragraphs, code fences |
//! | `call: TOOL ARGUMENTS` | calls that tool, with a JSON object |
//! | `fail: STATUS` | answers that HTTP status, each time |
//! | `cut` | the stream ends without `finish_reason` and `[DONE]`, each time |
//!
//! Promises:
//!
//! - Lines that are no action are ignored when at least one line is; leading blanks do not matter, nor does the case
//!   of the keyword. A quoted line (`> run: ls`) is never an action, nor is
//!   a line of a text file that OpenCode put into the message. A message without any action gets a short reply
//!   that names them; an action that cannot be read gets a reply that says how it is written.
//! - Actions are done in order. Each tool call is one step; the `tool` messages after the last `user` message say how
//!   far the script is, so the model keeps no state between requests and can be restarted at any time.
//! - Text in front of a tool call is streamed with that step. The last answer tells everything again in order, with
//!   each tool's output (bounded), because a client such as OpenCode takes only the last message's text as the answer.
//! - A request without `tools` but with a system message is taken as internal (OpenCode asks so for titles and
//!   summaries, and quotes earlier prompts in them): it gets a short plain text and no line of it is obeyed.
//!
//! How `ask:` asks: OpenCode lets its agent `build` run any command, but asks before one that names a path outside
//! the project (permission `external_directory`). So the call's command is `cat /dev/null; COMMAND`: reading nothing
//! from outside the project asks, changes neither the directory nor the output, and COMMAND runs once permitted. It
//! needs no configuration; it does need `external_directory` left at `ask`, or `{"*": "deny", "/dev/*": "ask"}`. With `deny`
//! alone the tool call is refused; with `allow` it runs at once unless `bash` is `{"*": "allow", "cat /dev/null*": "ask"}`.
//!
//! Claude Code asks by itself before a command; for Codex an `ask:` is a command outside its own sandbox. Both write by the
//! tools that they have; a `question:` reaches Codex in its planning mode only, so that it is told as a tool that is not offered.
//!
//! Deliberately absent: a memory of conversations, sampling parameters, the legacy endpoint, responses that are not streamed,
//! and checking of keys (any bearer token is accepted, also none, but for what stands for a key in a sandbox).

mod answer;
mod calls;
mod limits;
mod messages;
mod request;
mod responses;
mod script;
mod server;
mod text;
mod wire;

pub use server::{BindError, MODEL_ID, Model, OTHER_MODEL_ID};
