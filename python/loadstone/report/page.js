"use strict";
// Draws every panel from the JSON beside it, in the colours of the page's style, and redraws when
// the theme changes. Nothing is loaded.
(function () {
  const style = () => getComputedStyle(document.documentElement);
  const narrow = () => window.innerWidth < 600;

  // "var(--c0)" becomes the colour; "var(--c0/0.2)" the same, translucent.
  function resolve(value, css) {
    if (typeof value === "string") {
      const m = /^var\((--[a-z0-9]+)(?:\/([0-9.]+))?\)$/.exec(value);
      if (!m) return value;
      const colour = css.getPropertyValue(m[1]).trim();
      if (!m[2]) return colour;
      const n = parseInt(colour.slice(1), 16);
      return "rgba(" + (n >> 16) + "," + ((n >> 8) & 255) + "," + (n & 255) + "," + m[2] + ")";
    }
    if (Array.isArray(value)) {
      return value.length && typeof value[0] === "number" ? value : value.map((v) => resolve(v, css));
    }
    if (value && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, resolve(v, css)]));
    }
    return value;
  }

  function draw(plot) {
    const figure = resolve(JSON.parse(plot.querySelector("script").textContent), style());
    // Many must stand out: dark on the light page, bright on the dark one.
    const light = !matchMedia("(prefers-color-scheme: dark)").matches;
    figure.data.forEach((trace) => { if (trace.type === "heatmap") trace.reversescale = light; });
    if (narrow()) {
      figure.layout.font.size = 11;
      figure.layout.margin.r = 6;
    }
    Plotly.react(plot.querySelector(".plot"), figure.data, figure.layout, {
      responsive: true,
      displaylogo: false,
      displayModeBar: false,
      scrollZoom: false,
    });
  }

  const plots = Array.from(document.querySelectorAll(".panel"));
  const drawAll = () => plots.forEach(draw);
  drawAll();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);

  document.querySelectorAll("button[data-csv]").forEach((button) => {
    const text = JSON.parse(document.getElementById(button.dataset.csv).textContent);
    button.addEventListener("click", () => {
      if (button.dataset.do === "copy") {
        navigator.clipboard.writeText(text).then(
          () => { button.textContent = "Copied"; },
          () => { button.textContent = "Not allowed here; use Save"; },
        );
        return;
      }
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
      link.download = button.dataset.csv.replace(/^csv-/, "") + ".csv";
      link.click();
      URL.revokeObjectURL(link.href);
    });
  });
  document.documentElement.dataset.drawn = String(plots.length);
})();
