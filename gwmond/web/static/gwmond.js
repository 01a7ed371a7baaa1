// Sorts and filters tables, and renews a page's live parts. Pages say the same without it.
// Order and words are kept behind the # of the address: who is sent it sees the same.
"use strict";

const RENEW_MS = 15000;
const sorted = new Map(); // of each live part: the column by which its table is sorted, and how

// Text of a cell as a number, where it is one: "1,234", ">=13", "93% of 15"; NaN else.
function number(text) {
  return parseFloat(text.replace(/^>=/, "").replaceAll(",", ""));
}

function compare(a, b) {
  const [x, y] = [number(a), number(b)];
  if (!Number.isNaN(x) && !Number.isNaN(y)) return x - y;
  if (Number.isNaN(x) !== Number.isNaN(y)) return Number.isNaN(x) ? 1 : -1;
  return a.localeCompare(b, undefined, {numeric: true});
}

function sort(table, column, descending) {
  const body = table.tBodies[0];
  const cell = row => row.cells[column].textContent.trim();
  const rows = [...body.rows].sort((a, b) => compare(cell(a), cell(b)));
  body.append(...(descending ? rows.reverse() : rows));
  [...table.tHead.rows[0].cells].forEach((heading, at) => {
    if (at === column) heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
    else heading.removeAttribute("aria-sort");
  });
}

// "#sort=0.1.3d&find=words": of part 0 the second table by its fourth column, the largest first.
function keep() {
  const kept = new URLSearchParams();
  for (const [key, {column, descending}] of sorted) {
    kept.append("sort", `${key.replace(" ", ".")}.${column}${descending ? "d" : ""}`);
  }
  for (const input of document.querySelectorAll(".filter input")) {
    if (input.value) kept.set("find", input.value);
  }
  history.replaceState(null, "", `#${kept}`);
}

function restore() {
  const kept = new URLSearchParams(location.hash.slice(1));
  for (const text of kept.getAll("sort")) {
    const [, part, table, column, down] = text.match(/^(\d+)\.(\d+)\.(\d+)(d?)$/) ?? [];
    if (column) sorted.set(`${part} ${table}`, {column: Number(column), descending: down === "d"});
  }
  for (const input of document.querySelectorAll(".filter input")) input.value = kept.get("find") ?? "";
}

function makeSortable(part) {
  for (const [at, table] of [...part.querySelectorAll(".wide > table")].entries()) {
    const key = `${part.dataset.part} ${at}`;
    [...table.tHead.rows[0].cells].forEach((heading, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...heading.childNodes);
      heading.append(button);
      button.addEventListener("click", () => {
        const before = sorted.get(key);
        const same = before !== undefined && before.column === column;
        // The first click shows the largest numbers, and names from A on.
        const first = heading.classList.contains("n");
        sorted.set(key, {column, descending: same ? !before.descending : first});
        sort(table, column, sorted.get(key).descending);
        keep();
      });
    });
    if (table.tHead.rows[0].cells[sorted.get(key)?.column]) sort(table, sorted.get(key).column, sorted.get(key).descending);
  }
}

function filter(input) {
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  const rows = [...document.getElementById(input.dataset.filters).querySelectorAll("tbody tr")];
  let shown = 0;
  for (const row of rows) {
    const text = row.textContent.toLowerCase();
    row.hidden = !words.every(word => text.includes(word));
    if (!row.hidden) shown += 1;
  }
  const status = input.closest(".filter").querySelector("[role=status]");
  status.textContent = words.length ? `${shown} of ${rows.length} rows` : "";
}

// Show what is new in a part; what was focused and scrolled stays so.
function replace(part, fresh) {
  const reached = () => [...part.querySelectorAll("a, button, [tabindex]")];
  const boxes = () => [...part.querySelectorAll(".wide")];
  const focused = reached().indexOf(document.activeElement);
  const href = document.activeElement.href;
  const scrolled = boxes().map(box => box.scrollLeft);
  part.replaceChildren(...fresh.childNodes);
  makeSortable(part);
  boxes().forEach((box, at) => { box.scrollLeft = scrolled[at] ?? 0; });
  if (focused < 0) return;
  const again = reached();
  const same = href ? again.find(link => link.href === href) : again[focused];
  (same ?? again[focused])?.focus({preventScroll: true});
}

// Tables and pictures that are wider than their place say so.
function tellCut() {
  for (const box of document.querySelectorAll(".wide")) {
    box.classList.toggle("cut", box.scrollWidth > box.clientWidth);
  }
}

async function renew() {
  if (document.hidden) return;
  try {
    const answer = await fetch(location.href.split("#")[0], {credentials: "same-origin"});
    if (!answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const parts = [...document.querySelectorAll(".live")];
    const fresh = [...page.querySelectorAll(".live")];
    if (parts.length !== fresh.length) {
      location.reload();
      return;
    }
    parts.forEach((part, at) => replace(part, fresh[at]));
    document.querySelectorAll(".filter input").forEach(filter);
    tellCut();
  } catch {
    // gwmond is being restarted: the next renewal will tell
  }
}

// On a phone what is fixed would hide what is new.
for (const box of document.querySelectorAll("#tour")) box.open = innerWidth > 640;
restore();
const live = [...document.querySelectorAll(".live")];
(live.length ? live : [document.getElementById("main")]).forEach((part, at) => {
  part.dataset.part = at;
  makeSortable(part);
});
for (const input of document.querySelectorAll(".filter input")) {
  input.closest(".filter").hidden = false;
  input.addEventListener("input", () => {
    filter(input);
    keep();
  });
  filter(input);
}
tellCut();
for (const late of ["resize", "load"]) addEventListener(late, tellCut);
document.addEventListener("toggle", tellCut, true); // what was folded is shown
// Pages of the ledger, which cost more, have no such element.
if (document.querySelector("noscript")) setInterval(renew, RENEW_MS);
