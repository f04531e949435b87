//! The laptop stack's AWS: DynamoDB, SQS, EventBridge Scheduler, Secrets Manager, Lambda, and `CloudFormation`'s stack
//! description, in one process, set up from the project's own `template.yaml`.
//!
//! Promised: the services here behave for the real AWS SDKs as AWS documents them, and each raw answer matches AWS's
//! service model; what is not emulated is refused by name; state is on disk before a call is answered and survives
//! `kill -9`; a test can advance the clock; everything listens on loopback only; [`Engine::stop`] leaves no process
//! behind, and the next start cleans up after a kill.
//!
//! [`RuntimeApi`] is Lambda's side of one process alone, for callers that start the process themselves.
//!
//! [`Engine::start_signed`] verifies signatures with its keys and requires a key for test calls; [`Engine::start`]
//! accepts any signature or none. A foreign `Host` or `Origin` is refused at every port except function URLs, which
//! stand for public addresses.
//!
//! Deliberately absent: roles, throttles, encryption, and every property of the template that
//! [`Engine::unhonoured`] names.
//!
//! Test calls, next to the services on [`Engine::endpoint`]:
//!
//! | call | does |
//! |---|---|
//! | `GET /_bobbin/clock` | tells `now_ms` and `offset_ms` |
//! | `POST /_bobbin/clock {"advance_ms": N}` | pushes the clock forward |
//! | `GET /_bobbin/queues/NAME/messages` | lists a queue without receiving |
//! | `POST /_bobbin/queues/NAME/mapping {"enabled": B}` | switches the mappings of a queue off or on |
//! | `GET /_bobbin/functions` | process ids by function |
//! | `POST /_bobbin/functions/ID/kill` | kills the processes of a function |
//! | `POST /_bobbin/transactions {"ms": N}` | has every transaction of a table be in flight for N ms longer |
//! | `POST /_bobbin/index-lag {"ms": N}` | has index queries answer as of N ms ago; 0 ends it |
//! | `/_bobbin/breakpoints` | holds calls of functions at any local service ([`bobbin_local_breakpoint`]) |

mod account;
mod clock;
mod cloudformation;
mod dynamodb;
mod endpoint;
mod engine;
mod kms;
mod lambda;
mod limits;
mod log;
mod query;
mod scheduler;
mod secrets;
mod serve;
mod signature;
mod sqs;
mod store;
mod tables;
mod template;

pub use clock::Clock;
pub use engine::{Engine, EngineError, EngineSettings};
pub use lambda::{Invoked, RuntimeApi};
pub use log::{LogLine, LogSink, LogStream};
pub use signature::{AccessKey, EngineKeys};
pub use tables::Tables;
pub use template::TemplateError;
