//! Every bound of the daemon, each with its unit in its name.

/// A session's log; beyond it the session takes no more, as with a full disk.
pub(crate) const LOG_BYTES_MAX: u64 = 4 * 1024 * 1024 * 1024;
/// Beyond it the ends of turns alone are taken.
pub(crate) const LOG_ENDS_BYTES_MAX: u64 = 1024 * 1024;
/// One line of a session's log, and so one event. A longer event is kept without its raw value, or as a note of its size.
pub(crate) const LINE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Events between two entries of a log's index.
pub(crate) const INDEX_EVERY: u64 = 64;
/// Bytes that are set aside on the disk, so that a full one still takes the ends of the turns that it cuts.
pub(crate) const RESERVE_BYTES: u64 = 1024 * 1024;
/// Events of one answer, whatever is asked for.
pub(crate) const PAGE_EVENTS_MAX: u64 = 1_000;
/// Bytes of the events of one answer; one event alone may be larger.
pub(crate) const PAGE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How long a poll may wait for an event.
pub(crate) const POLL_MS_MAX: u64 = 60_000;
/// Between two comments on a stream of events that has nothing to say.
pub(crate) const HEARTBEAT_MS: u64 = 15_000;
/// Body of a request.
pub(crate) const BODY_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Sessions of one daemon.
pub(crate) const SESSIONS_MAX: usize = 1_000;
/// Turns of one session, ended ones included.
pub(crate) const TURNS_MAX: usize = 100_000;
/// Turns of one session that wait for their run.
pub(crate) const QUEUED_MAX: usize = 32;
/// Asks of one session that are open at once.
pub(crate) const ASKS_MAX: usize = 64;
/// A session's id, a turn's, an ask's.
pub(crate) const ID_BYTES_MAX: usize = 200;
/// Inputs of a session that wait for its next write; whoever sends more waits.
pub(crate) const INPUTS_MAX: usize = 256;
/// Inputs of a session that one write to the disk takes.
pub(crate) const BATCH_MAX: usize = 128;
/// Orders to an agent that wait to be written.
pub(crate) const ORDERS_MAX: usize = 64;
/// How long the creation of a session waits for its agent; it goes on starting after that.
pub(crate) const OPEN_MS_MAX: u64 = 20_000;
/// From an agent's start until it can be spoken to.
pub(crate) const START_MS_MAX: u64 = 60_000;
/// Reports of an agent that wait for its session.
pub(crate) const REPORTS_MAX: usize = 16;
/// How long an agent may take to end a turn that was cancelled; then it is ended itself.
pub(crate) const CANCEL_MS_MAX: u64 = 15_000;
/// One call of an agent's own HTTP API.
pub(crate) const CALL_MS_MAX: u64 = 10_000;
/// What an agent that ends, or is ended, has to end by itself, when the daemon goes on.
pub(crate) const AGENT_GRACE_MS: u64 = 2_000;
/// What agents have to end by themselves when the daemon ends.
pub(crate) const STOP_GRACE_MS: u64 = 300;
/// From a signal until the daemon's own half has ended; then it is killed.
pub(crate) const STOP_MS_MAX: u64 = 700;
/// How long what was killed may take to be gone.
pub(crate) const KILL_MS_MAX: u64 = 2_000;
/// One call that says that a turn has ended or asks.
pub(crate) const NUDGE_MS_MAX: u64 = 3_000;
/// Such calls for one of these. The pause between them doubles: the first is as long as who takes it wants looks to lie apart.
pub(crate) const NUDGE_TRIES_MAX: u32 = 3;
pub(crate) const NUDGE_PAUSE_MS: u64 = 1_000;
/// Bytes of the address and the token of such a call together.
pub(crate) const NUDGE_BYTES_MAX: usize = 4 * 1024;
/// Asks of one turn of which that is said.
pub(crate) const NUDGED_ASKS_MAX: u32 = 100;
/// Between two looks at what is there.
pub(crate) const LOOK_MS: u64 = 10;
/// Restarts of the daemon's serving half after it was killed, in a row.
pub(crate) const RESTARTS_MAX: u32 = 5;
/// A serving half that lived so long ends a row.
pub(crate) const RESTART_ROW_MS: u64 = 30_000;
/// The daemon's log; then it begins anew, and one older file is kept.
pub(crate) const DAEMON_LOG_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// What is kept of what an agent said on its standard error, for the case that it ends.
pub(crate) const STDERR_BYTES_MAX: usize = 4 * 1024;
/// One step of an installation: the download, the unpacking.
pub(crate) const INSTALL_MS_MAX: u64 = 300_000;
/// What a program may take to say its version.
pub(crate) const VERSION_MS_MAX: u64 = 5_000;
/// Hot loop: messages of the agent in one turn, after which it is cancelled.
pub(crate) const TURN_EVENTS_MAX: u64 = 1_000_000;
/// A file that is larger is no part of a snapshot of a directory.
pub(crate) const SNAPSHOT_FILE_BYTES_MAX: u64 = 2 * 1024 * 1024;
/// Files of a directory that may differ from its repository's index, and their bytes: with more there is no snapshot.
pub(crate) const SNAPSHOT_FILES_MAX: usize = 20_000;
pub(crate) const SNAPSHOT_BYTES_MAX: u64 = 128 * 1024 * 1024;
/// The repository's index, and its list of what is ignored: a larger one is not used.
pub(crate) const SNAPSHOT_INDEX_BYTES_MAX: u64 = 64 * 1024 * 1024;
pub(crate) const SNAPSHOT_EXCLUDES_BYTES_MAX: u64 = 1024 * 1024;
/// Git's list of them.
pub(crate) const SNAPSHOT_LIST_BYTES_MAX: usize = 8 * 1024 * 1024;
/// One snapshot, and one comparison: a prompt waits for it.
pub(crate) const SNAPSHOT_MS_MAX: u64 = 10_000;
/// Files that a turn has changed; with more its changes are unknown.
pub(crate) const CHANGES_FILES_MAX: usize = 5_000;
/// Bytes of a turn's patches; files beyond it are told without theirs.
pub(crate) const CHANGES_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Turns of a session whose changes are kept.
pub(crate) const CHANGES_KEPT: usize = 8;
/// How long a question for a turn's changes waits until they are found out.
pub(crate) const CHANGES_WAIT_MS_MAX: u64 = 12_000;
/// Images of one prompt that an agent is shown, together; one that does not fit is named.
pub(crate) const IMAGES_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// How long one may take to be read.
pub(crate) const IMAGE_MS_MAX: u64 = 10_000;
/// Connections to the daemon at once; the oldest one that has not shown the token gives way.
pub(crate) const CONNECTIONS_MAX: usize = 256;
/// From a connection's start, or its last answer, until the head of a request has come.
pub(crate) const HEAD_MS_MAX: u64 = 20_000;
