// Beside the thread: its session record, the timeline of phases, the sandboxes.
import { h, replace, ticking } from "./dom.js";

const LEAD = ["generation", "sandbox", "turn", "opencode_session", "due", "version"];
const HIDDEN = ["thread", "phase", "timeline"];

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
  return app.behind.sessions.find((one) => keys.includes(one.thread));
}

export function phaseBadge(phase) {
  return h("span", { class: `phase ${phase || "unknown"}`, testid: "phase" }, phase || "unknown");
}

export function showSession(app, node) {
  const session = sessionOf(app);
  if (!session) {
    const others = app.behind.sessions;
    replace(node, h("h2", {}, "Session"), h("p", { class: "empty" }, app.place.thread ? "This thread has no session yet. It gets one with its first prompt." : "Open a thread to see its session, turn and sandbox."),
      others.length > 0 && h("ul", { class: "sessions" }, others.slice(0, 20).map((one) => h("li", {}, h("button", { type: "button", class: "session-link", onclick: () => open(app, one.thread) }, phaseBadge(one.phase), h("span", {}, name(app, one.thread)))))));
    return;
  }
  const wasOpen = node.querySelector("details.raw")?.open;
  const facts = Object.entries(session).filter(([key]) => !HIDDEN.includes(key)).sort(([a], [b]) => rank(a) - rank(b));
  const simple = facts.filter(([, value]) => value !== null && value !== "" && !isLarge(value));
  replace(node,
    h("h2", {}, "Session", phaseBadge(session.phase)),
    h("dl", { class: "facts" }, simple.map(([key, value]) => [h("dt", {}, label(key)), h("dd", {}, shown(key, value))])),
    turn(session.turn),
    h("h3", {}, "Timeline"), timeline(session.timeline || []),
    h("details", { class: "raw", open: Boolean(wasOpen) }, h("summary", {}, "Raw record"), h("pre", { testid: "session-raw", tabindex: "0" }, JSON.stringify(session, null, 2))));
}

const rank = (key) => { const at = LEAD.indexOf(key); return at < 0 ? LEAD.length : at; };
const isLarge = (value) => typeof value === "object";
const label = (key) => key.replace(/_(at_)?ms$/, "").replaceAll("_", " ");

function shown(key, value) {
  if (/(_at|_at_ms|_ms)$/.test(key) && Number(value) > 1e12) return ticking(Number(value) / 1000);
  if (/^(due|due_at|created_at|updated_at)$/.test(key) && Number(value) > 1e9) return ticking(Number(value) > 1e12 ? Number(value) / 1000 : Number(value));
  if (typeof value === "boolean") return value ? "yes" : "no";
  return h("span", { class: typeof value === "string" && value.length > 14 ? "mono" : "" }, String(value));
}

function turn(value) {
  if (!value || typeof value !== "object") return null;
  const lines = Object.entries(value).filter(([, one]) => one !== null && typeof one !== "object" && one !== "");
  return h("div", { class: "turn" }, h("h3", {}, "Turn"), h("dl", { class: "facts" }, lines.map(([key, one]) => [h("dt", {}, label(key)), h("dd", {}, shown(key, one))])));
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

export function showSandboxes(app, node) {
  const mine = sessionOf(app);
  const list = app.behind.sandboxes;
  if (!list.length) {
    replace(node, h("li", { class: "empty" }, "No sandbox is running. The first prompt of a thread makes one."));
    return;
  }
  const sandboxName = mine && (typeof mine.sandbox === "object" ? mine.sandbox?.name : mine.sandbox);
  replace(node, list.map((one) => {
    const labels = Object.entries(one.labels || {});
    return h("li", { class: sandboxName && [one.name, one.id].includes(sandboxName) ? "sandbox mine" : "sandbox", testid: "sandbox" },
      h("div", { class: "sandbox-head" }, h("span", { class: "mono", title: one.name }, one.name), h("span", { class: `phase ${one.state}` }, one.state)),
      labels.length > 0 && h("div", { class: "labels" }, labels.map(([key, value]) => h("span", { title: `${key}=${value}` }, `${key}=${value}`))));
  }));
}
