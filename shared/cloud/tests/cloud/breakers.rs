//! Breakers, each of several as in a worker of its own, over one table.

use std::sync::atomic::Ordering;

use bobbin_cloud::breaker::Breakers;
use bobbin_core::base::breaker::CallAdmission;
use bobbin_core::base::limits::Limits;
use futures::future::join_all;

use crate::support::{Cloud, WAIT_MAX, answering, aws, silent};

const NOW_MS: u64 = 1_800_000_000_000;
const PROVIDER: &str = "daytona";

fn workers(cloud: &Cloud, count: usize) -> Vec<Breakers> {
    let worker = |_| {
        Breakers::new(&aws(cloud.engine.endpoint()), &cloud.resource("Table"), &Limits::DEFAULT)
    };
    (0..count).map(worker).collect()
}

async fn admitted(workers: &[Breakers], now_ms: u64) -> Vec<CallAdmission> {
    join_all(workers.iter().map(|one| one.admit(PROVIDER, now_ms))).await
}

fn probes(admissions: &[CallAdmission]) -> usize {
    let probes = |admission: &&CallAdmission| **admission == CallAdmission::Probe;
    admissions.iter().filter(probes).count()
}

#[tokio::test]
async fn workers_share_one_breaker() {
    let cloud = Cloud::start().await;
    let workers = workers(&cloud, 5);
    let limits = Limits::DEFAULT;
    assert!(admitted(&workers, NOW_MS).await.iter().all(|one| *one == CallAdmission::Yes));
    // All at once: each write that is lost to another is made again.
    join_all(workers.iter().map(|one| one.failed(PROVIDER, "503", NOW_MS))).await;
    let cached_ms = NOW_MS + limits.breaker.cache_ms;
    for admission in admitted(&workers, cached_ms).await {
        let retry_in_ms = limits.breaker.open_ms - limits.breaker.cache_ms;
        assert_eq!(admission, CallAdmission::No { retry_in_ms });
    }

    let over_ms = NOW_MS + limits.breaker.open_ms;
    let admissions = admitted(&workers, over_ms).await;
    assert_eq!(probes(&admissions), 1, "{admissions:?}");
    assert!(!admissions.contains(&CallAdmission::Yes), "{admissions:?}");
    let prober = admissions.iter().position(|one| *one == CallAdmission::Probe);
    workers[prober.unwrap()].succeeded(PROVIDER, over_ms + 1).await;
    let closed_ms = over_ms + limits.breaker.cache_ms;
    for admission in admitted(&workers, closed_ms).await {
        assert_eq!(admission, CallAdmission::Yes);
    }
    assert_eq!(workers[0].admit("another", NOW_MS).await, CallAdmission::Yes);
}

#[tokio::test]
async fn failed_probe_prolongs_open_breaker() {
    let cloud = Cloud::start().await;
    let workers = workers(&cloud, 3);
    let limits = Limits::DEFAULT;
    for _ in 0..limits.breaker.failures {
        workers[0].failed(PROVIDER, "no answer", NOW_MS).await;
    }
    let first_ms = NOW_MS + limits.breaker.open_ms;
    assert_eq!(workers[1].admit(PROVIDER, first_ms).await, CallAdmission::Probe);
    workers[1].failed(PROVIDER, "no answer", first_ms).await;
    let longer_ms = first_ms + 2 * limits.breaker.open_ms;
    let before = workers[2].admit(PROVIDER, longer_ms - 1).await;
    assert_eq!(before, CallAdmission::No { retry_in_ms: 1 });

    // The one that probes now never says how it went.
    let second = admitted(&workers, longer_ms).await;
    assert_eq!(probes(&second), 1, "{second:?}");
    let lost_ms = longer_ms + limits.breaker.probe_ms;
    let third = admitted(&workers, lost_ms).await;
    assert_eq!(probes(&third), 1, "{third:?}");
}

#[tokio::test]
async fn closed_breaker_costs_one_cached_read() {
    let (endpoint, calls) = answering(200, "{}").await;
    let limits = Limits::DEFAULT;
    let breakers = Breakers::new(&aws(&endpoint), "table", &limits);
    for at_ms in 0..limits.breaker.cache_ms {
        let now_ms = NOW_MS + at_ms;
        assert_eq!(breakers.admit(PROVIDER, now_ms).await, CallAdmission::Yes);
        breakers.succeeded(PROVIDER, now_ms).await;
    }
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    let next_ms = NOW_MS + limits.breaker.cache_ms;
    assert_eq!(breakers.admit(PROVIDER, next_ms).await, CallAdmission::Yes);
    assert_eq!(calls.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn breaker_admits_when_table_fails() {
    let (broken, _) = answering(400, r#"{"__type":"ResourceNotFoundException"}"#).await;
    let (mute, _listener) = silent().await;
    for endpoint in [broken, mute] {
        let breakers = Breakers::new(&aws(&endpoint), "table", &Limits::DEFAULT);
        let asked = async {
            assert_eq!(breakers.admit(PROVIDER, NOW_MS).await, CallAdmission::Yes);
            breakers.failed(PROVIDER, "503", NOW_MS).await;
            breakers.succeeded(PROVIDER, NOW_MS).await;
            assert_eq!(breakers.admit(PROVIDER, NOW_MS + 1).await, CallAdmission::Yes);
        };
        tokio::time::timeout(WAIT_MAX, asked).await.expect("a silent table is given up");
    }
}
