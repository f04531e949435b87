//! Servers that send much, or nonsense.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use bobbin_core::base::failure::Failure;
use bobbin_core::base::secret::Secret;
use bobbin_forge::git::{Fetch, GitError, ObjectId, PackSink, Push, RefName, Remote};
use bobbin_http::{AllowedHosts, Http};
use proptest::prelude::*;
use tokio::net::TcpListener;

use crate::carriage::Kept;

const TIP: &str = "00000000000000000000000000000000000000aa";
const PACK_BYTES: u64 = 100 * 1024 * 1024;
/// What the kernel's and both programs' buffers of one connection may hold.
const UNDERWAY_BYTES_MAX: u64 = 16 * 1024 * 1024;

fn packet(data: &[u8]) -> Vec<u8> {
    [format!("{:04x}", data.len() + 4).as_bytes(), data].concat()
}

fn offer() -> Vec<u8> {
    let lines =
        ["version 2\n", "ls-refs=unborn\n", "fetch=shallow filter\n", "object-format=sha1\n"];
    let mut offer: Vec<u8> = lines.iter().flat_map(|line| packet(line.as_bytes())).collect();
    offer.extend_from_slice(b"0000");
    offer
}

fn labelled(request: &Request, body: Body) -> Response {
    let query = request.uri().query().unwrap_or_default();
    let service = if query.contains("receive") || request.uri().path().ends_with("receive-pack") {
        "receive"
    } else {
        "upload"
    };
    let end = if request.method() == "GET" { "advertisement" } else { "result" };
    ([("content-type", format!("application/x-git-{service}-pack-{end}"))], body).into_response()
}

/// A server of this answer.
async fn serving(
    answer: impl Fn(Request) -> Response + Clone + Send + Sync + 'static,
) -> (String, Http) {
    let router = Router::new().fallback(move |request: Request| {
        let answer = answer.clone();
        async move { answer(request) }
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    let http = Http::new(&base, AllowedHosts::Named(Vec::new())).unwrap();
    (base, http)
}

/// Counts, and compares with what was sent.
struct Counting {
    sent: Arc<AtomicU64>,
    taken: u64,
}

#[async_trait]
impl PackSink for Counting {
    async fn take(&mut self, piece: &[u8]) -> Result<(), Failure> {
        assert!((1..=65_515).contains(&piece.len()));
        self.taken += piece.len() as u64;
        let underway = self.sent.load(Ordering::SeqCst).saturating_sub(self.taken);
        assert!(underway <= UNDERWAY_BYTES_MAX, "{underway} bytes were sent and not taken");
        Ok(())
    }
}

#[tokio::test]
async fn large_pack_is_passed_on_and_not_held() {
    let sent = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&sent);
    let (base, http) = serving(move |request| {
        if request.method() == "GET" {
            return labelled(&request, Body::from(offer()));
        }
        let counter = Arc::clone(&counter);
        let piece = Bytes::from(packet(&[&[1][..], &[7; 60_000]].concat()));
        let count = PACK_BYTES / 60_000;
        let start = futures::stream::iter([Ok(Bytes::from(packet(b"packfile\n")))]);
        let pieces = futures::stream::iter(0..count).map(move |_| {
            counter.fetch_add(60_000, Ordering::SeqCst);
            Ok::<_, std::io::Error>(piece.clone())
        });
        let end = futures::stream::iter([Ok(Bytes::from_static(b"0000"))]);
        use futures::StreamExt as _;
        labelled(&request, Body::from_stream(start.chain(pieces).chain(end)))
    })
    .await;
    let secret = Secret::from("x".to_owned());
    let remote =
        Remote { http: &http, address: format!("{base}/a/b.git"), user: "x", secret: &secret };
    let what =
        Fetch { wants: vec![TIP.parse().unwrap()], bytes_max: PACK_BYTES, ..Fetch::default() };
    let mut counting = Counting { sent, taken: 0 };
    let fetched = remote.fetch(&what, &mut counting).await.unwrap();
    assert_eq!(fetched.bytes, counting.taken);
    assert!(counting.taken > PACK_BYTES - 60_000);
}

/// Fetches from a server whose answer to the fetch is this.
async fn fetched(answer: Vec<u8>) -> Result<u64, GitError> {
    let (base, http) = serving(move |request| {
        let body = if request.method() == "GET" { offer() } else { answer.clone() };
        labelled(&request, Body::from(body))
    })
    .await;
    let secret = Secret::from("x".to_owned());
    let remote =
        Remote { http: &http, address: format!("{base}/a/b.git"), user: "x", secret: &secret };
    let what = Fetch { wants: vec![TIP.parse().unwrap()], bytes_max: 1_000, ..Fetch::default() };
    let mut kept = Kept::default();
    let outcome = remote.fetch(&what, &mut kept).await;
    assert!(kept.0.len() <= 1_000);
    outcome.map(|fetched| fetched.bytes)
}

#[tokio::test]
async fn fetched_stream_has_to_be_whole() {
    let whole = |parts: &[&[u8]]| parts.concat();
    let start = packet(b"packfile\n");
    let pack = packet(b"\x01PACK");
    let ended = b"0000";
    assert_eq!(fetched(whole(&[&start, &pack, ended])).await, Ok(4));
    // An empty piece keeps the connection alive, a word beside the pack is for people.
    let alive = whole(&[&start, &packet(b"\x01"), &packet(b"\x02Counting"), &pack, ended]);
    assert_eq!(fetched(alive).await, Ok(4));
    let cut = |seen| Err(GitError::Protocol { seen });
    assert_eq!(fetched(whole(&[&start, &pack])).await, cut("a pack that is cut off"));
    assert_eq!(fetched(whole(&[&start, &pack[..6]])).await, cut("a packet that is cut off"));
    assert_eq!(fetched(whole(&[&start, ended])).await, cut("a pack that is cut off"));
    assert_eq!(fetched(whole(&[ended])).await, cut("an answer without a pack"));
    assert_eq!(fetched(Vec::new()).await, cut("an answer without a pack"));
    assert_eq!(fetched(whole(&[&start, &packet(b"\x09")])).await, cut("a pack on an unknown band"));
    assert_eq!(fetched(b"zzzz".to_vec()).await, cut("a packet's length"));
    assert_eq!(fetched(b"fff1".to_vec()).await, cut("a packet's length"));
    assert_eq!(fetched(b"0003".to_vec()).await, cut("a packet of an unknown kind"));
    let said = "the disk\nis full".to_owned();
    let on_band = packet(b"\x03the disk\r\n\x1b\x07is full  \n");
    assert_eq!(
        fetched(whole(&[&start, &on_band])).await,
        Err(GitError::Remote { said: said.clone() })
    );
    let in_line = packet(b"ERR the disk\nis full");
    assert_eq!(fetched(in_line).await, Err(GitError::Remote { said }));
    let large = packet(&[&[1][..], &[0; 1_001]].concat());
    assert_eq!(
        fetched(whole(&[&start, &large, ended])).await,
        Err(GitError::TooLarge { bytes_max: 1_000 })
    );
    let sections =
        [packet(b"shallow-info\n"), packet(format!("shallow {}", "a".repeat(64)).as_bytes())];
    let error = fetched(sections.concat()).await.unwrap_err();
    assert_eq!(error.to_string(), "The repository uses SHA-256, which Bobbin does not support.");
}

#[tokio::test]
async fn endless_words_end_at_a_bound() {
    let (base, http) = serving(|request| {
        if request.method() == "GET" {
            return labelled(&request, Body::from(offer()));
        }
        let piece = Bytes::from(packet(&[&[2][..], &[b'.'; 60_000]].concat()));
        let start = Bytes::from(packet(b"packfile\n"));
        let endless = futures::stream::unfold(Some(start), move |first| {
            let piece = piece.clone();
            async move { Some((Ok::<_, std::io::Error>(first.unwrap_or(piece)), None)) }
        });
        labelled(&request, Body::from_stream(endless))
    })
    .await;
    let secret = Secret::from("x".to_owned());
    let remote =
        Remote { http: &http, address: format!("{base}/a/b.git"), user: "x", secret: &secret };
    let what = Fetch { wants: vec![TIP.parse().unwrap()], bytes_max: 1_000, ..Fetch::default() };
    let error = remote.fetch(&what, &mut Kept::default()).await.unwrap_err();
    assert_eq!(error, GitError::TooLarge { bytes_max: 1_000 });
}

#[tokio::test]
async fn page_is_no_repository() {
    let (base, http) = serving(|_| "<h1>Hello</h1>".into_response()).await;
    let secret = Secret::from("x".to_owned());
    let remote =
        Remote { http: &http, address: format!("{base}/a/b.git"), user: "x", secret: &secret };
    let page = Err(GitError::Protocol { seen: "a page" });
    assert_eq!(remote.refs(&[]).await, page);
    let (base, http) = serving(|request| {
        let old = packet(format!("{TIP} HEAD\0multi_ack\n").as_bytes());
        labelled(
            &request,
            Body::from([packet(b"# service=git-upload-pack\n"), b"0000".to_vec(), old].concat()),
        )
    })
    .await;
    let remote =
        Remote { http: &http, address: format!("{base}/a/b.git"), user: "x", secret: &secret };
    let error = remote.refs(&[]).await.unwrap_err();
    assert_eq!(error.to_string(), "The server does not speak version 2 of git's protocol.");
}

/// A server's bytes: packets of every kind, whole and damaged.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let text = prop_oneof![
        Just("packfile\n".to_owned()),
        Just("shallow-info\n".to_owned()),
        Just(format!("shallow {TIP}\n")),
        Just("unborn HEAD symref-target:refs/heads/main\n".to_owned()),
        Just(format!("{TIP} refs/heads/x peeled:{TIP}\n")),
        Just(format!("{TIP} refs/heads/x\0report-status side-band-64k\n")),
        Just("unpack ok\n".to_owned()),
        "[ -~]{0,40}",
    ];
    let part = prop_oneof![
        3 => text.prop_map(|text| packet(text.as_bytes())),
        2 => (0..4_u8, prop::collection::vec(any::<u8>(), 0..60)).prop_map(|(band, data)| packet(&[&[band][..], &data].concat())),
        2 => prop::sample::select(vec!["0000", "0001", "0002", "0003", "0004", "ffff", "+123"]).prop_map(|mark| mark.into()),
        1 => prop::collection::vec(any::<u8>(), 0..10),
    ];
    prop::collection::vec(part, 0..12).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn nonsense_is_an_error_at_most(offered in stream(), answered in stream()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            for own in [false, true] {
                let (offered, answered) = (offered.clone(), answered.clone());
                let (base, http) = serving(move |request| {
                    let is_offer = request.method() == "GET";
                    let body = match is_offer {
                        true if own => offered.clone(),
                        true => offer(),
                        false => answered.clone(),
                    };
                    labelled(&request, Body::from(body))
                })
                .await;
                let secret = Secret::from("x".to_owned());
                let remote = Remote { http: &http, address: format!("{base}/a/b.git"), user: "x", secret: &secret };
                let tip: ObjectId = TIP.parse().unwrap();
                let what = Fetch { wants: vec![tip], bytes_max: 100, ..Fetch::default() };
                let mut kept = Kept::default();
                let fetched = remote.fetch(&what, &mut kept).await;
                assert!(kept.0.len() <= 100);
                assert!(fetched.is_err() || fetched.unwrap().bytes > 0);
                if let Ok(refs) = remote.refs(&[]).await {
                    assert!(refs.refs.len() <= 12);
                }
                let name = RefName::branch("x").unwrap();
                let push = Push { name, old: None, new: tip, pack: Vec::new() };
                // It ends, with whatever outcome.
                let _ = remote.push(push).await;
            }
        });
    }
}
