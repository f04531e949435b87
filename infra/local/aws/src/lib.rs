//! The AWS of the laptop stack: DynamoDB, SQS, EventBridge Scheduler, Secrets Manager, Lambda and what `CloudFormation`
//! tells of a stack in one process, set up from the project's own `template.yaml`.
//!
//! Promised: programs that use the real AWS SDKs find the semantics that AWS documents, as far as the services here are
//! concerned, and each raw answer is as AWS's own model of the service has it; what is not emulated is refused by its
//! name; state is on disk before a call is answered and survives `kill -9`; a test can move the clock; everything listens
//! on loopback only; [`Engine::stop`] leaves no process behind, and the next start cleans up after a kill.
//!
//! [`RuntimeApi`] is Lambda's end of one process by itself, for whoever starts that process.
//!
//! Signatures are verified with the keys of [`Engine::start_signed`], and its test calls need one of their own;
//! [`Engine::start`] takes any and none. A foreign `Host` or `Origin` is refused at every port but the function URLs, which
//! stand for addresses that are public.
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
mod folder;
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
pub use engine::{Engine, Error, Settings};
pub use folder::{FolderError, FolderLock};
pub use lambda::{Invoked, RuntimeApi};
pub use log::{LogLine, LogSink, LogStream};
pub use signature::{AccessKey, Keys};
pub use tables::Tables;
pub use template::TemplateError;
