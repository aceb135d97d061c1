"use strict";
(() => {
  // The theme: the system's, until somebody chooses; "#dark" and "#light" choose too.
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const themes = ["system", "light", "dark"];
  let theme = "system";
  const show = () => {
    if (theme === "system") delete root.dataset.theme;
    else root.dataset.theme = theme;
    button.textContent = "Theme: " + theme;
  };
  const remember = () => {
    try { localStorage.setItem("pgrag-theme", theme); } catch { /* a file may not be allowed to */ }
  };
  try { theme = localStorage.getItem("pgrag-theme") || theme; } catch { /* as above */ }
  if (themes.includes(location.hash.slice(1))) theme = location.hash.slice(1);
  if (!themes.includes(theme)) theme = "system";
  button.hidden = false;
  button.addEventListener("click", () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length];
    show();
    remember();
  });
  show();

  // Queries by the stage that lost their evidence.
  const queries = [...document.querySelectorAll("details.query")];
  const select = document.getElementById("stage");
  if (select) {
    const lost = (query) => query.dataset.lost.trim().split(/\s+/).filter(Boolean);
    for (const stage of new Set(queries.flatMap(lost))) select.add(new Option(stage, stage));
    document.getElementById("filter").hidden = select.options.length < 3;
    select.addEventListener("change", () => {
      for (const query of queries) query.hidden = select.value !== "" && !lost(query).includes(select.value);
    });
  }

  // On paper everything is open.
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details:not([open])")];
    for (const one of closed) one.open = true;
  });
  addEventListener("afterprint", () => {
    for (const one of closed) one.open = false;
  });
})();
