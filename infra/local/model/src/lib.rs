//! A scripted model that speaks the OpenAI chat-completions protocol, and those of Claude Code (Anthropic's messages)
//! and Codex (OpenAI's responses).
//!
//! It replaces a language model and does what the last `user` message says, one action per line:
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
//! - Lines that are not actions are ignored if at least one line is; leading blanks and the keyword's case do not
//!   matter. A quoted line (`> run: ls`) is never an action, nor is a line of a text file that OpenCode put into the
//!   message. A message without any action gets a short reply that lists them; an invalid action gets a reply that
//!   shows its syntax.
//! - Actions are done in order. Each tool call is one step; the `tool` messages after the last `user` message tell the
//!   position in the script, so the model keeps no state between requests and can be restarted at any time.
//! - Text in front of a tool call is streamed with that step. The last answer repeats everything in order, with each
//!   tool's output (bounded), because a client such as OpenCode takes only the last message's text as the answer.
//! - A request without `tools` but with a system message counts as internal (OpenCode requests titles and summaries
//!   like this, quoting earlier prompts): it gets a short plain text, and none of its lines is an action.
//!
//! How `ask:` works: OpenCode lets its agent `build` run any command, but asks before one that names a path outside the
//! project (permission `external_directory`). So the call's command is `cat /dev/null; COMMAND`: reading nothing from
//! outside the project asks, changes neither the directory nor the output, and COMMAND runs once permitted. It needs no
//! configuration; it does need `external_directory` left at `ask`, or `{"*": "deny", "/dev/*": "ask"}`. With `deny`
//! alone the tool call is refused; with `allow` it runs at once unless `bash` is `{"*": "allow", "cat /dev/null*":
//! "ask"}`.
//!
//! Claude Code asks by itself before a command; for Codex an `ask:` is a command outside its own sandbox. Both write
//! files with their own tools; Codex offers a `question:` only in its planning mode, so otherwise it is reported as a
//! tool that is not offered.
//!
//! Deliberately absent: memory of conversations, sampling parameters, the legacy endpoint, non-streamed responses, and
//! checking of keys (any bearer token or none is accepted, except a sandbox's placeholder for a key, and keys with a
//! limit that were made here).

mod answer;
mod calls;
mod limits;
mod messages;
mod openrouter;
mod request;
mod responses;
mod script;
mod server;
mod text;
mod wire;

pub use server::{BindError, MODEL_ID, Model, OTHER_MODEL_ID};
