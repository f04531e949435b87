//! The same scenarios on somebody else's AWS emulator, with the real template deployed and its roles enforced. Our own
//! emulator alone proves little.

use std::sync::{Arc, Mutex, PoisonError};

use bobbin_tests::chat::Platform;
use bobbin_tests::ministack::Emulator;
use bobbin_tests::stack::{Options, Stack, quick, words};
use bobbin_tests::world::{Deployment, World};
use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::run::{beside, block_on};
use crate::scenarios::{IDLE, Scenario, USUAL};

/// The signature scenarios, which need the signed request to be answered within the platforms' time.
const SIGNED: [(Platform, Scenario); 2] = [
    (
        Platform::Discord,
        ("unsigned_requests_start_nothing", |world, _| {
            Box::pin(crate::discord::bad_signature(world))
        }),
    ),
    (
        Platform::Slack,
        ("unsigned_requests_start_nothing", |world, _| {
            Box::pin(crate::slack::bad_signature(world))
        }),
    ),
];

pub fn trials() -> Vec<Trial> {
    let everywhere = Platform::ALL.into_iter().flat_map(|platform| {
        USUAL.into_iter().chain(IDLE).map(move |scenario| (platform, scenario))
    });
    everywhere
        .chain(SIGNED)
        .map(|(platform, (name, scenario))| {
            beside(format!("ministack::{}::{name}", platform.word()), move || {
                let emulated = get();
                block_on(async {
                    scenario(World::on(&emulated.stack, emulated.deployment.clone()), platform)
                        .await
                });
                Ok(())
            })
        })
        .collect()
}

struct Emulated {
    stack: Stack,
    emulator: Emulator,
    deployment: Deployment,
}

static SLOT: Mutex<Option<Result<Arc<Emulated>, String>>> = Mutex::new(None);

/// The deployment, made by the first test that needs it.
fn get() -> Arc<Emulated> {
    let mut slot = SLOT.lock().unwrap_or_else(PoisonError::into_inner);
    let made = slot.get_or_insert_with(|| {
        std::panic::catch_unwind(start)
            .unwrap_or_else(|panic| Err(words(panic.as_ref())))
            .map(Arc::new)
    });
    match made {
        Ok(emulated) => Arc::clone(emulated),
        Err(why) => panic!("{why}"),
    }
}

fn start() -> Result<Emulated, String> {
    let mut limits = quick();
    limits["idle_pause_ms"] = json!(5_000);
    let emulator = Emulator::start()?;
    let stack = Stack::start(&Options { without_aws: true, ..Options::lean(Value::Null) });
    let deployment = emulator.deploy(&stack.ready, &limits)?;
    block_on(World::on(&stack, deployment.clone()).deliver_to(&deployment.ingress))?;
    Ok(Emulated { stack, emulator, deployment })
}

/// After the last test: everything has a record, and nothing is left behind.
pub fn end(failed: bool) -> Result<(), String> {
    let Some(Ok(emulated)) = SLOT.lock().unwrap_or_else(PoisonError::into_inner).take() else {
        return Ok(());
    };
    let Ok(Emulated { stack, emulator, deployment }) = Arc::try_unwrap(emulated) else {
        return Err("a test still holds the deployment".to_owned());
    };
    let mut trouble = Vec::new();
    if failed {
        eprintln!(
            "\n--- the end of what ministack and its functions said ---\n{}",
            emulator.tail()
        );
        eprintln!("\n--- the end of what the stack beside it said ---\n{}", stack.tail());
    } else {
        trouble.extend(block_on(World::on(&stack, deployment).check_orphans()).err());
    }
    trouble.extend(emulator.end().err());
    trouble.extend(stack.end().err());
    if trouble.is_empty() { Ok(()) } else { Err(trouble.join("\n")) }
}
