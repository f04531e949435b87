//! Design faults, each switched on alone: what each defence is for.

/// A defence that is left out, in the world or in the driver around `decide`, never in the product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Records are written without the condition on their version.
    NoCondition,
    /// A create makes a sandbox of a new name each time.
    RandomNames,
    /// The effect happens before its intent is on record.
    EffectBeforeIntent,
    /// The agent takes a prompt with known ids as a new one.
    NoPromptId,
    /// The chat takes a post with a known key as a new one.
    NoPostId,
    /// The sweeper itself stops an idle sandbox, without the queue.
    SweeperStopsDirectly,
    /// A single check or call that does not find a sandbox is believed.
    OneLookIsBelieved,
    /// The orphan hunt reads the record before it lists the provider.
    ReadBeforeList,
    /// Nobody looks for orphans.
    NoHunt,
    /// Stop is a message that waits behind the run.
    StopThroughTheQueue,
    /// The next follow window does not know that the prompt was sent.
    SliceWithoutCursor,
    /// A worker whose message is visible to others continues to perform effects.
    ZombiesAct,
    /// A prompt that may have arrived is reported as not sent.
    DoubtIsNo,
    /// A prompt that may have been sent is sent again without a check, and its answer is searched after it in time.
    SentAgainUnseen,
    /// An abandoned run is reported as over, and is not.
    RunsAreLeft,
    /// An abort ends whatever the agent is doing when it arrives.
    AbortsHitAnything,
    /// A dead letter is deleted as soon as its notice is sent.
    LettersGoUnread,
    /// Only their names distinguish stacks.
    StacksByName,
    /// A crashed delivery of a running turn counts as a follow window that has ended.
    CrashesUncounted,
    /// The lease of a stop, deletion or start never ends.
    EndlessLease,
    /// Nobody checks the lease of another delivery.
    UnseenLease,
    /// A turn begins without a check that its workspace is free.
    UncheckedWorkspace,
    /// A sandbox is stopped without a check of who works in it.
    UnseenUse,
    /// A thread's link is changed outside its group, whatever runs.
    LinkAtOnce,
    /// A branch is moved wherever it is.
    PushesOverAnything,
    /// The sandbox's state is pushed, whatever was shown.
    PushesUnshown,
    /// A pull request is opened without a check for an earlier one, and the forge accepts a second.
    OpensUnseen,
    /// The chat accepts an edit and drops it.
    EditsAreLost,
    /// A poll sees an old state.
    PollsSeeThePast,
    /// A reservation is added to a sum without a check.
    SumsUnasked,
    /// A turn's unspent reservation is kept.
    NothingGivenBack,
    /// A builder does not check what the recorded prebuild was made from.
    BuiltAgain,
    /// A builder has the stack's runtime, and so its keys.
    KeyedBuilders,
    /// A missing snapshot is reported like an outage.
    GoneIsAnOutage,
    /// The oldest snapshot is deleted for a prebuild, even a person's.
    AnythingGivesWay,
    /// Room for a prebuild is made without a check of the record.
    RecordedGivesWay,
    /// A request for a prebuild does not name the useless one.
    UselessUnsaid,
    /// A snapshot is on record only once it is ready.
    UnfinishedUnkept,
    /// The result of a build is not on record.
    ResultsUnkept,
}
