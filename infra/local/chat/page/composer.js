// The composer: plain text, files, slash commands with their options, mentions.
import { h, post, replace, toast, upload } from "./dom.js";
import * as discord from "./discord.js";
import * as slack from "./slack.js";

const CHOICE_WAIT_MS = 200;
/** Fields of a command that are seen at once, beside those that are required. */
const OPTIONS_SHOWN = 4;
let numbered = 0;

export function composer(app, place) {
  const state = { files: [], command: null, suggestions: [], active: 0 };
  const listId = `suggest-${numbered++}`;
  const chips = h("div", { class: "chips" });
  const list = h("ul", { class: "suggest", id: listId, role: "listbox", "aria-label": "Suggestions", hidden: true, testid: "suggestions" });
  const options = h("div", { class: "options", testid: "command-options", hidden: true });
  const text = h("textarea", { rows: "1", testid: "composer", role: "combobox", "aria-expanded": "false", "aria-controls": listId, "aria-autocomplete": "list", "aria-label": hint(place).label, placeholder: hint(place).label });
  const picker = h("input", { type: "file", multiple: true, class: "visually-hidden", "aria-label": "Attach files", tabindex: "-1", testid: "file-input" });
  const attach = h("button", { type: "button", class: "icon", "aria-label": "Attach files", title: "Attach files", onclick: () => picker.click() }, "+");
  const send = h("button", { type: "submit", class: "primary send", testid: "send", "aria-label": "Send" }, "Send");
  const node = h("form", { class: "composer", novalidate: true }, list, options, chips, h("div", { class: "line" }, attach, picker, text, send), h("p", { class: "hint" }, hint(place).below));

  const grow = () => { text.style.height = "auto"; text.style.height = `${Math.min(text.scrollHeight, 220)}px`; };

  function suggest(entries) {
    state.suggestions = entries;
    state.active = 0;
    list.hidden = !entries.length;
    text.setAttribute("aria-expanded", String(Boolean(entries.length)));
    replace(list, entries.map((one, at) => h("li", { role: "option", id: `${listId}-${at}`, "aria-selected": String(at === 0), testid: "suggestion", data: { name: one.name },
      onmousedown: (event) => { event.preventDefault(); one.take(); } }, h("strong", {}, one.name), one.more && h("span", {}, one.more))));
    mark();
  }

  function mark() {
    [...list.children].forEach((entry, at) => entry.setAttribute("aria-selected", String(at === state.active)));
    if (state.suggestions.length) { text.setAttribute("aria-activedescendant", `${listId}-${state.active}`); list.children[state.active].scrollIntoView({ block: "nearest" }); }
    else text.removeAttribute("aria-activedescendant");
  }

  function complete() {
    const value = text.value;
    const before = value.slice(0, text.selectionStart);
    if (place.platform === "discord" ? value.startsWith("/") : /^\/\S*$/.test(value)) { suggest(place.platform === "discord" ? discordCommands(value) : slackCommands(value)); return; }
    const name = /(?:^|\s)@(\w*)$/.exec(before);
    if (name && place.platform === "slack") { suggest(people(name[1], before)); return; }
    suggest([]);
  }

  function allCommands() {
    return app.state.discord.commands.filter((one) => one.type === 1).flatMap((one) => {
      const below = (one.options || []).filter((option) => option.type === 1);
      return below.length ? below.map((sub) => ({ name: `${one.name} ${sub.name}`, description: sub.description, options: sub.options || [] })) : [{ name: one.name, description: one.description, options: one.options || [] }];
    });
  }

  function discordCommands(value) {
    return allCommands().filter((one) => `/${one.name}`.startsWith(value)).map((one) => ({ name: `/${one.name}`, more: one.description, take: () => choose(one) }));
  }

  function slackCommands(value) {
    return app.state.slack.commands.filter((one) => one.command.startsWith(value))
      .map((one) => ({ name: one.command, more: [one.description, one.usage_hint].filter(Boolean).join(" · "), take: () => fill(`${one.command} `) }));
  }

  function people(typed, before) {
    const rest = text.value.slice(before.length);
    const known = app.state.slack.users.map((one) => ({ name: one.is_bot ? "bobbin" : one.name, more: one.real_name + (one.is_bot ? " · app" : "") }));
    return known.sort((a, b) => (b.name === "bobbin") - (a.name === "bobbin")).filter((one) => one.name.startsWith(typed.toLowerCase()))
      .map((one) => ({ name: `@${one.name}`, more: one.more, take: () => fill(before.replace(/@\w*$/, `@${one.name} `) + rest.trimStart()) }));
  }

  function fill(value) {
    text.value = value;
    text.focus();
    suggest([]);
    grow();
  }

  /** A command with its options as words: `/sandbox agent:plan look around`. What is named stands before or behind the rest, which is the first text. */
  function typedCommand(typed) {
    const named = allCommands().filter((one) => typed === `/${one.name}` || /^\s/.test(typed.slice(one.name.length + 1)) && typed.startsWith(`/${one.name}`));
    const command = named.sort((a, b) => b.name.length - a.name.length)[0];
    if (!command) return null;
    const given = {};
    let rest = typed.slice(command.name.length + 1).trim();
    const value = (option, word) => String(option.choices?.find((one) => one.name === word)?.value ?? (option.type === 5 ? word === "yes" || word === "true" : word));
    const take = (pattern, left) => {
      for (let found = pattern.exec(rest); found; found = pattern.exec(rest)) {
        const option = command.options.find((one) => one.name === found[1]);
        if (!option || option.name in given) return;
        given[option.name] = value(option, found[2]);
        rest = left(found).trim();
      }
    };
    take(/^([a-z_-]+):(\S+)(?:\s|$)/, (found) => rest.slice(found[0].length));
    take(/(?:^|\s)([a-z_-]+):(\S+)$/, (found) => rest.slice(0, found.index));
    const first = command.options.find((one) => one.type === 3 && !(one.name in given));
    if (rest && first) { given[first.name] = rest.startsWith(`${first.name}:`) ? rest.slice(first.name.length + 1).trim() : rest; rest = ""; }
    const missing = command.options.some((one) => one.required && !given[one.name]);
    return { command, given, isComplete: !missing && !rest };
  }

  /** A command is chosen: its options become fields. */
  function choose(command, given = {}) {
    suggest([]);
    const readers = {};
    const field = (option) => optionField(command, option, readers, given[option.name]);
    const isFirst = (option, at) => option.required || at < OPTIONS_SHOWN || option.name in given;
    const more = command.options.filter((option, at) => !isFirst(option, at));
    const fields = [command.options.filter(isFirst).map(field), more.length > 0 && h("details", { class: "more-options", testid: "more-options" }, h("summary", {}, `${more.length} more: ${more.map((one) => one.name).join(", ")}`), more.map(field))];
    state.command = { name: command.name, readers };
    text.value = "";
    text.parentElement.classList.add("with-command");
    replace(options, h("div", { class: "command-name" }, h("strong", {}, `/${command.name}`), h("span", {}, command.description),
      h("button", { type: "button", class: "icon", "aria-label": "Leave the command", onclick: leave }, "✕")), fields);
    options.hidden = false;
    (options.querySelector("textarea, select, input") || send).focus();
  }

  function leave() {
    state.command = null;
    options.hidden = true;
    replace(options);
    text.parentElement.classList.remove("with-command");
    text.focus();
  }

  function optionField(command, option, readers, given = "") {
    const id = `option-${option.name}`;
    const make = () => {
      if (option.choices?.length || option.type === 5) {
        const entries = option.choices || [{ name: "yes", value: "true" }, { name: "no", value: "false" }];
        return h("select", { id, testid: `option-${option.name}` }, h("option", { value: "" }, "—"), entries.map((one) => h("option", { value: String(one.value) }, one.name)));
      }
      if (option.type === 11) return h("input", { id, type: "file", testid: `option-${option.name}` });
      if (option.type === 6) return h("select", { id, testid: `option-${option.name}` }, h("option", { value: "" }, "—"), app.state.discord.users.map((one) => h("option", { value: one.user.id }, one.user.global_name || one.user.username)));
      if (option.type === 8) return h("select", { id, testid: `option-${option.name}` }, h("option", { value: "" }, "—"), app.state.discord.guild.roles.map((one) => h("option", { value: one.id }, one.name)));
      if (option.type === 7) return h("select", { id, testid: `option-${option.name}` }, h("option", { value: "" }, "—"), app.state.discord.channels.map((one) => h("option", { value: one.id }, `#${one.name}`)));
      if (option.type === 3 && !option.autocomplete) return h("textarea", { id, rows: "1", maxlength: option.max_length || 6000, testid: `option-${option.name}` });
      return h("input", { id, type: option.type === 4 || option.type === 10 ? "number" : "text", autocomplete: "off", list: option.autocomplete ? `${id}-choices` : undefined, testid: `option-${option.name}` });
    };
    const input = make();
    if (given && option.type !== 11) input.value = given;
    readers[option.name] = async () => (option.type === 11 ? (input.files[0] ? (await upload(input.files[0])).id : "") : input.value);
    if (input.tagName === "TEXTAREA") {
      input.addEventListener("input", () => { input.style.height = "auto"; input.style.height = `${Math.min(input.scrollHeight, 200)}px`; });
      input.addEventListener("keydown", (event) => { if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); node.requestSubmit(); } });
    }
    input.addEventListener("keydown", (event) => { if (event.key === "Escape") { event.preventDefault(); leave(); } });
    const found = option.autocomplete ? h("datalist", { id: `${id}-choices` }) : null;
    if (found) autocomplete(command, option, input, found, readers);
    return h("div", { class: "option" }, h("label", { for: id }, option.name, option.required ? h("span", { class: "needed", title: "required" }, "*") : h("span", { class: "optional" }, "optional")), input, found, h("small", {}, option.description));
  }

  function autocomplete(command, option, input, found, readers) {
    let timer;
    const ask = async () => {
      const given = {};
      for (const [name, read] of Object.entries(readers)) given[name] = await read();
      const done = await post("/_control/discord/interact", { type: "autocomplete", user_id: app.me("discord"), channel_id: place.thread || place.channel, name: command.name, options: given, focused: option.name }).catch(() => null);
      replace(found, (done?.outcome?.choices || []).map((one) => h("option", { value: one.value }, one.name)));
    };
    input.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(ask, CHOICE_WAIT_MS); });
    input.addEventListener("focus", ask, { once: true });
  }

  async function addFiles(files) {
    for (const file of files) {
      try { state.files.push(await upload(file)); } catch (problem) { toast(problem.message); }
    }
    showFiles();
  }

  function showFiles() {
    replace(chips, state.files.map((file) => h("span", { class: "chip" }, file.filename, h("button", { type: "button", class: "icon", "aria-label": `Remove ${file.filename}`, onclick: () => { state.files = state.files.filter((one) => one !== file); showFiles(); } }, "✕"))));
  }

  async function submit() {
    const typed = text.value.trim();
    if (state.command) {
      const given = {};
      for (const [name, read] of Object.entries(state.command.readers)) given[name] = await read();
      const done = await discord.interact(app, { type: "command", channel_id: place.thread || place.channel, name: state.command.name, options: given });
      if (done.outcome?.kind !== "refused") leave();
      return;
    }
    if (!typed && !state.files.length) return;
    const uploads = state.files.map((file) => file.id);
    let done;
    if (place.platform === "discord") {
      const written = typed.startsWith("/") ? typedCommand(typed) : null;
      if (typed.startsWith("/") && !written) { toast(`There is no command ${typed.split(/\s/)[0]}.`); return; }
      if (written && !written.isComplete) { choose(written.command, written.given); return; }
      done = await discord.interact(app, written
        ? { type: "command", channel_id: place.thread || place.channel, name: written.command.name, options: written.given }
        : { type: "message", channel_id: place.thread || place.channel, text: typed, uploads });
    } else if (typed.startsWith("/")) {
      if (place.thread) { toast("Slack has no slash commands in threads. Mention the bot instead."); return; }
      const [, command, rest] = /^(\/\S+)\s*([\s\S]*)$/.exec(typed);
      done = await slack.act(app, { type: "slash", channel_id: place.channel, command, text: rest });
    } else {
      // The text is gone from the composer before the answer: the message shows up by itself.
      text.value = ""; grow();
      done = await slack.act(app, { type: "message", channel_id: place.channel, thread_ts: place.thread || undefined, typed: true, text: typed, uploads });
      if (done.outcome?.kind === "refused") text.value = typed;
    }
    if (done.outcome?.kind === "refused") return;
    if (text.value.trim() === typed) text.value = "";
    state.files = [];
    showFiles();
    grow();
  }

  picker.addEventListener("change", async () => { await addFiles(picker.files); picker.value = ""; });
  text.addEventListener("input", () => { grow(); complete(); });
  text.addEventListener("blur", () => suggest([]));
  text.addEventListener("paste", (event) => { if (event.clipboardData.files.length) { event.preventDefault(); addFiles(event.clipboardData.files); } });
  text.addEventListener("keydown", (event) => {
    const open = state.suggestions.length > 0;
    if (open && ["ArrowDown", "ArrowUp"].includes(event.key)) {
      event.preventDefault();
      state.active = (state.active + (event.key === "ArrowDown" ? 1 : -1) + state.suggestions.length) % state.suggestions.length;
      mark();
    } else if (open && (event.key === "Enter" || event.key === "Tab")) {
      event.preventDefault();
      state.suggestions[state.active].take();
    } else if (open && event.key === "Escape") {
      event.preventDefault();
      suggest([]);
    } else if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      node.requestSubmit();
    }
  });
  node.addEventListener("submit", async (event) => {
    event.preventDefault();
    send.disabled = true;
    try { await submit(); } finally { send.disabled = false; }
  });
  node.addEventListener("task", (event) => { leave(); fill(event.detail); node.requestSubmit(); });
  node.addEventListener("dragover", (event) => event.preventDefault());
  node.addEventListener("drop", (event) => { event.preventDefault(); addFiles(event.dataTransfer.files); });
  return node;
}

function hint(place) {
  if (place.platform === "discord") {
    return place.thread
      ? { label: "Type / for a command", below: "Discord does not send plain messages to apps over HTTP: use /, the Reply button, or a message’s menu ⋯." }
      : { label: "Type / to start a sandbox", below: "Plain text is only for people here; use / to talk to Bobbin." };
  }
  if (place.thread) return { label: "Reply in thread", below: "Enter sends, Shift+Enter starts a new line." };
  return place.direct ? { label: "Message Bobbin", below: "Every message here starts its own thread." } : { label: "Mention @bobbin with a task", below: "Type @ to mention, / for commands." };
}

