//! Limits of the daemon; each name contains its unit.

/// A session's log; beyond it the session accepts no more, as with a full disk.
pub(crate) const LOG_BYTES_MAX: u64 = 4 * 1024 * 1024 * 1024;
/// Beyond it only the ends of turns are accepted.
pub(crate) const LOG_ENDS_BYTES_MAX: u64 = 1024 * 1024;
/// One line of a session's log, and so one event. A longer event is stored without its raw value, or as a note of its
/// size.
pub(crate) const LINE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Events between two entries of a log's index.
pub(crate) const INDEX_EVERY: u64 = 64;
/// Disk space reserved so that a full disk still takes the ends of the turns that it cuts off.
pub(crate) const RESERVE_BYTES: u64 = 1024 * 1024;
/// Most events per answer.
pub(crate) const PAGE_EVENTS_MAX: u64 = 1_000;
/// Most bytes of events per answer; a single event may be larger.
pub(crate) const PAGE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Longest wait of a poll for an event.
pub(crate) const POLL_MS_MAX: u64 = 60_000;
/// Interval between comments on an idle event stream.
pub(crate) const HEARTBEAT_MS: u64 = 15_000;
/// Body of a request.
pub(crate) const BODY_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Sessions of one daemon.
pub(crate) const SESSIONS_MAX: usize = 1_000;
/// Turns of one session, including ended ones.
pub(crate) const TURNS_MAX: usize = 100_000;
/// Queued turns of one session.
pub(crate) const QUEUED_MAX: usize = 32;
/// Open asks of one session.
pub(crate) const ASKS_MAX: usize = 64;
/// Id of a session, a turn or an ask.
pub(crate) const ID_BYTES_MAX: usize = 200;
/// Inputs of a session waiting for its next write; further senders wait.
pub(crate) const INPUTS_MAX: usize = 256;
/// Inputs of a session per disk write.
pub(crate) const BATCH_MAX: usize = 128;
/// Orders to an agent waiting to be written.
pub(crate) const ORDERS_MAX: usize = 64;
/// Lines of an agent handled in a row, after which a waiting order comes first.
pub(crate) const LINES_IN_ROW_MAX: u32 = 64;
/// How long the creation of a session waits for its agent, which goes on starting after that.
pub(crate) const OPEN_MS_MAX: u64 = 20_000;
/// Time from an agent's start until it is ready.
pub(crate) const START_MS_MAX: u64 = 60_000;
/// Reports of an agent waiting for its session.
pub(crate) const REPORTS_MAX: usize = 16;
/// Time for an agent to end a cancelled turn; then the agent itself is ended.
pub(crate) const CANCEL_MS_MAX: u64 = 15_000;
/// One call of an agent's own HTTP API.
pub(crate) const CALL_MS_MAX: u64 = 10_000;
/// Grace period for an ending agent while the daemon goes on.
pub(crate) const AGENT_GRACE_MS: u64 = 2_000;
/// Grace period for agents when the daemon stops.
pub(crate) const STOP_GRACE_MS: u64 = 300;
/// Time from a signal until the serving half has ended; then it is killed.
pub(crate) const STOP_MS_MAX: u64 = 700;
/// Time for killed processes to disappear.
pub(crate) const KILL_MS_MAX: u64 = 2_000;
/// Time limit of one nudge.
pub(crate) const NUDGE_MS_MAX: u64 = 3_000;
/// Attempts per nudge. The pause between them doubles; the receiver's poll interval is the first one.
pub(crate) const NUDGE_TRIES_MAX: u32 = 3;
pub(crate) const NUDGE_PAUSE_MS: u64 = 1_000;
/// Bytes of a nudge's address and token together.
pub(crate) const NUDGE_BYTES_MAX: usize = 4 * 1024;
/// Asks of one turn that are nudged.
pub(crate) const NUDGED_ASKS_MAX: u32 = 100;
/// Poll interval for processes.
pub(crate) const LOOK_MS: u64 = 10;
/// Consecutive restarts of the serving half after it was killed.
pub(crate) const RESTARTS_MAX: u32 = 5;
/// A serving half that lived this long resets the count.
pub(crate) const RESTART_ROW_MS: u64 = 30_000;
/// The daemon's log; then it restarts, and one older file is kept.
pub(crate) const DAEMON_LOG_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// Kept end of an agent's standard error, in case it exits.
pub(crate) const STDERR_BYTES_MAX: usize = 4 * 1024;
/// One step of an installation: the download, the unpacking.
pub(crate) const INSTALL_MS_MAX: u64 = 300_000;
/// Time for a program to print its version.
pub(crate) const VERSION_MS_MAX: u64 = 5_000;
/// Messages of the agent in one turn, after which a looping turn is cancelled.
pub(crate) const TURN_EVENTS_MAX: u64 = 1_000_000;
/// A larger file is not part of a snapshot.
pub(crate) const SNAPSHOT_FILE_BYTES_MAX: u64 = 2 * 1024 * 1024;
/// Files of a directory that may differ from its repository's index, and their bytes: beyond these there is no
/// snapshot.
pub(crate) const SNAPSHOT_FILES_MAX: usize = 20_000;
pub(crate) const SNAPSHOT_BYTES_MAX: u64 = 128 * 1024 * 1024;
/// The repository's index, and its list of ignored files: a larger one is not used.
pub(crate) const SNAPSHOT_INDEX_BYTES_MAX: u64 = 64 * 1024 * 1024;
pub(crate) const SNAPSHOT_EXCLUDES_BYTES_MAX: u64 = 1024 * 1024;
/// Git's list of these files.
pub(crate) const SNAPSHOT_LIST_BYTES_MAX: usize = 8 * 1024 * 1024;
/// One snapshot, and one comparison: a prompt waits for it.
pub(crate) const SNAPSHOT_MS_MAX: u64 = 10_000;
/// Files changed by a turn; with more its changes are unknown.
pub(crate) const CHANGES_FILES_MAX: usize = 5_000;
/// Bytes of a turn's patches; files beyond it are listed without theirs.
pub(crate) const CHANGES_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Turns of a session whose changes are kept.
pub(crate) const CHANGES_KEPT: usize = 8;
/// How long a request for a turn's changes waits until they are computed.
pub(crate) const CHANGES_WAIT_MS_MAX: u64 = 12_000;
/// Total bytes of a prompt's images shown to an agent; an image that does not fit is only named.
pub(crate) const IMAGES_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// Time for reading one image.
pub(crate) const IMAGE_MS_MAX: u64 = 10_000;
/// Connections at once; the oldest unauthenticated one is closed for a new one.
pub(crate) const CONNECTIONS_MAX: usize = 256;
/// Time from a connection's start, or its last answer, to the complete head of a request.
pub(crate) const HEAD_MS_MAX: u64 = 20_000;
