// Beside the thread: its record, that of the sandbox that it works in with the timeline of phases; and all sandboxes, with the
// threads that work in each.
import { h, renew, ticking } from "./dom.js";

const LEAD = ["agent_session", "sandbox_key", "link", "workspace", "due_at_ms", "version"];
const SANDBOX_LEAD = ["name", "provider", "at_provider", "generation", "repo", "phase_since_ms", "last_activity_ms", "due_at_ms", "version"];
const TURN_LEAD = ["stage", "by", "accepted_at_ms", "prompted_at_ms"];
const HIDDEN = ["thread", "phase", "timeline", "turn", "ended", "sandbox", "sandbox_key", "threads", "in_use", "waiting", "lease", "closing", "snapshots", "operated", "schema"];
const ENDED_SHOWN = 5;

/** The session of the open thread, by its key. */
export function sessionOf(app) {
  const { platform, channel, thread } = app.place;
  const { seeds, slack } = app.state;
  const keys = [];
  if (platform === "discord") keys.push(`discord:${seeds.guild_id}:${thread || channel}`);
  else {
    const dm = slack.channels.find((one) => one.id === channel && one.is_im);
    if (thread) keys.push(`slack:${seeds.team_id}:${channel}:${thread}`);
    if (dm) keys.push(`slack:${seeds.team_id}:dm:${dm.user}`);
  }
  return app.inspected.sessions.find((one) => keys.includes(one.thread));
}

export function phaseBadge(phase) {
  return h("span", { class: `phase ${phase || "unknown"}`, testid: "phase" }, phase || "unknown");
}

export function showSession(app, node) {
  const session = sessionOf(app);
  if (!session) {
    const others = app.inspected.sessions;
    renew(node, h("h2", {}, "Session"), h("p", { class: "empty" }, app.place.thread ? "This thread has no session yet. It gets one with its first prompt." : "Open a thread to see its session, turn and sandbox."),
      others.length > 0 && h("ul", { class: "sessions" }, others.slice(0, 20).map((one) => h("li", {}, h("button", { type: "button", class: "session-link", data: { id: one.thread }, onclick: () => open(app, one.thread) }, phaseBadge(one.sandbox?.phase), h("span", {}, name(app, one.thread)))))));
    return;
  }
  const wasOpen = node.querySelector("details.raw")?.open;
  const sandbox = session.sandbox || {};
  const facts = (record, lead) => list(Object.entries(record).filter(([key]) => lead.includes(key) && !HIDDEN.includes(key)).sort(([a], [b]) => rank(lead, a) - rank(lead, b)));
  renew(node,
    h("h2", {}, "Session"),
    facts(conversation(session), LEAD),
    session.turn && h("div", { testid: "turn" }, h("h3", {}, "Turn"), list(Object.entries(turn(session.turn)).filter(([key, value]) => TURN_LEAD.includes(key) && value !== 0).sort(([a], [b]) => rank(TURN_LEAD, a) - rank(TURN_LEAD, b)))),
    ended(session.ended || []),
    session.spending?.length > 0 && h("div", { testid: "spending" }, h("h3", {}, "Spending"), session.spending.map((line) => h("p", {}, line))),
    h("div", { class: "record", testid: "sandbox-record" }, h("h2", {}, "Sandbox", phaseBadge(sandbox.phase)), facts(sandbox, SANDBOX_LEAD), sharing(app, sandbox, session.thread), operated(sandbox.operated || [])),
    h("h3", {}, "Timeline"), timeline(sandbox.timeline || []),
    h("details", { class: "raw", open: Boolean(wasOpen) }, h("summary", {}, "Raw records"), h("pre", { testid: "session-raw", tabindex: "0" }, JSON.stringify(session, null, 2))));
}

/** The session's facts beside where its turns work and which agent session it has. */
function conversation(session) {
  const { conversation, place } = session;
  return { agent_session: conversation?.session ?? null, link: place?.link ?? null, workspace: place?.own ?? null, ...session };
}

/** The turn's facts with its stage as a word. */
function turn({ stage, ...rest }) {
  const prompted = stage.prompted ?? stage;
  return { stage: stage.stage, prompted_at_ms: prompted.at_ms ?? null, ...rest };
}

const rank = (lead, key) => { const at = lead.indexOf(key); return at < 0 ? lead.length : at; };
const label = (key) => key.replace(/_(at_)?ms$/, "").replaceAll("_", " ");

/** Facts as a list, without the empty ones. */
function list(entries) {
  const said = entries.map(([key, value]) => [key, shown(key, value)]).filter(([, value]) => value !== null);
  return h("dl", { class: "facts" }, said.map(([key, value]) => [h("dt", {}, label(key)), h("dd", {}, value)]));
}

function shown(key, value) {
  if (value === null || value === "" || (Array.isArray(value) && !value.length)) return null;
  if (Array.isArray(value)) return `${value.length}`;
  if (typeof value === "object") return brief(value);
  if (key.endsWith("_ms")) return Number(value) > 1e12 ? ticking(Number(value) / 1000) : duration(Number(value));
  if (typeof value === "boolean") return value ? "yes" : "no";
  return h("span", { class: typeof value === "string" && value.length > 14 ? "mono" : "", title: String(value) }, String(value));
}

/** A small object in one line: its words and numbers. */
function brief(value) {
  if (typeof value.name === "string") return value.name;
  const parts = Object.entries(value).map(([key, one]) => (one !== null && typeof one !== "object" && one !== "" ? (key.endsWith("_ms") ? shown(key, one) : String(one)) : null)).filter(Boolean);
  return parts.length ? h("span", {}, parts.map((part, at) => [at > 0 && " · ", part])) : null;
}

/** The last turns that ended, newest first. */
function ended(turns) {
  if (!turns.length) return null;
  return h("div", { testid: "ended-turns" }, h("h3", {}, "Ended turns"), h("ul", { class: "ended" }, turns.slice(-ENDED_SHOWN).reverse().map((one) => {
    const outcome = one.outcome?.outcome || one.outcome;
    return h("li", {}, h("span", { class: `phase ${outcome}`, title: one.outcome?.reason }, outcome), one.took_ms !== undefined && h("span", {}, duration(one.took_ms)), one.at_ms && ticking(one.at_ms / 1000));
  })));
}

function timeline(entries) {
  if (!entries.length) return h("p", { class: "empty" }, "Nothing has happened yet.");
  return h("ol", { class: "timeline", testid: "timeline" }, entries.slice(-40).map((one, at, list) => {
    const next = list[at + 1];
    const lasted = next ? duration(next.at_ms - one.at_ms) : null;
    return h("li", { class: one.phase }, h("div", {}, h("strong", {}, one.phase), one.note && h("span", {}, one.note)), h("div", { class: "when" }, lasted ? h("span", {}, lasted) : ticking(one.at_ms / 1000)));
  }));
}

function duration(ms) {
  if (ms < 1000) return `${ms} ms`;
  if (ms < 60000) return `${(ms / 1000).toFixed(1)} s`;
  return `${Math.floor(ms / 60000)} min ${Math.round((ms % 60000) / 1000)} s`;
}

function name(app, key) {
  const [platform, , ...rest] = key.split(":");
  if (platform === "discord") return app.state.discord.channels.find((one) => one.id === rest[0])?.name || "Discord thread";
  const root = app.state.slack.threads.find((one) => one.channel === rest[0] && one.ts === rest[1]);
  if (rest[0] === "dm") return "Direct messages";
  return root ? root.text.replace(/<@[^>]+>/g, "@bobbin") : "Slack thread";
}

function open(app, key) {
  const [platform, , ...rest] = key.split(":");
  if (platform === "discord") {
    const channel = app.state.discord.channels.find((one) => one.id === rest[0]);
    if (channel) app.go("discord", channel.parent_id || channel.id, channel.parent_id ? channel.id : null);
  } else if (rest[0] === "dm") {
    const dm = app.state.slack.channels.find((one) => one.user === rest[1]);
    if (dm) app.go("slack", dm.id, null);
  } else app.go("slack", rest[0], rest[1]);
}

/** Who works in a sandbox and who waits, its lease, and whether it is being destroyed; empty if none of these apply. */
function sharing(app, record, own) {
  const threads = [...new Set([...(record.threads || []), ...(record.in_use || []).map((one) => one.thread), ...(record.waiting || []).map((one) => one.thread)])];
  const said = [
    record.closing && h("p", { class: "notice", testid: "closing" }, `Being destroyed by ${record.closing.name || "the operator"}: no task can start in it.`),
    record.lease && h("p", { class: "lease", testid: "lease" }, h("span", {}, "Lease"), h("span", { class: "mono", title: record.lease.holder }, record.lease.holder), h("span", {}, "until ", ticking(record.lease.until_ms / 1000))),
    threads.length > 0 && h("ul", { class: "workers", testid: "workers" }, threads.map((thread) => worker(app, record, thread, own))),
    (record.snapshots || []).length > 0 && h("ul", { class: "snapshots", testid: "snapshots" }, record.snapshots.map((one) => h("li", {}, h("span", {}, "Snapshot"), h("span", { class: "mono", title: one.name }, one.name), ticking(one.at_ms / 1000)))),
  ].filter(Boolean);
  return said.length > 0 && h("div", { class: "sharing" }, said);
}

/** A thread of a sandbox, and whether its turn is running or waiting there. */
function worker(app, record, thread, own) {
  const works = (record.in_use || []).find((one) => one.thread === thread);
  const place = (record.waiting || []).findIndex((one) => one.thread === thread);
  const badge = works ? h("span", { class: "phase active", title: `${works.turn} is running` }, works.common ? "common checkout" : "own worktree")
    : place >= 0 ? h("span", { class: "phase pausing", title: record.waiting[place].turn }, place === 0 ? "waits, next" : `waits, ${place + 1} in line`) : null;
  return h("li", { class: thread === own ? "own" : "", testid: "worker" },
    h("button", { type: "button", class: "session-link", title: thread, onclick: () => open(app, thread) }, h("span", {}, name(app, thread))), badge);
}

/** The last requested operations, newest first. */
function operated(all) {
  if (!all.length) return null;
  return h("div", { testid: "operated" }, h("h3", {}, "Requested"), h("ul", { class: "ended" }, all.slice(-ENDED_SHOWN).reverse().map((one) =>
    h("li", {}, h("span", { class: `phase ${one.trouble ? "failed" : "answered"}`, title: one.trouble }, one.want), one.trouble && h("span", {}, one.trouble), ticking(one.at_ms / 1000)))));
}

export function showSandboxes(app, node) {
  const mine = sessionOf(app);
  const list = app.inspected.sandboxes;
  if (!list.length) {
    renew(node, h("li", { class: "empty" }, "There is no sandbox. The first prompt of a thread creates one."));
    return;
  }
  renew(node, list.map((one) => {
    const there = one.at_provider;
    const labels = Object.entries(there?.labels || {});
    const count = (one.threads || []).length;
    const facts = one.key && [
      h("span", {}, one.provider || "default provider"),
      h("span", {}, one.last_used_ms ? ["used ", ticking(one.last_used_ms / 1000)] : "never used"),
      h("span", {}, count === 1 ? "1 thread" : `${count} threads`),
      (one.in_use || []).length > 0 && h("span", {}, `${one.in_use.length} running`),
      (one.waiting || []).length > 0 && h("span", {}, `${one.waiting.length} waiting`),
      one.repo && h("span", { title: one.repo }, one.repo),
    ];
    const isMine = mine && one.key === mine.sandbox_key;
    return h("li", { class: isMine ? "sandbox mine" : "sandbox", testid: "sandbox", data: one.called ? { name: one.called } : {} },
      h("div", { class: "sandbox-head" }, one.called ? h("strong", {}, one.called) : h("span", { class: "mono", title: one.name }, one.name), one.phase ? h("span", { class: `phase ${one.phase}` }, one.state) : h("span", { class: "phase" }, "not on record")),
      facts && h("div", { class: "sandbox-facts" }, facts),
      sharing(app, one, mine?.thread),
      h("div", { class: "at-provider" }, h("span", { class: "mono", title: one.name }, one.called || !there ? one.name : "at the provider"), h("span", { class: `phase ${there?.state || ""}` }, there?.why ? `${there.state}: ${there.why}` : there?.state || "missing")),
      labels.length > 0 && h("div", { class: "labels" }, labels.map(([key, value]) => h("span", { title: `${key}=${value}` }, `${key}=${value}`))));
  }));
}
