//! Hundreds of turns at once on the ten executions of a new account: none is lost or doubled, each poll comes within
//! its own interval, and Stop does not wait. Ten thousand on a hundred are `load crowd` (docs/appendix/FIGURES.md).

use bobbin_sim::crowd::Crowd;
use libtest_mimic::{Failed, Trial};

use crate::proof;

/// The executions for messages, of ten: `Share` of the template.
const EXECUTIONS: usize = 4;

pub fn trials() -> Vec<Trial> {
    vec![
        proof("protocol::crowd::three_hundred_turns_fit_ten_executions", kept),
        proof("protocol::crowd::starved_polls_are_caught", noticed),
    ]
}

const HUNDREDS: Crowd = Crowd { turns: 300, executions: EXECUTIONS, call_ms: 10, seed: 1 };

fn kept() -> Result<(), Failed> {
    let came = HUNDREDS.run()?;
    println!("{came:?}");
    Ok(())
}

/// The check fails for a crowd that is too large: its calls take so long that the polls do not fit.
fn noticed() -> Result<(), Failed> {
    let slow = Crowd { turns: 150, executions: 1, call_ms: 80, ..HUNDREDS };
    match slow.run() {
        Ok(came) => Err(format!("nothing was wrong with {came:?}").into()),
        Err(why) if why.contains("too_late") || why.contains("at the same time") => Ok(()),
        Err(why) => Err(why.into()),
    }
}
