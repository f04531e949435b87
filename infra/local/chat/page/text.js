// Rendering of message text into DOM nodes: Discord's Markdown, standard Markdown, Slack's mrkdwn.
// Only http(s) becomes a link, and nesting is bounded.
import { h, link, ticking } from "./dom.js";

const DEPTH_MAX = 12;

/** Finds the first match of any rule, again and again. */
function inline(text, rules, ctx, depth = 0) {
  const out = [];
  let rest = text;
  while (rest) {
    let best = null;
    if (depth < DEPTH_MAX) for (const [pattern, make] of rules) {
      const match = pattern.exec(rest);
      if (match && (!best || match.index < best.match.index)) best = { match, make };
    }
    if (!best) { out.push(rest); break; }
    const { match, make } = best;
    if (match.index) out.push(rest.slice(0, match.index));
    out.push(make(match, (inner) => inline(inner, rules, ctx, depth + 1), ctx));
    rest = rest.slice(match.index + match[0].length);
  }
  return out;
}

const wrap = (tag) => (match, inner) => h(tag, {}, inner(match[1]));
const mention = (text) => h("span", { class: "mention" }, text);

function spoiler(match, inner) {
  const node = h("span", { class: "spoiler", role: "button", tabindex: "0", "aria-label": "Spoiler, press to show" }, inner(match[1]));
  const show = () => { node.classList.add("shown"); node.removeAttribute("aria-label"); };
  node.addEventListener("click", show);
  node.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); show(); } });
  return node;
}

function discordTime(match) {
  const seconds = Number(match[1]);
  if (match[2] === "R") return ticking(seconds);
  const styles = { t: { timeStyle: "short" }, T: { timeStyle: "medium" }, d: { dateStyle: "short" }, D: { dateStyle: "long" },
    f: { dateStyle: "long", timeStyle: "short" }, F: { dateStyle: "full", timeStyle: "short" } };
  const date = new Date(seconds * 1000);
  if (Number.isNaN(date.getTime())) return match[0];
  return h("time", { class: "stamp", datetime: date.toISOString() }, new Intl.DateTimeFormat("en", styles[match[2] || "f"]).format(date));
}

const entities = (text) => text.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");
const COMMON = [
  [/\\([\\`*_{}[\]()#+\-.!|~<>])/, (m) => m[1]],
  [/``([^\n]+?)``/, (m) => h("code", {}, m[1])],
  [/`([^`\n]+)`/, (m) => h("code", {}, m[1])],
  [/\[([^\]\n]+)\]\(<?(https?:\/\/[^\s)>]+)>?(?:\s+"[^"]*")?\)/, (m, inner) => link(m[2], inner(m[1]))],
  [/<(https?:\/\/[^\s>]+)>/, (m) => link(m[1], m[1])],
  [/https?:\/\/[^\s<>|)\]]+[^\s<>|)\].,:;"'!?]/, (m) => link(m[0], m[0])],
  [/\*\*\*(?=\S)([\s\S]+?)\*\*\*/, (m, inner) => h("strong", {}, h("em", {}, inner(m[1])))],
  [/\*\*(?=\S)([\s\S]+?)\*\*/, wrap("strong")],
  [/~~(?=\S)([\s\S]+?)~~/, wrap("s")],
  [/\*(?=[^\s*])([^*\n]+?)\*/, wrap("em")],
];
const DISCORD = [
  ...COMMON,
  [/__(?=\S)([\s\S]+?)__/, wrap("u")],
  [/(?<![A-Za-z0-9])_(?=\S)([^_\n]+?)_(?![A-Za-z0-9])/, wrap("em")],
  [/\|\|([\s\S]+?)\|\|/, spoiler],
  [/<t:(-?\d{1,13})(?::([tTdDfFR]))?>/, discordTime],
  [/<@!?(\d+)>/, (m, _, ctx) => mention(`@${ctx.userName(m[1])}`)],
  [/<@&(\d+)>/, () => mention("@role")],
  [/<#(\d+)>/, (m, _, ctx) => mention(`#${ctx.channelName(m[1])}`)],
  [/<\/([^:>]+):\d+>/, (m) => mention(`/${m[1]}`)],
  [/<a?:(\w+):\d+>/, (m) => `:${m[1]}:`],
  [/@(everyone|here)\b/, (m) => mention(m[0])],
];
const STANDARD = [
  [/``([^\n]+?)``/, (m) => h("code", {}, entities(m[1]))],
  [/`([^`\n]+)`/, (m) => h("code", {}, entities(m[1]))],
  [/&(?:lt|gt|amp);/, (m) => entities(m[0])],
  ...COMMON,
  [/__(?=\S)([\s\S]+?)__/, wrap("strong")],
  [/(?<![A-Za-z0-9])_(?=\S)([^_\n]+?)_(?![A-Za-z0-9])/, wrap("em")],
];

const EMOJI = { eyes: "👀", white_check_mark: "✅", heavy_check_mark: "✔️", x: "❌", warning: "⚠️", hourglass_flowing_sand: "⏳", hourglass: "⌛", rocket: "🚀",
  tada: "🎉", thumbsup: "👍", "+1": "👍", thumbsdown: "👎", "-1": "👎", wave: "👋", gear: "⚙️", octagonal_sign: "🛑", stop_sign: "🛑", robot_face: "🤖", zzz: "💤",
  thread: "🧵", sparkles: "✨", bulb: "💡", memo: "📝", question: "❓", lock: "🔒", link: "🔗", package: "📦", wrench: "🔧", bug: "🐛", fire: "🔥",
  large_green_circle: "🟢", large_yellow_circle: "🟡", red_circle: "🔴", large_blue_circle: "🔵", white_circle: "⚪", black_square_for_stop: "⏹️", no_entry: "⛔" };
export const emoji = (name) => EMOJI[name] || `:${name}:`;

const SLACK_TOKENS = [
  [/<@([UW][A-Z0-9]+)(?:\|([^>]*))?>/, (m, _, ctx) => mention(`@${m[2] || ctx.userName(m[1])}`)],
  [/<#([CDG][A-Z0-9]+)(?:\|([^>]*))?>/, (m, _, ctx) => mention(`#${m[2] || ctx.channelName(m[1])}`)],
  [/<!date\^(\d+)\^[^|>]*\|([^>]*)>/, (m) => h("time", { class: "stamp", title: new Date(m[1] * 1000).toLocaleString() }, entities(m[2]))],
  [/<!(here|channel|everyone)(?:\|[^>]*)?>/, (m) => mention(`@${m[1]}`)],
  [/<!subteam\^\w+(?:\|([^>]*))?>/, (m) => mention(m[1] || "@group")],
  [/<(https?:\/\/[^|>\s]+)(?:\|([^>]*))?>/, (m) => link(entities(m[1]), entities(m[2] || m[1]))],
  [/<mailto:([^|>]+)(?:\|([^>]*))?>/, (m) => m[2] || m[1]],
];
const MRKDWN = [
  [/`([^`\n]+)`/, (m) => h("code", {}, entities(m[1]))],
  ...SLACK_TOKENS,
  [/(?<![A-Za-z0-9*])\*(?=\S)([^*\n]+?)\*(?![A-Za-z0-9*])/, wrap("strong")],
  [/(?<![A-Za-z0-9_])_(?=\S)([^_\n]+?)_(?![A-Za-z0-9_])/, wrap("em")],
  [/(?<![A-Za-z0-9~])~(?=\S)([^~\n]+?)~(?![A-Za-z0-9~])/, wrap("s")],
  [/:([a-z0-9_+-]{1,40}):/, (m) => emoji(m[1])],
  [/&(?:lt|gt|amp);/, (m) => entities(m[0])],
];

const DIFF = [[/^(diff |index |---|\+\+\+)/, "heading-line"], [/^@@/, "hunk"], [/^\+/, "added"], [/^-/, "removed"]];

/** A patch, a line each in the colour of what it does. */
function diffLines(body) {
  return body.split("\n").map((line) => h("span", { class: `diff-line ${DIFF.find(([start]) => start.test(line))?.[1] || ""}` }, line, "\n"));
}

/** A block of code; as `diff` with colours. */
export function code(body, language) {
  const copy = h("button", { type: "button", class: "copy", "aria-label": "Copy code", onclick: async () => {
    await navigator.clipboard.writeText(body);
    copy.textContent = "copied";
    setTimeout(() => { copy.textContent = "copy"; }, 1500);
  } }, "copy");
  return h("div", { class: "code" }, language && h("span", { class: "language" }, language), copy, h("pre", { tabindex: "0" }, h("code", {}, language === "diff" ? diffLines(body) : body)));
}

const FENCE = /^(\s{0,3})(```+|~~~+)\s*([^\s`]*)[^`]*$/;
const ITEM = /^(\s*)(?:([-*+•])|(\d{1,9})[.)])\s+(.*)$/;

/** Markdown in blocks. `ctx.flavour`: "discord" or "standard". */
export function markdown(text, ctx, depth = 0) {
  const rules = ctx.flavour === "discord" ? DISCORD : STANDARD;
  const lines = text.split("\n");
  const out = document.createDocumentFragment();
  const say = (line) => inline(line, rules, ctx);
  let paragraph = [];
  const flush = () => {
    if (paragraph.length) out.append(h("p", {}, inline(paragraph.join("\n"), rules, ctx)));
    paragraph = [];
  };
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at];
    const oneLine = /^```([^`\n]+)```$/.exec(line);
    const fence = !oneLine && FENCE.exec(line);
    if (oneLine) { flush(); out.append(code(oneLine[1], "")); continue; }
    if (fence) {
      flush();
      let end = at + 1;
      while (end < lines.length && !(lines[end].trim().startsWith(fence[2]) && !lines[end].trim().replace(/^[`~]+/, ""))) end++;
      const body = lines.slice(at + 1, end).join("\n");
      out.append(code(ctx.flavour === "discord" ? body : entities(body), fence[3]));
      at = end;
      continue;
    }
    const heading = /^(#{1,6})\s+(\S.*)$/.exec(line);
    if (heading && (ctx.flavour !== "discord" || heading[1].length <= 3)) {
      flush();
      out.append(h("div", { class: `heading h${heading[1].length}`, role: "heading", "aria-level": String(Math.min(6, heading[1].length + 2)) }, say(heading[2].replace(/ #+ *$/, ""))));
      continue;
    }
    if (ctx.flavour === "discord" && line.startsWith("-# ")) { flush(); out.append(h("p", { class: "small" }, say(line.slice(3)))); continue; }
    if (ctx.flavour !== "discord" && /^\s*(?:-{3,}|\*{3,}|_{3,})\s*$/.test(line)) { flush(); out.append(h("hr")); continue; }
    if (ctx.flavour === "discord" && line.startsWith(">>> ") && depth < DEPTH_MAX) {
      flush();
      out.append(h("blockquote", {}, markdown([line.slice(4), ...lines.slice(at + 1)].join("\n"), ctx, depth + 1)));
      break;
    }
    if (/^>\s?/.test(line) && !line.startsWith(">>>") && depth < DEPTH_MAX) {
      flush();
      const quoted = [];
      while (at < lines.length && /^>\s?/.test(lines[at])) quoted.push(lines[at++].replace(/^>\s?/, ""));
      at--;
      out.append(h("blockquote", {}, markdown(quoted.join("\n"), ctx, depth + 1)));
      continue;
    }
    if (ctx.flavour !== "discord" && line.includes("|") && /^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$/.test(lines[at + 1] || "")) {
      flush();
      const cells = (row) => row.trim().replace(/^\||\|$/g, "").split("|").map((cell) => cell.trim());
      const head = cells(line);
      const rows = [];
      for (at += 2; at < lines.length && lines[at].includes("|"); at++) rows.push(cells(lines[at]));
      at--;
      out.append(table([head, ...rows].map((row) => row.map(say))));
      continue;
    }
    if (ITEM.test(line)) {
      flush();
      const items = [];
      while (at < lines.length && (ITEM.test(lines[at]) || (/^\s{2,}\S/.test(lines[at]) && items.length))) {
        const item = ITEM.exec(lines[at]);
        // Another kind of marker on the same level begins another list.
        if (item && items.length && item[1].length <= items[0].indent && (item[3] === undefined) !== (items[0].number === undefined)) break;
        if (item) items.push({ indent: item[1].length, number: item[3], text: item[4] });
        else items[items.length - 1].text += `\n${lines[at].trim()}`;
        at++;
      }
      at--;
      out.append(list(items, say));
      continue;
    }
    if (!line.trim()) flush();
    else paragraph.push(line);
  }
  flush();
  return out;
}

function list(items, say) {
  const base = items[0].indent;
  const ordered = items[0].number !== undefined;
  const node = h(ordered ? "ol" : "ul", { start: ordered && items[0].number !== "1" ? items[0].number : undefined });
  for (let at = 0; at < items.length; at++) {
    const task = /^\[([ xX])\]\s+([\s\S]*)$/.exec(items[at].text);
    const entry = task
      ? h("li", { class: "task" }, h("input", { type: "checkbox", disabled: true, checked: task[1] !== " ", "aria-label": task[1] === " " ? "open" : "done" }), say(task[2]))
      : h("li", {}, say(items[at].text));
    let end = at + 1;
    while (end < items.length && items[end].indent > base + 1) end++;
    if (end > at + 1) entry.append(list(items.slice(at + 1, end), say));
    node.append(entry);
    at = end - 1;
  }
  return node;
}

function table(rows) {
  const [head, ...body] = rows;
  return h("div", { class: "table", tabindex: "0", role: "region", "aria-label": "Table" }, h("table", {},
    h("thead", {}, h("tr", {}, head.map((cell) => h("th", {}, cell)))),
    h("tbody", {}, body.map((row) => h("tr", {}, row.map((cell) => h("td", {}, cell)))))));
}

/** Slack's mrkdwn. */
export function mrkdwn(text, ctx) {
  const out = document.createDocumentFragment();
  text.split(/```/).forEach((part, at) => {
    if (at % 2) { out.append(code(entities(part.replace(/^\n|\n$/g, "")), "")); return; }
    let quote = null;
    for (const line of part.replace(/^\n|\n$/g, "").split("\n")) {
      const quoted = /^&gt;\s?(.*)$/.exec(line) || /^>\s?(.*)$/.exec(line);
      if (quoted) {
        if (!quote) { quote = h("blockquote"); out.append(quote); }
        quote.append(h("p", {}, inline(quoted[1], MRKDWN, ctx)));
      } else {
        quote = null;
        if (line.trim() || part.trim()) out.append(h("p", { class: "line" }, line ? inline(line, MRKDWN, ctx) : h("br")));
      }
    }
  });
  return out;
}

/** Slack's `rich_text` block. */
export function richText(block, ctx) {
  const piece = (one) => {
    const style = one.style || {};
    let node = one.text ?? "";
    if (one.type === "link") node = link(one.url || "", one.text || one.url || "");
    else if (one.type === "user") node = mention(`@${ctx.userName(one.user_id)}`);
    else if (one.type === "channel") node = mention(`#${ctx.channelName(one.channel_id)}`);
    else if (one.type === "emoji") node = emoji(one.name);
    else if (one.type === "broadcast") node = mention(`@${one.range}`);
    if (style.code) node = h("code", {}, node);
    if (style.bold) node = h("strong", {}, node);
    if (style.italic) node = h("em", {}, node);
    if (style.strike) node = h("s", {}, node);
    return node;
  };
  const part = (one) => {
    const pieces = (one.elements || []).map((inner) => (inner.type === "rich_text_section" ? h("li", {}, (inner.elements || []).map(piece)) : piece(inner)));
    if (one.type === "rich_text_preformatted") return code((one.elements || []).map((e) => e.text || e.url || "").join(""), one.language || "");
    if (one.type === "rich_text_quote") return h("blockquote", {}, h("p", {}, pieces));
    if (one.type === "rich_text_list") return h(one.style === "ordered" ? "ol" : "ul", {}, pieces);
    return h("p", { class: "pre" }, pieces);
  };
  return (block.elements || []).map(part);
}
