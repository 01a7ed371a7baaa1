// Draws stacked areas of what the page's table says.
"use strict";

const HEIGHT = 320;

// The colour of a legend's field, as the style sheet has it for light and dark pages.
function colour(look) {
  const field = document.querySelector(`.legend i.${look}`);
  return getComputedStyle(field).backgroundColor;
}

// Each part on top of those before it; null where nothing was accounted.
function stacked(parts) {
  let below = parts[0].values.map(value => (value === null ? null : 0));
  return parts.map(part => {
    below = below.map((sum, at) => (sum === null ? null : sum + (part.values[at] ?? 0)));
    return below;
  });
}

// "21:00", "2023-11-14", or both.
function utc(at, from, to) {
  return new Date(at * 1000).toISOString().replace("T", " ").slice(from, to);
}

function ticks(_, times, __, ___, step) {
  return times.map(at => (step >= 86400 || at % 86400 === 0 ? utc(at, 5, 10) : utc(at, 11, 16)));
}

// Room for the numbers of an axis, so that its label is beside them.
function width(_, numbers) {
  return 24 + 8 * Math.max(0, ...(numbers ?? []).map(number => number?.length ?? 0));
}

// A line wherever something was changed, or began to be lost.
function lines(plot, marks) {
  const {ctx, bbox} = plot;
  ctx.save();
  ctx.strokeStyle = getComputedStyle(document.body).color;
  ctx.setLineDash([4, 4]);
  for (const mark of marks) {
    const x = plot.valToPos(mark, "x", true);
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}

function draw(box, starts, parts, marks) {
  box.hidden = false;
  const line = {grid: {stroke: "#8884"}, ticks: {stroke: "#8884"}};
  const axis = {...line, stroke: getComputedStyle(document.body).color};
  // What is on top is drawn first, so that each covers what is not its own.
  const order = parts.map((_, at) => at).reverse();
  const sums = stacked(parts);
  const step = starts[1] - starts[0];
  // Without a mouse the values are those of the last step that has any.
  const last = starts.findLastIndex((_, at) => parts.some(part => part.values[at] !== null));
  const shown = point => (point === null ? last : point >> 1);
  const plot = new uPlot(
    {
      width: box.clientWidth,
      height: HEIGHT,
      hooks: {draw: [drawn => lines(drawn, marks)]},
      tzDate: at => uPlot.tzDate(new Date(at * 1000), "Etc/UTC"),
      scales: {y: {range: (_, __, most) => [0, 1.08 * most || 1]}},
      axes: [
        {...axis, values: ticks},
        {...axis, label: "canonical units", labelSize: 24, size: width},
      ],
      series: [
        {
          label: "from (UTC)",
          value: (_, __, ___, point) => utc(starts[shown(point)], 0, 16),
        },
        ...order.map(at => ({
          label: parts[at].name,
          stroke: colour(parts[at].look),
          fill: colour(parts[at].look),
          width: 0,
          points: {show: false},
          value: (_, __, ___, point) => {
            const value = parts[at].values[shown(point)];
            return value === null ? "?" : value.toFixed(1);
          },
        })),
      ],
    },
    // A step is level from its first second to its last.
    [
      starts.flatMap(at => [at, at + step - 1]),
      ...order.map(at => sums[at].flatMap(sum => [sum, sum])),
    ],
    box,
  );
  box.parentElement.querySelector(".legend").hidden = true; // the chart has one
  addEventListener("resize", () => plot.setSize({width: box.clientWidth, height: HEIGHT}));
}

// Draw the charts of a page of time, whose sections are in a part of this page.
function drawAll(part, page) {
  const {starts, charts, marks} = JSON.parse(page.getElementById("charts")?.textContent ?? "{}");
  for (const box of part.querySelectorAll("[data-chart]")) {
    draw(box, starts, charts[box.dataset.chart], marks);
  }
}

// The page of time of a place, shown on the place's own.
async function trend(part) {
  const answer = await fetch(part.dataset.trend, {credentials: "same-origin"});
  if (!answer.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (page.getElementById("charts") === null) return; // it could not be read
  page.querySelectorAll(".csv").forEach(link => link.remove()); // of another address
  part.append(...page.querySelectorAll("main section"));
  part.hidden = false;
  drawAll(part, page);
}

drawAll(document, document);
document.querySelectorAll("[data-trend]").forEach(trend);
