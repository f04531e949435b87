//! The guard: what is allowed, what is refused before a connection, and how much of an answer is read.

#![allow(clippy::unwrap_used)]
use bobbin_test_server::{Reply, Server};

use super::*;

fn named(loopback: bool) -> Guard {
    Guard::new(AllowedHosts::Named(vec!["api.test".into(), ".slack.com".into()]), loopback)
}

#[test]
fn only_named_public_https_hosts_pass() {
    let table = [
        ("https://api.test/v1?x=1", true),
        ("https://API.test/", true),
        ("https://files.slack.com/f", true),
        ("https://slack.com/", false),
        ("https://evilslack.com/", false),
        ("https://api.test.evil.com/", false),
        ("http://api.test/", false),
        ("ftp://api.test/", false),
        ("https://user@api.test/", false),
        ("https://user:pw@api.test/", false),
        ("https://other.test/", false),
        ("http://127.0.0.1:8080/", false),
        ("https://localhost/", false),
        ("file:///etc/passwd", false),
        ("not a url", false),
    ];
    for (address, passes) in table {
        assert_eq!(named(false).check(address).is_ok(), passes, "{address}");
    }
}

#[test]
fn loopback_needs_a_loopback_base() {
    for address in ["http://127.0.0.1:4096/x", "http://localhost:1/", "http://[::1]:2/"] {
        assert!(named(true).check(address).is_ok(), "{address}");
        assert!(named(false).check(address).is_err(), "{address}");
    }
    assert!(named(true).check("http://10.0.0.1/").is_err());
    assert!(named(true).check("http://localhost.evil.test/").is_err());
    assert!(Http::new("http://192.168.1.1/api", AllowedHosts::Public).is_err());
}

#[test]
fn container_host_applies_only_under_sam() {
    let host = |sam: Option<&str>, endpoint: Option<&str>| {
        let set = |name: &str| match name {
            "AWS_SAM_LOCAL" => sam.map(str::to_owned),
            "AWS_ENDPOINT_URL" => endpoint.map(str::to_owned),
            _ => None,
        };
        container_host(set)
    };
    let (sam, bridge) = (Some("true"), Some("http://172.17.0.1:4566"));
    assert_eq!(host(sam, bridge).as_deref(), Some("172.17.0.1"));
    let name = Some("http://host.docker.internal:4566");
    assert_eq!(host(sam, name).as_deref(), Some("host.docker.internal"));
    // A deployed function, one beside the laptop stack, and a container that works with a deployed stack.
    for (sam, endpoint) in [
        (None, bridge),
        (Some(""), bridge),
        (sam, Some("http://127.0.0.1:4566")),
        (sam, Some("https://sqs.eu-central-1.amazonaws.com")),
        (sam, Some("")),
        (sam, None),
    ] {
        assert_eq!(host(sam, endpoint), None, "{sam:?} {endpoint:?}");
    }
}

#[test]
fn container_loopback_reaches_only_its_host() {
    let within = |loopback| Guard {
        hosts: AllowedHosts::Public,
        loopback,
        container_host: Some("172.17.0.1".to_owned()).filter(|_| loopback),
    };
    let reached = |address: &str| within(true).reached(within(true).check(address).unwrap());
    let (url, named) = reached("http://127.0.0.1:4096/x?y=1");
    assert_eq!(url.as_str(), "http://172.17.0.1:4096/x?y=1");
    assert_eq!(named.as_deref(), Some("127.0.0.1:4096"));
    assert!(within(true).check(url.as_str()).is_ok());
    let (url, named) = reached("https://example.com/x");
    assert_eq!((url.as_str(), named), ("https://example.com/x", None));
    for refused in ["http://172.17.0.2/", "http://10.0.0.1/", "http://example.com/"] {
        assert!(within(true).check(refused).is_err(), "{refused}");
    }
    // A client whose base is not the laptop stack's.
    assert!(within(false).check("http://172.17.0.1:4096/").is_err());
}

#[test]
fn private_addresses_are_refused() {
    let guard = Guard::new(AllowedHosts::Public, false);
    for host in [
        "10.0.0.1",
        "172.16.0.1",
        "192.168.0.1",
        "127.0.0.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "198.18.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "172.31.255.254",
        "100.127.0.1",
        "192.0.0.1",
        "192.0.2.1",
        "192.88.99.1",
        "198.19.0.1",
        "198.51.100.1",
        "203.0.113.1",
        "239.1.1.1",
        "240.0.0.1",
        "2130706433",
        "0x7f.1",
        "0x7f000001",
        "0177.0.0.1",
        "017700000001",
        "127.1",
        "0",
        "127.0.0.1.",
        "%31%32%37.0.0.1",
        "\u{ff11}\u{ff12}\u{ff17}.0.0.1",
        "127\u{3002}0\u{3002}0\u{3002}1",
        "3232235521",
        "0xa9fea9fe",
        "0251.0376.0251.0376",
        "localhost",
        "LOCALHOST",
        "[::1]",
        "[::]",
        "[fe80::1]",
        "[fc00::1]",
        "[fd12::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:8.8.8.8]",
        "[::ffff:7f00:1]",
        "[::ffff:169.254.169.254]",
        "[::127.0.0.1]",
        "[0:0:0:0:0:0:0:1]",
        "[64:ff9b::8.8.8.8]",
        "[64:ff9b:1::1]",
        "[100::1]",
        "[fe80::1:2:3]",
        "[fec0::1]",
        "[2001:10::1]",
        "[2001:20::1]",
        "[3fff::1]",
        "[5f00::1]",
        "[64:ff9b::a00:1]",
        "[2002:7f00:1::]",
        "[2001:db8::1]",
        "[2001::1]",
        "[ff02::1]",
    ] {
        assert!(guard.check(&format!("https://{host}/")).is_err(), "{host}");
    }
    for host in [
        "8.8.8.8",
        "[2606:4700::1111]",
        "172.32.0.1",
        "100.128.0.1",
        "192.0.1.1",
        "198.20.0.1",
        "example.com",
    ] {
        assert!(guard.check(&format!("https://{host}/")).is_ok(), "{host}");
    }
}

#[test]
fn loopback_guard_allows_nothing_else_private() {
    let guard = Guard::new(AllowedHosts::Public, true);
    for address in [
        "http://10.0.0.1/",
        "https://10.0.0.1/",
        "https://169.254.169.254/",
        "https://[::ffff:127.0.0.1]/",
        "https://[fe80::1]/",
        "http://0.0.0.0/",
        "http://user@127.0.0.1/",
        "ftp://127.0.0.1/",
        "file:///etc/passwd",
        "http://localhost.evil.test/",
        "http://127.0.0.1.evil.test/",
    ] {
        assert!(guard.check(address).is_err(), "{address}");
    }
}

#[tokio::test]
async fn locally_resolving_names_are_refused() {
    let trap = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = trap.local_addr().unwrap().port();
    for loopback in [false, true] {
        let http = Http::guarded(Guard::new(AllowedHosts::Public, loopback));
        // With a trailing dot it is a name like any other; where it is known it resolves to loopback.
        let address = format!("https://localhost.:{port}/");
        let request = http.request(Method::GET, &address).unwrap();
        let error = http.send(request).await.unwrap_err();
        assert!(matches!(&error, HttpError::Transport { unsent: true, .. }), "{error:?}");
    }
    let seen = tokio::time::timeout(Duration::from_millis(50), trap.accept()).await;
    assert!(seen.is_err(), "somebody connected");
}

#[tokio::test]
async fn idle_connection_is_closed() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/", listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        let (mut connection, _) = listener.accept().await.unwrap();
        let mut asked = Vec::new();
        while !asked.ends_with(b"\r\n\r\n") {
            asked.push(connection.read_u8().await.unwrap());
        }
        let answer = b"HTTP/1.1 204 No Content\r\n\r\n";
        connection.write_all(answer).await.unwrap();
        connection.read(&mut [0]).await.unwrap()
    });
    let http = Http::keeping(Guard::new(AllowedHosts::Public, true), Duration::from_millis(100));
    let request = http.request(Method::GET, &address).unwrap();
    assert_eq!(http.send(request).await.unwrap().status, 204);
    let read = tokio::time::timeout(Duration::from_secs(60), server).await;
    assert_eq!(read.expect("it was kept").unwrap(), 0);
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let trap = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let target = format!("http://{}/secret", trap.local_addr().unwrap());
    let statuses = [301, 302, 303, 307, 308];
    let server =
        Server::answering(statuses.map(|status| Reply::empty(status).with("location", &target)))
            .await;
    let http = Http::new(server.base(), AllowedHosts::Public).unwrap();
    for status in statuses {
        let request = http.request(Method::GET, server.base()).unwrap();
        assert_eq!(http.send(request).await.unwrap().status, status);
    }
    let seen = tokio::time::timeout(Duration::from_millis(50), trap.accept()).await;
    assert!(seen.is_err(), "a redirect was followed to {target}");
}

#[test]
fn refusal_names_only_the_host() {
    let error = named(false).check("https://other.test/path?token=secret-value").unwrap_err();
    assert!(error.to_string().contains("https://other.test"));
    assert!(!error.to_string().contains("secret-value") && !error.to_string().contains("path"));
}

#[tokio::test]
async fn resolver_refuses_loopback_by_default() {
    let resolver = GuardedResolver { loopback: false, container_host: None };
    assert!(resolver.resolve("localhost".parse().unwrap()).await.is_err());
    let resolver = GuardedResolver { loopback: true, container_host: None };
    assert!(resolver.resolve("localhost".parse().unwrap()).await.is_ok());
}

#[tokio::test]
async fn body_is_bounded_and_query_hidden() {
    let big = Reply::new(200, "text/plain", "x".repeat(2000));
    let server = Server::answering([big]).await;
    let base = server.base().to_owned();
    let http = Http::new(&base, AllowedHosts::Public).unwrap().with_body_bytes_max(1000);
    let request = http.request(Method::GET, &format!("{base}/big")).unwrap();
    let error = http.send(request).await.unwrap_err();
    assert!(matches!(error, HttpError::TooLarge { bytes_max: 1000, .. }));
    server.stop().await;
    let request = http.request(Method::GET, &format!("{base}/x?token=secret-value")).unwrap();
    let error = http.send(request).await.unwrap_err();
    assert!(matches!(error, HttpError::Transport { unsent: true, .. }), "{error:?}");
    assert!(!error.to_string().contains("secret-value"));
}

#[test]
fn retry_after_is_bounded() {
    let mut headers = HeaderMap::new();
    headers.insert("retry-after-sandbox-create", "1.5".parse().unwrap());
    let answer = |headers: &HeaderMap| ReceivedAnswer {
        status: 429,
        headers: headers.clone(),
        body: Vec::new(),
    };
    assert_eq!(answer(&headers).retry_after_ms(), Some(1500));
    headers.insert("retry-after", "99999999".parse().unwrap());
    assert_eq!(answer(&headers).retry_after_ms(), Some(RETRY_AFTER_MS_MAX));
    headers.clear();
    headers.insert("retry-after", "Wed, 21 Oct 2026 07:28:00 GMT".parse().unwrap());
    assert_eq!(answer(&headers).retry_after_ms(), None);
}
