//! What is read from a turn's calls, and how it is drawn.

#[path = "../benches/speed/trips.rs"]
mod trips;
#[path = "../benches/speed/waterfall.rs"]
mod waterfall;

use std::time::Duration;

use trips::{Call, Peer, begun_by, chain, first, repeated};
use waterfall::{Bar, Picture};

fn call(name: &str, begun_ms: u64, ended_ms: u64, digest: u8) -> Call {
    Call {
        peer: Peer::Aws,
        name: name.to_owned(),
        begun: Duration::from_millis(begun_ms),
        ended: Duration::from_millis(ended_ms),
        sent: 1,
        received: 1,
        status: 200,
        digest: [digest; 32],
    }
}

#[test]
fn overlapping_calls_share_one_round_trip() {
    let calls = [
        call("load", 0, 20, 0),
        // Both at once, then the call that waited for the slower of the two.
        call("save", 21, 41, 1),
        call("card", 22, 102, 2),
        call("prompt", 103, 143, 3),
        call("late", 200, 210, 4),
    ];
    let names = |row: Vec<usize>| -> Vec<&str> {
        row.into_iter().map(|at| calls[at].name.as_str()).collect()
    };
    let prompt = first(&calls, "prompt").expect("it is there");
    assert_eq!(names(chain(&calls, prompt)), ["load", "card", "prompt"]);
    assert_eq!(begun_by(&calls, prompt), 4);
    assert_eq!(names(chain(&calls, 1)), ["load", "save"]);
    assert_eq!(names(chain(&calls, 0)), ["load"]);
    assert_eq!(first(&calls, "nothing"), None);
}

#[test]
fn repeated_calls_are_reported() {
    let calls = [call("again", 30, 40, 7), call("once", 0, 10, 7), call("other", 10, 20, 8)];
    let told: Vec<&str> = repeated(&calls).iter().map(|call| call.name.as_str()).collect();
    assert_eq!(told, ["again"]);
}

#[test]
fn chart_draws_and_marks_every_bar() {
    let bar = |name: &str, group, from_ms, to_ms, is_critical| Bar {
        name: name.to_owned(),
        group,
        from_ms,
        to_ms,
        is_critical,
    };
    let picture = Picture {
        title: "A <turn> & its \"path\"".to_owned(),
        notes: vec!["Assumed: nothing.".to_owned()],
        groups: Peer::ALL.map(|peer| peer.word().to_owned()).to_vec(),
        bars: vec![bar("load", 0, 0.0, 325.0, true), bar("card", 1, 325.0, 650.0, false)],
        marks: vec![("sent".to_owned(), 325.0)],
    };
    let svg = picture.svg();
    assert!(svg.contains("A &lt;turn&gt; &amp; its &quot;path&quot;</text>"));
    // The names take 250 of the width, the 650 ms as many pixels.
    assert!(
        svg.contains("<rect class=\"g0\" x=\"250.0\" y=\"112.0\" width=\"325.0\" height=\"12\"/>"),
        "{svg}"
    );
    assert!(
        svg.contains(
            "<rect class=\"g1 beside\" x=\"575.0\" y=\"132.0\" width=\"325.0\" height=\"12\"/>"
        ),
        "{svg}"
    );
    assert!(svg.contains(">sent: 325 ms</text>"));
    assert!(svg.contains("prefers-color-scheme:dark"));
    assert_eq!(svg, picture.svg());
}
