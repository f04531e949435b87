//! What happens to a message whose record, or something else that it needs, only a newer worker reads.

use std::pin::pin;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};

use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{Ms, ThreadKey, TurnId};
use bobbin_core::base::limits::Limits;
use bobbin_core::protocol::drive::{Delivery, Verdict, drive};
use bobbin_core::protocol::event::Event;
use bobbin_core::protocol::ports::{Loaded, Performed, RecordsWrite, Saved, World};
use bobbin_core::protocol::target::Addressed;
use bobbin_core::records::flags::ControlFlags;
use bobbin_core::records::message::{Message, Prompt, Work};
use bobbin_core::records::parked::Parked;
use bobbin_core::tenant::runtime_mode::RuntimeMode;

/// Where the newer thing is met.
#[derive(Clone, Copy, PartialEq)]
enum Met {
    Loading,
    Saving,
    Performing,
}

/// The message is old enough for every delay: a young one is not held for longer than a part of its age.
const NOW_MS: Ms = 2 * 3_600_000;

struct Scene {
    met: Met,
    saved: Mutex<u32>,
    performed: Mutex<u32>,
}

fn newer() -> Failure {
    Failure::Newer { seen: "the record is of shape 2".to_owned() }
}

impl World for Scene {
    fn now_ms(&self) -> Ms {
        NOW_MS
    }

    fn visible_until_ms(&self) -> Ms {
        NOW_MS + 100_000
    }

    async fn load(&self, _: &ThreadKey, _: &TurnId) -> Result<Loaded, Failure> {
        match self.met {
            Met::Loading => Err(newer()),
            _ => Ok(Loaded::default()),
        }
    }

    async fn save(&self, _: RecordsWrite<'_>) -> Result<Saved, Failure> {
        if self.met == Met::Saving {
            return Err(newer());
        }
        *self.saved.lock().unwrap() += 1;
        Ok(Saved::Written(ControlFlags::default()))
    }

    async fn park(&self, _: &ThreadKey, _: &Parked) -> Option<ControlFlags> {
        None
    }

    async fn swept(&self, _: &ThreadKey, _: &TurnId) -> Result<(), Failure> {
        Ok(())
    }

    async fn perform(&self, _: &Addressed<'_>) -> Performed {
        *self.performed.lock().unwrap() += 1;
        Event::Failed(newer()).into()
    }
}

/// The verdict on a prompt, what was saved and what was done.
fn delivered(met: Met, receive: u32) -> (Verdict, u32, u32) {
    let place = Scene { met, saved: Mutex::new(0), performed: Mutex::new(0) };
    let message = Message {
        id: "m-1".into(),
        thread: ThreadKey::discord("1", "2").unwrap(),
        accepted_at_ms: 1,
        work: Work::Prompt(Prompt { text: "hello".to_owned(), ..Prompt::default() }),
    };
    let delivery = Delivery {
        message: &message,
        id: format!("m-1#{receive}"),
        receive,
        follow_until_ms: NOW_MS + 90_000,
        model: "anthropic/m",
        providers: &["anthropic".to_owned()],
        runtime: RuntimeMode::OpenCode,
        limits: &Limits::DEFAULT,
        split: |text| vec![text.to_owned()],
    };
    let mut driving = pin!(drive(&place, &delivery, None));
    let mut context = Context::from_waker(Waker::noop());
    let Poll::Ready(ended) = driving.as_mut().poll(&mut context) else {
        panic!("nothing is waited for here")
    };
    let (saved, performed) = (*place.saved.lock().unwrap(), *place.performed.lock().unwrap());
    (ended.verdict, saved, performed)
}

#[test]
fn newer_record_is_returned_untouched() {
    for (receive, delay_ms) in [(1, 2_000), (3, 8_000), (40, 300_000)] {
        let (verdict, saved, performed) = delivered(Met::Loading, receive);
        assert_eq!(
            verdict,
            Verdict::Newer { delay_ms, seen: "the record is of shape 2".to_owned() }
        );
        assert_eq!((saved, performed), (0, 0), "delivery {receive}");
    }
}

#[test]
fn newer_shape_found_later_ends_delivery() {
    let (verdict, _, performed) = delivered(Met::Saving, 1);
    assert!(matches!(verdict, Verdict::Newer { .. }), "{verdict:?}");
    assert_eq!(performed, 0, "done without being on record");

    let (verdict, saved, performed) = delivered(Met::Performing, 1);
    assert!(matches!(verdict, Verdict::Newer { .. }), "{verdict:?}");
    let step = 2;
    assert_eq!(
        performed, step,
        "it went on after what it could not read: a step is the work and its card"
    );
    assert!(saved >= 1, "the intent was on record before");
}
