// Discord's messages, components and modals.
import { dialog, fetchJson, h, post, size, toast, upload } from "./dom.js";
import { markdown } from "./text.js";

const V2 = 32768;
const EPHEMERAL = 64;
const LOADING = 128;
const STYLES = { 1: "primary", 2: "secondary", 3: "success", 4: "danger", 5: "linked" };

/** Does what a person does, and shows what comes back to that person alone. */
export async function interact(app, act) {
  try {
    const done = await post("/_control/discord/interact", { user_id: app.me("discord"), ...act });
    const outcome = done.outcome || {};
    if (outcome.kind === "modal") openModal(app, outcome.modal, act.channel_id);
    return done;
  } catch (problem) {
    toast(problem.message);
    return { outcome: { kind: "refused", reason: problem.message } };
  }
}

export function textContext(app) {
  return {
    flavour: "discord",
    userName: (id) => app.discordUser(id)?.global_name || app.discordUser(id)?.username || "unknown",
    channelName: (id) => app.state.discord.channels.find((one) => one.id === id)?.name || "unknown",
  };
}

/** A stored message in the page's common shape. */
export function view(app, kept, channelId) {
  const { message } = kept;
  const flags = message.flags || 0;
  const author = message.author || {};
  const ctx = { app, message, channelId, text: textContext(app) };
  return {
    id: message.id,
    key: JSON.stringify(kept),
    author: author.global_name || author.username || "unknown",
    authorId: author.id,
    bot: Boolean(author.bot),
    at: Date.parse(message.timestamp) / 1000,
    edited: Boolean(message.edited_timestamp) && !(flags & V2),
    ephemeral: Boolean(flags & EPHEMERAL),
    failed: Boolean(kept.failed),
    text: message.content || "",
    askedBy: message.interaction_metadata?.user?.id,
    body: () => body(ctx, message, flags),
    footer: () => footer(ctx, message),
    context: message.type === 20 && message.interaction_metadata?.user
      ? `${message.interaction_metadata.user.global_name || message.interaction_metadata.user.username} used ${message.interaction_metadata.name ? `/${message.interaction_metadata.name}` : "a command"}` : "",
    answers: message.type === 19 ? { id: message.message_reference?.message_id, author: message.referenced_message?.author?.global_name || message.referenced_message?.author?.username || "a message" } : undefined,
    system: message.type === 18 || message.type === 21,
  };
}

function body(ctx, message, flags) {
  if (message.type === 18) return [h("p", { class: "small" }, `started a thread: ${message.content}`)];
  if (message.type === 21) {
    const starter = message.referenced_message;
    return [h("p", { class: "small" }, "Thread started from"), starter && h("blockquote", {}, body(ctx, starter, starter.flags || 0))];
  }
  if (flags & LOADING) return [h("p", { class: "thinking", testid: "thinking" }, h("span", { class: "dots", "aria-hidden": "true" }, h("i"), h("i"), h("i")), "Bobbin is thinking…")];
  const out = [];
  if (message.content) out.push(h("div", { class: "markdown" }, markdown(message.content, ctx.text)));
  if (!(flags & V2)) for (const file of message.attachments || []) out.push(attachment(file));
  for (const part of message.components || []) out.push(component(ctx, part));
  return out;
}

function footer(ctx, message) {
  const out = [];
  if (message.thread) {
    const thread = ctx.app.state.discord.channels.find((one) => one.id === message.id) || message.thread;
    out.push(h("button", { type: "button", class: "thread-chip", testid: "open-thread", data: { thread: message.id }, onclick: () => ctx.app.go("discord", thread.parent_id, thread.id) },
      h("strong", {}, thread.name), h("span", {}, `${thread.message_count === 1 ? "1 message" : `${thread.message_count || 0} messages`} ›`)));
  }
  return out;
}

function attachment(file) {
  const picture = /^image\/(png|jpe?g|gif|webp)$/.test(file.content_type || "");
  if (picture) return h("a", { href: file.url, target: "_blank", rel: "noopener", class: "picture" }, h("img", { src: file.url, alt: file.description || file.filename, loading: "lazy" }));
  return h("a", { href: file.url, download: file.filename, class: "file", testid: "attachment" }, h("span", { class: "sheet", "aria-hidden": "true" }), h("span", {}, file.filename, h("small", {}, size(file.size || 0))));
}

function component(ctx, part) {
  const press = (values) => interact(ctx.app, { type: "component", channel_id: ctx.channelId, message_id: ctx.message.id, custom_id: part.custom_id, values });
  switch (part.type) {
    case 1: return h("div", { class: "row" }, (part.components || []).map((one) => component(ctx, one)));
    case 2: return button(part, press);
    case 3: return select(part, press);
    case 10: return h("div", { class: "markdown" }, markdown(part.content || "", ctx.text));
    case 14: return part.divider === false ? h("div", { class: "space" }) : h("hr", { class: part.spacing === 2 ? "wide" : "" });
    case 17: {
      const node = h("div", { class: "container", testid: "card" }, (part.components || []).map((one) => component(ctx, one)));
      if (Number.isInteger(part.accent_color)) node.style.setProperty("--accent-bar", `#${part.accent_color.toString(16).padStart(6, "0")}`);
      return part.spoiler ? h("details", { class: "spoiler-box" }, h("summary", {}, "Spoiler"), node) : node;
    }
    default: return h("p", { class: "small" }, `component ${part.type}`);
  }
}

function button(part, press) {
  const label = [part.emoji?.name, part.label].filter(Boolean).join(" ");
  if (part.style === 5) return h("a", { class: "button linked", href: /^https?:/.test(part.url) ? part.url : undefined, target: "_blank", rel: "noopener noreferrer", testid: "button", data: { label: part.label || "" } }, label, " ↗");
  const node = h("button", { type: "button", class: `button ${STYLES[part.style] || "secondary"}`, disabled: Boolean(part.disabled), testid: "button", data: { label: part.label || "" }, onclick: async () => {
    node.classList.add("busy");
    await press();
    node.classList.remove("busy");
  } }, label);
  return node;
}

function select(part, press) {
  const many = (part.max_values || 1) > 1;
  const node = h("select", { multiple: many, disabled: Boolean(part.disabled), "aria-label": part.placeholder || "Choose", testid: "select" },
    !many && h("option", { value: "", selected: !(part.options || []).some((one) => one.default) }, part.placeholder || "Choose…"),
    (part.options || []).map((one) => h("option", { value: one.value, selected: Boolean(one.default) }, one.description ? `${one.label} — ${one.description}` : one.label)));
  const chosen = () => [...node.selectedOptions].map((one) => one.value).filter(Boolean);
  if (!many) node.addEventListener("change", () => chosen().length && press(chosen()));
  return many ? h("div", { class: "row" }, node, h("button", { type: "button", class: "button secondary", onclick: () => press(chosen()) }, "Choose")) : node;
}

/** What was typed into a form stays, as it does in Discord's own client, until the page is left: a form may have to be sent again. */
const drafts = new Map();

export function openModal(app, modal, channelId) {
  const readers = {};
  const key = `${channelId} ${modal.custom_id}`;
  const body = (modal.components || []).map((part) => modalPart(app, part, readers));
  dialog({
    title: modal.title, submitLabel: "Submit", body, draft: drafts.get(key), keep: (draft) => drafts.set(key, draft),
    submit: async () => {
      const fields = {};
      for (const [id, read] of Object.entries(readers)) fields[id] = await read();
      const done = await post("/_control/discord/interact", { type: "modal", user_id: app.me("discord"), channel_id: channelId, custom_id: modal.custom_id, fields });
      return done.outcome?.kind === "failed" ? "Something went wrong. Try again." : undefined;
    },
  });
}

function modalPart(app, part, readers) {
  if (part.type === 10) return h("div", { class: "markdown" }, markdown(part.content || "", textContext(app)));
  const input = part.component;
  const id = `field-${input.custom_id}`;
  const { label } = part;
  const optional = input.required === false;
  const [node, read] = modalInput(input, id, label);
  readers[input.custom_id] = read;
  const group = input.type === 21;
  return h(group ? "fieldset" : "div", { class: "field", data: { field: input.custom_id } },
    h(group ? "legend" : "label", { for: group ? undefined : id }, label, optional ? h("span", { class: "optional" }, "optional") : h("span", { class: "needed", title: "required" }, "*")),
    part.description && h("p", { class: "small" }, part.description), node);
}

function modalInput(input, id, label) {
  switch (input.type) {
    case 4: {
      const node = h(input.style === 2 ? "textarea" : "input", { id, rows: input.style === 2 ? "5" : undefined, maxlength: input.max_length || 4000, placeholder: input.placeholder, required: input.required !== false, value: input.value || "" });
      return [node, () => node.value];
    }
    case 19: {
      const node = h("input", { id, type: "file", multiple: (input.max_values || 1) > 1 });
      return [node, async () => Promise.all([...node.files].map(async (file) => (await upload(file)).id))];
    }
    case 21: {
      const boxes = (input.options || []).map((one) => h("input", { type: "radio", name: id, value: one.value, checked: Boolean(one.default), "aria-label": one.label }));
      const node = h("div", { class: "choices" }, boxes.map((box, at) => h("label", {}, box, h("span", {}, input.options[at].label, input.options[at].description && h("small", {}, input.options[at].description)))));
      return [node, () => boxes.find((box) => box.checked)?.value ?? null];
    }
    default: {
      const node = h("select", { id, "aria-label": label, multiple: (input.max_values || 1) > 1 }, (input.max_values || 1) > 1 ? null : h("option", { value: "" }, input.placeholder || "Choose…"),
        (input.options || []).map((one) => h("option", { value: one.value, selected: Boolean(one.default) }, one.description ? `${one.label} — ${one.description}` : one.label)));
      return [node, () => [...node.selectedOptions].map((one) => one.value).filter(Boolean)];
    }
  }
}

/** The menu of a message: the registered message commands. */
export function menu(app, message, channelId) {
  return app.state.discord.commands.filter((one) => one.type === 3).map((one) => ({
    label: one.name, run: () => interact(app, { type: "message_command", name: one.name, channel_id: channelId, message_id: message.id }),
  }));
}

export async function load(app, channelId) {
  const query = new URLSearchParams({ channel_id: channelId, user_id: app.me("discord") });
  const { messages } = await fetchJson(`/ui/discord/messages?${query}`);
  return { views: messages.map((kept) => view(app, kept, channelId)), status: "" };
}

