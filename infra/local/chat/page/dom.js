// Building DOM nodes. Text only ever becomes a text node; nothing here parses HTML.

/** Makes an element: `h("button", {class: "x", testid: "send", onclick}, "Send")`. */
export function h(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "testid") node.dataset.testid = value;
    else if (name === "data") Object.assign(node.dataset, value);
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked" || name === "disabled" || name === "selected" || name === "multiple") node[name] = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  append(node, children);
  return node;
}

export function append(node, children) {
  for (const child of [children].flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    node.append(child);
  }
  return node;
}

export function replace(node, ...children) {
  node.replaceChildren();
  return append(node, children);
}

/** Rebuilds what stands in a node, and gives the focus back to what stands there for what had it. */
export function renew(node, ...children) {
  const focused = document.activeElement;
  const inside = focused !== node && node.contains(focused);
  const same = inside && sameAs(node, focused);
  const top = node.scrollTop;
  replace(node, ...children);
  node.scrollTop = top;
  if (same) same()?.focus({ preventScroll: true });
}

const FOCUSABLE = "a[href], button, input, select, textarea, summary, [tabindex]";

/** Finds an element again after a rebuild: by its own id, else by its place among those that can have the focus. */
function sameAs(node, element) {
  const { id } = element.dataset;
  const at = [...node.querySelectorAll(FOCUSABLE)].indexOf(element);
  return () => (id === undefined ? node.querySelectorAll(FOCUSABLE)[at] : node.querySelector(`[data-id="${CSS.escape(id)}"]`));
}

/** Makes a list one stop of the Tab key: the arrow keys, Home and End move in it. */
export function oneStop(node, css) {
  const items = [...node.querySelectorAll(css)];
  const now = items.find((one) => one === document.activeElement) || items.find((one) => one.getAttribute("aria-current") || one.getAttribute("aria-selected") === "true") || items[0];
  items.forEach((one) => { one.tabIndex = one === now ? 0 : -1; });
}

/** What the arrow keys do in such a list. */
export function moveInside(node, css) {
  node.addEventListener("keydown", (event) => {
    const items = [...node.querySelectorAll(css)];
    const at = items.indexOf(document.activeElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 }[event.key];
    if (at < 0 || to === undefined || !items[to]) return;
    event.preventDefault();
    items.forEach((one) => { one.tabIndex = -1; });
    items[to].tabIndex = 0;
    items[to].focus();
  });
}

/** Only web addresses become links. */
export function link(url, ...children) {
  if (!/^https?:\/\//i.test(url)) return h("span", {}, ...children);
  return h("a", { href: url, target: "_blank", rel: "noopener noreferrer nofollow" }, ...children);
}

export function toast(text) {
  const node = h("div", { class: "toast", testid: "toast" }, text);
  document.getElementById("toasts").append(node);
  setTimeout(() => node.remove(), 7000);
}

export async function fetchJson(url, options) {
  const response = await fetch(url, options);
  const text = await response.text();
  let body;
  try { body = JSON.parse(text); } catch { body = { error: text }; }
  if (!response.ok) throw new Error(body.error || `HTTP ${response.status}`);
  return body;
}

export function post(url, body) {
  return fetchJson(url, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
}

export async function upload(file) {
  const type = file.type || "application/octet-stream";
  return fetchJson(`/ui/upload?name=${encodeURIComponent(file.name)}`, { method: "POST", headers: { "content-type": type }, body: file });
}

export function size(bytes) {
  if (bytes < 1024) return `${bytes} B`;
  return bytes < 1024 * 1024 ? `${(bytes / 1024).toFixed(1)} KB` : `${(bytes / 1024 / 1024).toFixed(1)} MB`;
}

const RELATIVE = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
const STEPS = [["year", 31536000], ["month", 2592000], ["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];

export function relative(seconds) {
  const away = seconds - Date.now() / 1000;
  const [unit, length] = STEPS.find(([, s]) => Math.abs(away) >= s) || STEPS[5];
  return RELATIVE.format(Math.trunc(away / length), unit);
}

/** A time that counts by itself. */
export function ticking(seconds) {
  const date = new Date(seconds * 1000);
  const valid = !Number.isNaN(date.getTime());
  return h("time", { class: "stamp", datetime: valid ? date.toISOString() : undefined, title: valid ? date.toLocaleString() : undefined, data: { ticks: seconds } }, relative(seconds));
}

setInterval(() => {
  for (const node of document.querySelectorAll("time[data-ticks]")) {
    const text = relative(Number(node.dataset.ticks));
    if (node.textContent !== text) node.textContent = text;
  }
}, 1000);

/** A form in a dialog. `submit` returns an error by field, a text, or nothing when done. */
export function dialog({ title, submitLabel, cancelLabel = "Cancel", body, submit, closed, draft, keep }) {
  const error = h("p", { class: "form-error", role: "alert" });
  const send = submitLabel && h("button", { type: "submit", class: "primary", testid: "modal-submit" }, submitLabel);
  const form = h("form", { method: "dialog", novalidate: true }, h("h2", { id: "modal-title" }, title), h("div", { class: "fields" }, body), error,
    h("div", { class: "buttons" }, h("button", { type: "button", class: "quiet", testid: "modal-cancel", onclick: () => node.close() }, cancelLabel), send));
  const node = h("dialog", { class: "modal", testid: "modal", "aria-labelledby": "modal-title" }, form);
  let done = false;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (send) send.disabled = true;
    error.textContent = "";
    for (const old of form.querySelectorAll(".field-error")) old.remove();
    try {
      const wrong = await submit();
      if (typeof wrong === "string") error.textContent = wrong;
      else if (wrong) for (const [field, text] of Object.entries(wrong)) {
        form.querySelector(`[data-field="${CSS.escape(field)}"]`)?.append(h("p", { class: "field-error", role: "alert" }, text));
      } else { done = true; node.close(); }
    } catch (problem) { error.textContent = problem.message; }
    if (send) send.disabled = false;
  });
  node.addEventListener("close", () => { if (keep) keep(filled(form)); node.remove(); if (closed) closed(done); });
  document.body.append(node);
  if (draft) fillIn(form, draft);
  node.showModal();
  return node;
}

const inputs = (form) => [...form.querySelectorAll("input:not([type=file]), select, textarea")];
const filled = (form) => inputs(form).map((one) => (one.type === "radio" || one.type === "checkbox" ? one.checked : one.multiple ? [...one.selectedOptions].map((chosen) => chosen.value) : one.value));

function fillIn(form, draft) {
  inputs(form).forEach((one, at) => {
    if (one.type === "radio" || one.type === "checkbox") one.checked = draft[at];
    else if (one.multiple) [...one.options].forEach((option) => { option.selected = draft[at].includes(option.value); });
    else one.value = draft[at];
  });
}
