//! One item of each kind with every field filled: written out in full, so that a new field has to be filled here too.

use std::collections::{BTreeMap, BTreeSet};

use bobbin_core::base::breaker::Breaker;
use bobbin_core::base::ids::{PostRef, ThreadKey, TurnId};
use bobbin_core::base::names::{PostKind, PromptIds};
use bobbin_core::base::person::{Membership, Outside, Person};
use bobbin_core::records::account::{Account, AccountRecord};
use bobbin_core::records::artifacts::Artifact;
use bobbin_core::records::ask::{About, Ask, AskDecision, Choice, Field, Opt, Question};
use bobbin_core::records::carried::{Carried, ForgeRepository};
use bobbin_core::records::checks::SeenChecks;
use bobbin_core::records::control::{
    Control, ControlAction, Operation, PublishStep, ShowOf, WhichSandbox,
};
use bobbin_core::records::drafted_review::{
    DiffSide, DraftedComment, DraftedReview, PostedReview, PullReview,
};
use bobbin_core::records::flags::{Queued, StoppedAll};
use bobbin_core::records::forge_hint::{ForgeHint, ForgeSubject};
use bobbin_core::records::given_pull::GivenPull;
use bobbin_core::records::given_secrets::{
    GivenNetwork, GivenSecret, GivenSecrets, Withheld, WithheldSecret,
};
use bobbin_core::records::ledger::LedgerEntry;
use bobbin_core::records::message::{
    Announce, Attachment, Body, DeadLetters, DeadPrompt, Message, NewSandbox, Open, Overview,
    Prompt, Quote, Reply, Surface, Work,
};
use bobbin_core::records::observations::Observations;
use bobbin_core::records::outcome::Outcome;
use bobbin_core::records::parked::{Doubt, Doubtful, Parked, Seen};
use bobbin_core::records::prebuild::{
    BeginsWith, BuildKey, BuildPurpose, BuiltProject, NewBuild, Prebuild,
};
use bobbin_core::records::publication::{
    BranchUpdate, Pressed, Proposal, Publication, Published, PublishedBeside, PullRequestRef,
    PullRequestState, WaitedMessage,
};
use bobbin_core::records::recipe::{ProjectService, Recipe, RecipeSource, RecipeStep};
use bobbin_core::records::responses::{NewRemark, PullRequestResponse, Remark};
use bobbin_core::records::sandbox::{
    InUse, KeptSnapshot, Lease, Operated, Phase, SandboxHistory, SandboxMoney, SandboxProject,
    SandboxRecord, SandboxSpec, Sharing, TimelineEntry, Tooling, Tools, Waiting,
};
use bobbin_core::records::session::{
    CheckedOptions, Conversation, OwnWorkspace, Place, Session, StrayRun,
};
use bobbin_core::records::set_up::{FailedStep, RanStep, SetUp, StepEnd, step_log};
use bobbin_core::records::spending::Reservation;
use bobbin_core::records::stage::{EndProgress, Prompted, Stage};
use bobbin_core::records::turn::{CardPlace, EndedTurn, Outages, Steered, Tries, Turn};
use bobbin_core::records::unposted::{Said, UnpostedPost};
use bobbin_core::records::usage::Usage;
use bobbin_core::records::watch::{BegunFixes, BegunThread, Fix, FixedThread, HeardRemarks, Watch};
use bobbin_core::schema::{self, Shape, UnknownFields};
use bobbin_core::tenant::bindings::{Binding, Bindings};
use bobbin_core::tenant::budgets::{BudgetKind, BudgetScope, Budgets};
use bobbin_core::tenant::catalogue::{Catalogue, RecentChoices};
use bobbin_core::tenant::commands::Command;
use bobbin_core::tenant::keys::Key;
use bobbin_core::tenant::linked::LinkedAccount;
use bobbin_core::tenant::own_keys::{KeyState, OwnKey, OwnKeyRequest};
use bobbin_core::tenant::project_networks::NetworkAccess;
use bobbin_core::tenant::project_secrets::SecretRequest;
use bobbin_core::tenant::repositories::Repositories;
use bobbin_core::tenant::selection::Selection;
use bobbin_core::tenant::settings::{Changed, DefaultKind, Settings, SettingsChange, SettingsList};
use bobbin_core::tenant::setup_link::{Purpose, SetupLink};
use bobbin_core::tenant::sign_in::{ForgeRequest, OwnerChoice, SignInFound};
use serde::Serialize;

/// A time, and others after it.
const T: u64 = 1_795_294_965_000;

/// The items of a shape: a name and the stored text.
pub fn of(shape: Shape) -> Vec<(&'static str, String)> {
    match shape {
        Shape::Record => records(),
        Shape::Sandbox => sandboxes(),
        Shape::Mark => vec![
            ("cancelled", stored(shape, &anna())),
            ("now", stored(shape, &anna())),
            ("queued", stored(shape, &queued())),
            ("stopped-all", stored(shape, &StoppedAll { by: anna(), until_ms: 1_790_000_000_000 })),
            ("settled-once", stored(shape, &settled(Choice::Once))),
            ("settled-always", stored(shape, &settled(Choice::Always))),
            ("settled-reject", stored(shape, &settled(Choice::Reject))),
            ("settled-form", stored(shape, &settled(form()))),
            ("settled-answers", stored(shape, &settled(answers()))),
        ],
        Shape::Entry => vec![
            ("answered", stored(shape, &entry(Outcome::Answered))),
            ("joined", stored(shape, &entry(Outcome::Joined { turn: "t-0".into() }))),
            ("failed", stored(shape, &entry(failed()))),
            ("cancelled", stored(shape, &entry(cancelled()))),
            ("lost", stored(shape, &entry(Outcome::Lost))),
        ],
        Shape::Patch => vec![("patch", PATCH.to_owned())],
        Shape::Settings => vec![
            ("settings", settings().encode().unwrap()),
            ("settings-provider", changed(provider_change()).encode().unwrap()),
            ("settings-runtime", changed(runtime_change()).encode().unwrap()),
        ],
        Shape::Catalogue => vec![("catalogue", stored(shape, &catalogue()))],
        Shape::Breaker => vec![("breaker", stored(shape, &breaker()))],
        Shape::Account => vec![("account", stored(shape, &account()))],
        Shape::Setup => vec![("setup", stored(shape, &setup_link()))],
        Shape::SignIn => vec![
            ("owners", stored(shape, &found_owners())),
            ("account", stored(shape, &SignInFound::Account { account: linked_account() })),
            ("refused", stored(shape, &SignInFound::Refused { why: "No.".to_owned() })),
        ],
        Shape::Linked => vec![("linked", stored(shape, &linked_account()))],
        Shape::Parked => vec![("parked", stored(shape, &parked()))],
        Shape::Body => bodies(),
    }
}

const PATCH: &str =
    "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-old\n+new\n";

fn stored(shape: Shape, item: &impl Serialize) -> String {
    schema::write(shape, item, &UnknownFields::default()).unwrap()
}

fn anna() -> Person {
    Person { id: "U0ANNA00001".to_owned(), name: "Anna".to_owned() }
}

fn thread() -> ThreadKey {
    ThreadKey::slack("T0BOBBIN01", "C0BUILD0001", "1790000000.000100").unwrap()
}

fn selection() -> Selection {
    Selection {
        repo: Some("acme/shop".to_owned()),
        model: Some("anthropic/claude".to_owned()),
        agent: Some("build".to_owned()),
        ..Selection::default()
    }
}

/// What says more of a sandbox than its repository: of the shape after.
fn of_a_sandbox() -> Selection {
    Selection {
        sandbox: Some("frontend".parse().unwrap()),
        provider: Some("daytona".to_owned()),
        snapshot: Some(
            "bobbin-dev-0123456789ab-g1-at1790000000000-0123456789abcdef0123".to_owned(),
        ),
        in_common: true,
        pr: Some(12),
        ..selection()
    }
}

fn membership() -> Membership {
    Membership {
        channel: "C0BUILD0001".to_owned(),
        roles: vec!["50".to_owned()],
        manages: true,
        outside: Some(Outside::Outsider),
        operates: true,
    }
}

fn prompt() -> Prompt {
    Prompt {
        text: "add a health check".to_owned(),
        by: anna(),
        attachments: vec![Attachment {
            name: "plan.md".to_owned(),
            url: "https://files.example/plan.md".to_owned(),
            size: 12,
            media_type: Some("text/markdown".to_owned()),
        }],
        quotes: vec![Quote { by: "Sam".to_owned(), text: "it is down again".to_owned() }],
        wants: selection(),
        membership: membership(),
        now: true,
        extends: Some(BudgetKind::Thread),
        continues: Some("add a health check".to_owned()),
    }
}

fn post(id: &str) -> PostRef {
    PostRef { channel: "C0BUILD0001".to_owned(), id: id.to_owned() }
}

fn usage() -> Usage {
    Usage {
        tokens: 1_200,
        cost_micro_usd: 3_400,
        files: 2,
        added: 10,
        removed: 3,
        files_unknown: false,
    }
}

fn failed() -> Outcome {
    Outcome::Failed { reason: "The model refused.".to_owned() }
}

fn cancelled() -> Outcome {
    Outcome::Cancelled { by: "Anna".to_owned() }
}

fn ids(turn: &TurnId) -> PromptIds {
    PromptIds::mint(&thread(), turn, T)
}

fn asks() -> Vec<Ask> {
    vec![
        Ask {
            id: "per_1".into(),
            about: About::Permission {
                action: "bash".to_owned(),
                subject: "rm -rf build".to_owned(),
                left_out: 4,
                places: Box::new(["/etc/*".to_owned()]),
                always: Box::new(["rm *".to_owned()]),
            },
            expires_at_ms: T + 1_800_000,
            post: Some(post("1790000000.000300")),
            settled: true,
        },
        Ask {
            id: "que_1".into(),
            about: About::Question {
                questions: vec![Question {
                    header: "Port".to_owned(),
                    text: "Which port?".to_owned(),
                    options: vec![Opt {
                        label: "8080".to_owned(),
                        description: "the usual one".to_owned(),
                    }],
                    multiple: true,
                    free: true,
                }],
            },
            expires_at_ms: T + 1_800_000,
            post: Some(post("1790000000.000400")),
            settled: false,
        },
    ]
}

fn turn(stage: Stage) -> Turn {
    Turn {
        id: "t-1".into(),
        by: anna(),
        accepted_at_ms: T,
        selection: selection(),
        stage,
        card: CardPlace {
            at: Some(post("1790000000.000200")),
            since_ms: Some(T + 2_000),
            rolls: 1,
            old: Some(post("1790000000.000150")),
        },
        asks: asks(),
        tries: Tries { attempts: 1, refusals: 1, server_restarts: 1 },
        outages: Outages { provider_since_ms: Some(T + 6_000), chat_since_ms: Some(T + 6_500) },
        in_hand: true,
        waits: true,
        cancelled_by: Some(anna()),
        moved: Some("(moved)".to_owned()),
        reserved: Some(Reservation {
            amount: 2_000_000,
            by: BudgetKind::Turn,
            scopes: vec![BudgetScope::Tenant { month: "2026-11".to_owned() }],
            spent: 420_000,
        }),
        trouble: Some("no answer in time".to_owned()),
        steered: vec![Steered {
            turn: "t-2".into(),
            prompt: prompt(),
            accepted_at_ms: T + 1_000,
            wanted_by: anna(),
            ids: ids(&"t-2".into()),
            card: Some(post("1790000000.000600")),
            sent: true,
            shown: true,
        }],
    }
}

fn session(stage: Stage) -> Session {
    let outcomes = [
        Outcome::Answered,
        Outcome::Joined { turn: "t-0".into() },
        failed(),
        cancelled(),
        Outcome::Lost,
        Outcome::OverBudget {
            reason: "(spent)".to_owned(),
            more: 2_000_000,
            by: Some(BudgetKind::Turn),
        },
    ];
    let ended = outcomes.into_iter().enumerate().map(|(n, outcome)| EndedTurn {
        id: format!("e-{n}").into(),
        outcome,
        at_ms: T - 1_000,
    });
    Session {
        thread: thread(),
        version: 7,
        conversation: Conversation {
            session: Some("ses_1".into()),
            generation: Some(2),
            briefed: Some("ses_1".into()),
            told: Some(given_secrets().name()),
            fresh_since_ms: T - 5_000,
            options: Some(CheckedOptions {
                generation: 2,
                selection: selection(),
                is_priced: true,
            }),
            agent: Some("claude:plan".to_owned()),
        },
        place: Place::default(),
        turn: Some(turn(stage)),
        stray: Some(StrayRun {
            generation: 2,
            agent_session: "ses_1".into(),
            messages: vec!["msg_0".to_owned()],
        }),
        ended: ended.collect(),
        due_at_ms: Some(T + 1_800_000),
        shown: vec!["0123456789abcdef".to_owned()],
        untold: untold(),
        published: Published {
            publication: Some(publication()),
            beside: vec![PublishedBeside {
                repository: 1_296_270,
                publication: Publication { repository: 1_296_270, ..publication() },
            }],
            waited: Some(WaitedMessage {
                id: "p-3".into(),
                deliveries: 4,
                last: 5,
                out_since_ms: Some(T),
                is_told: true,
            }),
        },
        review: Some(review()),
        spent: 1_230_000,
        unknown: UnknownFields::default(),
        sandbox: SandboxRecord::default(),
        observed: Observations::default(),
    }
}

fn review() -> PullReview {
    let comment = DraftedComment {
        path: "src/a.rs".to_owned(),
        line: 12,
        start_line: Some(10),
        side: DiffSide::Left,
        body: "Why?".to_owned(),
    };
    PullReview {
        name: "0123456789abcdef01234567".to_owned(),
        repository: repository(),
        number: 12,
        head: "7fd1a60b01f91b314f59955a4e4d4e80d8edf11d".to_owned(),
        draft: Some(DraftedReview {
            summary: "Good.".to_owned(),
            comments: vec![comment.clone()],
            apart: vec![comment],
        }),
        is_shown: true,
        posted: Some(PostedReview {
            press: "t-1".into(),
            page: "https://github.com/acme/shop/pull/12#pullrequestreview-1".to_owned(),
        }),
    }
}

fn given_pull() -> GivenPull {
    GivenPull {
        number: 12,
        page: "https://github.com/acme/shop/pull/12".to_owned(),
        state: PullRequestState::Open,
        branch: Some("feature".to_owned()),
        into: "main".to_owned(),
        into_commit: "0123456789abcdef0123456789abcdef01234567".to_owned(),
    }
}

fn publication() -> Publication {
    let proposal = Proposal {
        commit: "0123456789abcdef0123456789abcdef01234567".to_owned(),
        subject: "Add the page".to_owned(),
        body: "> It is done.".to_owned(),
    };
    let page = "https://github.com/acme/shop/pull/7".to_owned();
    Publication {
        branch: "bobbin/add-the-page-01234567".to_owned(),
        repository: 1_296_269,
        pushed: Some("89abcdef0123456789abcdef0123456789abcdef".to_owned()),
        unheard: vec!["fedcba9876543210fedcba9876543210fedcba98".to_owned()],
        theirs: Some("89abcdef0123456789abcdef0123456789abcdef".to_owned()),
        shown: Some(proposal.clone()),
        pressed: Some(Pressed { id: "p-1".into(), by: anna(), proposal, is_pushed: true }),
        pull_request: Some(PullRequestRef { number: 7, page }),
        watch: Some(watch()),
        heard: heard(),
        has_ended: true,
        updated: Some(BranchUpdate {
            at_ms: T,
            from: "0123456789abcdef0123456789abcdef01234567".to_owned(),
            to: Some("89abcdef0123456789abcdef0123456789abcdef".to_owned()),
        }),
    }
}

fn repository() -> ForgeRepository {
    ForgeRepository {
        installation: 7,
        id: 1296269,
        name: "acme/shop".to_owned(),
        address: "https://github.com/acme/shop".to_owned(),
        is_private: true,
        branch: "main".to_owned(),
    }
}

fn watch() -> Watch {
    Watch {
        card: Some(post("300000000000000009")),
        is_posting: true,
        shown: Some("0123456789abcdef".to_owned()),
        head: Some("89abcdef0123456789abcdef0123456789abcdef".to_owned()),
        checks: Some(SeenChecks { digest: "fedcba".to_owned(), since_ms: T }),
        polled_at_ms: T,
        failures: 2,
        fix: Some(Fix {
            name: "0123456789abcdef01234567".to_owned(),
            after: 1,
            press: "p-2".into(),
            last_press: Some("p-4".into()),
            is_queued: true,
            items: vec!["89abcdef0123456789abcdef".to_owned()],
            threads: vec![FixedThread { id: "PRRT_1".to_owned(), top: 11, is_bots: true }],
            reviewers: vec!["ada".to_owned()],
            asks: true,
        }),
        heard: heard(),
        responses: responses(),
        response_failures: 1,
        begun: BegunFixes {
            offered: Some("89abcdef0123456789abcdef".to_owned()),
            names: vec!["89abcdef0123456789abcdef".to_owned()],
            threads: vec![BegunThread { id: "PRRT_1".to_owned(), comment: 12 }],
            unanswered: 1,
        },
        ..Watch::new("p-1".into(), repository(), Some("C0BOBBIN01".to_owned()), T + 1)
    }
}

fn heard() -> HeardRemarks {
    HeardRemarks {
        refused: vec![Remark::Whole(14)],
        remarks: vec![Remark::Line(12), Remark::Whole(13)],
        has_told_connect: true,
    }
}

fn responses() -> Vec<PullRequestResponse> {
    let say = NewRemark { thread: Some(11), name: "turn-1".to_owned(), body: "Done.".to_owned() };
    vec![
        PullRequestResponse::Seen(Remark::Line(11)),
        PullRequestResponse::Say(say),
        PullRequestResponse::Resolve { thread: "PRRT_1".to_owned() },
        PullRequestResponse::AskForReview { logins: vec!["ada".to_owned()] },
    ]
}

/// What a thread could not be told, of each kind.
fn untold() -> Vec<UnpostedPost> {
    let one = |kind, people: &[&str], said| UnpostedPost {
        turn: "e-0".into(),
        kind,
        since_ms: T - 1_000,
        people: people.iter().map(|&id| id.to_owned()).collect(),
        said,
    };
    let (part, word) = ("It is done.".to_owned(), "This did not work.".to_owned());
    vec![
        one(PostKind::Chunk(1), &["U0ANNA00001"], Said::Part { text: part, last: true }),
        one(
            PostKind::Rolled(1),
            &[],
            Said::Card {
                at: Some(PostRef {
                    channel: "C0BUILD0001".to_owned(),
                    id: "1790000001.000200".to_owned(),
                }),
                outcome: failed(),
                usage: usage(),
                model: "anthropic/claude".to_owned(),
                accepted_at_ms: T - 9_000,
            },
        ),
        one(PostKind::Call, &["U0ANNA00001"], Said::Word { text: word }),
    ]
}

/// Of a thread that works in another sandbox than its own.
fn linked() -> Session {
    Session {
        place: Place {
            link: Some(
                ThreadKey::slack("T0BOBBIN01", "C0BUILD0001", "1790000000.000900")
                    .unwrap()
                    .sandbox(),
            ),
            in_common: true,
            own: Some(OwnWorkspace {
                generation: 2,
                directory: "/home/daytona/workspaces/0123456789ab".to_owned(),
                branch: Some("bobbin/0123456789ab".to_owned()),
            }),
        },
        ..session(Stage::Prompting(prompted()))
    }
}

/// One that people share.
fn shared() -> SandboxRecord {
    SandboxRecord {
        snapshots: vec![KeptSnapshot {
            name: "bobbin-dev-0123456789ab-g2-at1790000000000-0123456789abcdef0123".to_owned(),
            at_ms: T,
            by: anna(),
            built: Some(built()),
        }],
        sharing: Sharing {
            name: Some("frontend".parse().unwrap()),
            threads: [thread()].into(),
            waiting: vec![Waiting { thread: thread(), turn: "t-2".into(), until_ms: T + 180_000 }],
            closing: Some(anna()),
            ..sandbox(Phase::Active).sharing
        },
        spec: SandboxSpec {
            provider: Some("daytona".to_owned()),
            snapshot: of_a_sandbox().snapshot,
            ..sandbox(Phase::Active).spec
        },
        ..sandbox(Phase::Active)
    }
}

fn sandbox(phase: Phase) -> SandboxRecord {
    SandboxRecord {
        version: 5,
        phase,
        phase_since_ms: T,
        generation: 2,
        snapshots: Vec::new(),
        lease: Some(Lease { holder: "sweep-1#1".to_owned(), until_ms: T + 120_000 }),
        due_at_ms: Some(T + 1_800_000),
        last_activity_ms: T,
        wake_at_ms: Some(T + 1_800_000),
        unknown: UnknownFields::default(),
        money: SandboxMoney { metered_ms: Some(T - 60_000), capped_until_ms: Some(T + 86_400_000) },
        spec: SandboxSpec {
            runtime: None,
            provider: None,
            snapshot: None,
            credentials: Some("0123456789ab".to_owned()),
        },
        sharing: Sharing {
            name: None,
            threads: BTreeSet::new(),
            in_use: vec![InUse {
                thread: thread(),
                turn: "t-1".into(),
                common: true,
                since_ms: T,
                reserved: Some(2_000_000),
                left: false,
            }],
            waiting: Vec::new(),
            closing: None,
        },
        tooling: Tooling { tools_provider: None, tools: None, agent: None },
        history: SandboxHistory {
            vanished: None,
            without_secrets: 1,
            timeline: vec![TimelineEntry { at_ms: T, phase, note: "a prompt came".to_owned() }],
            operated: vec![Operated {
                id: "op-1".into(),
                want: Operation::Pause,
                at_ms: T,
                trouble: Some("it runs a turn".to_owned()),
            }],
        },
        project: SandboxProject {
            repo: Some("https://github.com/acme/shop".to_owned()),
            left_out: Some("submodules (lib)".to_owned()),
            carried: Some(Carried {
                repository: repository(),
                default: Some("main".to_owned()),
                folder: None,
                base: Some("7fd1a60b01f91b314f59955a4e4d4e80d8edf11d".to_owned()),
            }),
            beside: vec![Carried {
                repository: repository(),
                default: None,
                folder: Some(".bobbin/repositories/acme/api".to_owned()),
                base: Some("7fd1a60b01f91b314f59955a4e4d4e80d8edf11d".to_owned()),
            }],
            pull: Some(given_pull()),
            set_up: Some(set_up()),
            secrets: Some(given_secrets()),
            begins: BeginsWith::Prebuild(Prebuild {
                snapshot: "bobbin-dev-0123456789ab-g2-at1790000000000-0123456789abcdef0123"
                    .to_owned(),
                of: built(),
            }),
            builds: Some("build-1".into()),
        },
    }
}

fn built() -> BuiltProject {
    BuiltProject {
        key: BuildKey::of("image", "recipe", "locks"),
        commit: Some("7fd1a60b01f91b314f59955a4e4d4e80d8edf11d".to_owned()),
        repository: Some(1_296_269),
    }
}

fn wanted_build(purpose: BuildPurpose) -> Work {
    Work::Build(NewBuild {
        repo: "acme/shop".to_owned(),
        provider: None,
        channel: String::new(),
        hash: String::new(),
        useless: None,
        purpose,
    })
}

fn given_secrets() -> GivenSecrets {
    let given = |name: &str, hosts: &[&str]| GivenSecret {
        name: name.to_owned(),
        hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
    };
    let withheld = |name: &str, why| WithheldSecret { name: name.to_owned(), why };
    GivenSecrets {
        revision: "0123456789abcdef".to_owned(),
        network: Some(GivenNetwork {
            access: NetworkAccess::Listed,
            hosts: vec!["api.example.com".to_owned()],
            is_ignored: true,
        }),
        given: vec![given("NPM_TOKEN", &["registry.example.com"]), given("DATABASE_URL", &[])],
        withheld: vec![
            withheld("A_TOKEN", Withheld::Nowhere),
            withheld("D_TOKEN", Withheld::MadeWithout),
            withheld("B_TOKEN", Withheld::NoRoom),
            withheld("C_TOKEN", Withheld::Unreadable),
        ],
    }
}

fn secret_wish() -> SecretRequest {
    SecretRequest {
        repository: "acme/shop".to_owned(),
        name: "NPM_TOKEN".to_owned(),
        hosts: vec!["registry.example.com".to_owned()],
        readable: true,
        set_up: true,
    }
}

fn set_up() -> SetUp {
    let step = |name: &str| RecipeStep { name: name.to_owned(), run: format!("make {name}") };
    let failed = |name: &str, end| FailedStep {
        name: name.to_owned(),
        end,
        is_unrun: end == StepEnd::TooLong,
        log: step_log(0),
    };
    SetUp {
        recipe: Recipe {
            is_derived: true,
            from: RecipeSource::File(".bobbin/environment.yaml".to_owned()),
            set_up: vec![step("install"), step("migrate")],
            start: vec![step("watch")],
            services: vec![ProjectService::Postgres, ProjectService::Redis],
            ports: vec![3_000],
            tools: vec![("node".to_owned(), "22".to_owned())],
            variables: BTreeMap::from([("CI".to_owned(), "true".to_owned())]),
            refused: vec!["runArgs is not honoured.".to_owned()],
        },
        commit: Some("7fd1a60b01f91b314f59955a4e4d4e80d8edf11d".to_owned()),
        since_ticks: 4_711,
        begun_ms: T,
        has_begun: true,
        ended: vec![StepEnd::Done, StepEnd::Failed(2), StepEnd::TooLong, StepEnd::Interrupted],
        over_ms: Some(T + 41_000),
        failed: vec![failed("migrate", StepEnd::Failed(2))],
        not_started: vec![failed("watch", StepEnd::TooLong), failed("Redis", StepEnd::Refused)],
        key: Some(built().key),
        prebuilt_at: Some("7fd1a60b01f91b314f59955a4e4d4e80d8edf11d".to_owned()),
        is_requested: true,
        secrets: BTreeMap::from([("A_TOKEN".to_owned(), "0123456789abcdef".to_owned())]),
        ran: vec![RanStep {
            name: "migrate".to_owned(),
            end: StepEnd::Failed(2),
            took_s: Some(41),
            said: "no such table".to_owned(),
        }],
    }
}

fn prompted() -> Prompted {
    Prompted {
        with_digest: true,
        told_before: Some(given_secrets().name()),
        resends: 1,
        windows: 1,
        let_go: true,
        aborting: Some("It ran too long.".to_owned()),
        is_spent: true,
        ..Prompted::new(ids(&"t-1".into()), 2, T + 5_000)
    }
}

fn records() -> Vec<(&'static str, String)> {
    let told = EndProgress {
        posted: vec![post("1790000000.000500")],
        parts: Some(2),
        called: true,
        artifacts: Some(vec![Artifact {
            path: "plot.png".to_owned(),
            size: 2_048,
            sum: "5f2b".to_owned(),
        }]),
        artifacts_done: 1,
        unshown: vec!["`big.bin` is too large".to_owned()],
    };
    let prompted_before = Some(prompted());
    let ending =
        Stage::Ending { outcome: failed(), usage: usage(), prompted: prompted_before, told };
    let received = Stage::Received { ids: Some(ids(&"t-1".into())) };
    [
        ("received", received),
        ("prompting", Stage::Prompting(prompted())),
        ("running", Stage::Running(prompted())),
        ("ending", ending),
    ]
    .into_iter()
    .map(|(name, stage)| (name, session(stage).encode()))
    .chain([("linked", linked().encode()), ("new", Session::new(thread(), T).encode())])
    .collect()
}

fn sandboxes() -> Vec<(&'static str, String)> {
    let of = |phase: Phase| (phase.word(), sandbox(phase).encode());
    let new = ("new", SandboxRecord::new(T).encode());
    let shared = ("shared", shared().encode());
    let native = SandboxRecord {
        spec: SandboxSpec { runtime: Some("native".to_owned()), ..sandbox(Phase::Active).spec },
        ..sandbox(Phase::Active)
    };
    let native = ("native", native.encode());
    let outside = SandboxRecord {
        spec: SandboxSpec { runtime: Some("outside".to_owned()), ..sandbox(Phase::Active).spec },
        tooling: Tooling {
            tools_provider: Some("vercel".to_owned()),
            tools: Some(Tools { since: 1, ends_with: Some(2) }),
            ..sandbox(Phase::Active).tooling
        },
        ..sandbox(Phase::Active)
    };
    let outside = ("outside", outside.encode());
    Phase::ALL.into_iter().map(of).chain([shared, native, outside, new]).collect()
}

fn queued() -> Queued {
    Queued {
        by: anna(),
        accepted_at_ms: T,
        card: Some(post("1790000000.000200")),
        refused: true,
        prompt: Some(Box::new(prompt())),
    }
}

fn form() -> Choice {
    let text = "9090".to_owned();
    Choice::Form(vec![
        Field::Picked { question: 0, options: vec![0, 1] },
        Field::Words { question: 1, text: text.clone() },
        Field::Typed { question: 2, text: text.clone() },
        Field::Lines { text },
    ])
}

fn answers() -> Choice {
    Choice::Answers(vec![vec!["8080".to_owned()]])
}

fn settled(choice: Choice) -> AskDecision {
    AskDecision { by: anna(), choice }
}

fn entry(outcome: Outcome) -> LedgerEntry {
    LedgerEntry {
        turn: "t-1".into(),
        by: anna(),
        accepted_at_ms: T,
        ended_at_ms: T + 60_000,
        outcome,
        usage: usage(),
        selection: selection(),
        asked: "add a health check".to_owned(),
        answered: "Done.".to_owned(),
        card: Some(post("1790000000.000200")),
        rolls: 1,
        posted: vec![post("1790000000.000500")],
        again: Some(prompt()),
        patch: None,
    }
}

fn changes() -> [(&'static str, SettingsChange); 11] {
    [
        ("show", SettingsChange::Show),
        (
            "default",
            SettingsChange::Default {
                channel: Some("C0BUILD0001".to_owned()),
                of: DefaultKind::Model,
                value: Some("anthropic/claude".to_owned()),
            },
        ),
        (
            "allow",
            SettingsChange::Allow { list: SettingsList::Channels, id: "C0BUILD0001".to_owned() },
        ),
        (
            "disallow",
            SettingsChange::Disallow { list: SettingsList::People, id: "U0ANNA00001".to_owned() },
        ),
        (
            "open",
            SettingsChange::Open {
                channel: Some("C0BUILD0001".to_owned()),
                repository: "acme/shop".to_owned(),
            },
        ),
        ("close", SettingsChange::Close { channel: None, repository: "all".to_owned() }),
        ("direct", SettingsChange::Direct { one_thread: true }),
        (
            "environment",
            SettingsChange::Environment {
                repository: "acme/shop".to_owned(),
                text: "{set-up: [make]}".to_owned(),
                beside: vec!["acme/api".to_owned()],
            },
        ),
        (
            "network",
            SettingsChange::Network {
                repository: "acme/shop".to_owned(),
                access: NetworkAccess::Off,
                hosts: vec!["api.example.com".to_owned()],
            },
        ),
        ("secret", SettingsChange::Secret(secret_wish())),
        (
            "remove-secret",
            SettingsChange::RemoveSecret {
                repository: "acme/shop".to_owned(),
                name: "NPM_TOKEN".to_owned(),
            },
        ),
    ]
}

fn settings() -> Settings {
    Settings {
        version: 3,
        open_channels: BTreeSet::from(["C0BUILD0001".to_owned()]),
        open_to: BTreeSet::from(["U0ANNA00001".to_owned()]),
        defaults: selection(),
        channels: BTreeMap::from([("C0BUILD0001".to_owned(), selection())]),
        audit: changes()
            .into_iter()
            .map(|(id, change)| Changed { id: id.to_owned(), at_ms: T, by: anna(), change })
            .collect(),
        direct_in_one_thread: true,
        own_keys: BTreeMap::from([("daytona".to_owned(), own_key())]),
        repositories: Repositories {
            everywhere: BTreeSet::from(["acme/shop".to_owned()]),
            channels: BTreeMap::from([(
                "C0BUILD0001".to_owned(),
                BTreeSet::from(["all".to_owned()]),
            )]),
        },
        bindings: Bindings::from([(41, binding())]),
        budgets: Budgets {
            turn: Some(2_000_000),
            thread: Some(10_000_000),
            person_day: Some(10_000_000),
            channel_month: Some(100_000_000),
            month: Some(300_000_000),
        },
        environments: serde_json::from_value(serde_json::json!({"acme/shop": "{set-up: [make]}"}))
            .unwrap(),
        beside: serde_json::from_value(serde_json::json!({"acme/shop": ["acme/api"]})).unwrap(),
        project_networks: serde_json::from_value(
            serde_json::json!({"acme/shop": {"access": "listed", "hosts": ["api.example.com"]}}),
        )
        .unwrap(),
        project_secrets: serde_json::from_value(serde_json::json!({"acme/shop": {"NPM_TOKEN": {
            "sealed": "c2VhbGVk", "hosts": ["registry.example.com"], "readable": true, "set_up": true,
            "by": anna(), "since_ms": T,
        }}}))
        .unwrap(),
        unknown: UnknownFields::default(),
    }
}

/// Somebody has changed this of where and how new sandboxes are made.
fn changed(change: SettingsChange) -> Settings {
    let mut settings = settings();
    settings.audit = vec![Changed { id: "c-9".to_owned(), at_ms: T, by: anna(), change }];
    settings
}

fn provider_change() -> SettingsChange {
    SettingsChange::Default {
        channel: Some("C0BUILD0001".to_owned()),
        of: DefaultKind::Provider,
        value: Some("vercel".to_owned()),
    }
}

fn runtime_change() -> SettingsChange {
    SettingsChange::Default {
        channel: None,
        of: DefaultKind::Runtime,
        value: Some("native".to_owned()),
    }
}

/// What says how agents are run: of the shape after.
fn of_a_runtime() -> Selection {
    Selection {
        runtime: Some("native".to_owned()),
        pull_requests: Some("ready".to_owned()),
        pull_requests_by: Some("linked".to_owned()),
        submodules: Some("yes".to_owned()),
        review_bots: Some("lint-bot,style-bot".to_owned()),
        ..of_a_sandbox()
    }
}

fn own_key() -> OwnKey {
    OwnKey {
        sealed: "c2VhbGVk".to_owned(),
        fingerprint: "0123456789ab".to_owned(),
        state: KeyState::Valid,
        by: anna(),
        since_ms: T,
        checked_at_ms: T + 1,
    }
}

fn setup_link() -> SetupLink {
    SetupLink {
        purpose: Purpose::Key(Key::DaytonaApiKey),
        thread: thread(),
        place: Some("Acme".to_owned()),
        by: anna(),
        membership: membership(),
        reply: Reply::Nobody,
        until_ms: T + 600_000,
        sign_in: Some("https://github.com/login/oauth/authorize?client_id=Iv23".to_owned()),
        secret: Some(secret_wish()),
    }
}

fn found_owners() -> SignInFound {
    SignInFound::Owners {
        login: "anna".to_owned(),
        owners: vec![OwnerChoice {
            id: 41,
            login: "acme".to_owned(),
            is_organization: true,
            installation: 7,
            is_suspended: true,
            page: "https://github.com/organizations/acme/settings/installations/7".to_owned(),
        }],
        unsaid: vec!["other".to_owned()],
        install: "https://github.com/apps/bobbin/installations/new".to_owned(),
    }
}

fn binding() -> Binding {
    Binding {
        login: "acme".to_owned(),
        is_organization: true,
        installation: 7,
        by: anna(),
        since_ms: T,
    }
}

fn linked_account() -> LinkedAccount {
    LinkedAccount {
        id: 583_231,
        login: "anna".to_owned(),
        sealed: "c2VhbGVk".to_owned(),
        renews: true,
        since_ms: T,
        ends_ms: Some(T + 15_897_600_000),
        link: "0123456789abcdef".to_owned(),
        renewing_ms: Some(T + 1_000),
    }
}

fn parked() -> Parked {
    Parked {
        turn: "1790000000.000100".into(),
        receive: 17,
        at_ms: T,
        until_ms: T + 10_000,
        seen: Seen {
            card: Some("0123456789abcdef".to_owned()),
            spent: Some(420_000),
            doubt: Some(Doubt { about: Doubtful::Pending, since_ms: T - 5_000 }),
        },
    }
}

fn catalogue() -> Catalogue {
    let one = |text: &str| vec![text.to_owned()];
    Catalogue {
        models: one("anthropic/claude"),
        agents: one("build"),
        providers: one("daytona"),
        recent: RecentChoices {
            repos: one("acme/shop"),
            models: one("anthropic/claude"),
            agents: one("plan"),
        },
        sandboxes: BTreeMap::default(),
        unknown: UnknownFields::default(),
    }
}

fn breaker() -> Breaker {
    Breaker {
        failures: 5,
        since_ms: T,
        open_until_ms: Some(T + 30_000),
        open_ms: 30_000,
        probing: Some(T + 90_000),
    }
}

fn account() -> AccountRecord {
    AccountRecord {
        account: Account::of("00000000-0000-4000-8000-000000000001"),
        confirmed_at_ms: Some(T),
    }
}

fn message(name: &'static str, work: Work) -> (&'static str, String) {
    let body =
        Body::Message(Message { id: "m-1".into(), thread: thread(), accepted_at_ms: T, work });
    (name, body.encode())
}

fn control(name: &'static str, want: ControlAction) -> (&'static str, String) {
    let reply = match name {
        "control-status" => Reply::Discord {
            application: "1240000000000000001".to_owned(),
            token: "a-token".to_owned(),
        },
        "control-halt" => Reply::Nobody,
        _ => Reply::Slack {
            channel: "C0BUILD0001".to_owned(),
            thread_ts: Some("1790000000.000100".to_owned()),
            user: "U0ANNA00001".to_owned(),
        },
    };
    let body = Body::Control(Control {
        id: "c-1".to_owned(),
        thread: thread(),
        by: anna(),
        reply,
        membership: membership(),
        want,
    });
    (name, body.encode())
}

fn bodies() -> Vec<(&'static str, String)> {
    let turn = || "t-1".to_owned();
    let text = || "words".to_owned();
    let ask = || "per_1".to_owned();
    let settle = |choice| ControlAction::Settle { ask: ask().into(), choice };
    let reply = || Reply::Discord {
        application: "1240000000000000001".to_owned(),
        token: "a-token".to_owned(),
    };
    let overview = |place| {
        Body::Overview(Overview {
            id: "o-1".to_owned(),
            team: "T0BOBBIN01".to_owned(),
            by: anna(),
            place,
            refused: Some("no".to_owned()),
            change: Some(SettingsChange::Show),
        })
        .encode()
    };
    let mut bodies = vec![
        message("message-prompt", Work::Prompt(prompt())),
        message("message-sweep", Work::Sweep),
        message("message-poll", Work::Poll),
        message("message-look", Work::Reconcile),
        message(
            "message-reset",
            Work::Reset { by: anna(), membership: membership(), keeps_files: false },
        ),
        message(
            "message-dead-letter",
            Work::DeadLetter {
                turn: turn().into(),
                prompt: Some(Box::new(DeadPrompt { accepted_at_ms: T, prompt: prompt() })),
            },
        ),
        message("message-operate", Work::Operate { want: Operation::Destroy, by: None }),
        message(
            "message-operate-by",
            Work::Operate { want: Operation::Snapshot, by: Some(anna()) },
        ),
        message(
            "message-prompt-sandbox",
            Work::Prompt(Prompt { wants: of_a_sandbox(), ..prompt() }),
        ),
        message(
            "message-name",
            Work::Name { name: "frontend".parse().unwrap(), by: anna(), membership: membership() },
        ),
        message(
            "message-connect",
            Work::Connect { to: Some(thread().sandbox()), by: anna(), membership: membership() },
        ),
        message(
            "message-publish",
            Work::Publish {
                step: PublishStep::Push {
                    commit: "0123456789abcdef0123456789abcdef01234567".to_owned(),
                },
                by: anna(),
                membership: membership(),
            },
        ),
        message(
            "message-review",
            Work::Publish {
                step: PublishStep::Review { name: review().name },
                by: anna(),
                membership: membership(),
            },
        ),
        message(
            "message-create",
            Work::Create(NewSandbox {
                name: "frontend".parse().unwrap(),
                provider: Some("daytona".to_owned()),
                runtime: None,
                repo: Some("acme/shop".to_owned()),
                snapshot: of_a_sandbox().snapshot,
                agent: None,
            }),
        ),
        message(
            "message-build",
            Work::Build(NewBuild {
                repo: "acme/shop".to_owned(),
                provider: Some("daytona".to_owned()),
                channel: "C1".to_owned(),
                hash: built().key.hash,
                useless: Some("bobbin-dev-0123456789ab-g1-at1790000000000-0123456789ab".to_owned()),
                purpose: BuildPurpose::Build,
            }),
        ),
        message("message-build-try", wanted_build(BuildPurpose::Try)),
        message("message-build-forget", wanted_build(BuildPurpose::Forget)),
        message(
            "message-create-runtime",
            Work::Create(NewSandbox {
                name: "frontend".parse().unwrap(),
                provider: Some("daytona".to_owned()),
                runtime: of_a_runtime().runtime,
                repo: Some("acme/shop".to_owned()),
                snapshot: of_a_sandbox().snapshot,
                agent: Some(thread().sandbox()),
            }),
        ),
        message(
            "message-prompt-runtime",
            Work::Prompt(Prompt { wants: of_a_runtime(), ..prompt() }),
        ),
        (
            "open-runtime",
            Body::Open(Open {
                id: "m-1".into(),
                guild: "1240000000000000100".to_owned(),
                channel: "1240000000000000200".to_owned(),
                accepted_at_ms: T,
                prompt: Prompt { wants: of_a_runtime(), ..prompt() },
                reply: reply(),
            })
            .encode(),
        ),
        (
            "open",
            Body::Open(Open {
                id: "m-1".into(),
                guild: "1240000000000000100".to_owned(),
                channel: "1240000000000000200".to_owned(),
                accepted_at_ms: T,
                prompt: prompt(),
                reply: reply(),
            })
            .encode(),
        ),
        (
            "announce",
            Body::Announce(Announce {
                turn: turn().into(),
                thread: thread(),
                by: anna(),
                accepted_at_ms: T,
                prompt: Some(prompt()),
            })
            .encode(),
        ),
        ("overview-home", overview(Surface::Home)),
        (
            "overview-answer",
            overview(Surface::Answer { reply: reply(), channel: "C0BUILD0001".to_owned() }),
        ),
        control("control-stop", ControlAction::Stop { turn: Some(turn().into()) }),
        control("control-stop-all", ControlAction::StopAll),
        control("control-halt", ControlAction::Halt { turn: turn().into() }),
        control("control-now", ControlAction::Now { turn: turn().into() }),
        control("control-withdraw", ControlAction::Withdraw { turn: turn().into() }),
        control("control-diff", ControlAction::Diff { turn: Some(turn().into()) }),
        control("control-set-up-log", ControlAction::SetUpLog { turn: turn().into() }),
        control("control-sandboxes", ControlAction::Sandboxes { page: 1, in_thread: true }),
        control(
            "control-connect",
            ControlAction::Connect { to: Some(WhichSandbox::Named("frontend".parse().unwrap())) },
        ),
        control(
            "control-publish",
            ControlAction::Publish {
                step: PublishStep::Show {
                    subject: Some("Add the page".to_owned()),
                    body: Some("It is done.".to_owned()),
                    of: Some(ShowOf::Commit("7fd1a60b01f91b314f59955a4e4d4e80d8edf11d".to_owned())),
                },
            },
        ),
        control(
            "control-publish-all",
            ControlAction::Publish { step: PublishStep::PushAll { name: review().name } },
        ),
        control("control-ask-destroy", ControlAction::AskDestroy { sandbox: WhichSandbox::Here }),
        control(
            "control-operate",
            ControlAction::Operate {
                sandbox: WhichSandbox::Exactly(thread().sandbox()),
                operation: Operation::Destroy,
            },
        ),
        control("control-own-key-show", ControlAction::OwnKey { key: OwnKeyRequest::Show }),
        control(
            "control-own-key-enter",
            ControlAction::OwnKey { key: OwnKeyRequest::Enter { provider: text() } },
        ),
        control(
            "control-own-key-remove",
            ControlAction::OwnKey { key: OwnKeyRequest::Remove { provider: text() } },
        ),
        control(
            "control-own-key-check",
            ControlAction::OwnKey { key: OwnKeyRequest::Check { link: text() } },
        ),
        control("control-forge-bind", ControlAction::Forge { forge: ForgeRequest::Bind }),
        control(
            "control-forge-unbind",
            ControlAction::Forge { forge: ForgeRequest::Unbind { owner: Some(text()) } },
        ),
        control("control-forge-connect", ControlAction::Forge { forge: ForgeRequest::Connect }),
        control("control-forge-account", ControlAction::Forge { forge: ForgeRequest::Account }),
        control(
            "control-forge-disconnect",
            ControlAction::Forge { forge: ForgeRequest::Disconnect },
        ),
        control(
            "control-forge-signed-in",
            ControlAction::Forge { forge: ForgeRequest::SignedIn { link: text(), press: text() } },
        ),
        control(
            "control-forge-pressed",
            ControlAction::Forge { forge: ForgeRequest::Pressed { link: text() } },
        ),
        control(
            "control-configure-provider",
            ControlAction::Configure { change: provider_change() },
        ),
        control("control-configure-runtime", ControlAction::Configure { change: runtime_change() }),
        control("control-status", ControlAction::Command { command: Command::Status }),
        control("control-again", ControlAction::Again { turn: turn().into() }),
        control("control-help", ControlAction::Help { text: text() }),
        control("control-say", ControlAction::Say { text: text() }),
        control("control-settle-once", settle(Choice::Once)),
        control("control-settle-always", settle(Choice::Always)),
        control("control-settle-reject", settle(Choice::Reject)),
        control("control-settle-form", settle(form())),
        control("control-settle-answers", settle(answers())),
    ];
    let configure = [
        "control-configure-show",
        "control-configure-default",
        "control-configure-allow",
        "control-configure-disallow",
        "control-configure-open",
        "control-configure-close",
        "control-configure-direct",
    ];
    for (name, (_, change)) in configure.into_iter().zip(changes()) {
        bodies.push(control(name, ControlAction::Configure { change }));
    }
    let direct = Body::Message(Message {
        id: "m-1".into(),
        thread: ThreadKey::slack_direct("T0BOBBIN01", "U0ANNA00001").unwrap(),
        accepted_at_ms: T,
        work: Work::Prompt(prompt()),
    });
    bodies.push(("message-direct", direct.encode()));
    let dead = Body::DeadLetters(DeadLetters { id: "dead-letters-1".to_owned() });
    bodies.push(("dead-letters", dead.encode()));
    for (name, about) in [
        ("forge-installation", ForgeSubject::Installation { installation: 7 }),
        ("forge-person", ForgeSubject::Person { person: 9 }),
    ] {
        bodies.push((name, Body::Forge(ForgeHint::of("deleted", about)).encode()));
    }
    bodies
}
