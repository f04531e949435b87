//! Security of the real programs: unsigned requests are refused, secrets stay where they belong and are used as stored,
//! no request goes to a private address, a model's output has no effect beyond being read, tenants do not reach each
//! other, and each function's role allows exactly its own actions. `docs/SECURITY.md` says what each test is for.

pub mod canaries;
mod guests;
mod inside;
mod keys;
mod outgoing;
mod output;
mod roles;
pub mod search;
mod signatures;
mod tenants;

pub use canaries::everything;
pub use search::{Search, Searched, Secret};

use std::time::{SystemTime, UNIX_EPOCH};

use bobbin_tests::http;
use bobbin_tests::world::World;
use libtest_mimic::Trial;
use reqwest::Method;
use serde_json::Value;

use crate::run::deep;

pub fn trials() -> Vec<Trial> {
    let behind = [
        canaries::trials(),
        guests::trials(),
        inside::trials(),
        keys::trials(),
        outgoing::trials(),
        output::trials(),
        tenants::trials(),
        roles::trials(),
    ];
    let first = signatures::trials().into_iter().chain(search::trials());
    first.chain(deep(behind.into_iter().flatten())).collect()
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// The bot's requests to a platform (`discord` or `slack`) after this sequence number, as the chat recorded them.
async fn requests(world: &World, platform: &str, after: i64) -> Vec<Value> {
    let url = format!("{}/_control/{platform}/requests?after={after}", world.ready.console);
    let client = http::client();
    let list = http::call(&client, Method::GET, &url, &world.ready.control(), &Value::Null).await;
    let list = list.and_then(|answer| answer.ok());
    let list = list.unwrap_or_else(|why| panic!("the requests cannot be read: {why}"));
    list["requests"].as_array().cloned().unwrap_or_default()
}

/// The newest sequence number, to read on from.
async fn newest(world: &World, platform: &str) -> i64 {
    let all = requests(world, platform, 0).await;
    all.last().and_then(|one| one["seq"].as_i64()).unwrap_or_default()
}

/// Messages that wait on a queue or are being processed, with their bodies.
async fn queue(world: &World, queue_url: &str) -> Value {
    let name = queue_url.rsplit('/').next().unwrap_or_default();
    let path = format!("queues/{name}/messages");
    let listed = world.engine(Method::GET, &path, &Value::Null).await;
    listed.unwrap_or_else(|why| panic!("{name} cannot be read: {why}"))
}
