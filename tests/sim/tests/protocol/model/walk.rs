//! The exploration: stateright visits every state and checks the promises. The walked edges are kept, and the graph is
//! walked backwards from the converged states, because "from every reachable state convergence is possible" is not a
//! property of one path.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Debug;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Mutex;
use std::time::Instant;

use libtest_mimic::Failed;
use stateright::{Checker, Expectation, Model, Property};

use super::super::document;
use super::super::transitions::Transition;
use super::driver::Driver;

/// A world that its actions can explore.
pub trait Explored: Sized + Send + Sync + 'static {
    type State: Clone + Debug + PartialEq + Hash + Send + Sync;
    type Action: Copy + Debug + PartialEq + Send + Sync;

    fn start(&self) -> Self::State;
    fn actions(&self, state: &Self::State, actions: &mut Vec<Self::Action>);
    fn next(&self, last: &Self::State, action: Self::Action) -> Self::State;
    /// Trouble that no recovery may depend on.
    fn is_trouble(action: Self::Action) -> bool;
    /// Whether this state is within the exploration's bounds.
    fn within(&self, state: &Self::State) -> bool;
    fn converged(&self, state: &Self::State) -> bool;
    /// What must always hold, and what must occur.
    fn properties() -> Vec<Property<Walk<Self>>>;
    /// Why nothing continues from here, for the reader.
    fn told(&self, state: &Self::State) -> String;
    fn driver(&self) -> &Driver;
}

/// The system and what the checker walked.
pub struct Walk<S: Explored> {
    pub system: S,
    edges: Mutex<Edges<S::Action>>,
}

struct Edges<A> {
    numbers: HashMap<u64, u32>,
    /// Nodes that lead to this one without trouble.
    back: Vec<Vec<u32>>,
    goal: Vec<bool>,
    cut: Vec<bool>,
    /// How the node was first reached.
    via: Vec<Option<(u32, A)>>,
}

impl<A> Default for Edges<A> {
    fn default() -> Self {
        Self {
            numbers: HashMap::new(),
            back: Vec::new(),
            goal: Vec::new(),
            cut: Vec::new(),
            via: Vec::new(),
        }
    }
}

impl<A: Copy> Edges<A> {
    fn node<S: Explored<Action = A>>(
        &mut self,
        state: &S::State,
        system: &S,
        via: Option<(u32, A)>,
    ) -> u32 {
        let mut hasher = DefaultHasher::new();
        state.hash(&mut hasher);
        let key = hasher.finish();
        if let Some(number) = self.numbers.get(&key) {
            return *number;
        }
        let number = u32::try_from(self.back.len()).expect("fewer than 4 billion");
        self.numbers.insert(key, number);
        self.back.push(Vec::new());
        self.goal.push(system.converged(state));
        self.cut.push(!system.within(state));
        self.via.push(via);
        number
    }

    /// Nodes that lead to no converged and no cut one without further trouble.
    fn dead_ends(&self) -> Vec<u32> {
        let mut reaches: Vec<bool> =
            self.goal.iter().zip(&self.cut).map(|(goal, cut)| *goal || *cut).collect();
        let mut todo: Vec<u32> =
            (0..).zip(&reaches).filter(|(_, reaches)| **reaches).map(|(node, _)| node).collect();
        while let Some(node) = todo.pop() {
            for before in &self.back[node as usize] {
                if !std::mem::replace(&mut reaches[*before as usize], true) {
                    todo.push(*before);
                }
            }
        }
        (0..).zip(reaches).filter(|(_, reaches)| !reaches).map(|(node, _)| node).collect()
    }

    fn path(&self, mut node: u32) -> Vec<A> {
        let mut path = Vec::new();
        while let Some((before, action)) = self.via[node as usize] {
            path.push(action);
            node = before;
        }
        path.reverse();
        path
    }
}

impl<S: Explored> Model for Walk<S> {
    type State = S::State;
    type Action = S::Action;

    fn init_states(&self) -> Vec<S::State> {
        vec![self.system.start()]
    }

    fn actions(&self, state: &S::State, actions: &mut Vec<S::Action>) {
        self.system.actions(state, actions);
    }

    fn next_state(&self, last: &S::State, action: S::Action) -> Option<S::State> {
        let next = self.system.next(last, action);
        let mut edges = self.edges.lock().expect("nobody panics while holding this");
        let from = edges.node(last, &self.system, None);
        let to = edges.node(&next, &self.system, Some((from, action)));
        if !S::is_trouble(action) && from != to {
            edges.back[to as usize].push(from);
        }
        Some(next)
    }

    fn within_boundary(&self, state: &S::State) -> bool {
        self.system.within(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        S::properties()
    }
}

/// The property that the backward walk checks.
pub const CONVERGENCE: &str = "promise 9";
/// States of one exploration; more is a mistake in the bounds.
const STATES_MAX: usize = 1_500_000;

/// The result of an exploration.
pub struct Found {
    pub states: usize,
    pub cut: usize,
    pub version: u64,
    /// Broken properties, each with the shortest way there.
    pub broken: Vec<(&'static str, String)>,
    /// What never occurred.
    pub never: Vec<&'static str>,
}

/// Visits every state of a system.
///
/// # Errors
/// When there are more than the bound.
pub fn explore<S: Explored>(system: S) -> Result<(Found, BTreeSet<Transition>), String> {
    let walk = Walk { system, edges: Mutex::default() };
    let checker = walk.checker().threads(1).target_state_count(STATES_MAX * 4).spawn_bfs().join();
    let walk = checker.model();
    let edges = std::mem::take(&mut *walk.edges.lock().expect("the checker has ended"));
    if !checker.is_done() || edges.back.len() > STATES_MAX {
        return Err(format!("more than {STATES_MAX} states: the bounds are too wide"));
    }
    let found = checker.discoveries();
    let (mut broken, mut never) = (Vec::new(), Vec::new());
    for property in walk.properties() {
        match (&property.expectation, found.get(property.name)) {
            (Expectation::Always, Some(path)) => {
                broken.push((property.name, format!("{:?}", path.clone().into_actions())))
            }
            (Expectation::Sometimes, None) => never.push(property.name),
            _ => {}
        }
    }
    let dead = edges.dead_ends();
    if let Some(first) = dead.first() {
        let path = edges.path(*first);
        let end = path
            .iter()
            .fold(walk.system.start(), |state, action| walk.system.next(&state, *action));
        broken.push((
            CONVERGENCE,
            format!(
                "{} dead ends, the first after {path:?}: {}",
                dead.len(),
                walk.system.told(&end)
            ),
        ));
    }
    let cut = edges.cut.iter().filter(|cut| **cut).count();
    let version = walk.system.driver().version_most();
    Ok((
        Found { states: edges.back.len(), cut, version, broken, never },
        walk.system.driver().transitions(),
    ))
}

/// Explores a row: no property is broken, and what it names has occurred.
///
/// # Errors
/// What was broken, or never came about.
pub fn hold<S: Explored>(
    name: &str,
    system: S,
    reaches: &[&str],
) -> Result<BTreeSet<Transition>, String> {
    let began = Instant::now();
    let (found, transitions) = explore(system)?;
    let Found { states, cut, version, broken, never } = found;
    println!(
        "{name}: {states} states, records up to version {version}, {cut} cut by the bounds, {:?}",
        began.elapsed()
    );
    if !broken.is_empty() {
        return Err(format!("{name}: {broken:#?}"));
    }
    if let Some(never) = reaches.iter().find(|name| never.contains(name)) {
        return Err(format!("{name}: \"{never}\" never came about"));
    }
    document::has(&transitions)?;
    Ok(transitions)
}

/// Explores a world with a planted fault, which this property finds, and the same world without it, in which nothing is
/// broken.
///
/// # Errors
/// The fault is not found, or something is broken without it.
pub fn caught<S: Explored>(name: &str, by: &str, sound: S, faulty: S) -> Result<(), Failed> {
    let (sound, _) = explore(sound)?;
    if !sound.broken.is_empty() {
        return Err(format!("without the fault: {:#?}", sound.broken).into());
    }
    let (found, _) = explore(faulty)?;
    let names: Vec<&str> = found.broken.iter().map(|(name, _)| *name).collect();
    println!(
        "{name}: caught by {names:?} ({} states, {} without the fault)",
        found.states, sound.states
    );
    if names.contains(&by) {
        Ok(())
    } else {
        Err(format!("{name} is not caught by {by}, only by {names:?}").into())
    }
}
