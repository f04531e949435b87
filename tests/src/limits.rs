//! Every bound of the tests, with its unit in its name. They say when to give up, not how long things take: two busy
//! processors start an agent's server in four seconds, and ministack sweeps its schedules every ten.

/// Building everything for the stack, from nothing.
pub const BUILD_MS_MAX: u64 = 20 * 60_000;
/// The stack's first start, which may install OpenCode.
pub const START_MS_MAX: u64 = 5 * 60_000;
/// A start that has everything in its folders.
pub const SECOND_START_MS_MAX: u64 = 30_000;
/// From SIGTERM to the last process's end.
pub const STOP_MS_MAX: u64 = 20_000;
/// Processes of a killed stack must be gone by then after its next start.
pub const CLEANED_MS_MAX: u64 = 20_000;
/// A turn that does quick things, with the making or waking of its sandbox; less than a stop's lease lasts (165 s), so
/// that a wait for one is noticed.
pub const ANSWER_MS_MAX: u64 = 150_000;
/// Something that needs no model and no sandbox becomes visible.
pub const VISIBLE_MS_MAX: u64 = 75_000;
/// A turn whose worker is killed in the middle of it, while other threads keep the machine busy.
pub const FAULTY_ANSWER_MS_MAX: u64 = 300_000;
/// The same in a crowd of fifty threads.
pub const LOADED_MS_MAX: u64 = 240_000;
/// People who write at the same moment: each needs a process of the ingress, which has three seconds to start.
pub const PEOPLE_AT_ONCE: usize = 3;
/// A message is received as often as its queue allows.
pub const DEAD_LETTER_MS_MAX: u64 = 180_000;
/// How long the platforms wait for ingress (both document three seconds).
pub const PLATFORM_MS_MAX: u128 = 3_000;
/// From SIGKILL to the end of the process.
pub const KILLED_MS_MAX: u64 = 10_000;
/// Threads whose workers are killed at once.
pub const KILLS_AT_ONCE: usize = 4;
/// The same with the stand-in for the agent.
pub const STAND_IN_KILLS_AT_ONCE: usize = 6;
/// A little more than the template's `VisibilityTimeout` of the queues.
pub const QUEUE_VISIBILITY_MS: u32 = 961_000;
/// From a person's Stop to the end of the turn.
pub const CANCEL_MS_MAX: u64 = 75_000;
/// An idle sandbox is stopped by the sweep that finds it.
pub const PAUSE_MS_MAX: u64 = 90_000;
/// One HTTP call of a test.
pub const CALL_MS_MAX: u64 = 30_000;
/// Time between two checks of a condition.
pub const POLL_MS: u64 = 150;
/// An installation from a package index.
pub const INSTALL_MS_MAX: u64 = 5 * 60_000;
/// ministack answers its health call.
pub const EMULATOR_START_MS_MAX: u64 = 120_000;
/// The deployment of the template there.
pub const DEPLOY_MS_MAX: u64 = 5 * 60_000;
/// Every call of nine services, tried with every role there.
pub const ROLES_MS_MAX: u64 = 15 * 60_000;
/// The browser shows the expected content.
pub const BROWSER_MS_MAX: u64 = 60_000;
/// Lines of a program's output that a failure shows.
pub const TAIL_LINES_MAX: usize = 40;
/// Characters of such a line.
pub const TAIL_LINE_CHARS_MAX: usize = 400;
/// Failures that are repeated after the last test.
pub const FAILURES_MAX: usize = 8;
/// Characters of such a failure.
pub const FAILURE_CHARS_MAX: usize = 3_000;
/// Characters of the end of its stack's output.
pub const STACK_CHARS_MAX: usize = 2_500;
/// Messages of a thread that are read.
pub const MESSAGES_MAX: usize = 100;
/// Pages of a table that are read.
pub const SCAN_PAGES_MAX: usize = 50;
/// Event source mappings on `messages.fifo` at ministack, where each runs one batch at a time.
pub const MAPPINGS: usize = 6;
/// A function asks for work, or says why it cannot.
pub const FUNCTION_START_MS_MAX: u64 = 60_000;
/// A function answers an event that needs no sandbox.
pub const FUNCTION_ANSWER_MS_MAX: u64 = 60_000;
/// A function reads a secret that can be used again.
pub const SECRET_READ_MS_MAX: u64 = 20_000;
