use proptest::prelude::*;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

use super::*;

/// Largest body that is taken here.
const BYTES_MAX: usize = 64;
const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n";

/// What comes of an answer that arrives in these pieces, after which the stream is closed.
fn answered(pieces: &[&[u8]]) -> Result<Answer, Broken> {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.expect("a runtime").block_on(async {
        let (ours, mut theirs) = duplex(256 * 1024);
        let mut http = Http1::new(ours);
        let serve = async move {
            let mut request = [0; REQUEST.len()];
            theirs.read_exact(&mut request).await.expect("a request");
            assert_eq!(request, REQUEST);
            for piece in pieces {
                theirs.write_all(piece).await.expect("room");
                // So that it is read by itself.
                tokio::task::yield_now().await;
            }
        };
        tokio::join!(http.exchange(REQUEST, BYTES_MAX), serve).0
    })
}

/// Status and body, and whether the stream can be used again.
fn told(answer: &str) -> Result<(u16, String, bool), Broken> {
    let answer = answered(&[answer.as_bytes()])?;
    let body = String::from_utf8_lossy(&answer.body).into_owned();
    Ok((answer.status, body, !answer.is_last()))
}

#[test]
fn a_request_says_what_it_is_and_nothing_that_would_be_another_line() {
    let plain = request("GET", "/a", &[("host", "x")], None).expect("plain");
    assert_eq!(plain, b"GET /a HTTP/1.1\r\nhost: x\r\n\r\n");
    let with = request("POST", "/", &[("a", "b c")], Some(b"hi")).expect("plain");
    assert_eq!(
        with,
        b"POST / HTTP/1.1\r\na: b c\r\ncontent-length: 2\r\n\r\nhi"
    );
    for (path, name, value) in [
        ("/a b", "a", "b"),
        ("/\n", "a", "b"),
        ("/", "a b", "c"),
        ("/", "a", "b\r\nc: d"),
        ("/", "a", "\0"),
    ] {
        assert_eq!(request("GET", path, &[(name, value)], None), None);
    }
}

#[test]
fn a_body_ends_where_its_head_says() {
    let ok = |status, body: &str, is_kept| Ok((status, body.to_owned(), is_kept));
    for (answer, expected) in [
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi",
            ok(200, "hi", true),
        ),
        (
            "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n",
            ok(200, "", true),
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 2\r\n\r\nhi",
            ok(200, "hi", true),
        ),
        (
            "HTTP/1.1 202 Accepted\r\nTransfer-Encoding: Chunked\r\n\r\n2\r\nhi\r\n3;a=b\r\n ho\r\n0\r\n\r\n",
            ok(202, "hi ho", true),
        ),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nsum: 1\r\n\r\n",
            ok(200, "x", true),
        ),
        (
            "HTTP/1.1 200 OK\r\n\r\nuntil the end",
            ok(200, "until the end", false),
        ),
        ("HTTP/1.1 204 No Content\r\n\r\n", ok(204, "", true)),
        (
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 400 Bad\r\ncontent-length: 1\r\n\r\n!",
            ok(400, "!", true),
        ),
        (
            "HTTP/1.1 200 OK\r\nConnection: Close\r\ncontent-length: 2\r\n\r\nhi",
            ok(200, "hi", false),
        ),
        (
            "HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nhi",
            ok(200, "hi", false),
        ),
        // More than was asked for: nothing that comes later could be believed.
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhiHTTP/1.1 200 OK\r\n\r\n",
            ok(200, "hi", false),
        ),
    ] {
        assert_eq!(told(answer), expected, "{answer}");
    }
}

#[test]
fn what_is_not_whole_or_not_clear_is_no_answer() {
    for answer in [
        "",
        "HTTP/1.1 200 OK\r\ncontent-le",
        "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nhi",
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nhi!",
        "HTTP/1.1 200 OK\r\ncontent-length: +2\r\n\r\nhi",
        "HTTP/1.1 200 OK\r\ncontent-length: 2, 2\r\n\r\nhi",
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\nhi",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhiho0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nhi\r\n0\r\n\r\n",
        "SSH-2.0-OpenSSH_9.2p1\r\n\r\n",
    ] {
        assert_eq!(told(answer), Err(Broken::Lost), "{answer}");
    }
}

#[test]
fn nothing_is_read_beyond_its_bound() {
    let long = "x".repeat(BYTES_MAX + 1);
    for answer in [
        format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{long}",
            long.len()
        ),
        // Nothing has come of it yet.
        "HTTP/1.1 200 OK\r\ncontent-length: 18446744073709551615\r\n\r\n".to_owned(),
        format!(
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{long}\r\n0\r\n\r\n",
            long.len()
        ),
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\nffffffffffffffff\r\n"
            .to_owned(),
        format!("HTTP/1.1 200 OK\r\n\r\n{long}"),
    ] {
        assert_eq!(told(&answer), Err(Broken::TooLarge), "{answer}");
    }
    let endless = "x".repeat(HEAD_BYTES_MAX + 1);
    let interim = "HTTP/1.1 100 Continue\r\n\r\n".repeat(20);
    for answer in [
        format!("HTTP/1.1 200 OK\r\na: {endless}\r\n\r\n"),
        format!(
            "HTTP/1.1 200 OK\r\n{}\r\n",
            "a: b\r\n".repeat(HEADERS_MAX + 1)
        ),
        format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0;{endless}"),
        format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\na: {endless}"),
        format!("{interim}HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"),
    ] {
        assert_eq!(told(&answer), Err(Broken::Lost), "{} bytes", answer.len());
    }
}

#[test]
fn headers_are_found_by_any_spelling_of_their_names() {
    let answer = answered(&[b"HTTP/1.1 200 OK\r\nX-One:  1 \r\nx-two: a:b\r\nX-ONE: 3\r\nx-odd: \xff\r\ncontent-length: 0\r\n\r\n"]);
    let answer = answer.expect("whole");
    assert_eq!(answer.header("x-one"), Some("1"));
    assert_eq!(answer.header("X-Two"), Some("a:b"));
    assert_eq!(answer.header("x-odd"), None);
    assert_eq!(answer.header("x-three"), None);
}

#[tokio::test]
async fn a_stream_that_was_closed_or_talks_unasked_is_not_used_again() {
    let (ours, theirs) = duplex(64);
    let mut http = Http1::new(ours);
    assert!(http.is_open().await);
    drop(theirs);
    assert!(!http.is_open().await);
    let (ours, mut theirs) = duplex(64);
    let mut http = Http1::new(ours);
    theirs
        .write_all(b"HTTP/1.1 408 Timeout\r\n\r\n")
        .await
        .expect("room");
    assert!(!http.is_open().await);
}

#[tokio::test]
async fn many_requests_go_over_one_stream() {
    let (ours, mut theirs) = duplex(1_024);
    let serve = tokio::spawn(async move {
        for number in 0..50 {
            let mut request = [0; REQUEST.len()];
            theirs.read_exact(&mut request).await.expect("a request");
            let answer = match number % 2 {
                0 => format!("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nno{number:02}"),
                _ => format!(
                    "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nno{number:02}\r\n0\r\n\r\n"
                ),
            };
            theirs.write_all(answer.as_bytes()).await.expect("room");
        }
        theirs
    });
    let mut http = Http1::new(ours);
    for number in 0..50 {
        let answer = http.exchange(REQUEST, BYTES_MAX).await.expect("an answer");
        assert_eq!(answer.body, format!("no{number:02}").as_bytes());
        assert!(!answer.is_last() && http.is_open().await);
    }
    serve.await.expect("it ends");
}

proptest! {
    #[test]
    fn however_an_answer_is_cut_it_says_the_same(
        body in prop::collection::vec(any::<u8>(), 0..BYTES_MAX),
        chunk in 1_usize..20,
        way in 0_u8..3,
        mut cuts in prop::collection::vec(0_usize..200, 0..6),
    ) {
        let mut answer = b"HTTP/1.1 200 OK\r\nserver: x\r\n".to_vec();
        match way {
            0 => answer.extend(format!("content-length: {}\r\n\r\n", body.len()).bytes().chain(body.clone())),
            1 => {
                answer.extend(b"transfer-encoding: chunked\r\n\r\n");
                for part in body.chunks(chunk) {
                    answer.extend(format!("{:x}\r\n", part.len()).bytes());
                    answer.extend(part);
                    answer.extend(b"\r\n");
                }
                answer.extend(b"0\r\n\r\n");
            }
            _ => answer.extend(b"\r\n".iter().chain(&body)),
        }
        cuts.iter_mut().for_each(|cut| *cut = (*cut).min(answer.len()));
        cuts.extend([0, answer.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &answer[cut[0]..cut[1]]).collect();
        let read = answered(&pieces).expect("whole");
        prop_assert_eq!(&read.body, &body);
        prop_assert_eq!(read.is_last(), way == 2);
    }

    #[test]
    fn bytes_of_any_kind_end_in_an_answer_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = answered(&[&bytes]);
        let _ = answered(&[b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", &bytes]);
    }
}
