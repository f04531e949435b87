// Slack's messages, blocks and the app's Home.
import { dialog, fetchJson, h, post, replace, size, toast } from "./dom.js";
import { emoji, markdown, mrkdwn, richText } from "./text.js";

/** Does what a person does; refusals are shown. */
export async function act(app, what) {
  try {
    return await post("/_control/slack/act", { user_id: app.me("slack"), ...what });
  } catch (problem) {
    toast(problem.message);
    return { outcome: { kind: "refused", reason: problem.message } };
  }
}

export function textContext(app) {
  return {
    flavour: "standard",
    userName: (id) => app.slackUser(id)?.real_name || (id === "USLACKBOT" ? "Slackbot" : "unknown"),
    channelName: (id) => app.state.slack.channels.find((one) => one.id === id)?.name || "unknown",
  };
}

export function view(app, message, channelId, inThread) {
  const user = app.slackUser(message.user);
  const ctx = { app, channelId, text: textContext(app), target: { channel_id: channelId, message_ts: message.ts }, message, readers: {} };
  return {
    id: message.ts,
    key: JSON.stringify(message) + inThread,
    author: user?.real_name || (message.user === "USLACKBOT" ? "Slackbot" : "Bobbin"),
    authorId: message.user,
    bot: Boolean(message.bot_id),
    at: Number(message.ts.split(".")[0]),
    edited: Boolean(message.edited),
    ephemeral: Boolean(message.is_ephemeral),
    failed: false,
    text: message.text || "",
    threadTs: message.thread_ts || message.ts,
    body: () => body(ctx, message),
    footer: () => footer(ctx, message, inThread),
    system: false,
  };
}

function body(ctx, message) {
  const out = [];
  if (message.blocks?.length) out.push(...message.blocks.map((one) => block(ctx, one)));
  else if (message.text) out.push(h("div", { class: "markdown" }, mrkdwn(message.text, ctx.text)));
  for (const file of message.files || []) out.push(fileNode(file));
  return out;
}

function fileNode(file) {
  const blob = file.permalink;
  if (/^image\/(png|jpe?g|gif|webp)$/.test(file.mimetype || "")) return h("a", { href: blob, target: "_blank", rel: "noopener", class: "picture" }, h("img", { src: blob, alt: file.title || file.name, loading: "lazy" }));
  return h("a", { href: blob, download: file.name, class: "file", testid: "attachment" }, h("span", { class: "sheet", "aria-hidden": "true" }), h("span", {}, file.title || file.name, h("small", {}, size(file.size || 0))));
}

function footer(ctx, message, inThread) {
  const out = [];
  if (!inThread && message.reply_count) {
    out.push(h("button", { type: "button", class: "thread-chip", testid: "open-thread", data: { thread: message.ts }, onclick: () => ctx.app.go("slack", ctx.channelId, message.ts) },
      h("strong", {}, `${message.reply_count} ${message.reply_count === 1 ? "reply" : "replies"}`), h("span", {}, "View thread ›")));
  }
  return out;
}

function text(ctx, object) {
  if (!object) return null;
  return object.type === "mrkdwn" ? h("div", { class: "markdown" }, mrkdwn(object.text || "", ctx.text)) : h("span", {}, (object.text || "").replace(/:([a-z0-9_+-]+):/g, (_, name) => emoji(name)));
}

const TASK = { pending: "○", in_progress: "◐", complete: "✓", error: "✕" };

function task(ctx, one) {
  const more = [one.details, one.output].filter(Boolean).map((part) => h("div", { class: "markdown" }, richText(part, ctx.text)));
  const head = [h("span", { class: "task-mark", "aria-hidden": "true" }, TASK[one.status] || "○"), h("span", {}, one.title), h("span", { class: "visually-hidden" }, `(${(one.status || "pending").replace("_", " ")})`)];
  return more.length ? h("details", { class: `task-card ${one.status || ""}` }, h("summary", {}, head), more) : h("div", { class: `task-card ${one.status || ""}` }, head);
}

function block(ctx, one) {
  switch (one.type) {
    case "header": return h("div", { class: "heading h2", role: "heading", "aria-level": "3" }, text(ctx, one.text));
    case "section": return h("div", { class: "section" }, h("div", {}, text(ctx, one.text), one.fields && h("div", { class: "grid" }, one.fields.map((field) => text(ctx, field)))), one.accessory && element(ctx, one.accessory, one.block_id));
    case "context": return h("div", { class: "context" }, (one.elements || []).map((part) => text(ctx, part)));
    case "divider": return h("hr");
    case "actions": return h("div", { class: "row" }, (one.elements || []).map((part) => element(ctx, part, one.block_id)));
    case "input": return field(one, ctx.readers, `input-${ctx.message?.ts}-${one.block_id}`);
    case "markdown": return h("div", { class: "markdown" }, markdown(one.text || "", ctx.text));
    case "rich_text": return h("div", { class: "markdown" }, richText(one, ctx.text));
    case "plan": return h("div", { class: "plan", testid: "card" }, h("strong", {}, typeof one.title === "string" ? one.title : text(ctx, one.title)), (one.tasks || []).map((part) => task(ctx, part)));
    case "task_card": return task(ctx, one);
    default: return h("p", { class: "small" }, `block ${one.type}`);
  }
}

/** A press; what stands in the inputs of the same message goes along. */
async function fire(ctx, part, blockId, value) {
  return act(ctx.app, { type: "block_action", ...ctx.target, action_id: part.action_id, block_id: blockId, value, values: await entered(ctx.readers) });
}

async function entered(readers) {
  const values = {};
  for (const [id, [action, read]] of Object.entries(readers)) values[id] = { [action]: await read() };
  return values;
}

function element(ctx, part, blockId) {
  if (part.type === "button") {
    const label = part.text?.text || "";
    const style = { primary: "success", danger: "danger" }[part.style] || "secondary";
    const node = h("button", { type: "button", class: `button ${style}`, testid: "button", data: { label }, onclick: async () => {
      if (part.url && /^https?:/.test(part.url)) window.open(part.url, "_blank", "noopener,noreferrer");
      node.classList.add("busy");
      await fire(ctx, part, blockId);
      node.classList.remove("busy");
    } }, text(ctx, part.text), part.url && " ↗");
    return node;
  }
  if (part.type === "external_select") return external(ctx, part, blockId);
  const [node, read, event] = input(part, `act-${part.action_id}`);
  node.addEventListener(event, async () => fire(ctx, part, blockId, await read()));
  return node;
}

const SUGGEST_WAIT_MS = 200;

/** A select whose options the app suggests while somebody types; only what it suggested can be chosen. */
function external(ctx, part, blockId) {
  const found = h("datalist", { id: `suggested-${part.action_id}` });
  const node = h("input", { type: "text", autocomplete: "off", list: found.id, placeholder: part.placeholder?.text, "aria-label": part.placeholder?.text || "Choose", testid: "external-select", data: { action: part.action_id } });
  let options = [];
  let timer = null;
  const ask = async () => {
    const done = await post("/_control/slack/act", { type: "block_suggestion", user_id: ctx.app.me("slack"), channel_id: ctx.channelId, action_id: part.action_id, value: node.value }).catch(() => null);
    options = (done?.options || []).map((one) => ({ value: one.value, label: one.text?.text || one.value }));
    replace(found, options.map((one) => h("option", { value: one.label })));
    choose();
  };
  const choose = async () => {
    const chosen = options.find((one) => one.label === node.value || one.value === node.value);
    if (chosen && document.activeElement !== node) await fire(ctx, part, blockId, chosen.value);
  };
  node.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(ask, SUGGEST_WAIT_MS); });
  node.addEventListener("focus", ask, { once: true });
  node.addEventListener("change", choose);
  node.addEventListener("keydown", (event) => { if (event.key === "Enter") node.blur(); });
  return h("span", { class: "external" }, node, found);
}

/** An input element: its node, how to read it, and the event of a change. */
function input(part, id) {
  const options = (list) => list.map((one) => h("option", { value: one.value, selected: [part.initial_option, ...(part.initial_options || [])].some((first) => first?.value === one.value) }, one.text?.text || one.value));
  switch (part.type) {
    case "plain_text_input": {
      const node = h(part.multiline ? "textarea" : "input", { id, rows: part.multiline ? "5" : undefined, maxlength: part.max_length || 3000, placeholder: part.placeholder?.text, value: part.initial_value || "" });
      return [node, () => node.value, "change"];
    }
    default: {
      const many = part.type.startsWith("multi_");
      const node = h("select", { id, multiple: many, "aria-label": part.placeholder?.text || "Choose" }, !many && h("option", { value: "" }, part.placeholder?.text || "Choose…"), options(part.options || []));
      return [node, () => (many ? [...node.selectedOptions].map((one) => one.value) : node.value || null), "change"];
    }
  }
}

function field(one, readers, id) {
  const [node, read] = input(one.element, id);
  readers[one.block_id] = [one.element.action_id, read];
  return h("div", { class: "field", data: { field: one.block_id } },
    h("label", { for: id }, one.label?.text, one.optional ? h("span", { class: "optional" }, "optional") : h("span", { class: "needed", title: "required" }, "*")), node, one.hint && h("p", { class: "small" }, one.hint.text));
}

let home = null;

/** The app's Home: the app hears that it was opened, and what it publishes is shown, as long as this is open. */
export async function showHome(app, channelId) {
  const node = h("div", { class: "home", testid: "home" }, h("p", { class: "empty" }, "The app has not published a Home yet."));
  const mine = { node, key: "" };
  home = mine;
  dialog({ title: "Home", cancelLabel: "Close", body: node, closed: () => { if (home === mine) home = null; } });
  await act(app, { type: "home_opened", channel_id: channelId });
  app.refresh();
}

function updateHome(app, published, channelId) {
  const key = published ? `${published.id} ${published.hash}` : "";
  if (!home || !key || home.key === key) return;
  home.key = key;
  const ctx = { app, channelId, text: textContext(app), target: { view_id: published.id, channel_id: channelId }, readers: {} };
  replace(home.node, (published.blocks || []).map((one) => block(ctx, one)));
}

export function menu(app, message, channelId) {
  return app.state.slack.shortcuts.map((one) => ({
    label: one.name, run: () => act(app, { type: "shortcut", callback_id: one.callback_id, channel_id: channelId, message_ts: message.id }),
  }));
}

const STATUS = { processing: "Working…", suspended: "Needs attention", active: "", closed: "Done" };

export async function load(app, channelId, thread) {
  const query = new URLSearchParams({ channel: channelId, user_id: app.me("slack") });
  if (thread) query.set("thread_ts", thread);
  const { messages, home: published, session } = await fetchJson(`/ui/slack/messages?${query}`);
  updateHome(app, published, channelId);
  const status = session?.text || STATUS[session?.status] || "";
  return { views: messages.map((one) => view(app, one, channelId, Boolean(thread))), status, stoppable: session?.status === "processing", title: session?.title };
}

