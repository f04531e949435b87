// The page: what is open, who looks, and the live updates.
import { fetchJson, h, moveInside, oneStop, renew, replace, ticking, toast } from "./dom.js";
import { composer } from "./composer.js";
import * as discord from "./discord.js";
import * as forge from "./forge.js";
import { showSandboxes, showSession } from "./panel.js";
import * as slack from "./slack.js";

const COALESCE_MS = 50;
const GROUP_S = 300;
const TABS = ["discord", "slack", "forge"];
const byId = (id) => document.getElementById(id);

const app = {
  state: null,
  inspected: { sessions: [], sandboxes: [] },
  place: { platform: "discord", channel: null, thread: null },
  unread: new Set(),
  dismissed: new Set(),
  me: (platform) => localStorage.getItem(`bobbin.${platform}.me`) || (platform === "discord" ? app.state.seeds.user_id : app.state.seeds.slack_user_id),
  discordUser: (id) => app.state.discord.users.find((one) => one.user.id === id)?.user,
  slackUser: (id) => app.state.slack.users.find((one) => one.id === id),
  // Where somebody is already nothing changes, and the list goes away all the same.
  go(platform, channel, thread) { menuOpen(false); location.hash = [platform, channel, thread].filter(Boolean).join("/"); },
  refresh: () => ask("messages"),
  showList: () => showSidebar(),
};

/* What is open. */

function readPlace() {
  const [platform, channel, thread, ...rest] = location.hash.slice(1).split("/");
  const { seeds } = app.state;
  if (platform === "forge" && app.state.has_forge) {
    app.place = { platform, channel: null, thread: null, ...forge.placeOf([channel, thread, ...rest]) };
    return;
  }
  const known = platform === "slack" ? "slack" : "discord";
  const channels = known === "slack" ? app.state.slack.channels : app.state.discord.channels;
  const found = channels.some((one) => one.id === channel);
  app.place = { platform: known, channel: found ? channel : known === "slack" ? seeds.slack_channel_id : seeds.channel_id, thread: found ? thread || null : null };
  app.unread.delete(app.place.thread || app.place.channel);
}

const panes = { channel: makePane(byId("channel-pane")), thread: makePane(byId("thread-pane")) };

function makePane(node) {
  return { node, key: "", list: null, status: null, views: new Map(), asked: 0 };
}

function placeOf(which) {
  const { platform, channel, thread } = app.place;
  const here = app.state[platform].channels.find((one) => one.id === channel);
  return { platform, channel, thread: which === "thread" ? thread : null, direct: Boolean(here?.is_im) };
}

function openPane(which) {
  const pane = panes[which];
  const place = placeOf(which);
  const key = JSON.stringify([place, app.me(place.platform)]);
  if (pane.key === key) { showHead(pane, which); return; }
  pane.key = key;
  pane.views = new Map();
  pane.head = h("header", { class: "pane-head" });
  pane.list = h("ol", { class: "messages", testid: "messages", "aria-label": "Messages", tabindex: "0" });
  pane.status = h("div", { class: "pane-status", role: "status", testid: "status-line" });
  pane.below = h("button", { type: "button", class: "below", testid: "new-below", hidden: true, onclick: () => toEnd(pane) }, "New below ↓");
  pane.list.addEventListener("scroll", () => { if (isAtEnd(pane.list)) pane.below.hidden = true; });
  replace(pane.node, pane.head, pane.list, pane.below, pane.status, composer(app, place));
  showHead(pane, which);
}

function showHead(pane, which) {
  const { platform, channel, thread } = app.place;
  const here = app.state[platform].channels.find((one) => one.id === channel);
  const label = here?.is_im ? "Bobbin" : here?.name || "";
  if (which === "channel") {
    const topic = typeof here?.topic === "string" ? here.topic : here?.topic?.value;
    replace(pane.head, h("h1", {}, h("span", { class: "sigil", "aria-hidden": "true" }, here?.is_im ? "◉" : "#"), label), topic && h("p", {}, topic),
      here?.is_im && h("button", { type: "button", class: "button secondary home", testid: "home", onclick: () => slack.showHome(app, channel) }, "Home"));
    return;
  }
  const name = platform === "discord" ? app.state.discord.channels.find((one) => one.id === thread)?.name : pane.title || "Thread";
  replace(pane.head, h("button", { type: "button", class: "icon back", "aria-label": "Back to the channel", testid: "close-thread", onclick: () => app.go(platform, channel, null) }),
    h("div", {}, h("h1", {}, name || "Thread"), h("p", {}, here?.is_im ? label : `#${label}`)));
}

/* Messages. */

async function loadPane(which) {
  const pane = panes[which];
  if (which === "thread" && !app.place.thread) return;
  const key = pane.key;
  const turn = ++pane.asked;
  const { platform, channel, thread } = placeOf(which);
  const loaded = platform === "discord" ? await discord.load(app, thread || channel) : await slack.load(app, channel, thread);
  if (pane.key !== key || turn !== pane.asked) return;
  showMessages(pane, which, loaded.views);
  showStatus(pane, which, loaded);
  if (which === "thread" && pane.title !== loaded.title) { pane.title = loaded.title; showHead(pane, which); }
}

function showStatus(pane, which, loaded) {
  const { channel, thread } = app.place;
  const stop = loaded.stoppable && which === "thread" && h("button", { type: "button", class: "button secondary", testid: "stop-session", onclick: () => slack.act(app, { type: "stop_session", channel_id: channel, thread_ts: thread }) }, "Stop");
  replace(pane.status, loaded.status && h("span", {}, loaded.status), stop);
}

function showMessages(pane, which, views) {
  const { list } = pane;
  const visible = views.filter((one) => !app.dismissed.has(one.id));
  const atEnd = isAtEnd(list);
  const me = app.me(app.place.platform);
  const fresh = new Map();
  let before = null;
  const nodes = visible.map((view) => {
    const grouped = before && before.authorId === view.authorId && view.at - before.at < GROUP_S && !view.context && !view.answers && !before.ephemeral && !view.ephemeral && !view.system && !before.system;
    const key = `${view.key}|${grouped}`;
    const known = pane.views.get(view.id);
    const node = known?.key === key ? known.node : messageNode(view, grouped, which);
    fresh.set(view.id, { key, node });
    before = view;
    return node;
  });
  const first = pane.views.size === 0;
  const added = visible.filter((view) => !pane.views.has(view.id));
  pane.views = fresh;
  if (!nodes.length) { replace(list, empty(which)); return; }
  settle(list, nodes);
  const isOwn = added.some((view) => view.ephemeral || view.authorId === me || view.askedBy === me);
  if (first || atEnd || isOwn) toEnd(pane);
  else if (added.length) pane.below.hidden = false;
}

const isAtEnd = (list) => list.scrollHeight - list.scrollTop - list.clientHeight < 80;

function toEnd(pane) {
  pane.list.scrollTop = pane.list.scrollHeight;
  pane.below.hidden = true;
}

/** Brings the list to these nodes, touching only what differs, so that focus and open menus stay. */
function settle(list, nodes) {
  nodes.forEach((node, at) => { if (list.children[at] !== node) list.insertBefore(node, list.children[at] || null); });
  while (list.children.length > nodes.length) list.lastChild.remove();
}

function messageNode(view, grouped, which) {
  const classes = ["message", grouped && "grouped", view.ephemeral && "ephemeral", view.failed && "failed", view.system && "system"].filter(Boolean).join(" ");
  const avatar = h("span", { class: `avatar ${view.bot ? "bot" : ""}`, "aria-hidden": "true" }, view.bot ? "" : view.author.slice(0, 1));
  if (!view.bot) avatar.style.setProperty("--hue", String([...view.author].reduce((sum, c) => (sum * 31 + c.charCodeAt(0)) % 360, 7)));
  return h("li", { class: classes, testid: "message", data: { id: view.id }, oncontextmenu: (event) => { if (!event.target.closest("a, input, select, textarea, pre")) { event.preventDefault(); openMenu(view, which, event.clientX, event.clientY); } } },
    view.context && h("p", { class: "message-context" }, view.context),
    view.answers && h("p", { class: "message-context" }, h("button", { type: "button", class: "text", testid: "answers", onclick: (event) => {
      const answered = [...event.currentTarget.closest("ol, ul").children].find((one) => one.dataset.id === view.answers.id);
      answered?.scrollIntoView({ block: "center" });
    } }, `↱ In reply to ${view.answers.author}`)),
    avatar,
    h("div", { class: "message-main" },
      !grouped && h("div", { class: "byline" }, h("strong", {}, view.author), view.bot && h("span", { class: "tag" }, "APP"), ticking(view.at)),
      h("div", { class: "message-body" }, view.body(), view.edited && h("span", { class: "edited" }, "(edited)")),
      view.footer(),
      view.ephemeral && h("p", { class: "private" }, "Only you can see this · ", h("button", { type: "button", class: "text", onclick: () => { app.dismissed.add(view.id); ask("messages"); } }, "Dismiss"))),
    h("button", { type: "button", class: "icon more", "aria-label": `More for the message of ${view.author}`, "aria-haspopup": "menu", testid: "message-menu", onclick: (event) => {
      const box = event.currentTarget.getBoundingClientRect();
      openMenu(view, which, box.left, box.bottom);
    } }, "⋯"));
}

function openMenu(view, which, x, y) {
  const { platform, channel, thread } = placeOf(which);
  const apps = view.ephemeral ? [] : platform === "discord" ? discord.menu(app, view, thread || channel) : slack.menu(app, view, channel);
  const entries = [
    ...apps.map((one) => ({ ...one, app: true })),
    platform === "slack" && which === "channel" && !view.ephemeral && { label: "Reply in thread", run: () => app.go("slack", channel, view.threadTs) },
    { label: "Copy text", run: () => navigator.clipboard.writeText(view.text) },
    { label: "Copy id", run: () => navigator.clipboard.writeText(view.id) },
  ].filter(Boolean);
  const close = () => { node.remove(); document.removeEventListener("pointerdown", outside); };
  const outside = (event) => { if (!node.contains(event.target)) close(); };
  const back = document.activeElement;
  const node = h("ul", { class: "menu", role: "menu", testid: "menu" }, entries.map((one) => h("li", { role: "none" }, h("button", { type: "button", role: "menuitem", onclick: async () => { close(); back?.focus(); await one.run(); } }, one.app && h("span", { class: "tag" }, "APP"), one.label))));
  node.addEventListener("keydown", (event) => {
    const items = [...node.querySelectorAll("button")];
    const at = items.indexOf(document.activeElement);
    if (event.key === "Escape") { close(); back?.focus(); }
    if (event.key === "ArrowDown") { event.preventDefault(); items[(at + 1) % items.length].focus(); }
    if (event.key === "ArrowUp") { event.preventDefault(); items[(at - 1 + items.length) % items.length].focus(); }
  });
  document.body.append(node);
  const box = node.getBoundingClientRect();
  node.style.left = `${Math.max(8, Math.min(x, innerWidth - box.width - 8))}px`;
  node.style.top = `${Math.max(8, Math.min(y, innerHeight - box.height - 8))}px`;
  document.addEventListener("pointerdown", outside);
  node.querySelector("button").focus();
}

function empty(which) {
  const { platform, direct } = placeOf(which);
  const key = (text) => h("kbd", {}, text);
  const lines = which === "thread" ? [h("p", {}, "This thread is empty so far.")]
    : platform === "discord" ? [h("h2", {}, "Start a task"), h("p", {}, "Type ", key("/"), " and choose a command. Bobbin opens a thread, creates a sandbox for it and answers there."), h("p", {}, "In the thread, continue with ", key("/say"), ", the ", h("b", {}, "Reply"), " button, or a message’s menu ", key("⋯"), ".")]
    : direct ? [h("h2", {}, "Talk to Bobbin"), h("p", {}, "Write what to do. Every message here starts its own thread with its own sandbox, unless /bobbin config direct one has turned them all into one thread.")]
    : [h("h2", {}, "Mention Bobbin"), h("p", {}, "Write ", key("@bobbin fix the failing test"), ". Replies in the thread go to the same sandbox."), h("p", {}, "Also: ", key("@bobbin status"), " ", key("@bobbin stop"), " ", key("@bobbin help"))];
  return h("li", { class: "empty-state", testid: "empty" }, h("span", { class: "mark large", "aria-hidden": "true" }), lines, which === "channel" && tasks(platform));
}

/** Tasks to click: what the scripted model can do, or what anybody would ask a real one first. */
const TASKS = {
  scripted: [
    ["Write a file and run it", "write: hello.py print('Hello from a sandbox')\nrun: python3 hello.py || cat hello.py"],
    ["Ask me before a command", "ask: date"],
    ["Ask me a question", "question: Which database? | Postgres = relational | SQLite = a file"],
  ],
  real: [
    ["Write a program and run it", "Write a hello world in Python and run it."],
    ["Look around", "Say which languages and tools are installed here, and their versions."],
    ["Write a test", "Write a function that reverses a text, with a test, and run the test."],
  ],
};

function tasks(platform) {
  const own = TASKS[app.state.model_is_scripted ? "scripted" : "real"];
  const typed = (words) => (platform === "discord" ? `/sandbox ${words}` : `@bobbin ${words}`);
  return h("div", { class: "tasks" }, own.map(([label, words]) => h("button", { type: "button", class: "button secondary", testid: "task", title: typed(words), onclick: () => panes.channel.node.querySelector("form.composer").dispatchEvent(new CustomEvent("task", { detail: typed(words) })) }, label)));
}

/** Says that no real model answers, and how one does. */
function showBanner() {
  byId("banner").hidden = !app.state.model_is_scripted || sessionStorage.getItem("bobbin.banner") === "closed";
}

/* The sidebar. */

function showSidebar() {
  const { platform, channel, thread } = app.place;
  for (const name of TABS) {
    const tab = byId(`tab-${name}`);
    tab.setAttribute("aria-selected", String(platform === name));
    tab.tabIndex = platform === name ? 0 : -1;
    const dot = name !== "forge" && [...app.unread].some((id) => belongs(name, id));
    tab.classList.toggle("unread", dot && platform !== name);
  }
  byId("tab-forge").hidden = !app.state.has_forge;
  const tree = byId("channel-list");
  tree.setAttribute("aria-labelledby", `tab-${platform}`);
  if (platform === "forge") {
    renew(tree, forge.entries(app));
    oneStop(tree, "button");
    return;
  }
  const { discord: d, slack: s } = app.state;
  const entry = (id, label, sigil) => h("button", { type: "button", class: `channel ${app.unread.has(id) ? "unread" : ""}`, "aria-current": channel === id && !thread ? "page" : undefined, testid: "channel", data: { id, name: label }, onclick: () => app.go(platform, id, null) }, h("span", { class: "sigil", "aria-hidden": "true" }, sigil), label);
  const below = (id, parent, label, faded) => h("button", { type: "button", class: `thread ${faded ? "faded" : ""} ${app.unread.has(id) ? "unread" : ""}`, "aria-current": thread === id ? "page" : undefined, testid: "thread", data: { id }, title: label, onclick: () => app.go(platform, parent, id) }, h("span", { class: "sigil", "aria-hidden": "true" }, "↳"), h("span", { class: "name" }, label), dotFor(platform, parent, id));
  const groups = platform === "discord"
    ? d.channels.filter((one) => one.type === 0).sort((a, b) => a.position - b.position).map((one) => h("li", {}, entry(one.id, one.name, "#"),
      h("ul", {}, d.channels.filter((t) => t.parent_id === one.id).sort((a, b) => (a.last_message_id || a.id) < (b.last_message_id || b.id) ? 1 : -1).slice(0, 30).map((t) => h("li", {}, below(t.id, one.id, t.name, t.thread_metadata?.archived))))))
    : s.channels.filter((one) => !one.is_im || one.user === app.me("slack")).sort((a, b) => slackRank(a) - slackRank(b) || (a.name || "").localeCompare(b.name || "")).map((one) => h("li", {}, entry(one.id, one.is_im ? "Bobbin" : one.name, one.is_im ? "◉" : "#"),
      h("ul", {}, s.threads.filter((t) => t.channel === one.id).sort((a, b) => (a.latest_reply < b.latest_reply ? 1 : -1)).slice(0, 30).map((t) => h("li", {}, below(t.ts, one.id, sessionTitle(t) || plain(t.text)))))));
  const title = platform === "discord" ? d.guild.name : s.team.name;
  renew(tree, h("h2", {}, title), h("ul", { class: "tree" }, groups));
  oneStop(tree, "button");
  showPeople();
}

const slackRank = (one) => (one.is_general ? 0 : one.is_im ? 2 : 1);
const belongs = (platform, id) => (platform === "slack") === /^[CD]|\./.test(id);
const plain = (text) => text.replace(/<@[^>]+>/g, "@bobbin").replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&").trim() || "thread";
const sessionTitle = (thread) => app.state.slack.sessions.find((one) => one.channel_id === thread.channel && one.thread_ts === thread.ts)?.title;

function dotFor(platform, parent, id) {
  const { seeds } = app.state;
  const key = platform === "discord" ? `discord:${seeds.guild_id}:${id}` : `slack:${seeds.team_id}:${parent}:${id}`;
  const phase = app.inspected.sessions.find((one) => one.thread === key)?.sandbox?.phase;
  return phase && h("span", { class: `dot ${phase}`, title: `Its sandbox: ${phase}` }, h("span", { class: "visually-hidden" }, `sandbox ${phase}`));
}

function showPeople() {
  const { platform } = app.place;
  const people = platform === "discord" ? app.state.discord.users.filter((one) => !one.user.bot).map((one) => [one.user.id, (one.user.global_name || one.user.username) + (one.admin ? " (admin)" : "")])
    : app.state.slack.users.filter((one) => !one.is_bot).map((one) => [one.id, one.real_name + (one.is_admin ? " (admin)" : "")]);
  const list = byId("user-switch");
  const key = JSON.stringify([people, app.me(platform)]);
  // An open list of choices closes when it is rebuilt.
  if (list.dataset.shown === key) return;
  list.dataset.shown = key;
  replace(list, people.map(([id, label]) => h("option", { value: id, selected: id === app.me(platform) }, label)));
}

/* Everything together. */

function show() {
  readPlace();
  const shell = byId("app");
  shell.dataset.platform = app.place.platform;
  const onForge = app.place.platform === "forge";
  shell.classList.toggle("with-thread", Boolean(app.place.thread || app.place.number));
  panes.channel.node.hidden = onForge;
  panes.thread.node.hidden = !app.place.thread;
  byId("forge-pane").hidden = !onForge;
  byId("pull-pane").hidden = !app.place.number;
  if (onForge) forge.open(app);
  else { forge.close(); openPane("channel"); }
  if (app.place.thread) openPane("thread");
  else { panes.thread.key = ""; panes.thread.title = undefined; }
  showSidebar();
  showBanner();
  showInspector();
}

function showInspector() {
  showSession(app, byId("session-panel"));
  showSandboxes(app, byId("sandbox-list"));
}

/* Reading again: notices only say what; a short wait makes many into one. */

const wanted = new Set();
let timer = null;
let reading = Promise.resolve();

function ask(...what) {
  what.forEach((one) => wanted.add(one));
  timer ??= setTimeout(() => {
    timer = null;
    const now = new Set(wanted);
    wanted.clear();
    reading = reading.then(() => reread(now)).catch((problem) => console.warn(problem));
  }, COALESCE_MS);
}

async function reread(what) {
  if (what.has("state") || !app.state) app.state = await fetchJson("/ui/state");
  if (what.has("inspected")) app.inspected = { sessions: [], sandboxes: [], ...(await fetchJson("/ui/inspector")) };
  show();
  if (what.has("messages") && app.place.platform !== "forge") await Promise.all([loadPane("channel"), loadPane("thread")]);
}

function take(notice) {
  const { platform, channel, thread } = app.place;
  switch (notice.kind) {
    case "everything": ask("state", "inspected", "messages"); break;
    case "inspector": ask("inspected"); break;
    case "channels": ask("state"); break;
    case "view": if (notice.user === app.me("slack")) ask("messages"); break;
    default: {
      const open = notice.platform === platform && [channel, thread].includes(notice.channel);
      if (!open && notice.kind === "message") app.unread.add(notice.channel);
      ask("state", ...(open ? ["messages"] : []));
    }
  }
}

function connect() {
  const live = new EventSource("/live");
  const line = byId("connection");
  live.onopen = () => { line.textContent = "live"; document.body.dataset.live = "yes"; };
  live.onmessage = (event) => take(JSON.parse(event.data));
  // The browser tries again by itself; the first notice of a new stream has everything read again.
  live.onerror = () => { line.textContent = "reconnecting…"; document.body.dataset.live = "no"; };
}

function theme() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const chosen = () => localStorage.getItem("bobbin.theme");
  const set = () => { document.documentElement.dataset.theme = chosen() || (dark.matches ? "dark" : "light"); };
  dark.addEventListener("change", set);
  byId("theme-toggle").addEventListener("click", () => {
    localStorage.setItem("bobbin.theme", document.documentElement.dataset.theme === "dark" ? "light" : "dark");
    set();
  });
  set();
}

theme();
const menuOpen = (open) => { byId("app").classList.toggle("menu-open", open); byId("menu-toggle").setAttribute("aria-expanded", String(open)); };
byId("menu-toggle").addEventListener("click", () => { menuOpen(true); byId("channel-list").querySelector("[tabindex='0']")?.focus(); });
byId("menu-shade").addEventListener("click", () => menuOpen(false));
document.querySelector(".sidebar").addEventListener("keydown", (event) => { if (event.key === "Escape") { menuOpen(false); byId("menu-toggle").focus(); } });
moveInside(byId("channel-list"), "button");
byId("banner-close").addEventListener("click", () => { sessionStorage.setItem("bobbin.banner", "closed"); showBanner(); });
addEventListener("hashchange", () => { menuOpen(false); ask("messages"); });
byId("tab-discord").addEventListener("click", () => app.go("discord", app.state.seeds.channel_id));
byId("tab-slack").addEventListener("click", () => app.go("slack", app.state.seeds.slack_channel_id));
byId("tab-forge").addEventListener("click", () => app.go("forge"));
document.querySelector(".platforms").addEventListener("keydown", (event) => {
  if (!["ArrowLeft", "ArrowRight"].includes(event.key)) return;
  const tabs = TABS.map((name) => byId(`tab-${name}`)).filter((tab) => !tab.hidden);
  const at = tabs.findIndex((tab) => tab.id === `tab-${app.place.platform}`);
  const other = tabs.at((at + (event.key === "ArrowLeft" ? -1 : 1)) % tabs.length);
  other.click();
  other.focus();
});
byId("user-switch").addEventListener("change", (event) => {
  localStorage.setItem(`bobbin.${app.place.platform}.me`, event.target.value);
  ask("messages");
});
addEventListener("unhandledrejection", (event) => toast(event.reason?.message || "Something went wrong."));
// The address names the place, so the skip link must not change it.
const skip = (id, inChat) => byId(id).addEventListener("click", (event) => {
  event.preventDefault();
  if (app.place.platform === "forge") byId(app.place.number ? "pull-body" : "forge-body").focus();
  else inChat(panes[app.place.thread ? "thread" : "channel"]).focus();
});
skip("skip-to-composer", (pane) => pane.node.querySelector("[data-testid=composer]"));
skip("skip-to-messages", (pane) => pane.list);
connect();

