//! A forge compatible with GitHub whose repositories are folders.
//!
//! Promised: GitHub's REST API, its git over HTTP and its pages as an app uses them: apps with their keys,
//! installations, tokens for single repositories and rights, people who sign in, repositories that are renamed,
//! transferred and archived, branches with rules, pull requests, checks and statuses, workflow runs with their logs,
//! reviews, threads, comments and reactions, signed webhooks, and refusals with GitHub's own texts. GraphQL answers
//! exactly the documents of its folder, and Bobbin's own. Git itself is `git http-backend` over bare repositories.
//! State is one folder and survives a restart, except for sign-ins, counted requests and looks, addresses of logs, and
//! webhooks that were sent or wait. Only loopback is bound.
//!
//! Deliberately absent: issues; pending reviews; teams; forks; merges by `merge-async`; webhooks of jobs and of merge
//! groups; large file storage, so a pushed pointer is always refused; files and commits made over REST. No workflow
//! runs: a test says what it did. A signature counts without being verified. A push of several branches is taken or
//! refused as a whole. Webhooks of pushes list no commits. The sentences about restricted paths, sizes and the merge
//! queue are this forge's.
//!
//! Beside the API, with the stack's key:
//!
//! | call | does |
//! |---|---|
//! | `POST /_control/clock {"advance_ms":N}` | moves the clock of tokens, codes and limits |
//! | `POST /_control/faults {"faults":[…]}` | arms faults; the operation is GitHub's own name of a call (`pulls/create`), `git/upload-pack` or `git/receive-pack`, the scope `sandbox` a repository (`owner/name`) |
//! | `POST /_control/installation {"id":N,"permissions":{…}}` | grants other rights |
//! | `POST /_control/addresses {"organization":"…","refused":true}` | an address list that refuses everybody |
//! | `POST /_control/checks {"repository":"owner/name","sha":"…","name":"test","conclusion":"failure","log":"…"}` | what continuous integration says: Actions unless `app` names another one, which then is made; also `branch` for `sha`, `status`, `workflow`, `event`, `annotations`, `steps`, `title`, `summary`, `text`, `details_url`, `hides_pulls` |
//! | `POST /_control/app {"name":"ci","owner":"…","permissions":{…},"events":[…],"webhook":"…"}` | an app that a test acts as, installed on its owner, and a token of it |
//! | `POST /_control/person {"login":"eve"}` | a person that a test acts as, and a token of theirs |
//! | `POST /_control/renamed {"login":"acme","to":"acme-inc"}` | another name for an account, which keeps its id |
//! | `POST /_control/thread {"login":"eve","comment":N,"resolved":true}` | a person's press that resolves the thread of a comment |
//! | `POST /_control/queue {"repository":"owner/name","number":1,"merged":true}` | how it went in the merge queue |
//! | `POST /_control/hooks {"faults":[{"fault":"late","event":"check_run","action":"completed","times":1}]}` | arms faults of webhooks: `late` (until `POST /_control/hooks/release`), `out_of_order` (after the next one), `twice` (`other_id`), `lost`, `other_secret`, `unsigned`, `misnamed` (`event_as`), `renumbered` (`id`); `DELETE` disarms, and lets go of what waits |
//! | `POST /_control/hooks/forged {"event":"push","payload":{…},"secret":null}` | what a stranger would send |
//! | `POST /_control/repository {"repository":"owner/name","drafts":false}` | a plan without draft pull requests; `unknown_looks` is how many looks at a pull request find its merge not tried yet, one unless it is said |

mod access;
mod api_error;
mod checks;
mod forge;
mod git;
mod graphql;
mod json_web_token;
mod limits;
mod permission;
mod planting;
mod pulls;
mod record;
mod rest;
mod reviews;
mod rsa;
mod seeds;
mod settings;
mod state;
mod view;
mod web;
mod webhooks;

pub use forge::LocalForge;
pub use limits::{FILE_BYTES_MAX, PUSH_BYTES_MAX};
pub use record::{BranchRule, StatusCheck};
pub use seeds::{ForgeIdentity, Seeds};
pub use settings::{ForgeSettings, ForgeStartError};
pub use view::{BranchView, FileView, PullRequestView, RepositoryView};
