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

function draw(box, starts, parts) {
  box.hidden = false;
  const line = {grid: {stroke: "#8884"}, ticks: {stroke: "#8884"}};
  const axis = {...line, stroke: getComputedStyle(document.body).color};
  // What is on top is drawn first, so that each covers what is not its own.
  const order = parts.map((_, at) => at).reverse();
  const sums = stacked(parts);
  const step = starts[1] - starts[0];
  const plot = new uPlot(
    {
      width: box.clientWidth,
      height: HEIGHT,
      tzDate: at => uPlot.tzDate(new Date(at * 1000), "Etc/UTC"),
      scales: {y: {range: (_, __, most) => [0, most || 1]}},
      axes: [
        {...axis, values: ticks},
        {...axis, label: "canonical units", labelSize: 20},
      ],
      series: [
        {
          label: "from (UTC)",
          value: (_, __, ___, point) => (point === null ? "--" : utc(starts[point >> 1], 0, 16)),
        },
        ...order.map(at => ({
          label: parts[at].name,
          stroke: colour(parts[at].look),
          fill: colour(parts[at].look),
          width: 0,
          points: {show: false},
          value: (_, __, ___, point) => {
            const value = point === null ? null : parts[at].values[point >> 1];
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

const {starts, charts} = JSON.parse(document.getElementById("charts")?.textContent ?? "{}");
for (const box of document.querySelectorAll("[data-chart]")) {
  draw(box, starts, charts[box.dataset.chart]);
}
