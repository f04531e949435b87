//! Design faults, each switched on alone: what each defence is for.

/// A defence that is left out, in the world or in the driver around `decide`, never in the product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Records are written without the condition on their version.
    NoCondition,
    /// A create makes a sandbox of a new name each time.
    RandomNames,
    /// The effect goes out before its intent is on record.
    EffectBeforeIntent,
    /// The agent takes a prompt with ids that it has as a new one.
    NoPromptId,
    /// The chat takes a post with a key that it has as a new one.
    NoPostId,
    /// The sweeper stops what it saw idle, past the queue.
    SweeperStopsDirectly,
    /// That one look or call does not find a sandbox is believed.
    OneLookIsBelieved,
    /// The orphan hunt reads the record before it lists the provider.
    ReadBeforeList,
    /// Nobody looks for orphans.
    NoHunt,
    /// Stop is a message behind the run.
    StopThroughTheQueue,
    /// The next follow window does not know that the prompt was sent.
    SliceWithoutCursor,
    /// A worker whose message is visible to others goes on performing effects.
    ZombiesAct,
    /// Of a prompt that may have arrived it is said that it has not.
    DoubtIsNo,
    /// What may have been sent is sent again without a look, and an answer is looked for behind its prompt in time.
    SentAgainUnseen,
    /// A run that no turn follows any more is said to be over, and is not.
    RunsAreLeft,
    /// An abort ends whatever the agent does when it arrives.
    AbortsHitAnything,
    /// A dead letter is taken away once its notice has been sent.
    LettersGoUnread,
    /// Stacks are told apart by their names alone.
    StacksByName,
    /// A delivery of a running turn that died is taken for a follow window that is over.
    CrashesUncounted,
    /// The lease of who stops or deletes, or brings up, never ends.
    EndlessLease,
    /// Nobody looks at the lease of another delivery.
    UnseenLease,
    /// Who begins a turn does not look whether its workspace is free.
    UncheckedWorkspace,
    /// Who stops a sandbox does not look who works in it.
    UnseenUse,
    /// The link of a thread is changed past its group, whatever runs.
    LinkAtOnce,
    /// A branch is moved wherever it is.
    PushesOverAnything,
    /// What the sandbox has is pushed, whatever was shown.
    PushesUnshown,
    /// A pull request is opened without a look for an earlier one, and the forge takes a second.
    OpensUnseen,
    /// The chat says that it has taken an edit, and has not.
    EditsAreLost,
    /// A poll sees what was there before.
    PollsSeeThePast,
    /// What is set aside is added to a sum, whatever that is.
    SumsUnasked,
    /// What a turn has set aside and not spent is kept.
    NothingGivenBack,
    /// Who makes a prebuild does not see of what the one on record was made.
    BuiltAgain,
    /// A builder has the runtime of the stack, and with that its keys.
    KeyedBuilders,
    /// That a snapshot is gone is answered like an outage.
    GoneIsAnOutage,
    /// The oldest snapshot gives way to a prebuild, even one that a person made.
    AnythingGivesWay,
    /// Who makes room for a prebuild does not ask what is on record.
    RecordedGivesWay,
    /// A request for a prebuild does not say which one is of no use.
    UselessUnsaid,
    /// A snapshot is on record only once it is ready.
    UnfinishedUnkept,
    /// How a build has ended is not on record.
    ResultsUnkept,
}
