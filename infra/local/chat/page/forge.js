// The laptop's forge: repositories in the list, one of them in the first pane, a pull request of it in the second. It is read
// while it is open, and not before.
import { dialog, fetchJson, h, post, renew, replace, toast } from "./dom.js";
import { code } from "./text.js";

const PAUSE_MS = 2000;
/** The pause is at least so many times as long as the last read took. */
const PAUSE_TIMES = 5;
/** A pull request of more files shows them folded. */
const UNFOLDED_MAX = 20;
const byId = (id) => document.getElementById(id);

let list = null;
/** The repository that the list has whole. */
let listedFor = null;
let pull = null;
let trouble = "";
let key = null;
let timer = null;
let turn = 0;
/** The address of what is shown, and its data as text: the same is not drawn again. */
let drawn = {};

/** What an address names behind `#forge/`. */
export function placeOf([owner, name, number]) {
  return { repository: owner && name ? `${owner}/${name}` : null, number: /^[1-9]\d*$/.test(number || "") ? Number(number) : null };
}

/** Shows the place; the first time, and for another place, it is read at once. */
export function open(app) {
  const { repository, number } = app.place;
  const now = `${repository}/${number}`;
  if (key === now) return;
  if (key === null) drawn = {};
  key = now;
  pull = null;
  trouble = "";
  draw(app);
  read(app);
}

/** Nothing is read from now on. */
export function close() {
  key = null;
  turn += 1;
  clearTimeout(timer);
}

async function read(app) {
  clearTimeout(timer);
  const own = ++turn;
  const began = performance.now();
  const { repository, number } = app.place;
  try {
    const query = `repository=${encodeURIComponent(repository || "")}`;
    const [all, one] = await Promise.all([fetchJson(`/ui/forge?${query}`), number && fetchJson(`/ui/forge/pull?${query}&number=${number}`)]);
    if (own !== turn) return;
    [list, listedFor, pull, trouble] = [all, repository, one, ""];
  } catch (problem) {
    if (own !== turn) return;
    trouble = problem.message;
  }
  draw(app);
  timer = setTimeout(() => again(app), Math.max(PAUSE_MS, PAUSE_TIMES * (performance.now() - began)));
}

/** A page that nobody sees waits. */
function again(app) {
  if (document.hidden) timer = setTimeout(() => again(app), PAUSE_MS);
  else read(app);
}

/* What is shown. */

function draw(app) {
  const { repository, number } = app.place;
  const isRead = list !== null && listedFor === repository;
  const one = isRead && list.repositories.find((each) => each.full_name === repository);
  update("list", [list, app.place], () => app.showList());
  update("repository", [repository, isRead, one || list, trouble], () => (repository ? showRepository(app, one, isRead) : showAll(app)));
  update("pull", [number, pull, trouble], () => showPull(app));
  update("trouble", trouble, () => { for (const id of ["forge-status", "pull-status"]) byId(id).textContent = trouble; });
}

function update(part, data, show) {
  const text = JSON.stringify(data);
  if (drawn[part] === text) return;
  drawn[part] = text;
  show();
}

/** The entries beside the panes. */
export function entries(app) {
  const { repository, number } = app.place;
  const here = (is) => (is ? "page" : undefined);
  const entry = (one) => h("button", { type: "button", class: "channel", "aria-current": here(one.full_name === repository && !number), testid: "repository", title: one.full_name, data: { id: one.full_name }, onclick: () => app.go("forge", one.full_name, null) },
    h("span", { class: "sigil", "aria-hidden": "true" }, one.is_private ? "◆" : "◇"), h("span", { class: "name" }, one.full_name));
  const below = (one, each) => h("button", { type: "button", class: "thread", "aria-current": here(one.full_name === repository && each.number === number), title: each.title, data: { id: `${one.full_name}/${each.number}` }, onclick: () => app.go("forge", one.full_name, each.number) },
    h("span", { class: "sigil", "aria-hidden": "true" }, "↳"), h("span", { class: "name" }, `#${each.number} ${each.title}`));
  const rows = (list?.repositories || []).map((one) => h("li", {}, entry(one), h("ul", {}, one.pull_requests.filter((each) => isOpen(each)).map((each) => h("li", {}, below(one, each))))));
  return [h("h2", {}, "Repositories"), h("ul", { class: "tree" }, rows, more(list?.more, "repositories")),
    h("button", { type: "button", class: "channel", testid: "new-repository", data: { id: "new" }, onclick: () => create(app) }, h("span", { class: "sigil", "aria-hidden": "true" }, "+"), "New repository")];
}

const isOpen = (one) => ["draft", "open"].includes(one.state);
const state = (one) => h("span", { class: `phase ${one.state}`, testid: "pull-state" }, one.state);
const more = (count, what) => count > 0 && h("li", { class: "empty" }, `${count} more ${what} are not shown here.`);
const visibility = (one) => h("span", { class: "tag", testid: "visibility" }, one.is_private ? "PRIVATE" : "PUBLIC");

function showAll(app) {
  replace(byId("forge-head"), h("h1", {}, "Forge"), h("p", {}, "Repositories of this laptop, on a forge compatible with GitHub"));
  const all = list?.repositories || [];
  renew(byId("forge-body"),
    !list && unread("forge"),
    list && !all.length && h("p", { class: "empty" }, "There is no repository yet. Make one, then name it in a task’s repo option."),
    h("ul", { class: "rows" }, all.map((one) => row(one.full_name, () => app.go("forge", one.full_name, null), h("strong", {}, one.full_name), visibility(one)))),
    h("button", { type: "button", class: "button primary", onclick: () => create(app) }, "New repository"));
}

/** What stands where nothing is read yet; why it cannot be read stands below. */
const unread = (what) => h("p", { class: "empty" }, trouble ? "" : `The ${what} is being read.`);

function showRepository(app, one, isRead) {
  const name = app.place.repository;
  replace(byId("forge-head"), h("h1", {}, name), one && visibility(one), one?.is_archived && h("span", { class: "tag" }, "ARCHIVED"), one && visit({ repository: name }));
  if (!one) {
    renew(byId("forge-body"), isRead ? h("p", { class: "empty" }, `There is no repository ${name}. Choose another one in the list.`) : unread("repository"));
    return;
  }
  const pulls = one.pull_requests.map((each) => row(`pull ${each.number}`, () => app.go("forge", name, each.number), h("span", { class: "number" }, `#${each.number}`), h("strong", {}, each.title), branches(each), state(each)));
  const heads = one.branches.map((each) => h("li", { testid: "branch" }, h("span", { class: "mono" }, each.name), each.name === one.default_branch && h("span", { class: "tag" }, "DEFAULT"), h("span", { class: "subject" }, each.subject), h("span", { class: "mono" }, each.sha.slice(0, 7))));
  renew(byId("forge-body"),
    h("dl", { class: "facts" }, h("dt", {}, "clone"), h("dd", { class: "mono" }, one.clone_url), h("dt", {}, "default branch"), h("dd", { class: "mono" }, one.default_branch)),
    h("h2", {}, "Pull requests"),
    pulls.length ? h("ul", { class: "rows" }, pulls, more(one.more_pull_requests, "pull requests")) : h("p", { class: "empty" }, "There is none yet. A task in this repository that changes files offers one."),
    h("h2", {}, "Branches"),
    heads.length ? h("ul", { class: "rows" }, heads, more(one.more_branches, "branches")) : h("p", { class: "empty" }, "There is none yet: nothing was pushed."));
}

const row = (id, go, ...content) => h("li", {}, h("button", { type: "button", class: "row-link", testid: "forge-row", data: { id }, onclick: go }, content));
const branches = (one) => h("span", { class: "mono subject" }, `${one.head} → ${one.base}`);

function showPull(app) {
  const { repository, number } = app.place;
  if (!number) { replace(byId("pull-head")); replace(byId("pull-body")); return; }
  replace(byId("pull-head"), h("button", { type: "button", class: "icon back", "aria-label": "Back to the repository", testid: "close-pull", onclick: () => app.go("forge", repository, null) }),
    h("div", {}, h("h1", {}, pull?.title || `Pull request #${number}`), h("p", {}, `#${number} of ${repository}`)));
  if (!pull) { renew(byId("pull-body"), unread("pull request")); return; }
  const press = (label, kind, wish) => h("button", { type: "button", class: `button ${kind}`, testid: "forge-press", data: { id: wish.do, label }, onclick: (event) => pressed(app, event.currentTarget, wish) }, label);
  const target = { repository, number };
  const count = pull.files.length + pull.more_files;
  renew(byId("pull-body"),
    h("p", { class: "pull-line" }, state(pull), h("span", {}, `by ${pull.author}`), branches(pull)),
    h("div", { class: "row" },
      pull.state === "draft" && press("Ready for review", "primary", { do: "ready", ...target }),
      pull.state === "open" && press("Merge", "success", { do: "merge", ...target, seen_sha: pull.head_sha }),
      isOpen(pull) && press("Close", "danger", { do: "close", ...target }),
      visit(target)),
    pull.body ? h("p", { class: "pull-text", testid: "pull-text" }, pull.body) : h("p", { class: "empty" }, "It has no text."),
    h("h2", {}, count === 1 ? "1 file" : `${count} files`),
    pull.files.map((one) => file(one, pull.files.length <= UNFOLDED_MAX)),
    h("ul", {}, more(pull.more_files, "files")));
}

function file(one, unfolded) {
  return h("details", { class: "pull-file", open: unfolded, testid: "pull-file", data: { path: one.path } },
    h("summary", {}, h("span", { class: "mono" }, one.path), h("span", {}, one.status), h("span", { class: "plus" }, `+${one.additions}`), h("span", { class: "minus" }, `−${one.deletions}`)),
    one.patch ? code(one.patch, "diff") : h("p", { class: "empty" }, one.is_long ? "It is too long to be shown here. Open it on the forge." : "No lines of text have changed."));
}

/* What is pressed. */

async function pressed(app, button, wish) {
  if (button.classList.contains("busy")) return;
  button.classList.add("busy");
  try { await post("/ui/forge", wish); } catch (problem) { toast(problem.message); }
  button.classList.remove("busy");
  if (app.place.platform !== "forge") return;
  await read(app);
  // The next button is another one: a second press of the key must not reach it.
  if (document.activeElement === document.body) byId("pull-body").focus();
}

function visit(target) {
  return h("button", { type: "button", class: "button secondary home", testid: "open-on-forge", data: { id: "open" }, onclick: async () => {
    // Opened at the press: a window that comes later would be blocked.
    const there = window.open("", "_blank");
    if (there) there.opener = null;
    try {
      const { url } = await post("/ui/forge", { do: "open", ...target });
      if (there) there.location = url;
      else toast("The browser blocked the window. Allow windows of this page, and press again.");
    } catch (problem) { there?.close(); toast(problem.message); }
  } }, "Open on the forge");
}

function create(app) {
  const name = h("input", { id: "repository-name", name: "name", maxlength: "100", autocomplete: "off", spellcheck: "false", testid: "repository-name" });
  const own = h("input", { type: "checkbox", checked: true, testid: "repository-private" });
  dialog({
    title: "New repository",
    submitLabel: "Create",
    body: [h("div", { class: "field", data: { field: "name" } }, h("label", { for: "repository-name" }, "Name"), name),
      h("div", { class: "choices" }, h("label", {}, own, h("span", {}, "Private", h("small", {}, "Only people of its organisation and its apps see it"))))],
    submit: async () => {
      if (!name.value.trim()) return { name: "Write a name." };
      const made = await post("/ui/forge", { do: "create", name: name.value.trim(), private: own.checked });
      app.go("forge", made.repository, null);
    },
  });
}
