// Sorts and filters tables, and renews a page's live parts. Pages say the same without it.
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

function makeSortable(part) {
  for (const [at, table] of [...part.querySelectorAll("table")].entries()) {
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
      });
    });
    if (sorted.has(key)) sort(table, sorted.get(key).column, sorted.get(key).descending);
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
  } catch {
    // gwmond is being restarted: the next renewal will tell
  }
}

document.querySelectorAll(".live").forEach((part, at) => {
  part.dataset.part = at;
  makeSortable(part);
});
for (const input of document.querySelectorAll(".filter input")) {
  input.closest(".filter").hidden = false;
  input.addEventListener("input", () => filter(input));
}
setInterval(renew, RENEW_MS);
