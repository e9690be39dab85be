// SPDX-License-Identifier: BSD-3-Clause
// chart: lines and stacked areas over time, by uPlot, in the page's colours.

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { h } from "./dom.js";

const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** Stack series: each becomes the sum of itself and those before it. */
function stack(columns) {
  const sum = new Float64Array(columns[0]?.length ?? 0);

  return columns.map((column) => column.map((v, i) => (sum[i] += v ?? 0)));
}

/** Times of day for an axis, with seconds only where they differ. */
function clock(times) {
  const seconds = times.length > 1 && times[1] - times[0] < 60;

  return times.map((t) => new Date(t * 1000).toLocaleTimeString("en-GB", seconds ? {} : { hour: "2-digit", minute: "2-digit" }));
}

/**
 * A chart. series: [{label, color: "--name"}]; format: a value as text; stacked: areas on one another; line: {value, label}.
 * set([times, ...columns]) replaces the data.
 */
export function chart({ title, series, format, stacked = false, height = 180, mark = null }) {
  const place = h("div", { class: "chart" }, h("h3", null, title)), legend = h("div", { class: "legend" });
  let plot = null, last = null;

  legend.append(...series.map((s) => h("span", null, h("i", { style: { background: `var(${s.color})` } }), s.label)));
  place.append(legend);

  function options(width) {
    const axis = { stroke: color("--muted"), grid: { stroke: color("--line"), width: 1 }, ticks: { stroke: color("--line"), width: 1 }, font: "12px system-ui" };
    const shown = stacked ? [...series].reverse() : series;

    return {
      width, height, legend: { show: false }, cursor: { y: false },
      scales: { y: { range: (u, min, max) => [0, Math.max(max, mark ?? 0, 1e-9) * 1.08] } },
      axes: [{ ...axis, values: (u, times) => clock(times) }, { ...axis, size: 64, values: (u, values) => values.map(format) }],
      series: [{}, ...shown.map((s) => ({
        label: s.label, stroke: color(s.color), width: stacked ? 0 : 1.5, points: { show: false }, spanGaps: false,
        fill: stacked ? color(s.color) : undefined,
      }))],
      hooks: { draw: mark === null ? [] : [drawMark], setCursor: [showValues] },
    };
  }

  function drawMark(u) {
    const y = u.valToPos(mark, "y", true);

    u.ctx.save();
    u.ctx.strokeStyle = color("--bad");
    u.ctx.setLineDash([6, 4]);
    u.ctx.beginPath();
    u.ctx.moveTo(u.bbox.left, y);
    u.ctx.lineTo(u.bbox.left + u.bbox.width, y);
    u.ctx.stroke();
    u.ctx.restore();
  }

  const values = h("span", { class: "muted", "aria-live": "off" });
  place.firstChild.append(" ", values);
  function showValues(u) {
    const i = u.cursor.idx;

    if (i === null || i === undefined || !last) values.textContent = "";
    else
      values.textContent = `${new Date(last[0][i] * 1000).toLocaleTimeString()} · ${series.map((s, k) => `${s.label} ${last[k + 1][i] === null ? "–" : format(last[k + 1][i])}`).join(" · ")}`;
  }

  function drawn(data) {
    return stacked ? [data[0], ...stack(data.slice(1)).reverse()] : data;
  }

  function set(data) {
    last = data;
    const width = Math.max(240, place.clientWidth || 600);

    if (!plot) {
      plot = new uPlot(options(width), drawn(data), place);
    } else {
      if (plot.width !== width) plot.setSize({ width, height });
      plot.setData(drawn(data));
    }
  }

  const again = () => {
    if (!plot) return;
    plot.destroy();
    plot = null;
    if (last) set(last);
  };
  const scheme = matchMedia("(prefers-color-scheme: dark)"), resize = new ResizeObserver(() => last && set(last));

  scheme.addEventListener("change", again);
  addEventListener("themechange", again);
  resize.observe(place);
  return {
    element: place,
    set,
    end: () => {
      scheme.removeEventListener("change", again);
      removeEventListener("themechange", again);
      resize.disconnect();
      plot?.destroy();
    },
  };
}
